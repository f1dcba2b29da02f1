"""The values that a search takes and gives."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import Domain, ItemRef
from windowpane.context.request import Passage
from windowpane.search.chunks import Chunk
from windowpane.search.words import words

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to look for.

    `context` is the message together with the turns before it, and `context_share` how much of the
    meaning comes from that instead of from the message alone; `earlier` are the words of those turns, and `named` the
    titles of related documents that the message names. `clauses` are the parts of a message that asks for several
    things. `cues` say in words what kinds of thing a message names, such as a file, for tools to be found by.
    `small_talk` says that the message asks for nothing.
    """

    message: str
    context: str = ""
    context_share: float = 0.0
    earlier: str = ""
    named: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()
    small_talk: bool = False
    reason: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """Return every text whose meaning is needed: the message, its context if it counts, the clauses, the cues."""
        return (self.message, *((self.context,) if self.context_share else ()), *self.clauses, *self.cues)


@dataclass(frozen=True, slots=True)
class Measurements:
    """How near every document of one domain is to a query, column by column in the order of `keys`.

    `meaning` is a cosine, rounded; nan where it was not measured. `words` lies between 0 and 1.
    `name_ranks` orders the documents by name, to break ties.
    """

    domain: Domain
    keys: tuple[ItemRef, ...]
    meaning: Floats
    words: Floats
    name_ranks: NDArray[np.intp]
    found: "PassageFinder"

    def passage(self, position: int) -> Passage:
        """Return the passage of a document that is nearest to the query."""
        return self.found.passage(position)

    @property
    def by_words_alone(self) -> bool:
        """Tell whether no meaning was measured at all."""
        return bool(np.isnan(self.meaning).all())


@dataclass(frozen=True, slots=True)
class PassageFinder:
    """Where in each document the query was found; looked up when a caller asks. `asked` are the texts of the query."""

    passages: tuple[tuple[Chunk, ...], ...]
    starts: NDArray[np.intp] = field(repr=False)
    nearness: NDArray[np.float32] = field(repr=False)
    asked: tuple[str, ...] = ()
    words: Callable[[str], Iterable[str]] = field(default=words, repr=False)

    def passage(self, position: int) -> Passage:
        """Return the nearest passage by meaning, or by words where meaning was not measured."""
        chunks = self.passages[position]
        best = chunks[self._best(position, chunks) if len(chunks) > 1 else 0]
        return Passage(best.text, best.start, best.end)

    def _best(self, position: int, chunks: tuple[Chunk, ...]) -> int:
        start = int(self.starts[position])
        near: list[float] = self.nearness[start : start + len(chunks)].tolist()
        nearest = max(near)
        return near.index(nearest) if nearest > -1 else self._best_by_words(chunks)

    def _best_by_words(self, chunks: tuple[Chunk, ...]) -> int:
        wanted = frozenset(word for text in self.asked for word in self.words(text))
        shared = [len(wanted.intersection(self.words(chunk.text))) for chunk in chunks]
        return shared.index(max(shared))


class Nearness(Protocol):
    """Measures how near texts are in meaning."""

    async def nearest(self, text: str, others: Sequence[str], *, deadline_s: float) -> Sequence[float | None]:
        """Return for each other text the cosine of its passage and the text's that are nearest; None: not measured."""
        ...


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Both domains measured, and what was amiss."""

    query: SearchQuery
    domains: tuple[Measurements, ...]
    embedded_passages: int
    all_passages: int
    degraded: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Measurements]:
        return iter(self.domains)
