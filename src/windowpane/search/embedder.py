"""The port for whatever turns texts into vectors."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from windowpane.errors import WindowpaneError

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


class EmbedderError(WindowpaneError):
    """Meaning cannot be measured."""

    code: ClassVar[str] = "embedder_error"


class WeightsMissingError(EmbedderError):
    """No weights of the local model are installed."""

    code = "weights_missing"

    def __init__(self, looked_in: str) -> None:
        super().__init__(f"the weights of the local model are not installed (looked in {looked_in})")
        self.looked_in = looked_in


class WeightsDamagedError(EmbedderError):
    """The weights are there and cannot be used."""

    code = "weights_damaged"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the weights in {where} are damaged: {why}")
        self.where = where


class EndpointError(EmbedderError):
    """The embeddings endpoint did not answer as it should."""

    code = "embedding_endpoint"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"the embeddings endpoint {url} failed: {why}")
        self.url = url
