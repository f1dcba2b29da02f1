"""An embedder that remembers the texts it was given last.

A message is measured twice in one turn, against items and against the session's past, and its vector is the same both
times. A long answer is embedded after its turn, and the next message is compared with it. Texts are remembered by hash
and in memory alone.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from windowpane.search.embedding.base import Embedder, Vectors
from windowpane.search.embedding.vectors import Key, vector_key

KEPT_TEXTS = 2_048
"""Those of a few hundred sessions that take turns; each takes some 2 kB."""


class CachedEmbedder:
    """The vectors of another embedder, each made once while it is remembered."""

    def __init__(self, embedder: Embedder, kept: int = KEPT_TEXTS) -> None:
        self._embedder = embedder
        self._kept = kept
        self._vectors: dict[Key, Vectors] = {}

    @property
    def model(self) -> str:
        """Return the name that vectors are cached under."""
        return self._embedder.model

    @property
    def language(self) -> str | None:
        """Return the one language that the model understands, if that is known."""
        return self._embedder.language

    async def vocabulary(self) -> Mapping[str, int]:
        """Return the words that the model knows as such."""
        return await self._embedder.vocabulary()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text, in their order.

        Raises:
            EmbedderError: it cannot be done now.
        """
        model = self.model
        keys = [vector_key(model, text) for text in texts]
        found = {key: self._vectors[key] for key in keys if key in self._vectors}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            made = dict(zip(missing, await self._embedder.embed(list(missing.values())), strict=True))
            found |= made
            self._vectors |= made
            while len(self._vectors) > self._kept:
                del self._vectors[next(iter(self._vectors))]
        return np.stack([found[key] for key in keys]) if keys else await self._embedder.embed(texts)
