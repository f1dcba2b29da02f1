"""The port for whatever turns texts into vectors."""

from collections.abc import Mapping, Sequence
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

    @property
    def language(self) -> str | None:
        """Return the one language that it understands, such as `english`; None where it is not known to be only one."""
        ...

    async def vocabulary(self) -> Mapping[str, int]:
        """Return the words that the model knows as such, with their rank, the most usual first; none if not known."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text, in their order; a text's vector depends on that text alone.

        Raises:
            EmbedderError: it cannot be done now. The message says why and what would help.
        """
        ...
