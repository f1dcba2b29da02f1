"""The measures of the second loop, for callers on any loop."""

from collections.abc import Sequence

from windowpane.search.base import Nearness
from windowpane.search.embedding.base import Embedder, Vectors
from windowpane.second_loop import Bring


class PlacedNearness:
    """A measure of nearness for callers on any loop."""

    def __init__(self, nearness: Nearness, bring: Bring) -> None:
        self._nearness = nearness
        self._bring = bring

    async def nearest(self, text: str, others: Sequence[str], *, deadline_s: float) -> Sequence[float | None]:
        """Return for each other text the cosine of its passage and the text's that are nearest; None: not measured."""
        return await self._bring(self._nearness.nearest, text, others, deadline_s=deadline_s)


class PlacedEmbedder:
    """An embedder for callers on any loop."""

    def __init__(self, embedder: Embedder, bring: Bring) -> None:
        self.model = embedder.model
        self._embedder = embedder
        self._bring = bring

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text, in their order.

        Raises:
            EmbedderError: it cannot be done now.
        """
        return await self._bring(self._embedder.embed, texts)
