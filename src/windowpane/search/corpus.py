"""A set of candidates, ready to be measured against any query.

What belongs to a document was cut, counted and embedded in its pool; a corpus is which documents of it are meant, and
what depends on that. Measuring is arithmetic on arrays.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import Domain
from windowpane.search.base import Floats, Measurements, PassageFinder, SearchQuery
from windowpane.search.documents import Document
from windowpane.search.embedding.vectors import SCALE, Key, Stored
from windowpane.search.pool import Matrix, Pool, Vocabulary
from windowpane.search.words import Words, known_languages

CLAUSE_SHARE = 0.3
"""How much of an item's nearness is that to the nearest clause, where a message has several."""

CUE_SHARE = 0.6
"""The same for cues: that a message names a file or a web address says more about a tool than its other words do."""

EARLIER_WORDS_SHARE = 0.7
"""How much the words of earlier turns count in a follow-up, against those of the message."""

SERVER_SHARE = 0.1
"""How much of a tool's nearness is that of the nearest tools of its server."""

SERVER_TOOLS = 3
DECIMALS = 6
MANY_PASSAGES = 20_000
"""From here on a matrix product pays, although it wakes a thread for each core."""

_ROWS_AT_ONCE = 1024
_UNKNOWN = np.float32(-2.0)
"""Below every cosine: the nearness of a passage that is not embedded."""


class Corpus:
    """Some documents of a pool, or all of them, judged as if there were no others.

    Every number is the one that these documents alone would give, to the last bit.
    """

    def __init__(self, pool: Pool, documents: tuple[Document, ...], positions: NDArray[np.intp]) -> None:
        self.pool = pool
        self.domain: Domain = pool.domain
        self.documents = documents
        sizes = pool.sizes[positions]
        self._starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)
        whole = np.array_equal(positions, np.arange(len(pool.documents)))
        offsets = np.repeat(pool.starts[positions] - self._starts[: len(sizes)], sizes)
        self._rows = slice(None) if whole else offsets + np.arange(int(sizes.sum()))
        places: list[int] = positions.tolist()
        self._passages = pool.passages if whole else tuple(pool.passages[place] for place in places)
        self._keys = pool.keys if whole else tuple(pool.keys[place] for place in places)
        self._name_ranks = pool.name_ranks if whole else np.argsort(np.argsort(pool.name_ranks[positions]))
        self._words = Words(pool.words, positions)
        shown = (pool.words.languages[place] for place in places)
        self.foreign = Counter(one for one in shown if pool.language not in (None, one))
        self._readable = pool.readable[self._rows]
        self.passage_count = int(self._readable.sum())
        """How many passages can have a vector."""
        self._embedded: tuple[int, int] = (-1, 0)
        self._servers = _servers([doc.server for doc in documents]) if self.domain == "tool" else None
        inside = np.zeros(len(pool.documents), bool)
        inside[positions] = True
        self._inside = inside

    @classmethod
    def whole(
        cls, domain: Domain, documents: tuple[Document, ...], model: str, language: str | None = None
    ) -> "Corpus":
        """Return all documents of a pool of their own; see `Pool`."""
        return cls(Pool(domain, documents, model, language), documents, np.arange(len(documents)))

    @classmethod
    def part(cls, pool: Pool, documents: tuple[Document, ...]) -> "Corpus | None":
        """Return documents as a part of a pool; None where they are none, or would be read in another language."""
        positions = pool.positions(documents)
        if positions is None:
            return None
        places: list[int] = positions.tolist()
        alone = known_languages([pool.words.shown[place] for place in places])
        if alone != [pool.words.languages[place] for place in places]:
            return None
        return cls(pool, documents, positions)

    @property
    def texts(self) -> list[str]:
        """Return what is embedded for each passage."""
        return [self.pool.texts[row] for row in self._row_numbers.tolist()]

    @property
    def passage_keys(self) -> list[Key]:
        """Return the keys of the passages' vectors."""
        return [self.pool.passage_keys[row] for row in self._row_numbers.tolist()]

    @property
    def _row_numbers(self) -> NDArray[np.intp]:
        return np.arange(len(self.pool.texts))[self._rows]

    @property
    def embedded_count(self) -> int:
        """Return how many passages have their vector."""
        # Asked for several times in a turn, and it hardly ever changes.
        filled = self.pool.filled
        if self._embedded[0] != filled:
            self._embedded = (filled, int(self.pool.known[self._rows].sum()))
        return self._embedded[1]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Return the words of the documents as they are written, in lower case, and how often each occurs."""
        return Vocabulary(self.pool, self._inside)

    def missing(self) -> dict[Key, str]:
        """Return the texts that still need a vector, shortest first, so that the most items are judged soonest."""
        rows: list[int] = self._row_numbers[self._readable & ~self.pool.known[self._rows]].tolist()
        found = {self.pool.passage_keys[row]: self.pool.texts[row] for row in rows}
        return dict(sorted(found.items(), key=lambda pair: (len(pair[1]), pair[1])))

    def to_keep(self, vectors: Mapping[Key, Stored]) -> dict[Key, Stored]:
        """Return those of the vectors that may be kept on disk: what belongs to one session may not."""
        return {key: vector for key, vector in vectors.items() if key in self.pool.shared}

    def expect(self, dimensions: int) -> None:
        """Forget vectors of another length; see `Pool.expect`."""
        self.pool.expect(dimensions)

    def fill(self, vectors: Mapping[Key, Stored]) -> None:
        """Take in the vectors that belong to the documents of the pool."""
        self.pool.fill(vectors)

    def measure(self, query: SearchQuery, vectors: Sequence[Stored]) -> Measurements:
        """Measure every document against a query; `vectors` are those of `query.texts`, or none."""
        counted = [(query.message, 1.0), (query.earlier, EARLIER_WORDS_SHARE * query.context_share)]
        counted = [(text, weight) for text, weight in counted if text and weight]
        scores = self._words.scores(counted).round(DECIMALS)
        nearness, meaning = self._measured(query, vectors)
        asked = tuple(text for text, _ in counted)
        found = PassageFinder(self._passages, self._starts, nearness[0], asked, self._words.words)
        return Measurements(self.domain, self._keys, meaning, scores, self._name_ranks, found)

    def meaning(self, query: SearchQuery, vectors: Sequence[Stored]) -> Floats:
        """Measure the meaning of every document against a query, and nothing else."""
        return self._measured(query, vectors)[1]

    def _measured(self, query: SearchQuery, vectors: Sequence[Stored]) -> tuple[list[Matrix], Floats]:
        """Return how near every passage and every document is."""
        cues = len(query.cues) if self.domain == "tool" else 0
        nearness = self._nearness(query, vectors[: len(vectors) - len(query.cues) + cues])
        return nearness, self._meaning(nearness, cues)

    def _nearness(self, query: SearchQuery, vectors: Sequence[Stored]) -> list[Matrix]:
        """Return the nearness of all passages to the message, then to each clause and cue."""
        matrix = self.pool.matrix
        if not vectors or matrix is None or len(vectors[0]) != matrix.shape[1]:
            return [np.full(len(self._readable), _UNKNOWN)]
        wanted = [vector.astype(np.float32) for vector in vectors]
        if query.context_share:
            # Rounded to whole components again, so that sums stay exact in any order.
            mixed = np.rint((1 - query.context_share) * wanted[0] + query.context_share * wanted[1])
            wanted = [mixed, *wanted[2:]]
        # Of the whole pool: what a set leaves out is a small part of it, and to copy the rest would take longer.
        if len(matrix) >= MANY_PASSAGES:
            # Worth every core; whole components make the sums exact in whatever order they are added.
            near = np.ascontiguousarray((matrix @ np.stack(wanted).T).T)
        else:
            near = _row_by_row(matrix, wanted)
        near = near[:, self._rows]
        near /= np.float32(SCALE * SCALE)
        if self.embedded_count < len(self._readable):
            near[:, ~self.pool.known[self._rows]] = _UNKNOWN
        return list(near)

    def _meaning(self, nearness: Sequence[Matrix], cues: int) -> NDArray[np.float64]:
        """Return the nearness of each document: that of its best passage, clauses, cues and server counted in."""
        if not self.documents:
            return np.zeros(0)
        best = [np.maximum.reduceat(near, self._starts).astype(np.float64) for near in nearness]
        unknown = best[0] <= -1
        meaning = best[0]
        clauses = len(best) - cues if len(best) > cues else 1
        for share, others in ((CLAUSE_SHARE, best[1:clauses]), (CUE_SHARE, best[clauses:])):
            if others:
                nearest = np.maximum.reduce([meaning, *others])
                meaning = (1 - share) * meaning + share * nearest
        if self._servers is not None:
            where = self._servers.members
            near = self._servers.nearness(meaning[where])
            # Where too few tools of a server are known, each stands for itself.
            meaning[where] += SERVER_SHARE * np.where(near > -1, near - meaning[where], 0.0)
        meaning = meaning.round(DECIMALS)
        meaning[unknown] = np.nan
        return meaning


def _row_by_row(matrix: Matrix, wanted: Sequence[Matrix]) -> Matrix:
    near = np.empty((len(wanted), len(matrix)), np.float32)
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        # A block stays in the processor's cache while every vector passes over it.
        block = matrix[start : start + _ROWS_AT_ONCE]
        for number, vector in enumerate(wanted):
            # Row by row: a matrix product would wake a thread for each core and, on a busy machine, wait for them.
            near[number, start : start + _ROWS_AT_ONCE] = np.vecdot(block, vector)
    return near


@dataclass(frozen=True, slots=True)
class _Servers:
    """The tools of servers that have several, side by side: `starts` is where each server's begin."""

    members: NDArray[np.intp]
    starts: NDArray[np.intp]
    sizes: NDArray[np.intp]

    def nearness(self, meaning: Floats) -> Floats:
        """Return for each member the mean nearness of the nearest tools of its server."""
        left = meaning.copy()
        total = np.zeros(len(self.starts))
        count = np.minimum(self.sizes, SERVER_TOOLS)
        for round_ in range(SERVER_TOOLS):
            best = np.maximum.reduceat(left, self.starts)
            total += np.where(round_ < count, best, 0.0)
            # Lower than any that is not known, so that the next round finds the next best.
            left[left == np.repeat(best, self.sizes)] = _UNKNOWN - 1
        return np.repeat(total / count, self.sizes)


def _servers(names: Sequence[str]) -> _Servers | None:
    """Return the servers that have more than one tool; none when there is nothing to tell apart."""
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions.setdefault(name, []).append(position)
    groups = [found for name, found in positions.items() if name and len(found) > 1]
    if len(positions) < 2 or not groups:
        return None
    sizes = np.array([len(found) for found in groups], np.intp)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)
    return _Servers(np.array([position for found in groups for position in found], np.intp), starts, sizes)
