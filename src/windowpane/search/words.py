"""Judge items by the words they share with a query.

This is BM25 over fields: a word in a name says more than one in a description, and that
more than one in a text. Names are split (`getUserById`, `read_file`) and words are
reduced to their stems. A score lies between 0 and 1 and grows with the number and the
rarity of the words that are found, so that it means the same for every query: one
common word is weak evidence, three rare ones are strong.

The usual libraries score one field and would have to be asked once for each; the
arithmetic itself is a few lines of numpy.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import chain
from math import log
from typing import Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from windowpane.search.documents import Document

Field = Literal["name", "description", "parameters", "text", "server"]

FIELD_WEIGHT: dict[Field, float] = {"name": 3.0, "description": 1.5, "parameters": 0.7, "text": 1.0, "server": 1.0}
"""How much one occurrence counts."""

LENGTH_WEIGHT: dict[Field, float] = {"name": 0.3, "description": 0.6, "parameters": 0.75, "text": 0.75, "server": 0.0}
"""How much a long field is held against its words (BM25's b)."""

SATURATION = 1.2
"""How soon a further occurrence of the same word stops counting (BM25's k1)."""

HALF_WAY = 10.0
"""The evidence (rarity, summed over the words found) that gives a score of one half."""

USUAL_DOCUMENTS = 200
"""A word is as rare as it would be among so many, where there are fewer: three rules say little about a language."""

LONGEST_WORD = 64
"""What is longer is no word of a language that has stems, and nothing to remember."""

Floats = NDArray[np.float64]


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 (the name is the library's)


class Words:
    """The words of a fixed sequence of documents."""

    def __init__(self, documents: Sequence[Document]) -> None:
        counts = [_field_words(doc) for doc in documents]
        self._size = len(documents)
        self._weights: dict[str, tuple[NDArray[np.intp], Floats]] = {}
        self._rarity: dict[str, float] = {}
        for word, (where, occurrences) in _postings(counts).items():
            tf = np.array(occurrences)
            self._weights[word] = (np.array(where, np.intp), tf / (tf + SATURATION))
            others = max(self._size, USUAL_DOCUMENTS) - len(where)
            self._rarity[word] = log(1 + (others + 0.5) / (len(where) + 0.5))

    def scores(self, weighted_texts: Sequence[tuple[str, float]]) -> Floats:
        """Return a score for each document, in their order, against texts that count as their weights say."""
        wanted: dict[str, float] = {}
        for text, weight in weighted_texts:
            for word in set(words(text)):
                wanted[word] = wanted.get(word, 0.0) + weight
        evidence = np.zeros(self._size)
        # Sorted: floating point sums depend on their order, and sets have none.
        for word in sorted(wanted.keys() & self._rarity.keys()):
            where, weights = self._weights[word]
            evidence[where] += wanted[word] * self._rarity[word] * weights
        return evidence / (evidence + HALF_WAY)


def words(text: str) -> list[str]:
    """Return the stems of a text's words, names split, without the words that carry no meaning."""
    tokens: list[str] = _TOKEN.findall(text.replace("_", " "))
    if max(map(len, tokens), default=0) <= LONGEST_WORD:
        return list(chain.from_iterable(map(_stems, tokens)))
    return [stem for token in tokens for stem in (_stems if len(token) <= LONGEST_WORD else _stems_now)(token)]


_TOKEN = re.compile(r"\w+(?:'[^\W\d]+)?")
_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_MOST_PARTS = 5


def _split(token: str) -> list[str]:
    """Split a compound name; the whole of it stays a word as well."""
    if token.islower() or token.isupper():
        return [token.lower()]
    parts = [part.lower() for part in cast("list[str]", _PART.findall(token))]
    return [*parts, token.lower()] if 1 < len(parts) <= _MOST_PARTS else parts or [token.lower()]


def _stems_now(token: str) -> tuple[str, ...]:
    parts = (part for part in _split(token) if part not in STOP_WORDS)
    return tuple(_stem(part) if len(part) <= LONGEST_WORD else part for part in parts)


# Remembered, because it is all written in Python and words come again.
_stems = lru_cache(maxsize=50_000)(_stems_now)


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    # A stemmer of its own for each word: it keeps in itself what it works on, and several threads read texts at once.
    return _stemmer("english").stemWord(word)


# By name, because the library has no types.
_stemmer: Callable[[str], _Stemmer] = import_module("snowballstemmer").stemmer


def _field_words(doc: Document) -> dict[Field, Counter[str]]:
    body: Field = "parameters" if doc.domain == "tool" else "text"
    texts: dict[Field, str] = {"name": doc.name, "description": doc.description, body: doc.body, "server": doc.server}
    return {field: Counter(words(text)) for field, text in texts.items() if text}


def _postings(counts: Sequence[dict[Field, Counter[str]]]) -> dict[str, tuple[list[int], list[float]]]:
    """Return for every word the documents that have it and how much it occurs there, weighted by field."""
    lengths: dict[Field, list[int]] = {}
    for fields in counts:
        for field, counter in fields.items():
            lengths.setdefault(field, []).append(counter.total())
    # The mean is over all documents, also those without the field.
    mean = {field: max(sum(found) / len(counts), 1e-9) for field, found in lengths.items()}
    postings: dict[str, tuple[list[int], list[float]]] = {}
    for number, fields in enumerate(counts):
        occurrences: dict[str, float] = {}
        for field, counter in fields.items():
            b = LENGTH_WEIGHT[field]
            scale = FIELD_WEIGHT[field] / (1 - b + b * counter.total() / mean[field])
            for word, count in counter.items():
                occurrences[word] = occurrences.get(word, 0.0) + scale * count
        for word, weighted in occurrences.items():
            where, how_much = postings.setdefault(word, ([], []))
            where.append(number)
            how_much.append(weighted)
    return postings


STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """a about also am an and any are as at be been being but by can could did do does doing for from had
        has have having he her hers him his how i i'd i'll i'm i've if in into is it it's its just let me
        mine my no not of on or our ours please she should so some than that the their them then there these
        they this those to too us was we were what when where which who whom whose why will with would you
        your yours""",
    )
)
