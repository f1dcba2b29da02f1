import os
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import anyio
import httpx2
import numpy as np
import pytest
from tests.search.endpoint import Endpoint

from patience import PATIENCE_S
from windowpane.context.items import Item, ItemRef, Reference, Rule, Tool
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.request.selector import Selection
from windowpane.search.base import SearchQuery, SearchResult
from windowpane.search.embedding.base import Vectors
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.remote import RemoteEmbedder
from windowpane.search.embedding.vectors import VectorCache, vector_key
from windowpane.search.index import FIRST_RETRY_S, KEPT_QUERIES, READY, TEXTS_IN_A_ROW, ItemIndex

pytestmark = pytest.mark.anyio

ITEMS: tuple[Item, ...] = (
    Rule("tone", "Write kindly and to the point."),
    Reference("imaging", "How to resize pictures.\n\nUse the resize tool for that.", "Working with images"),
    Tool("files", "read_file", "Read a file from disk"),
    Tool("mail", "send_mail", "Send a message to somebody"),
)


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        yield client


def best(result: SearchResult, domain: str) -> ItemRef:
    measured = next(measured for measured in result if measured.domain == domain)
    return measured.keys[int(np.nanargmax(measured.meaning))]


@pytest.mark.spec("S1.32", "S1.38", "S1.64", "S1.66", "S1.68")
async def test_the_nearest_item_of_each_domain_is_found_with_its_passage(minilm: MiniLM) -> None:
    index = ItemIndex(minilm)

    result = await index.search(SearchQuery("make this photo smaller"), index.documents(ITEMS), deadline_s=60)

    assert best(result, "text") == ItemRef("reference", "imaging")
    text = next(measured for measured in result if measured.domain == "text")
    passage = text.passage(text.keys.index(ItemRef("reference", "imaging")))
    assert passage.text in ("imaging: Working with images", "How to resize pictures.\n\nUse the resize tool for that.")
    assert index.documents(ITEMS)[1].text[passage.start : passage.end] == passage.text
    assert result.degraded == ()


@pytest.mark.spec("S1.52", "S1.53", "S1.54", "S1.55", "S1.59")
async def test_only_what_is_new_is_embedded(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"))
    await index.search(SearchQuery("resize"), index.documents(ITEMS))
    endpoint.texts.clear()
    changed = (*ITEMS[:3], Tool("mail", "send_letter", "Send a message to somebody"))

    await index.search(SearchQuery("resize"), index.documents(changed))

    assert endpoint.texts == ["send letter: Send a message to somebody"]


async def test_a_query_that_is_about_to_be_forgotten_can_be_asked_once_more(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"))
    others = tuple(f"clause {number}" for number in range(KEPT_QUERIES))
    await index.search(SearchQuery("resize", clauses=others), index.documents(ITEMS))

    result = await index.search(SearchQuery("clause 0", clauses=("and", "something", "new")), index.documents(ITEMS))

    assert result.degraded == ()


class OddEmbedder:
    """An embedder of one's own that does something else than it promises."""

    model = "odd"
    language = None

    def __init__(self, rows: int | None) -> None:
        self._rows = rows

    async def vocabulary(self) -> dict[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self._rows is None:
            raise KeyError("weights")
        return np.ones((self._rows, 3), np.float32)


@pytest.mark.parametrize(("rows", "failed_with"), [(None, "KeyError"), (0, "ValueError")])
async def test_whatever_an_embedder_fails_with_words_decide_alone(rows: int | None, failed_with: str) -> None:
    async with ItemIndex(OddEmbedder(rows)) as index:
        result = await index.search(SearchQuery("resize pictures"), index.documents(ITEMS))

    assert result.degraded == (
        f"matched by keywords only: the embedding model failed ({failed_with}); the log says more",
    )


async def test_two_first_searches_at_once_embed_nothing_twice(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    async with ItemIndex(RemoteEmbedder(client, endpoint.url, "m")) as index, anyio.create_task_group() as tasks:
        for query in ("resize", "write"):
            tasks.start_soon(index.search, SearchQuery(query), index.documents(ITEMS))

    assert len(endpoint.texts) == len(set(endpoint.texts))


@pytest.mark.spec("S1.104")
async def test_an_edit_embeds_only_the_passages_that_changed(endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"))
    first, second = "The first paragraph is long enough. " * 5, "The second paragraph says something else. " * 5
    await index.search(SearchQuery("q"), index.documents([Rule("r", f"{first}\n\n{second}")]))
    endpoint.texts.clear()

    await index.search(SearchQuery("q"), index.documents([Rule("r", f"{first}\n\nNow it is short.")]))

    assert endpoint.texts == ["r\nNow it is short."]


@pytest.mark.spec("S1.103")
async def test_a_restart_embeds_nothing(endpoint: Endpoint, client: httpx2.AsyncClient, tmp_path: Path) -> None:
    before = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), VectorCache(tmp_path))
    first = await before.search(SearchQuery("resize"), before.documents(ITEMS))
    endpoint.texts.clear()

    after = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), VectorCache(tmp_path))
    second = await after.search(SearchQuery("resize"), after.documents(ITEMS))

    assert endpoint.texts == ["resize"]
    assert all((a.meaning == b.meaning).all() for a, b in zip(first, second, strict=True))


async def test_another_model_never_sees_the_vectors_of_the_first(
    endpoint: Endpoint, client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    for model in ("one", "two"):
        index = ItemIndex(RemoteEmbedder(client, endpoint.url, model), VectorCache(tmp_path))
        await index.search(SearchQuery("q"), index.documents(ITEMS[:1]))

    assert endpoint.texts.count("tone\nWrite kindly and to the point.") == 2


async def test_without_an_embedder_words_decide_and_the_result_says_so() -> None:
    index = ItemIndex(None)

    result = await index.search(SearchQuery("resize pictures"), index.documents(ITEMS))

    assert result.degraded == ("matched by keywords only: no embedding model is configured",)
    text = next(iter(result))
    assert text.by_words_alone
    assert text.words[1] > text.words[0] == 0
    assert text.passage(1).text.startswith("How to resize")


async def test_an_endpoint_that_is_down_leaves_words_and_is_tried_again_with_growing_pauses(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    now = [0.0]
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), clock=lambda: now[0])
    docs = index.documents(ITEMS)
    endpoint.behaviour = "refuses"

    async def notes() -> tuple[str, ...]:
        return (await index.search(SearchQuery("resize"), docs)).degraded

    down = (f"matched by keywords only: the embeddings endpoint {endpoint.url}/embeddings failed: HTTP 503",)
    assert [await notes(), await notes()] == [down, down]
    assert len(endpoint.requests) == 1
    now[0] += FIRST_RETRY_S
    assert await notes() == down
    assert len(endpoint.requests) == 2
    now[0] += FIRST_RETRY_S
    assert await notes() == down
    assert len(endpoint.requests) == 2
    endpoint.behaviour = "good"
    now[0] += FIRST_RETRY_S
    assert await notes() == ()


async def test_weights_that_are_missing_leave_words(tmp_path: Path) -> None:
    index = ItemIndex(MiniLM(tmp_path, tmp_path / "nowhere"))

    result = await index.search(SearchQuery("resize"), index.documents(ITEMS))

    assert len(result.degraded) == 1
    assert "the weights of the local model are not installed" in result.degraded[0]


async def test_a_slow_embedder_does_not_keep_the_reply_waiting_and_is_ready_for_the_next_search(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    endpoint.behaviour = "slow"
    async with ItemIndex(RemoteEmbedder(client, endpoint.url, "m")) as index:
        docs = index.documents(ITEMS)

        with anyio.fail_after(PATIENCE_S):
            first = await index.search(SearchQuery("resize"), docs, deadline_s=0.05)
        endpoint.behaviour = "good"
        endpoint.go_on.set()
        second = await index.search(SearchQuery("resize"), docs, deadline_s=10)

    assert first.degraded == ("matched by keywords only: the embedding model was still loading",)
    assert second.degraded == ()


async def test_a_message_waits_for_a_model_that_is_being_loaded_and_is_judged_by_meaning(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    endpoint.behaviour = "slow"
    selections: list[Selection] = []
    asked_while_loading: list[list[str]] = []
    settings = {"deadline_s": 60}
    async with (
        HybridSelector(ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), loading_s=PATIENCE_S)) as selector,
        anyio.create_task_group() as tasks,
    ):

        async def select() -> None:
            selections.append(await selector.select("resize", (), ITEMS, settings))

        tasks.start_soon(select)
        while not endpoint.requests:  # noqa: ASYNC110 (another thread fills it)
            await anyio.sleep(0.01)
        asked_while_loading += [request["input"] for request in endpoint.requests]
        endpoint.behaviour = "good"
        endpoint.go_on.set()

    assert asked_while_loading == [[READY]]
    assert [selection.degraded for selection in selections] == [()]


async def test_the_first_message_waits_for_passages_that_are_not_embedded_yet(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    selections: list[Selection] = []
    before: list[Selection] = []
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), loading_s=PATIENCE_S)
    async with HybridSelector(index) as selector, anyio.create_task_group() as tasks:
        await selector.select("resize", (), ITEMS[:1], {"deadline_s": 60})
        endpoint.requests.clear()
        endpoint.behaviour = "slow"

        async def select() -> None:
            selections.append(await selector.select("resize", (), ITEMS, {"deadline_s": 0.05}))

        tasks.start_soon(select)
        while not endpoint.requests:  # noqa: ASYNC110 (another thread fills it)
            await anyio.sleep(0.01)
        await anyio.sleep(0.1)
        before += selections
        endpoint.behaviour = "good"
        endpoint.go_on.set()

    assert before == []
    assert [selection.degraded for selection in selections] == [()]


async def test_indexing_many_passages_lets_another_search_have_its_turn(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    many = tuple(Rule(f"rule-{n:03}", f"Rule number {n} is about subject {n}.") for n in range(3 * TEXTS_IN_A_ROW))
    async with ItemIndex(RemoteEmbedder(client, endpoint.url, "m")) as index, anyio.create_task_group() as tasks:
        await index.search(SearchQuery("resize"), ())
        endpoint.behaviour = "slow"
        tasks.start_soon(partial(index.search, SearchQuery("subject"), index.documents(many), deadline_s=PATIENCE_S))
        tasks.start_soon(partial(index.search, SearchQuery("resize"), index.documents(ITEMS), deadline_s=PATIENCE_S))
        while not endpoint.requests:  # noqa: ASYNC110 (another thread fills it)
            await anyio.sleep(0.01)
        endpoint.behaviour = "good"
        endpoint.go_on.set()

    last_of_many = max(n for n, text in enumerate(endpoint.texts) if "Rule number" in text)
    assert endpoint.texts.index("imaging: Working with images") < last_of_many


async def test_what_is_not_indexed_in_time_is_judged_by_words_and_indexed_in_the_background(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    told: list[tuple[int, int]] = []
    finished = anyio.Event()

    def on_progress(done: int, total: int) -> None:
        told.append((done, total))
        if done == total:
            finished.set()

    async with ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), on_progress=on_progress) as index:
        await index.search(SearchQuery("resize"), index.documents(ITEMS[:1]))
        told.clear()
        finished = anyio.Event()
        endpoint.behaviour = "slow"
        first = await index.search(SearchQuery("resize"), index.documents(ITEMS), deadline_s=0.05)
        endpoint.go_on.set()
        with anyio.fail_after(PATIENCE_S):
            await finished.wait()
        requests = len(endpoint.requests)
        second = await index.search(SearchQuery("resize"), index.documents(ITEMS))

    assert first.degraded == ("4 of 6 passages matched by keywords only: they are still being indexed",)
    assert first.embedded_passages == 2
    assert told[-1] == (6, 6)
    assert second.degraded == ()
    assert len(endpoint.requests) == requests


async def test_vectors_of_another_length_are_not_compared(
    endpoint: Endpoint, client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    cache = VectorCache(tmp_path)
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), cache)
    docs = index.documents(ITEMS[:1])
    await index.search(SearchQuery("q"), docs)
    text = "tone\nWrite kindly and to the point."
    key = vector_key(RemoteEmbedder(client, endpoint.url, "m").model, text)
    cache.write({key: np.ones(7, np.int16)})

    result = await ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), cache).search(SearchQuery("q"), docs)

    assert not any(measured.by_words_alone for measured in result)


async def test_nothing_to_search_gives_an_empty_result() -> None:
    result = await ItemIndex(None).search(SearchQuery("anything"), ())

    assert (result.domains, result.all_passages) == ((), 0)


async def test_an_index_that_finds_its_vectors_on_disk_is_complete_at_once(minilm: MiniLM, tmp_path: Path) -> None:
    before = ItemIndex(minilm, VectorCache(tmp_path))
    await before.search(SearchQuery("warm"), before.documents(ITEMS), deadline_s=60)
    after = ItemIndex(minilm, VectorCache(tmp_path))

    result = await after.search(SearchQuery("cold"), after.documents(ITEMS), deadline_s=5)

    assert result.degraded == ()
    assert result.embedded_passages == result.all_passages


async def test_a_cache_that_cannot_be_written_changes_nothing(
    endpoint: Endpoint, client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(os.urandom(10))
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"), VectorCache(tmp_path / "file"))

    assert (await index.search(SearchQuery("resize"), index.documents(ITEMS))).degraded == ()


@pytest.mark.spec("S1.67", "S1.68")
async def test_a_long_reference_is_one_candidate_and_does_not_crowd_out_the_rest(
    endpoint: Endpoint, client: httpx2.AsyncClient
) -> None:
    sentence = "resize pictures in this way, said at such length that it is a passage by itself, number"
    paragraphs = [f"{sentence} {i}. {sentence} {i}." for i in range(60)]
    items = (Reference("long", "\n\n".join(paragraphs)), Reference("short", "resize pictures"))
    index = ItemIndex(RemoteEmbedder(client, endpoint.url, "m"))

    result = await index.search(SearchQuery("resize pictures"), index.documents(items), deadline_s=30)

    (text,) = result
    assert result.all_passages > 60
    assert text.keys == (ItemRef("reference", "long"), ItemRef("reference", "short"))
    assert best(result, "text") == ItemRef("reference", "short")


async def test_a_message_that_the_model_does_not_understand_is_judged_by_words_and_the_result_says_so(
    minilm: MiniLM,
) -> None:
    items = [Tool("s", "wecker", "Stellt einen neuen Wecker auf eine Uhrzeit."), Tool("s", "alarms", "Sets an alarm.")]
    async with ItemIndex(minilm) as index:
        result = await index.search(SearchQuery("Kannst du mir einen Wecker stellen?"), index.documents(items))

    assert [measured.by_words_alone for measured in result] == [True]
    assert result.degraded == (
        "matched by keywords only: the message is in German, and the embedding model understands English only."
        " Set a multilingual model: `embeddings_url` or `weights` (docs/selection.md)",
    )


async def test_items_that_the_model_does_not_understand_are_judged_by_words_and_the_others_by_meaning(
    minilm: MiniLM,
) -> None:
    items = [Tool("s", "wecker", "Stellt einen neuen Wecker auf eine Uhrzeit."), Tool("s", "alarms", "Sets an alarm.")]
    async with ItemIndex(minilm) as index:
        result = await index.search(SearchQuery("Wake me up at six."), index.documents(items), deadline_s=60)

    assert [np.isnan(measured.meaning).tolist() for measured in result] == [[True, False]]
    assert result.degraded == (
        "1 of 2 items matched by keywords only: they are in German, and the embedding model understands English only."
        " Set a multilingual model: `embeddings_url` or `weights` (docs/selection.md)",
    )


async def test_a_mistyped_word_is_read_as_one_of_the_items(minilm: MiniLM) -> None:
    items = [Tool("s", "resize_image", "Changes the size of a picture.")]
    async with ItemIndex(minilm) as index:
        read = await index.mended("Can you resiez this image?", index.documents(items))

    assert (read.text, read.note) == ("Can you resize this image?", "'resiez' is read as 'resize'")
