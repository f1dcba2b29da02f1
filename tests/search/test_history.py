from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.search.endpoint import Endpoint

from patience import PATIENCE_S
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, Message, ModelReply, Step, SystemMessage, UserMessage
from windowpane.search.base import SearchQuery
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.remote import RemoteEmbedder
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.history import RETRY_S, Held, HistoryIndex, HistoryResult, Past

pytestmark = pytest.mark.anyio

AT = datetime(2026, 5, 1, tzinfo=UTC)
SESSION = SessionId("ses_one")
TALK = (
    "My parrot is called Kiwi.",
    "What a lovely name for a bird.",
    "We fly to Oslo in June.",
    "Pack something warm.",
    "The car needs new tyres.",
    "Winter tyres or summer tyres?",
    "What should I cook tonight?",
    "Soup.",
)


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        yield client


def said(*texts: str, first_seq: int = 1) -> list[Message]:
    return [UserMessage(content=text, seq=first_seq + number, at=AT) for number, text in enumerate(texts)]


def order(result: HistoryResult) -> list[int]:
    """Return the sequence numbers of messages, nearest first."""
    return [result.messages[int(position)].seq for position in np.argsort(-result.fused, kind="stable")]


async def search(
    index: HistoryIndex, messages: Sequence[Message], text: str, before_seq: int | None = None, deadline_s: float = 60
) -> HistoryResult:
    return await index.search(SESSION, messages, SearchQuery(text), before_seq=before_seq, deadline_s=deadline_s)


async def test_a_message_is_found_by_its_meaning(minilm: MiniLM) -> None:
    result = await search(HistoryIndex(minilm), said(*TALK), "the name of my pet", before_seq=7)

    assert order(result)[0] in (1, 2)
    assert len(result.messages) == 6
    assert not np.isnan(result.meaning).any()
    assert result.degraded == ()


async def test_without_an_embedder_words_decide_and_the_result_says_so() -> None:
    result = await search(HistoryIndex(None), said(*TALK), "Which tyres does the car need?", before_seq=7)

    assert order(result)[:2] == [5, 6]
    assert np.isnan(result.meaning).all()
    assert result.degraded == ("recall by keywords only: no embedding model is configured",)


async def test_what_speaks_for_a_message_speaks_a_little_for_its_neighbours() -> None:
    result = await search(HistoryIndex(None), said(*TALK), "Kiwi")

    assert order(result)[:3] == [1, 2, 3]
    assert result.words[1] == result.words[2] == 0


async def test_only_what_lies_before_the_window_is_searched() -> None:
    result = await search(HistoryIndex(None), said(*TALK), "soup", before_seq=5)

    assert [message.seq for message in result.messages] == [1, 2, 3, 4]


async def test_every_message_is_embedded_once_with_its_neighbours(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"))

    await search(index, said(*TALK[:6]), "q", before_seq=4)
    await search(index, said(*TALK[6:], first_seq=7), "q", before_seq=5)

    assert [text for text in endpoint.texts if text != "q"] == [
        "\n".join(TALK[0:4]),
        "\n".join(TALK[0:3]),
        "\n".join(TALK[0:2]),
        "\n".join(TALK[1:5]),
    ]


async def test_a_message_that_was_last_is_embedded_again_when_the_next_one_is_known(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"))
    await search(index, said(*TALK[:2]), "q")
    endpoint.texts.clear()

    result = await search(index, said(TALK[2], first_seq=3), "q")

    # The third message has the same two before it and none after: its text is that of the second with its neighbours.
    assert endpoint.texts == ["q", "\n".join(TALK[0:3])]
    assert result.degraded == ()


async def test_another_process_finds_the_vectors_in_the_cache(
    endpoint: Endpoint, client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    embedder = RemoteEmbedder(client, endpoint.url, "m")
    first = await search(HistoryIndex(embedder, VectorCache(tmp_path)), said(*TALK), "q", before_seq=7)
    endpoint.texts.clear()

    second = await search(HistoryIndex(embedder, VectorCache(tmp_path)), said(*TALK), "q", before_seq=7)

    assert endpoint.texts == ["q"]
    assert (first.fused == second.fused).all()


async def test_a_search_does_not_wait_for_a_slow_embedder(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    endpoint.behaviour = "slow"
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"))

    result = await search(index, said(*TALK), "Kiwi", before_seq=7, deadline_s=0.05)

    assert order(result)[0] == 1
    assert result.degraded == ("recall by keywords only: the embedding model was still loading",)


async def test_embedding_goes_on_in_the_background(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    async with HistoryIndex(RemoteEmbedder(client, endpoint.url, "m")) as index:
        await search(index, said(*TALK), "q", before_seq=2)
        endpoint.behaviour = "slow"
        late = await search(index, (), "q", before_seq=7, deadline_s=0.05)
        endpoint.behaviour = "good"
        endpoint.go_on.set()
        found = await search(index, (), "q", before_seq=7)

    assert late.degraded != ()
    assert not np.isnan(found.meaning).any()


async def test_a_failing_embedder_is_left_alone_for_a_while_and_then_tried_again(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    now = [0.0]
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"), clock=lambda: now[0])
    endpoint.behaviour = "refuses"
    failed = await search(index, said(*TALK), "Kiwi", before_seq=7)
    endpoint.behaviour = "good"
    soon = await search(index, (), "Kiwi", before_seq=7)
    now[0] = RETRY_S
    later = await search(index, (), "Kiwi", before_seq=7)

    note = f"recall by keywords only: the embeddings endpoint {endpoint.url}/embeddings failed: HTTP 503"
    assert (failed.degraded, soon.degraded, later.degraded) == ((note,), (note,), ())


async def test_what_is_held_says_which_messages_are_still_to_be_given() -> None:
    index = HistoryIndex(None)
    messages = [*said("a", "b"), SystemMessage(content="note", seq=3, at=AT)]

    before = index.held(SESSION)
    await search(index, messages, "q")
    await search(index, messages, "q")
    held = index.held(SESSION)
    index.forget(SESSION)

    assert (before, held, index.held(SESSION)) == (Held(), Held(3, 3), Held())


async def test_the_session_that_was_not_searched_longest_is_dropped(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"), most_passages=10)
    for name in ("a", "b", "a", "c"):
        await index.search(SessionId(name), said("x", "y", "z", "u", "v"), SearchQuery("q"))

    assert [index.held(SessionId(name)).count for name in ("a", "b", "c")] == [5, 0, 5]


async def test_a_follow_up_takes_its_meaning_from_the_turns_before_it_too(minilm: MiniLM) -> None:
    index = HistoryIndex(minilm)
    asked = SearchQuery(
        "and in the cold?", context="Which tyres does my car need?\nand in the cold?", context_share=0.7,
        earlier="Which tyres does my car need?",
    )  # fmt: skip

    result = await index.search(SESSION, said(*TALK), asked, before_seq=7, deadline_s=60)

    assert order(result)[0] in (5, 6)


def test_the_passage_of_a_long_message_that_matched_is_known() -> None:
    past = Past("m")
    paragraphs = [f"This paragraph is about subject number {number}. " * 6 for number in range(4)]
    past.add([AssistantMessage(model_reply=ModelReply((Step(text="\n\n".join(paragraphs)),)), seq=1, at=AT)])
    keys = [*past.missing(1)]
    past.fill({key: np.array([4000, 0] if number == 1 else [0, 4000], np.int16) for number, key in enumerate(keys)})

    result = past.measure(SearchQuery("q"), np.array([4000, 0], np.int16), 1)

    passage = result.passage(0)
    assert passage is not None
    assert passage.text == paragraphs[2].strip()
    assert result.meaning.tolist() == [1.0]


@given(st.lists(st.text(max_size=40), max_size=12), st.text(max_size=40), st.integers(0, 12))
def test_whatever_was_said_can_be_measured(texts: list[str], question: str, split: int) -> None:
    past = Past("m")
    past.add(said(*texts[:split]))
    past.missing(min(split, len(texts)))
    past.add(said(*texts[split:], first_seq=split + 1))
    at_once = Past("m")
    at_once.add(said(*texts))

    result = past.measure(SearchQuery(question), None, len(texts))

    assert past.missing(len(texts)) == at_once.missing(len(texts))
    assert (result.fused == at_once.measure(SearchQuery(question), None, len(texts)).fused).all()
    assert ((result.words >= 0) & (result.words < 1)).all()
    assert ((result.coverage >= 0) & (result.coverage <= 1)).all()
