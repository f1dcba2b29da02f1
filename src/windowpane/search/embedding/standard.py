"""Vectors of any model on the scale of the local one.

Models differ in how near they find two texts that have nothing to do with each other: 0.04 for the local model, 0.7
for others. Every decision of a search is calibrated on the local model, and with such another one nothing would ever be
left out. What all vectors of a model have in common is measured once, with the texts of `probe.py`, and as much of it
is taken away as brings unrelated texts to the local model's nearness.

The vectors of the probe are kept in the cache under the model's name, so a model is measured when it is first used and
not again.
"""

from collections.abc import Mapping, Sequence

import anyio
import anyio.to_thread
import numpy as np

from windowpane.calls.recorder import recording_apart
from windowpane.search.embedding.base import Embedder, Vectors
from windowpane.search.embedding.probe import PROBE, PROBE_VERSION
from windowpane.search.embedding.vectors import SCALE, Key, Stored, VectorCache, stored, vector_key

UNRELATED = 0.0432
"""The mean cosine of messages and items of the probe that do not belong together, for the local model."""

TEXTS_AT_ONCE = 8
"""How many texts of the probe are embedded before they are kept: a search that runs out of time leaves those done."""

_STEPS = 30
_MOST = 1.5


class StandardEmbedder:
    """The vectors of another embedder without what all of them have in common."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self._common: Vectors | None = None
        self._probe: dict[Key, Stored] = {}
        self._measuring = anyio.Lock()

    @property
    def model(self) -> str:
        """Return the name that vectors are cached under."""
        return f"{self._embedder.model} standard-{PROBE_VERSION}"

    @property
    def language(self) -> str | None:
        """Return the one language that the model understands, if that is known."""
        return self._embedder.language

    async def vocabulary(self) -> Mapping[str, int]:
        """Return the words that the model knows as such."""
        return await self._embedder.vocabulary()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text; the first call measures the model.

        Raises:
            EmbedderError: it cannot be done now.
        """
        vectors = await self._embedder.embed(texts)
        if not len(vectors):
            return vectors
        async with self._measuring:
            if self._common is None or len(self._common) != vectors.shape[1]:
                async with recording_apart():
                    self._common = await self._measured(vectors.shape[1])
        return _of_length_1(vectors - self._common)

    async def _measured(self, dimensions: int) -> Vectors:
        """Return what to take away from every vector of the model."""
        keys = {vector_key(self._embedder.model, text): text for pair in PROBE for text in pair}
        if not self._probe:
            self._probe = await anyio.to_thread.run_sync(self._cache.read, list(keys))
        # Vectors of another length are those of a model that no longer answers under this name.
        self._probe = {key: vector for key, vector in self._probe.items() if len(vector) == dimensions}
        missing = [key for key in keys if key not in self._probe]
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            some = missing[start : start + TEXTS_AT_ONCE]
            fresh = dict(zip(some, stored(await self._embedder.embed([keys[key] for key in some])), strict=True))
            self._probe |= fresh
            await anyio.to_thread.run_sync(self._cache.write, fresh)
        vectors = np.stack([self._probe[key] for key in keys]).astype(np.float32) / np.float32(SCALE)
        return in_common(vectors[::2], vectors[1::2])


def in_common(messages: Vectors, items: Vectors) -> Vectors:
    """Return what to take away so that messages and the items of others are as near as for the local model.

    Nothing where they are not nearer than that.
    """
    mean = np.concatenate([messages, items]).mean(axis=0)
    low, high = 0.0, _MOST
    if _unrelated(messages, items) <= UNRELATED:
        return np.zeros_like(mean)
    for _ in range(_STEPS):
        share = (low + high) / 2
        if _unrelated(_of_length_1(messages - share * mean), _of_length_1(items - share * mean)) > UNRELATED:
            low = share
        else:
            high = share
    return high * mean


def _unrelated(messages: Vectors, items: Vectors) -> float:
    """Return how near each message is to the items of the others, on average."""
    near = messages @ items.T
    count = len(messages)
    return float((near.sum() - np.trace(near)) / (count * (count - 1)))


def _of_length_1(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.float32(1e-9))
