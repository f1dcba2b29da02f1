"""One session's past: what was said, its words, and as many vectors as there are so far.

A short message is rarely understood alone ("yes, the second one"), so it is embedded together with the two messages
before it and the one after it, as far as there is room for them. A long one stands alone. Whatever speaks for a message
speaks a little for its neighbours as well. Every message is cut, counted and embedded once, when its neighbours are
known: then it is settled, since a session's past only grows.
"""

import hashlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from windowpane.context.messages import AssistantMessage, Message, UserMessage
from windowpane.search.base import Floats, SearchQuery
from windowpane.search.chunks import CHUNKER_VERSION, Chunk, chunks
from windowpane.search.embedding.vectors import SCALE, Key, Stored, vector_key
from windowpane.search.words import words

BEFORE = 2
AFTER = 1
"""How many messages before and after it a message is embedded with."""

NEIGHBOUR_CHARS = 250
"""How much of each of them at most: the end of those before, the beginning of the one after."""

PASSAGE_CHARS = 500
"""How long a passage may become by its neighbours: the time to embed it grows with its length."""

LEAST_ROOM_CHARS = 200
"""A passage that leaves less room than this for neighbours stands alone."""

NEIGHBOUR_WEIGHTS = (0.3, 0.15)
"""How much of its evidence a message lends to the messages next to it, and to those one further away."""

MEANING_SHARE = 0.5
"""How much meaning counts against words."""

SATURATION = 1.2
LENGTH_WEIGHT = 0.4
HALF_WAY = 10.0
EARLIER_WORDS_SHARE = 0.4
LEAST_SIZE = 64
"""How rare a word is cannot be told from fewer messages than this."""

MOST_PASSAGES = 12
"""The rest of a longer message is searched by its words alone."""

MOST_SHARING = 8
"""How many later messages are returned that share words with one."""

MOST_LATER = 64
"""How many later messages with a word are looked at for that, the latest."""

_TAG_BYTES = 8

Spoken = UserMessage | AssistantMessage
_Occurrences = tuple["array[int]", "array[int]"]
"""The positions of the messages that have a word, and how often each has it."""


@dataclass(frozen=True, slots=True)
class Held:
    """How far a session has been taken in: up to which sequence number, and how many messages of all kinds."""

    seq: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """How near each message is to a query, column by column in the order of `messages`, oldest first.

    `meaning` is a cosine, nan where it was not measured. `words` and `coverage` lie between 0 and 1: how much was
    found of what the query asks for, and what share of it. `fused` orders: meaning and words in standard
    deviations, with what neighbours lend. `sizes` is room to keep what messages cost when they are recalled whole, 0
    where it was not counted yet. `sharing` returns later messages that share words with the one at a position, oldest
    first.
    """

    messages: tuple[Spoken, ...]
    meaning: Floats
    words: Floats
    coverage: Floats
    fused: Floats
    passages: Sequence[tuple[Chunk, ...]] = field(repr=False)
    nearness: Floats = field(repr=False)
    edges: NDArray[np.intp] = field(repr=False)
    sizes: "array[int]" = field(repr=False, compare=False)
    sharing: Callable[[int], Sequence[Spoken]] = field(repr=False, compare=False)
    degraded: tuple[str, ...] = ()

    def passage(self, position: int) -> Chunk | None:
        """Return the passage of a message that is nearest by meaning, or None where that was not measured."""
        near = self.nearness[self.edges[position] : self.edges[position + 1]]
        best = int(np.argmax(near)) if len(near) else -1
        return self.passages[position][best] if best >= 0 and near[best] > -1 else None


class Past:
    """One session's messages; vectors are filled in as they come.

    With `partial`, messages before the first are not known, so those that need them get no vector.
    """

    def __init__(self, model: str, *, partial: bool = False) -> None:
        self._model = model
        made_as = f"{model}\0{CHUNKER_VERSION}\0{BEFORE}\0{AFTER}\0{NEIGHBOUR_CHARS}\0{PASSAGE_CHARS}"
        self._tag = hashlib.sha256(made_as.encode()).digest()[:_TAG_BYTES]
        self._first = BEFORE if partial else 0
        self.held = Held()
        self.passage_count = 0
        self._messages: list[Spoken] = []
        self._texts: list[str] = []
        # Arrays, because numpy takes them in as they are.
        self._lengths = array("q")
        self._sizes = array("i")
        self._starts = array("q")
        self._postings: dict[str, _Occurrences] = {}
        self._words: list[tuple[_Occurrences, ...]] = []
        self._passages: list[tuple[Chunk, ...]] = []
        self._keys: list[Key] = []
        self._row_texts: list[str] = []
        self._rows: dict[Key, list[int]] = {}
        self._matrix = np.zeros((0, 0), np.float32)
        self._known = np.zeros(0, bool)
        self._unkept: dict[int, int] = {}

    @property
    def settled(self) -> int:
        """Return how many messages have all of their neighbours: all but the last, unless that needs none after it."""
        count = len(self._messages)
        return count if not count or self._ends_alone(count - 1) else count - AFTER

    @property
    def unkept(self) -> tuple[int, ...]:
        """Return the sequence numbers of the messages whose vectors were neither taken nor given to be kept."""
        return tuple(self._unkept.values())

    def add(self, messages: Sequence[Message]) -> None:
        """Take in messages that follow those that are here."""
        for message in messages:
            if isinstance(message, (UserMessage, AssistantMessage)):
                self._add(message)
        if messages:
            self.held = Held(messages[-1].seq, self.held.count + len(messages))
        # No caller waits for them now.
        self._laid_out(self.settled)

    def count_before(self, seq: int | None) -> int:
        """Return how many messages come before a sequence number; None means all."""
        if seq is None:
            return len(self._messages)
        count = len(self._messages)
        while count and self._messages[count - 1].seq >= seq:
            count -= 1
        return count

    def missing(self, count: int, most: int | None = None) -> dict[Key, str]:
        """Return texts of the first `count` messages that need a vector, latest first: they are asked about most."""
        end = self._laid_out(count)
        begin = self._starts[self._first] if self._first < len(self._starts) else end
        known = self._known[begin:end]
        if known.all():
            return {}
        rows: list[int] = (begin + np.flatnonzero(~known)[::-1][:most]).tolist()
        return {self._keys[row]: self._row_texts[row] for row in rows}

    def fill(self, vectors: Mapping[Key, Stored]) -> None:
        """Take in the vectors that belong here."""
        self._put((row, vector) for key, vector in vectors.items() for row in self._rows.get(key, ()))

    def take(self, kept: Mapping[int, bytes]) -> None:
        """Take in what `to_keep` gave, by the sequence numbers of messages. What was made otherwise is passed over."""
        for position, message in enumerate(self._messages[: self.settled] if kept else ()):
            body, rows = kept.get(message.seq, b""), self._rows_of(position)
            if rows and body[:_TAG_BYTES] == self._tag and (len(body) - _TAG_BYTES) % (2 * len(rows)) == 0:
                self._put(zip(rows, np.frombuffer(body, "<i2", offset=_TAG_BYTES).reshape(len(rows), -1), strict=True))
                self._unkept.pop(position, None)

    def to_keep(self) -> dict[int, bytes]:
        """Return the vectors of settled messages that have all of theirs and were not given here before."""
        found: dict[int, bytes] = {}
        settled = self.settled
        for position, seq in [*self._unkept.items()]:
            rows = self._rows_of(position) if self._first <= position < settled else range(0)
            if rows and self._known[rows.start : rows.stop].all():
                found[seq] = self._tag + self._matrix[rows.start : rows.stop].astype("<i2").tobytes()
                del self._unkept[position]
        return found

    def measure(self, query: SearchQuery, vector: Stored | None, count: int) -> HistoryResult:
        """Measure the first `count` messages against a query; `vector` is the query's meaning, or None."""
        evidence, all_evidence = self._evidence(query, count)
        coverage: Floats = np.minimum(evidence / (all_evidence or 1.0), 1.0)
        nearness, edges = self._nearness(vector, count)
        meaning = _best(nearness, edges)
        measured = ~np.isnan(meaning)
        fused = _standard(evidence)
        if measured.all():
            fused = MEANING_SHARE * _standard(meaning) + (1 - MEANING_SHARE) * fused
        elif measured.any():
            distance = np.zeros(count)
            distance[measured] = _standard(meaning[measured])
            fused = MEANING_SHARE * distance + (1 - MEANING_SHARE) * fused
        return HistoryResult(
            messages=tuple(self._messages[:count]),
            meaning=meaning,
            words=(evidence / (evidence + HALF_WAY)).round(6),
            coverage=coverage.round(6),
            fused=_lent(fused).round(6),
            passages=self._passages,
            nearness=nearness,
            edges=edges,
            sizes=self._sizes,
            sharing=lambda position: self._sharing(position, count),
        )

    def _add(self, message: Spoken) -> None:
        text = message.content if isinstance(message, UserMessage) else message.model_reply.text
        position = len(self._messages)
        if position and len(self._starts) == position and not self._ends_alone(position - 1):
            self._take_back_last()
        counted = Counter(words(text))
        found = tuple([self._postings.get(word) or self._of_new(word) for word in counted])
        for (where, how_often), times in zip(found, counted.values(), strict=True):
            where.append(position)
            how_often.append(times)
        self._words.append(found)
        self._messages.append(message)
        self._texts.append(text)
        self._lengths.append(counted.total())
        self._sizes.append(0)
        self._passages.append(chunks(text)[:MOST_PASSAGES])
        self.passage_count += len(self._passages[-1])
        if self._passages[-1]:
            self._unkept[position] = message.seq

    def _of_new(self, word: str) -> _Occurrences:
        found = self._postings[word] = (array("i"), array("i"))
        return found

    def _take_back_last(self) -> None:
        """Free the rows of the last message: it was embedded before the one after it was known."""
        start = self._starts.pop()
        for key in self._keys[start:]:
            del self._rows[key][-1]
        del self._keys[start:], self._row_texts[start:]
        self._known[start:] = False

    def _laid_out(self, count: int) -> int:
        """Give the passages of the first `count` messages their rows, and return where these end."""
        while len(self._starts) < count:
            position = len(self._starts)
            self._starts.append(len(self._keys))
            for text in self._embedded(position):
                key = vector_key(self._model, text)
                self._rows.setdefault(key, []).append(len(self._keys))
                self._keys.append(key)
                self._row_texts.append(text)
        more = len(self._keys) - len(self._known)
        if more > 0:
            more += len(self._keys)
            self._known = np.concatenate((self._known, np.zeros(more, bool)))
            self._matrix = np.concatenate((self._matrix, np.zeros((more, self._matrix.shape[1]), np.float32)))
        return self._starts[count] if count < len(self._starts) else len(self._keys)

    def _ends_alone(self, position: int) -> bool:
        """Tell whether a message is embedded without what comes after it."""
        passages = self._passages[position]
        return not passages or not _room(passages[-1].text)

    def _embedded(self, position: int) -> list[str]:
        """Return what stands for the passages of a message when their meaning is measured."""
        found = [passage.text for passage in self._passages[position]]
        before = [text.strip()[-NEIGHBOUR_CHARS:] for text in self._texts[max(0, position - BEFORE) : position]]
        after = [text.strip()[:NEIGHBOUR_CHARS] for text in self._texts[position + 1 : position + 1 + AFTER]]
        if len(found) == 1:
            return [_together(before, found[0], after)]
        return [_together(before, found[0], ()), *found[1:-1], _together((), found[-1], after)] if found else []

    def _rows_of(self, position: int) -> range:
        end = self._laid_out(position + 1)
        return range(self._starts[position], end)

    def _put(self, vectors: Iterable[tuple[int, Stored]]) -> None:
        for row, vector in vectors:
            if self._matrix.shape[1] != len(vector):
                self._matrix = np.zeros((len(self._known), len(vector)), np.float32)
                self._known[:] = False
            self._matrix[row] = vector
            self._known[row] = True

    def _evidence(self, query: SearchQuery, count: int) -> tuple[Floats, float]:
        """Return BM25 over the first `count` messages, and what a message with every word of the query would get."""
        wanted = dict.fromkeys(words(query.message), 1.0)
        for word in words(query.earlier) if query.context_share else ():
            wanted.setdefault(word, EARLIER_WORDS_SHARE * query.context_share)
        lengths = np.array(self._lengths[:count], float)
        mean = max(float(lengths.mean()), 1e-9) if count else 1.0
        size = max(count, LEAST_SIZE)
        total = 0.0
        at, how_often = array("i"), array("i")
        weights: list[float] = []
        numbers: list[int] = []
        # Sorted: floating point sums depend on their order.
        for word in sorted(wanted):
            where, times = self._postings.get(word, _NONE)
            number = bisect_left(where, count)
            weight = wanted[word] * log(1 + (size - number + 0.5) / (number + 0.5)) * (SATURATION + 1)
            # Words of earlier turns help to find; that they are missing says nothing.
            total += weight if wanted[word] == 1.0 else 0.0
            at += where[:number]
            how_often += times[:number]
            weights.append(weight)
            numbers.append(number)
        if not at:
            return np.zeros(count), total
        found, often = np.array(at, np.intp), np.array(how_often, float)
        long = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths[found] / mean
        # Word by word, since `bincount` adds one after the other.
        evidence = np.bincount(found, np.array(weights).repeat(numbers) * often / (often + SATURATION * long), count)
        return evidence.astype(float, copy=False), total

    def _sharing(self, position: int, count: int) -> list[Spoken]:
        """Return the messages after a position that share most words with it, rare ones counting more."""
        later = array("i")
        rarities: list[float] = []
        numbers: list[int] = []
        for where, _ in self._words[position]:
            end = len(where) if where[-1] < count else bisect_left(where, count)
            begin = bisect_left(where, position + 1, max(0, end - MOST_LATER), end)
            later += where[begin:end]
            rarities.append(1 / (len(where) + 1))
            numbers.append(end - begin)
        if not later:
            return []
        # Word by word, since `bincount` adds one after the other.
        shared = np.bincount(np.array(later), np.array(rarities).repeat(numbers))
        found = (shared > 0).nonzero()[0]
        best: list[int] = found[np.lexsort((-found, -shared[found]))[:MOST_SHARING]].tolist()
        return [self._messages[other] for other in sorted(best)]

    def _nearness(self, vector: Stored | None, count: int) -> tuple[Floats, NDArray[np.intp]]:
        """Return how near each passage is, -2 where it is unknown, and where each message's passages begin and end."""
        end = self._laid_out(count)
        if vector is not None and self._matrix.shape[1] == len(vector):
            products = self._matrix[:end] @ vector.astype(np.float32)
            near = np.where(self._known[:end], (products / np.float32(SCALE * SCALE)).round(6), -2.0)
        else:
            near = np.full(end, -2.0)
        return near, np.array(self._starts[:count] + array("q", (end,)), np.intp)


_NONE: _Occurrences = (array("i"), array("i"))


def _room(passage: str) -> int:
    """Return how many characters of neighbours a passage is embedded with."""
    room = PASSAGE_CHARS - len(passage)
    return room if room >= LEAST_ROOM_CHARS else 0


def _together(before: Sequence[str], passage: str, after: Sequence[str]) -> str:
    """Return a passage with the end of what comes before it and the beginning of what comes after it.

    All of them get the same room, and what one does not need goes to the others.
    """
    each, room = 0, _room(passage)
    for number, length in enumerate(sorted(map(len, (*before, *after)))):
        each = room // (len(before) + len(after) - number)
        room -= min(length, each)
    ends = (text[-each:] for text in before if each)
    return "\n".join(filter(None, (*ends, passage, *(text[:each] for text in after))))


def _best(nearness: Floats, edges: NDArray[np.intp]) -> Floats:
    """Return the nearness of each message's nearest passage, nan where there is none."""
    best = np.full(len(edges) - 1, np.nan)
    starts = edges[:-1]
    full = starts < edges[1:]
    if full.all():
        best[:] = np.maximum.reduceat(nearness, starts) if len(starts) else ()
    elif full.any():
        best[full] = np.maximum.reduceat(nearness, starts[full])
    best[best <= -1] = np.nan
    return best


def _standard(values: Floats) -> Floats:
    """Return values in standard deviations from their mean; zero where all are the same."""
    if not len(values):
        return values
    away = values - values.mean()
    spread = sqrt(np.square(away).mean())
    return away / spread if spread else np.zeros(len(values))


def _lent(scores: Floats) -> Floats:
    """Return scores with what neighbours lend each other."""
    lent = scores.copy()
    for distance, weight in enumerate(NEIGHBOUR_WEIGHTS, start=1):
        lent[distance:] += weight * scores[:-distance]
        lent[:-distance] += weight * scores[distance:]
    return lent
