"""Judge items by the words they share with a query.

This is BM25 over fields: a word in a name says more than one in a description, and that
more than one in a text. Names are split (`getUserById`, `read_file`) and words are
reduced to their stems, in the language of each document. Chinese, Japanese, Korean and
Thai have no spaces to go by: there, every two neighbouring characters are a word. A score
lies between 0 and 1 and grows with the number and the rarity of the words that are found,
so that it means the same for every query: one common word is weak evidence, three rare
ones are strong.

The usual libraries score one field and would have to be asked once for each; the
arithmetic itself is a few lines of numpy.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib import import_module
from itertools import chain, islice, takewhile
from math import log
from typing import Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from windowpane.search.documents import REMEMBERED_DOCUMENTS, Document
from windowpane.search.languages import DENSE, ENGLISH, LITTLE_WORDS, composed, language_of

Field = Literal["name", "description", "parameters", "text", "server"]

FIELD_WEIGHT: dict[Field, float] = {"name": 3.0, "description": 1.5, "parameters": 0.7, "text": 1.0, "server": 1.0}
"""How much one occurrence counts."""

LENGTH_WEIGHT: dict[Field, float] = {"name": 0.3, "description": 0.6, "parameters": 0.75, "text": 0.75, "server": 0.0}
"""How much a long field is held against its words (BM25's b)."""

SATURATION = 1.2
"""How soon a further occurrence of the same word stops counting (BM25's k1)."""

HALF_WAY = 10.0
"""The evidence (rarity, summed over the words found) that gives a score of one half."""

OTHER_HALF_WAY = 7.0
"""The same for messages in other languages: one word of theirs often says what takes two or three in English."""

USUAL_DOCUMENTS = 200
"""A word is as rare as it would be among so many, where there are fewer: three rules say little about a language."""

PART_SHARE = 0.7
"""How much a word counts that shares a whole part with one of the query, in languages that write compounds as one."""

SHORTEST_PART = 5
"""Shorter beginnings and ends are alike by chance."""

REMEMBERED_CHARACTERS = 2_000
"""The words of longer texts are not remembered."""

LONGEST_WORD = 64
"""What is longer is no word of a language that has stems, and nothing to remember."""

_FIELDS: dict[Field, int] = {field: place for place, field in enumerate(FIELD_WEIGHT)}
_FIELD_WEIGHTS = np.array(list(FIELD_WEIGHT.values()))
_LENGTH_WEIGHTS = np.array([LENGTH_WEIGHT[field] for field in FIELD_WEIGHT])

Floats = NDArray[np.float64]


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 (the name is the library's)


class WordPool:
    """The words of documents, counted once for every set of them that is judged."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.shown = [_shown_language(doc) for doc in documents]
        self.languages = known_languages(self.shown)
        counts = [_field_words(doc, language) for doc, language in zip(documents, self.languages, strict=True)]
        self.foreign = np.array([language != ENGLISH for language in self.languages], bool)
        abroad = (fields for fields, foreign in zip(counts, self.foreign, strict=True) if foreign)
        found = (word for fields in abroad for counter in fields.values() for word in counter)
        self.compounds = _Compounds(found) if self.foreign.any() else None
        self.lengths = np.zeros((len(_FIELDS), len(documents)))
        self._postings: dict[str, list[int]] = {}
        for number, fields in enumerate(counts):
            for field, counter in fields.items():
                place = _FIELDS[field]
                self.lengths[place, number] = counter.total()
                for word, count in counter.items():
                    self._postings.setdefault(word, []).extend((number, place, count))

    def occurrences(self, word: str) -> NDArray[np.intp]:
        """Return where a word occurs, in the order of the documents: document, field, how often."""
        return np.array(self._postings.get(word, ()), np.intp).reshape(-1, 3)


class Words:
    """The words of a fixed sequence of documents, some of a pool or all of it: `positions` are theirs in it.

    Each set is judged as if there were no other documents: how rare a word is and how long its texts usually are depend
    on the set.
    """

    def __init__(self, pool: WordPool, positions: NDArray[np.intp] | None = None) -> None:
        self._pool = pool
        chosen = np.arange(len(pool.languages)) if positions is None else positions
        self._size = len(chosen)
        self._number = np.full(len(pool.languages), -1)
        self._number[chosen] = np.arange(self._size)
        self._languages = sorted({pool.languages[position] for position in chosen.tolist()}) or [ENGLISH]
        self._has_foreign = bool(pool.foreign[chosen].any())
        # The mean is over all documents, also those without the field.
        self._means = [max(total / max(self._size, 1), 1e-9) for total in pool.lengths[:, chosen].sum(axis=1).tolist()]
        self._known: dict[str, _Occurrence | None] = {}

    def scores(self, weighted_texts: Sequence[tuple[str, float]]) -> Floats:
        """Return a score for each document, in their order, against texts that count as their weights say."""
        wanted: dict[str, float] = {}
        for text, weight in weighted_texts:
            for word, share in self._wanted(text).items():
                wanted[word] = wanted.get(word, 0.0) + weight * share
        # Sorted: floating point sums depend on their order, and sets have none.
        found = [(wanted[word], one) for word in sorted(wanted) if (one := self._occurrence(word)) is not None]
        evidence = np.zeros(self._size)
        if found:
            counts = np.repeat([share * one.rarity for share, one in found], [len(one.where) for _, one in found])
            counts *= np.concatenate([one.weights for _, one in found])
            # Word by word, since `bincount` adds one after the other.
            evidence = np.bincount(np.concatenate([one.where for _, one in found]), counts, self._size)
        half_way = HALF_WAY if {language_of(text) for text, _ in weighted_texts} <= {None, ENGLISH} else OTHER_HALF_WAY
        return evidence / (evidence + half_way)

    def words(self, text: str) -> frozenset[str]:
        """Return the words of a query as they would stand in these documents, in each of their languages."""
        little = LITTLE_WORDS.get(language_of(text) or ENGLISH, frozenset[str]())
        return frozenset[str]().union(*(words(text, language, also_ignored=little) for language in self._languages))

    def _wanted(self, text: str) -> dict[str, float]:
        """Return the words of a text and how much each counts: compounds that share a part with one count less."""
        wanted = dict.fromkeys(self.words(text), 1.0)
        if self._has_foreign and self._pool.compounds is not None:
            for word in tuple(wanted):
                for other in self._pool.compounds.alike(word):
                    if other not in wanted and self._in_foreign(other):
                        wanted[other] = PART_SHARE
        return wanted

    def _in_foreign(self, word: str) -> bool:
        where = self._pool.occurrences(word)[:, 0]
        return bool((self._pool.foreign[where] & (self._number[where] >= 0)).any())

    def _occurrence(self, word: str) -> "_Occurrence | None":
        """Return how a word occurs in these documents; None where it does not."""
        if word in self._known:
            return self._known[word]
        found = self._pool.occurrences(word)
        found = found[self._number[found[:, 0]] >= 0]
        known = self._known[word] = self._counted(found) if len(found) else None
        return known

    def _counted(self, found: NDArray[np.intp]) -> "_Occurrence":
        documents, fields, counts = found.T
        b, mean = _LENGTH_WEIGHTS[fields], np.array(self._means)[fields]
        scale = _FIELD_WEIGHTS[fields] / (1 - b + b * self._pool.lengths[fields, documents] / mean)
        # Field by field in their order, because floating point sums depend on it; `bincount` adds one after the other.
        first = np.concatenate(([True], documents[1:] != documents[:-1]))
        tf = np.bincount(np.cumsum(first) - 1, weights=scale * counts)
        where = self._number[documents[first]]
        others = max(self._size, USUAL_DOCUMENTS) - len(where)
        return _Occurrence(where, tf / (tf + SATURATION), log(1 + (others + 0.5) / (len(where) + 0.5)))


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """The documents that have a word, how much it counts in each, and how rare it is."""

    where: NDArray[np.intp]
    weights: Floats
    rarity: float


class _Compounds:
    """The words of documents that are not English, by their beginnings and ends.

    Many languages write compounds as one word: who asks for a `Konzert` needs the `Rockkonzert`, and the other way
    round.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._known = frozenset(vocabulary)
        self._forwards = sorted(self._known)
        self._backwards = sorted(word[::-1] for word in self._known)

    def alike(self, word: str) -> set[str]:
        """Return the words that begin or end with this one, and those that it begins or ends with."""
        inner = range(SHORTEST_PART, len(word) - 1)
        found = {part for at in inner for part in (word[:at], word[-at:])} & self._known
        if len(word) >= SHORTEST_PART:
            found.update(_beginning_with(word, self._forwards))
            found.update(other[::-1] for other in _beginning_with(word[::-1], self._backwards))
        return found - {word}


def _beginning_with(word: str, ordered: Sequence[str]) -> Iterator[str]:
    return takewhile(lambda other: other.startswith(word), islice(ordered, bisect_left(ordered, word), None))


def known_languages(shown: Sequence[str | None]) -> list[str]:
    """Return the language of each document; of one that does not show it, the one that most of them have."""
    known = Counter(language for language in shown if language is not None)
    usual = max(known, key=lambda language: (known[language], language), default=ENGLISH)
    return [language or usual for language in shown]


@lru_cache(maxsize=REMEMBERED_DOCUMENTS)
def _shown_language(doc: Document) -> str | None:
    return language_of(doc.description or (doc.body if doc.domain == "text" else ""))


def words(text: str, language: str = ENGLISH, *, also_ignored: frozenset[str] = frozenset()) -> list[str]:
    """Return the stems of a text's words, names split, without the words that carry no meaning.

    `also_ignored` are further ones, as they are written. A run of a script without spaces gives every two characters
    that stand side by side.
    """
    # The texts of a turn are asked for again and again: by each search, by the recall and for the next turn.
    read = _remembered_words if len(text) <= REMEMBERED_CHARACTERS else _words_now
    return list(read(text, language, also_ignored))


def _words_now(text: str, language: str, also_ignored: frozenset[str]) -> tuple[str, ...]:
    composed_text = composed(text).replace("_", " ")
    # Elsewhere an apostrophe joins two words ("l'area"); in English it belongs to one ("user's").
    tokens: list[str] = (_TOKEN if language == ENGLISH else _PLAIN_TOKEN).findall(composed_text)
    if also_ignored:
        tokens = [token for token in tokens if token.lower() not in also_ignored]
    stems = _STEMS.get(language) or _STEMS.setdefault(language, partial(_remembered_stems, language))
    if max(map(len, tokens), default=0) <= LONGEST_WORD:
        return tuple(chain.from_iterable(map(stems, tokens)))
    long = partial(_stems_now, language)
    return tuple(stem for token in tokens for stem in (stems if len(token) <= LONGEST_WORD else long)(token))


_remembered_words = lru_cache(maxsize=1_024)(_words_now)


_LETTERS = r"\w\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u109f"
"""What words are made of: also the marks of scripts that write vowels above and below."""

_TOKEN = re.compile(rf"[{_LETTERS}]+(?:['’][^\W\d]+)?")
_PLAIN_TOKEN = re.compile(rf"[{_LETTERS}]+")
_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_DENSE_RUN = re.compile(f"([{DENSE}]+)")
_NUMBER = re.compile(r"[0-9]+").fullmatch
_MOST_PARTS = 5


def _split(token: str) -> list[str]:
    """Split a compound name; the whole of it stays a word as well."""
    if token.islower() or token.isupper():
        return [token.lower()]
    parts = [part.lower() for part in cast("list[str]", _PART.findall(token))]
    return [*parts, token.lower()] if 1 < len(parts) <= _MOST_PARTS else parts or [token.lower()]


def _stems_now(language: str, token: str) -> tuple[str, ...]:
    if not token.isascii() and _DENSE_RUN.search(token):
        runs = (run for run in cast("list[str]", _DENSE_RUN.split(token)) if run)
        return tuple(
            stem for run in runs for stem in (_pairs(run) if _DENSE_RUN.match(run) else _stems_now(language, run))
        )
    ignored = LITTLE_WORDS.get(language, STOP_WORDS)
    parts = [part for part in _split(token) if part not in ignored]
    # Numbers have no stem.
    return tuple([part if len(part) > LONGEST_WORD or _NUMBER(part) else _stem(language, part) for part in parts])


def _pairs(run: str) -> tuple[str, ...]:
    """Return every two neighbours of a run of characters, without those that are only grammar."""
    pairs = (run[at : at + 2] for at in range(max(len(run) - 1, 1)))
    return tuple(pair for pair in pairs if not _GRAMMAR.fullmatch(pair))


_GRAMMAR = re.compile(
    r"[\u3040-\u309f的了吗呢吧啊我你您他她它们是在有和与就也都很把被给让请帮这那个些什么怎样哪谁几之其]+"
)
"""What a pair of characters is made of that says nothing: hiragana, and the little words of Chinese."""

# Remembered, because it is all written in Python and words come again.
_remembered_stems = lru_cache(maxsize=50_000)(_stems_now)
_STEMS: dict[str, Callable[[str], tuple[str, ...]]] = {}


@lru_cache(maxsize=50_000)
def _stem(language: str, word: str) -> str:
    # A stemmer of its own for each word: it keeps in itself what it works on, and several threads read texts at once.
    stemmer, known = _stemmers()
    return stemmer(language if language in known else ENGLISH).stemWord(word)


@cache
def _stemmers() -> tuple[Callable[[str], _Stemmer], frozenset[str]]:
    # Late, because it loads the rules of thirty languages. By name, because the library has no types.
    snowball = import_module("snowballstemmer")
    return snowball.stemmer, frozenset(snowball.algorithms())


@lru_cache(maxsize=REMEMBERED_DOCUMENTS)
def _field_words(doc: Document, language: str) -> dict[Field, Counter[str]]:
    body: Field = "parameters" if doc.domain == "tool" else "text"
    texts: dict[Field, str] = {"name": doc.name, "description": doc.description, body: doc.body, "server": doc.server}
    return {field: Counter(words(text, language)) for field, text in texts.items() if text}


STOP_WORDS = LITTLE_WORDS[ENGLISH]
