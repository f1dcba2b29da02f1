"""The documents of an agent, cut, counted and embedded once for all of its sessions.

Sessions differ in what they hold already, so each has other candidates. A set of candidates is a `Corpus`: some
documents of a pool. What belongs to a document lives here, what depends on the set is there.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from windowpane.context.items import Domain
from windowpane.search.chunks import Chunk
from windowpane.search.documents import REMEMBERED_DOCUMENTS, Document, embedded_text, passages, spelled_out
from windowpane.search.embedding.vectors import Key, Stored, vector_key
from windowpane.search.words import WordPool

_WRITTEN = re.compile(r"[^\W\d_]+")

Matrix = NDArray[np.float32]


class Pool:
    """The documents of one domain, with as many vectors as there are so far."""

    def __init__(
        self, domain: Domain, documents: tuple[Document, ...], model: str, language: str | None = None
    ) -> None:
        """Cut and count; with a `language`, what is in another one is judged by its words and never embedded."""
        self.domain: Domain = domain
        self.documents = documents
        self.language = language
        cut = [_cut(doc, model) for doc in documents]
        self.passages = tuple(chunks for chunks, _, _ in cut)
        self.sizes = np.array([len(chunks) for chunks in self.passages], np.intp)
        self.starts = np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.intp)
        self.texts = [text for _, texts, _ in cut for text in texts]
        self.passage_keys: list[Key] = [key for _, _, keys in cut for key in keys]
        self.shared = {key for doc, (_, _, keys) in zip(documents, cut, strict=True) if doc.shared for key in keys}
        self._rows: dict[Key, list[int]] = {}
        for row, key in enumerate(self.passage_keys):
            self._rows.setdefault(key, []).append(row)
        self.known = np.zeros(len(self.texts), bool)
        self.filled = 0
        """How often vectors came or went."""
        self.matrix: Matrix | None = None
        self.words = WordPool(documents)
        understood = np.array([language in (None, one) for one in self.words.languages], bool)
        self.readable = np.repeat(understood, self.sizes)
        self.keys = tuple(doc.key for doc in documents)
        by_name = sorted(range(len(documents)), key=lambda i: self.keys[i].sort_key)
        self.name_ranks = np.empty(len(documents), np.intp)
        self.name_ranks[by_name] = np.arange(len(documents))
        self._positions = {id(doc): position for position, doc in enumerate(documents)}

    def positions(self, documents: Sequence[Document]) -> NDArray[np.intp] | None:
        """Return where documents stand; None where one is not of the pool."""
        found = np.array([self._positions.get(id(doc), -1) for doc in documents], np.intp)
        return None if (found < 0).any() else found

    def vectors(self, keys: Iterable[Key]) -> dict[Key, Stored]:
        """Return the vectors that are known among these."""
        found: dict[Key, Stored] = {}
        for key in keys:
            row = self._rows.get(key, (-1,))[0]
            if self.matrix is not None and row >= 0 and self.known[row]:
                found[key] = self.matrix[row].astype(np.int16)
        return found

    def expect(self, dimensions: int) -> None:
        """Forget vectors of another length: whatever made them no longer answers under this name."""
        if self.matrix is not None and self.matrix.shape[1] != dimensions:
            self.matrix = np.zeros((len(self.texts), dimensions), np.float32)
            self.known[:] = False
            self.filled += 1

    def fill(self, vectors: Mapping[Key, Stored]) -> None:
        """Take in the vectors that belong to these documents."""
        for key, vector in vectors.items():
            for row in self._rows.get(key, ()):
                if not self.readable[row]:
                    continue
                if self.matrix is None:
                    self.matrix = np.zeros((len(self.texts), len(vector)), np.float32)
                if len(vector) == self.matrix.shape[1]:
                    self.matrix[row] = vector
                    self.known[row] = True
        self.filled += 1

    @cached_property
    def written(self) -> dict[str, list[int]]:
        """Return the words as they are written, in lower case: document, how often, for each that has it."""
        found: dict[str, list[int]] = {}
        for position, doc in enumerate(self.documents):
            for word, count in _written(doc):
                found.setdefault(word, []).extend((position, count))
        return found


class Vocabulary(Mapping[str, int]):
    """The words of some documents of a pool as they are written, and how often each occurs; any other 0 times."""

    def __init__(self, pool: Pool, inside: NDArray[np.bool_]) -> None:
        self._written = pool.written
        self._inside: list[bool] = inside.tolist()

    def __getitem__(self, word: str) -> int:
        found, inside = self._written.get(word, ()), self._inside
        return sum(found[at + 1] for at in range(0, len(found), 2) if inside[found[at]])

    def __contains__(self, word: object) -> bool:
        found, inside = self._written.get(str(word), ()), self._inside
        return any(inside[found[at]] for at in range(0, len(found), 2))

    def __iter__(self) -> Iterator[str]:
        return (word for word in self._written if self[word])

    def __len__(self) -> int:
        return sum(1 for _ in self)


# Remembered: an agent whose folder has changed has almost all documents in common with what it was before.
@lru_cache(maxsize=REMEMBERED_DOCUMENTS)
def _cut(doc: Document, model: str) -> tuple[tuple[Chunk, ...], tuple[str, ...], tuple[Key, ...]]:
    """Return a document's passages, what is embedded for each, and the keys of their vectors."""
    found = passages(doc)
    texts = tuple(embedded_text(doc, passage) for passage in found)
    return found, texts, tuple(vector_key(model, text) for text in texts)


@lru_cache(maxsize=REMEMBERED_DOCUMENTS)
def _written(doc: Document) -> tuple[tuple[str, int], ...]:
    """Return the words of a document as they are written, in lower case, and how often each occurs."""
    text = f"{spelled_out(doc.name)} {doc.text} {doc.server}"
    return tuple(Counter(word.lower() for word in _WRITTEN.findall(text)).items())
