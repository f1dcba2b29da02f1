"""The built-in model for benches, which embeds every text once: its vectors stay on disk between runs.

They are kept in `WINDOWPANE_BENCH_CACHE` (default: a folder of the system's temporary directory), as an index keeps
them: what is measured is the same, bit for bit.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import SCALE, Key, Stored, VectorCache, stored, vector_key

AT_ONCE = 128


def cache_folder() -> Path:
    """Return where vectors are kept."""
    return Path(os.environ.get("WINDOWPANE_BENCH_CACHE") or Path(tempfile.gettempdir()) / "windowpane-bench")


class Texts:
    """Vectors by text: from memory, from the disk or from the model. It is an embedder for an index, too."""

    def __init__(self, folder: Path) -> None:
        self.minilm = MiniLM(folder)
        self._cache = VectorCache(folder, most_vectors=5_000_000)
        self._known: dict[Key, Stored] = {}

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self.minilm.model

    @property
    def language(self) -> str | None:
        """Return the language of the model."""
        return self.minilm.language

    async def vocabulary(self) -> Mapping[str, int]:
        """Return the words that the model knows."""
        return await self.minilm.vocabulary()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, as an index asks for them."""
        return np.stack(self.of(texts)).astype(np.float32) / np.float32(SCALE)

    def of(self, texts: Sequence[str]) -> list[Stored]:
        """Return the vectors of texts, in their order."""
        found = self.load(texts)
        return [found[vector_key(self.model, text)] for text in texts]

    def load(self, texts: Sequence[str]) -> dict[Key, Stored]:
        """Return the vectors of texts, by key."""
        wanted = {vector_key(self.model, text): text for text in texts}
        missing = [key for key in wanted if key not in self._known]
        if missing:
            self._known |= self._cache.read(missing)
            missing = [key for key in missing if key not in self._known]
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            fresh = dict(zip(some, stored(self.minilm.embed_now([wanted[key] for key in some])), strict=True))
            self._cache.write(fresh)
            self._known |= fresh
        return {key: self._known[key] for key in wanted}
