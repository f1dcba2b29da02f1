"""The documents of one search, ready to be measured against any query.

Making a corpus cuts and counts; measuring is arithmetic on arrays. A corpus is kept as long as
its documents stay the same, so that the second search of a conversation costs almost nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import Domain
from windowpane.search.base import Floats, Measurements, PassageFinder, SearchQuery
from windowpane.search.chunks import Chunk
from windowpane.search.documents import REMEMBERED_DOCUMENTS, Document, embedded_text, passages, spelled_out
from windowpane.search.embedding.vectors import SCALE, Key, Stored, vector_key
from windowpane.search.words import Words, document_languages

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

_WRITTEN = re.compile(r"[^\W\d_]+")

Matrix = NDArray[np.float32]


class Corpus:
    """The documents of one domain, cut and counted, with as many vectors as there are so far."""

    def __init__(
        self, domain: Domain, documents: tuple[Document, ...], model: str, language: str | None = None
    ) -> None:
        """Cut and count; with a `language`, what is in another one is judged by its words and never embedded."""
        self.domain: Domain = domain
        self.documents = documents
        cut = [_cut(doc, model) for doc in documents]
        self._passages = tuple(chunks for chunks, _, _ in cut)
        sizes = [len(chunks) for chunks in self._passages]
        self._starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)
        self.texts = [text for _, texts, _ in cut for text in texts]
        self.passage_keys: list[Key] = [key for _, _, keys in cut for key in keys]
        self._shared = {key for doc, (_, _, keys) in zip(documents, cut, strict=True) if doc.shared for key in keys}
        self._rows: dict[Key, list[int]] = {}
        for row, key in enumerate(self.passage_keys):
            self._rows.setdefault(key, []).append(row)
        self._known = np.zeros(len(self.texts), bool)
        self._matrix: Matrix | None = None
        self._words = Words(documents)
        shown = document_languages(documents)
        self.foreign = Counter(one for one in shown if language not in (None, one))
        readable = np.array([language in (None, one) for one in shown], bool)
        self._readable = np.repeat(readable, sizes)
        self._keys = tuple(doc.key for doc in documents)
        by_name = sorted(range(len(documents)), key=lambda i: self._keys[i].sort_key)
        self._name_ranks = np.empty(len(documents), np.intp)
        self._name_ranks[by_name] = np.arange(len(documents))
        self._servers = _servers([doc.server for doc in documents]) if domain == "tool" else None

    @property
    def passage_count(self) -> int:
        """Return how many passages can have a vector."""
        return int(self._readable.sum())

    @property
    def embedded_count(self) -> int:
        """Return how many passages have their vector."""
        return int(self._known.sum())

    @cached_property
    def vocabulary(self) -> Counter[str]:
        """Return the words of the documents as they are written, in lower case, and how often each occurs."""
        texts = (f"{spelled_out(doc.name)} {doc.text} {doc.server}" for doc in self.documents)
        return Counter(word.lower() for text in texts for word in _WRITTEN.findall(text))

    def missing(self) -> dict[Key, str]:
        """Return the texts that still need a vector, shortest first, so that the most items are judged soonest."""
        found = {self.passage_keys[row]: self.texts[row] for row in np.flatnonzero(self._readable & ~self._known)}
        return dict(sorted(found.items(), key=lambda pair: (len(pair[1]), pair[1])))

    def vectors(self, keys: Iterable[Key]) -> dict[Key, Stored]:
        """Return the vectors that are known among these."""
        found: dict[Key, Stored] = {}
        for key in keys:
            row = self._rows.get(key, (-1,))[0]
            if self._matrix is not None and row >= 0 and self._known[row]:
                found[key] = self._matrix[row].astype(np.int16)
        return found

    def to_keep(self, vectors: Mapping[Key, Stored]) -> dict[Key, Stored]:
        """Return those of the vectors that may be kept on disk: what belongs to one session may not."""
        return {key: vector for key, vector in vectors.items() if key in self._shared}

    def expect(self, dimensions: int) -> None:
        """Forget vectors of another length: whatever made them no longer answers under this name."""
        if self._matrix is not None and self._matrix.shape[1] != dimensions:
            self._matrix = np.zeros((len(self.texts), dimensions), np.float32)
            self._known[:] = False

    def fill(self, vectors: Mapping[Key, Stored]) -> None:
        """Take in the vectors that belong to this corpus."""
        for key, vector in vectors.items():
            for row in self._rows.get(key, ()):
                if not self._readable[row]:
                    continue
                if self._matrix is None:
                    self._matrix = np.zeros((len(self.texts), len(vector)), np.float32)
                if len(vector) == self._matrix.shape[1]:
                    self._matrix[row] = vector
                    self._known[row] = True

    def measure(self, query: SearchQuery, vectors: Sequence[Stored]) -> Measurements:
        """Measure every document against a query; `vectors` are those of `query.texts`, or none."""
        counted = [(query.message, 1.0), (query.earlier, EARLIER_WORDS_SHARE * query.context_share)]
        counted = [(text, weight) for text, weight in counted if text and weight]
        scores = np.round(self._words.scores(counted), DECIMALS)
        cues = len(query.cues) if self.domain == "tool" else 0
        vectors = vectors[: len(vectors) - len(query.cues) + cues]
        nearness = self._nearness(query, vectors)
        meaning = self._meaning(nearness, cues)
        query_words = frozenset(word for text, _ in counted for word in self._words.words(text))
        found = PassageFinder(self._passages, self._starts, nearness[0], query_words, self._words.words)
        return Measurements(self.domain, self._keys, meaning, scores, self._name_ranks, found)

    def _nearness(self, query: SearchQuery, vectors: Sequence[Stored]) -> list[Matrix]:
        """Return the nearness of all passages to the message, then to each clause and cue."""
        if not vectors or self._matrix is None or len(vectors[0]) != self._matrix.shape[1]:
            return [np.full(len(self.texts), _UNKNOWN)]
        wanted = [vector.astype(np.float32) for vector in vectors]
        if query.context_share:
            # Rounded to whole components again, so that sums stay exact in any order.
            mixed = np.rint((1 - query.context_share) * wanted[0] + query.context_share * wanted[1])
            wanted = [mixed, *wanted[2:]]
        if len(self.texts) >= MANY_PASSAGES:
            # Worth every core; whole components make the sums exact in whatever order they are added.
            near = np.ascontiguousarray((self._matrix @ np.stack(wanted).T).T)
        else:
            near = self._row_by_row(self._matrix, wanted)
        near /= np.float32(SCALE * SCALE)
        if not self._known.all():
            near[:, ~self._known] = _UNKNOWN
        return list(near)

    def _row_by_row(self, matrix: Matrix, wanted: Sequence[Matrix]) -> Matrix:
        near = np.empty((len(wanted), len(self.texts)), np.float32)
        for start in range(0, len(self.texts), _ROWS_AT_ONCE):
            # A block stays in the processor's cache while every vector passes over it.
            block = matrix[start : start + _ROWS_AT_ONCE]
            for number, vector in enumerate(wanted):
                # Row by row: a matrix product would wake a thread for each core and, on a busy machine, wait for them.
                near[number, start : start + _ROWS_AT_ONCE] = np.vecdot(block, vector)
        return near

    def _meaning(self, nearness: Sequence[Matrix], cues: int) -> NDArray[np.float64]:
        """Return the nearness of each document: that of its best passage, clauses, cues and server counted in."""
        if not len(self.texts):
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
        meaning = np.round(meaning, DECIMALS)
        meaning[unknown] = np.nan
        return meaning


# Remembered: sessions that hold different items have different candidates, and almost all documents in common.
@lru_cache(maxsize=REMEMBERED_DOCUMENTS)
def _cut(doc: Document, model: str) -> tuple[tuple[Chunk, ...], tuple[str, ...], tuple[Key, ...]]:
    """Return a document's passages, what is embedded for each, and the keys of their vectors."""
    found = passages(doc)
    texts = tuple(embedded_text(doc, passage) for passage in found)
    return found, texts, tuple(vector_key(model, text) for text in texts)


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
