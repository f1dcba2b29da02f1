"""The port for whatever turns texts into vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One row for each text, each of length 1."""


class Embedder(Protocol):
    """Turns texts into vectors whose nearness is nearness of meaning."""

    @property
    def model(self) -> str:
        """Return the name that vectors are cached under: two that differ are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text, in their order; a text's vector depends on that text alone.

        Raises:
            EmbedderError: it cannot be done now. The message says why and what would help.
        """
        ...
