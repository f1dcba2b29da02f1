from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from math import log

import anyio
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
from windowpane.search.chunks import chunks
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.remote import RemoteEmbedder
from windowpane.search.history import AHEAD, RETRY_S, HistoryIndex
from windowpane.search.past import (
    AFTER,
    BEFORE,
    EARLIER_WORDS_SHARE,
    HALF_WAY,
    LEAST_ROOM_CHARS,
    LEAST_SIZE,
    LENGTH_WEIGHT,
    NEIGHBOUR_CHARS,
    PASSAGE_CHARS,
    SATURATION,
    Held,
    HistoryResult,
    Past,
)
from windowpane.search.words import words

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


class Kept:
    """Keeps vectors as a store does."""

    def __init__(self) -> None:
        self.bodies: dict[int, bytes] = {}
        self.as_of: list[int] = []

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        return {seq: body for seq, body in self.bodies.items() if seqs is None or seq in seqs}

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        self.bodies |= vectors
        self.as_of.append(as_of)


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


async def test_another_process_finds_the_vectors_where_they_are_kept(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    embedder, kept = RemoteEmbedder(client, endpoint.url, "m"), Kept()
    first, second, other = (
        HistoryIndex(embedder),
        HistoryIndex(embedder),
        HistoryIndex(RemoteEmbedder(client, endpoint.url, "other")),
    )
    for index in (first, second, other):
        index.keep_in(kept)
    before = await search(first, said(*TALK), "q", before_seq=7)
    endpoint.texts.clear()

    after = await search(second, said(*TALK), "q", before_seq=7)
    found = (endpoint.texts.copy(), sorted(kept.bodies))
    await search(other, said(*TALK), "q")

    assert found == (["q"], [1, 2, 3, 4, 5, 6])
    assert (before.fused == after.fused).all()
    # Vectors of another model are of no use.
    assert len(endpoint.texts) == 2 + len(TALK)


async def test_what_a_turn_settles_is_embedded_and_kept_before_it_is_searched(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    talk, kept = said(*TALK), Kept()
    passages = ["\n".join(TALK[max(0, n - 2) : n + 2]) for n in range(len(TALK))]
    first, second = (HistoryIndex(RemoteEmbedder(client, endpoint.url, "m")) for _ in range(2))
    embedded: list[list[str]] = []
    for index, begin, end in ((first, 0, 4), (second, 1, 6), (first, 0, 8)):
        index.keep_in(kept)
        endpoint.texts.clear()
        await index.prepare(SESSION, talk[begin:end], message_count=end, as_of=end)
        embedded.append(endpoint.texts.copy())
    endpoint.texts.clear()
    result = await search(second, talk, "q", before_seq=8)

    # All that is settled; by another process, which has not all of it, what the turn settles: its message and the
    # answer before it; and then the rest, since only the one that held it does not look at what is kept.
    assert embedded == [passages[2::-1], passages[4:2:-1], passages[6:2:-1]]
    assert (sorted(kept.bodies), kept.as_of) == ([1, 2, 3, 4, 5, 6, 7], [4, 6, 8])
    assert (endpoint.texts, result.degraded) == (["q"], ())
    assert (first.held(SESSION).count, second.held(SESSION).count) == (8, 8)


async def test_a_long_message_stands_alone_and_is_embedded_before_the_next_one_is_known(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    index, kept = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m")), Kept()
    index.keep_in(kept)
    long = ("The chapter on tyres was changed in spring. " * 7)[: PASSAGE_CHARS - LEAST_ROOM_CHARS + 1]
    talk = said("Which tyres?", long, "And in winter?", "Others.")

    await index.prepare(SESSION, talk[:2], message_count=2, as_of=2)
    first = (endpoint.texts.copy(), sorted(kept.bodies))
    endpoint.texts.clear()
    await index.prepare(SESSION, talk, message_count=4, as_of=4)

    room = PASSAGE_CHARS - len("Which tyres?")
    assert room > NEIGHBOUR_CHARS
    # The latest is embedded first; the long one is the end of a passage and the beginning of another, never the whole.
    assert first == ([long, f"Which tyres?\n{long[:NEIGHBOUR_CHARS].strip()}"], [1, 2])
    assert endpoint.texts == [f"Which tyres?\n{long[-NEIGHBOUR_CHARS:]}\nAnd in winter?\nOthers."]
    assert sorted(kept.bodies) == [1, 2, 3]


@given(st.lists(st.text("ab c", max_size=700), min_size=1, max_size=5))
def test_neighbours_make_no_passage_longer_than_it_may_become(texts: list[str]) -> None:
    past = Past("m")
    past.add(said(*texts))

    passages = [chunk.text for text in texts for chunk in chunks(text)]
    joints = BEFORE + AFTER
    for text in past.missing(len(texts)).values():
        assert len(text) <= PASSAGE_CHARS + joints or text in passages
    assert all(
        len(passage) <= PASSAGE_CHARS - LEAST_ROOM_CHARS or passage in past.missing(len(texts)).values()
        for text in texts
        for passage in [chunk.text for chunk in chunks(text)]
    )


async def test_what_is_embedded_ahead_is_a_little_each_turn_and_kept_when_something_lies_behind(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    talk, kept, index = said(*TALK), Kept(), HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"))
    index.keep_in(kept)
    passages = ["\n".join(TALK[max(0, n - 2) : n + 2]) for n in range(len(TALK))]
    ahead: list[list[str]] = []
    for end in (6, 8):
        endpoint.texts.clear()
        await index.prepare_some(SESSION, talk[:end])
        ahead.append(endpoint.texts.copy())
    before = dict(kept.bodies)
    endpoint.texts.clear()

    await index.prepare(SESSION, talk, message_count=8, as_of=8)

    assert ahead == [passages[4:0:-1], [*passages[6:4:-1], passages[0]]]
    assert (before, endpoint.texts, sorted(kept.bodies)) == ({}, [], [1, 2, 3, 4, 5, 6, 7])


async def test_what_is_embedded_ahead_is_forgotten_with_a_message_that_was_removed(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"))
    await index.prepare_some(SESSION, said(*TALK[:3]))
    endpoint.texts.clear()

    await index.prepare_some(SESSION, said(*TALK)[1:4])

    assert endpoint.texts == ["\n".join(TALK[1:4]), "\n".join(TALK[1:3])]
    assert index.held(SESSION) == Held(4, 3)


async def test_a_session_that_is_held_goes_on_with_what_was_said(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"))
    await search(index, said(*TALK[:6]), "q", before_seq=6)
    endpoint.texts.clear()

    await index.prepare(SESSION, said(*TALK)[4:], message_count=8, as_of=8)
    held, embedded = index.held(SESSION), endpoint.texts.copy()
    await search(index, (), "q", before_seq=8)

    assert (held, len(embedded)) == (Held(8, 8), 2)
    assert endpoint.texts[2:] == ["q"]


async def test_a_search_does_not_wait_for_a_slow_embedder(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    endpoint.behaviour = "slow"
    index = HistoryIndex(RemoteEmbedder(client, endpoint.url, "m"))

    result = await search(index, said(*TALK), "Kiwi", before_seq=7, deadline_s=0.05)

    assert order(result)[0] == 1
    assert result.degraded == ("recall by keywords only: the embedding model was still loading",)


async def test_a_past_that_was_brought_in_is_embedded_a_little_after_a_turn_and_the_rest_in_the_background(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    talk = said(*(f"{text} {number}" for number in range(4) for text in TALK))
    async with HistoryIndex(RemoteEmbedder(client, endpoint.url, "m")) as index:
        await index.prepare(SESSION, talk, message_count=32, as_of=32)
        at_once = endpoint.texts.copy()
        with anyio.fail_after(PATIENCE_S):
            found = await search(index, (), "q", before_seq=32)
            while found.degraded:
                await anyio.sleep(0.01)
                found = await search(index, (), "q", before_seq=32)
        embedded = [text for text in endpoint.texts if text != "q"]

    past = Past("m")
    past.add(talk)
    passages = [*past.missing(past.settled).values()]
    assert (at_once, embedded) == (passages[:AHEAD], passages)


async def test_the_past_of_a_session_that_is_forgotten_is_not_embedded_any_further(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    async with HistoryIndex(RemoteEmbedder(client, endpoint.url, "m")) as index:
        await index.prepare(
            SESSION, said(*(f"{text} {number}" for number in range(4) for text in TALK)), message_count=32, as_of=32
        )
        index.forget(SESSION)
        await anyio.wait_all_tasks_blocked()

    assert len(endpoint.texts) == AHEAD


async def test_vectors_of_the_past_are_made_in_the_background_and_never_waited_for(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    async with HistoryIndex(RemoteEmbedder(client, endpoint.url, "m")) as index:
        await index.search(SESSION, (), SearchQuery("q"))
        first = await search(index, said(*TALK), "q", before_seq=7)
        with anyio.fail_after(PATIENCE_S):
            found = first
            while found.degraded:
                await anyio.sleep(0.01)
                found = await search(index, (), "q", before_seq=7)

    assert first.degraded == ("recall by keywords only for 6 passages that are still being indexed",)
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


SOME_TEXTS = st.sampled_from((*TALK, "", "Kiwi, tyres and tyres again", "Soup in June"))


@given(st.lists(SOME_TEXTS, min_size=1, max_size=9), SOME_TEXTS, SOME_TEXTS, st.sampled_from((0.0, 0.3, 0.7)))
def test_words_are_summed_over_the_messages_in_their_order_to_the_bit(
    texts: list[str], message: str, earlier: str, share: float
) -> None:
    past = Past("model")
    past.add(said(*texts))
    wanted = dict.fromkeys(words(earlier), EARLIER_WORDS_SHARE * share) if share else {}
    wanted |= dict.fromkeys(words(message), 1.0)
    found = [words(text) for text in texts]
    mean = max(sum(map(len, found)) / len(found), 1e-9)

    def plain(own: list[str]) -> float:
        evidence = 0.0
        for word in sorted(wanted):
            having = sum(word in other for other in found)
            weight = wanted[word] * log(1 + (LEAST_SIZE - having + 0.5) / (having + 0.5)) * (SATURATION + 1)
            long = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(own) / mean
            times = own.count(word)
            evidence += weight * times / (times + SATURATION * long)
        return evidence / (evidence + HALF_WAY)

    measured = past.measure(SearchQuery(message, earlier=earlier, context_share=share), None, len(texts))

    assert measured.words.tolist() == np.array([plain(own) for own in found]).round(6).tolist()
