from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from windowpane.context.items import Item, Tool
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.base import Embedder, Vectors
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.probe import PROBE
from windowpane.search.embedding.standard import UNRELATED, StandardEmbedder
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.index import ItemIndex

ITEMS: tuple[Item, ...] = (
    Tool("a", "get_weather", "The weather forecast for a city.", include="agent"),
    Tool("b", "send_mail", "Sends an email to an address.", include="agent"),
    Tool("c", "resize_image", "Changes the size of a picture.", include="agent"),
    Tool("d", "book_flight", "Books a flight between two airports.", include="agent"),
)


class Shifted:
    """The real model as another one would be: everything is near to everything."""

    language = None

    def __init__(self, model: MiniLM) -> None:
        self._model = model
        self.model = "shifted"
        self.embedded = 0

    async def vocabulary(self) -> Mapping[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += len(texts)
        vectors = self._model.embed_now(texts)
        longer = np.concatenate([vectors, np.full((len(vectors), 1), 1.5, np.float32)], axis=1)
        return longer / np.linalg.norm(longer, axis=1, keepdims=True)


async def selected(embedder: Embedder, message: str) -> list[str]:
    async with HybridSelector(ItemIndex(embedder)) as selector:
        selection = await selector.select(message, (), ITEMS, {"deadline_s": 60})
    assert selection.degraded == ()
    return [chosen.item.name for chosen in selection.chosen]


@pytest.mark.parametrize("message", ["Will it rain in Paris tomorrow?", "Who wrote Hamlet?", "Tell me a joke."])
async def test_a_model_that_finds_everything_near_selects_as_the_local_one_does(
    minilm: MiniLM, tmp_path: Path, message: str
) -> None:
    standard = StandardEmbedder(Shifted(minilm), VectorCache(tmp_path))

    assert await selected(standard, message) == await selected(minilm, message)


async def test_unrelated_texts_are_as_far_apart_as_for_the_local_model(minilm: MiniLM, tmp_path: Path) -> None:
    standard = StandardEmbedder(Shifted(minilm), VectorCache(tmp_path))

    near = await standard.embed([m for m, _ in PROBE]) @ (await standard.embed([i for _, i in PROBE])).T

    assert near[~np.eye(len(PROBE), dtype=bool)].mean() == pytest.approx(UNRELATED, abs=0.001)


async def test_the_local_model_is_what_others_are_measured_by(minilm: MiniLM, tmp_path: Path) -> None:
    near = minilm.embed_now([m for m, _ in PROBE]) @ minilm.embed_now([i for _, i in PROBE]).T

    assert near[~np.eye(len(PROBE), dtype=bool)].mean() == pytest.approx(UNRELATED, abs=0.001)


async def test_a_model_is_measured_once_and_never_again(minilm: MiniLM, tmp_path: Path) -> None:
    first, second = Shifted(minilm), Shifted(minilm)
    before = await StandardEmbedder(first, VectorCache(tmp_path)).embed(["hello"])
    after = await StandardEmbedder(second, VectorCache(tmp_path)).embed(["hello"])

    assert np.array_equal(before, after)
    assert (first.embedded, second.embedded) == (2 * len(PROBE) + 1, 1)
