"""Search a session's own past.

A message is rarely understood alone ("yes, the second one"), so it is embedded together with the two messages before it
and the one after it, and whatever speaks for a message speaks a little for its neighbours as well. Every message is
cut, counted and embedded once: a session's past only grows, and what is searched lies before the recent messages, so
its neighbours are settled.

Like the search for items, this one never keeps the reply waiting: what is not embedded by the deadline is judged by
its words, and embedding goes on in the background.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from types import TracebackType
from typing import Self

import anyio
import anyio.abc
import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, Message, UserMessage
from windowpane.search.base import Floats, SearchQuery
from windowpane.search.chunks import Chunk, chunks
from windowpane.search.embedding.base import Embedder
from windowpane.search.embedding.vectors import SCALE, Key, Stored, VectorCache, stored, vector_key
from windowpane.search.index import (
    AT_ONCE_CHARACTERS,
    AT_ONCE_PASSAGES,
    DEADLINE_S,
    TEXTS_AT_ONCE,
    Clock,
    too_slow,
    why_not,
)
from windowpane.search.words import words
from windowpane.supervise import supervised

BEFORE = 2
AFTER = 1
"""How many messages before and after it a message is embedded with."""

NEIGHBOUR_CHARS = 250
"""How much of each of them: the end of those before, the beginning of the one after."""

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

MOST_KEPT_PASSAGES = 60_000
"""How many passages are kept in memory over all sessions, some 2 kB each; what was not searched longest goes first."""

MOST_SHARING = 8
"""How many later messages are returned that share words with one."""

MOST_LATER = 64
"""How many later messages with a word are looked at for that, the latest."""

MOST_SESSIONS = 256
RETRY_S = 30.0
IN_A_THREAD = 200
"""From this many new messages on, taking them in would hold up others."""

Spoken = UserMessage | AssistantMessage


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
    deviations, with what neighbours lend. `sharing` returns later messages that share
    words with the one at a position, oldest first.
    """

    messages: tuple[Spoken, ...]
    meaning: Floats
    words: Floats
    coverage: Floats
    fused: Floats
    passages: Sequence[tuple[Chunk, ...]] = field(repr=False)
    nearness: Floats = field(repr=False)
    edges: NDArray[np.intp] = field(repr=False)
    sharing: Callable[[int], Sequence[Spoken]] = field(repr=False, compare=False)
    degraded: tuple[str, ...] = ()

    def passage(self, position: int) -> Chunk | None:
        """Return the passage of a message that is nearest by meaning, or None where that was not measured."""
        near = self.nearness[self.edges[position] : self.edges[position + 1]]
        best = int(np.argmax(near)) if len(near) else -1
        return self.passages[position][best] if best >= 0 and near[best] > -1 else None


class HistoryIndex:
    """The past of the sessions that were searched last.

    Entered as a context manager it goes on embedding in the background; otherwise only while a search runs.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        cache: VectorCache | None = None,
        *,
        most_passages: int = MOST_KEPT_PASSAGES,
        clock: Clock = anyio.current_time,
    ) -> None:
        self._embedder = embedder
        self._cache = cache
        self._most_passages = most_passages
        self._clock = clock
        self._sessions: dict[SessionId, Past] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._taking_in = anyio.Lock()
        self._embedding = anyio.Lock()
        self._trouble = ""
        self._retry_at = 0.0
        self._answered = False

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return None
        tasks.cancel_scope.cancel()
        return await tasks.__aexit__(kind, error, trace)

    def held(self, session_id: SessionId) -> Held:
        """Return how far a session has been taken in; only later messages need to be given to `search`."""
        past = self._sessions.get(session_id)
        return past.held if past is not None else Held()

    def forget(self, session_id: SessionId) -> None:
        """Drop a session that was deleted, or whose conversation was cleared."""
        self._sessions.pop(session_id, None)

    async def search(
        self,
        session_id: SessionId,
        messages: Sequence[Message],
        query: SearchQuery,
        *,
        before_seq: int | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> HistoryResult:
        """Measure what was said before `before_seq` against a query.

        `messages` are those since `held(session_id)`, oldest first; what is known already is passed over. Never
        raises for want of a model: what is amiss is in `degraded`.
        """
        deadline = anyio.current_time() + deadline_s
        past = await self._taken_in(session_id, messages)
        count = past.count_before(before_seq)
        vector: Stored | None = None
        if count:
            with anyio.CancelScope(deadline=deadline):
                vector = await self._query_vector(query)
                if vector is not None:
                    await self._embed_or_leave(past, count)
        if count <= AT_ONCE_PASSAGES and len(query.message) <= AT_ONCE_CHARACTERS:
            result = past.measure(query, vector, count)
        else:
            result = await anyio.to_thread.run_sync(past.measure, query, vector, count)
        return replace(result, degraded=self._notes(past, vector, count, deadline_s))

    async def nearness(self, query: str, texts: Sequence[str], *, deadline_s: float = DEADLINE_S) -> Floats:
        """Return how near texts are to a query in meaning, as cosines; nan where it was not measured in time.

        Nothing is kept of them.
        """
        near = np.full(len(texts), np.nan)
        with anyio.move_on_after(deadline_s):
            vector = await self._query_vector(SearchQuery(query))
            for start in range(0, len(texts) if vector is not None else 0, TEXTS_AT_ONCE):
                some = texts[start : start + TEXTS_AT_ONCE]
                found = await self._embed(some)
                if found is None or vector is None or self._embedder is None:
                    break
                rows = np.stack([found[vector_key(self._embedder.model, text)] for text in some])
                near[start : start + len(some)] = rows @ vector.astype(np.float64) / (SCALE * SCALE)
        return near

    async def _taken_in(self, session_id: SessionId, messages: Sequence[Message]) -> "Past":
        async with self._taking_in:
            past = self._sessions.pop(session_id, None) or Past(self._embedder.model if self._embedder else "")
            self._sessions[session_id] = past
            new = [message for message in messages if message.seq > past.held.seq]
            if len(new) < IN_A_THREAD or past.held.count:
                past.add(new)
            else:
                # No other task has it yet: what embeds in the background would change it at the same time.
                await anyio.to_thread.run_sync(past.add, new)
        while len(self._sessions) > 1 and self._is_full():
            del self._sessions[next(iter(self._sessions))]
        return past

    def _is_full(self) -> bool:
        passages = sum(past.passage_count for past in self._sessions.values())
        return passages > self._most_passages or len(self._sessions) > MOST_SESSIONS

    async def _query_vector(self, query: SearchQuery) -> Stored | None:
        """Return the query's meaning, that of earlier turns mixed in as far as it depends on them."""
        if not query.message.strip():
            return None
        texts = (query.message, query.context) if query.context_share else (query.message,)
        found = await self._embed(texts)
        if found is None or self._embedder is None:
            return None
        first, *rest = (found[vector_key(self._embedder.model, text)] for text in texts)
        if not rest:
            return first
        return np.rint((1 - query.context_share) * first + query.context_share * rest[0]).astype(np.int16)

    async def _embed_or_leave(self, past: "Past", count: int) -> None:
        """Embed what is missing; with a task group to hand it to, a caller that runs out of time leaves it there."""
        if not past.missing(count, 1):
            return
        if self._tasks is None:
            await self._embed_missing(past, count)
            return
        done = anyio.Event()

        async def embed() -> None:
            try:
                await self._embed_missing(past, count)
            finally:
                done.set()

        self._tasks.start_soon(supervised, "history.index", embed)
        await done.wait()

    async def _embed_missing(self, past: "Past", count: int) -> None:
        if self._cache is not None:
            past.fill(await anyio.to_thread.run_sync(self._cache.read, list(past.missing(count))))
        while True:
            # A few at a time: sessions take turns, and a second search of the same one finds done what was done.
            async with self._embedding:
                missing = past.missing(count, TEXTS_AT_ONCE)
                vectors = await self._embed(list(missing.values())) if missing else None
                if vectors is None:
                    return
                past.fill(vectors)
            if self._cache is not None:
                await anyio.to_thread.run_sync(self._cache.write, vectors)

    async def _embed(self, texts: Sequence[str]) -> Mapping[Key, Stored] | None:
        """Return vectors by key, or None when that fails or failed a moment ago."""
        if self._embedder is None or self._clock() < self._retry_at:
            return None
        keys = [vector_key(self._embedder.model, text) for text in texts]
        try:
            vectors = dict(zip(keys, stored(await self._embedder.embed(texts)), strict=True))
        except Exception as error:  # noqa: BLE001 (whatever a model fails with, the reply does not depend on it)
            self._trouble, self._retry_at = why_not(error), self._clock() + RETRY_S
            return None
        self._trouble, self._retry_at, self._answered = "", 0.0, True
        return vectors

    def _notes(self, past: "Past", vector: Stored | None, count: int, deadline_s: float) -> tuple[str, ...]:
        if not count:
            return ()
        if self._embedder is None:
            return ("recall by keywords only: no embedding model is configured",)
        if self._trouble:
            return (f"recall by keywords only: {self._trouble}",)
        if vector is None:
            return (f"recall by keywords only: {too_slow(self._answered, deadline_s)}",)
        if missing := past.missing(count):
            return (f"recall by keywords only for {len(missing)} passages that are still being indexed",)
        return ()


class Past:
    """One session's messages: what they say, their words, and as many vectors as there are so far."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.held = Held()
        self.passage_count = 0
        self._messages: list[Spoken] = []
        self._texts: list[str] = []
        self._lengths: list[int] = []
        self._postings: dict[str, tuple[list[int], list[int]]] = {}
        self._passages: list[tuple[Chunk, ...]] = []
        self._starts: list[int] = []
        self._keys: list[Key] = []
        self._row_texts: list[str] = []
        self._rows: dict[Key, list[int]] = {}
        self._matrix = np.zeros((0, 0), np.float32)
        self._known = np.zeros(0, bool)

    def add(self, messages: Sequence[Message]) -> None:
        """Take in messages that follow those that are here."""
        for message in messages:
            self.held = Held(message.seq, self.held.count + 1)
            if isinstance(message, UserMessage | AssistantMessage):
                self._add(message)
        # All but the last are settled, and no caller waits for them now.
        self._laid_out(max(len(self._messages) - AFTER, 0))

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
        rows = np.flatnonzero(~self._known[:end])[::-1][:most]
        return {self._keys[row]: self._row_texts[row] for row in rows}

    def fill(self, vectors: Mapping[Key, Stored]) -> None:
        """Take in the vectors that belong here."""
        for key, vector in vectors.items():
            for row in self._rows.get(key, ()):
                if self._matrix.shape[1] != len(vector):
                    self._matrix = np.zeros((len(self._known), len(vector)), np.float32)
                    self._known[:] = False
                self._matrix[row] = vector
                self._known[row] = True

    def measure(self, query: SearchQuery, vector: Stored | None, count: int) -> HistoryResult:
        """Measure the first `count` messages against a query; `vector` is the query's meaning, or None."""
        evidence, all_evidence = self._evidence(query, count)
        coverage: Floats = np.minimum(evidence / np.full(count, all_evidence or 1.0), np.ones(count))
        nearness, edges = self._nearness(vector, count)
        meaning = _best(nearness, edges)
        measured = ~np.isnan(meaning)
        fused = _standard(evidence, np.ones(count, bool))
        if measured.any():
            fused = MEANING_SHARE * _standard(meaning, measured) + (1 - MEANING_SHARE) * fused
        return HistoryResult(
            messages=tuple(self._messages[:count]),
            meaning=meaning,
            words=np.round(evidence / (evidence + HALF_WAY), 6),
            coverage=np.round(coverage, 6),
            fused=np.round(_lent(fused), 6),
            passages=self._passages,
            nearness=nearness,
            edges=edges,
            sharing=lambda position: self._sharing(position, count),
        )

    def _add(self, message: Spoken) -> None:
        text = message.content if isinstance(message, UserMessage) else message.model_reply.text
        position = len(self._messages)
        if position and len(self._starts) == position:
            self._take_back_last()
        counted = Counter(words(text))
        for word, times in counted.items():
            where, how_often = self._postings.setdefault(word, ([], []))
            where.append(position)
            how_often.append(times)
        self._messages.append(message)
        self._texts.append(text)
        self._lengths.append(counted.total())
        self._passages.append(chunks(text)[:MOST_PASSAGES])
        self.passage_count += len(self._passages[-1])

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

    def _embedded(self, position: int) -> list[str]:
        """Return what stands for the passages of a message when their meaning is measured."""
        found = [passage.text for passage in self._passages[position]]
        if found:
            before = (text.strip()[-NEIGHBOUR_CHARS:] for text in self._texts[max(0, position - BEFORE) : position])
            after = (text.strip()[:NEIGHBOUR_CHARS] for text in self._texts[position + 1 : position + 1 + AFTER])
            found[0] = "\n".join((*filter(None, before), found[0]))
            found[-1] = "\n".join((found[-1], *filter(None, after)))
        return found

    def _evidence(self, query: SearchQuery, count: int) -> tuple[Floats, float]:
        """Return BM25 over the first `count` messages, and what a message with every word of the query would get."""
        wanted = dict.fromkeys(words(query.message), 1.0)
        for word in words(query.earlier) if query.context_share else ():
            wanted.setdefault(word, EARLIER_WORDS_SHARE * query.context_share)
        evidence = np.zeros(count)
        lengths = np.array(self._lengths[:count], float)
        mean = max(float(lengths.mean()), 1e-9) if count else 1.0
        size = max(count, LEAST_SIZE)
        total = 0.0
        for word in sorted(wanted):
            where, how_often = self._postings.get(word, ((), ()))
            number = bisect_left(where, count)
            weight = wanted[word] * log(1 + (size - number + 0.5) / (number + 0.5)) * (SATURATION + 1)
            # Words of earlier turns help to find; that they are missing says nothing.
            total += weight if wanted[word] == 1.0 else 0.0
            if number:
                at, times = np.array(where[:number], np.intp), np.array(how_often[:number], float)
                long = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths[at] / mean
                evidence[at] += weight * times / (times + SATURATION * long)
        return evidence, total

    def _sharing(self, position: int, count: int) -> list[Spoken]:
        """Return the messages after a position that share most words with it, rare ones counting more."""
        shared: dict[int, float] = {}
        for word in set(words(self._texts[position])):
            where, _ = self._postings[word]
            later = where[bisect_left(where, position + 1) : bisect_left(where, count)]
            for other in later[-MOST_LATER:]:
                shared[other] = shared.get(other, 0.0) + 1 / (len(where) + 1)
        best = sorted(shared, key=lambda other: (-shared[other], -other))[:MOST_SHARING]
        return [self._messages[other] for other in sorted(best)]

    def _nearness(self, vector: Stored | None, count: int) -> tuple[Floats, NDArray[np.intp]]:
        """Return how near each passage is, -2 where it is unknown, and where each message's passages begin and end."""
        end = self._laid_out(count)
        near = np.full(end, -2.0)
        if vector is not None and self._matrix.shape[1] == len(vector):
            products = self._matrix[:end] @ vector.astype(np.float32)
            near = np.where(self._known[:end], np.round(products / np.float32(SCALE * SCALE), 6), near)
        return near, np.array([*self._starts[:count], end], np.intp)


def _best(nearness: Floats, edges: NDArray[np.intp]) -> Floats:
    """Return the nearness of each message's nearest passage, nan where there is none."""
    best = np.full(len(edges) - 1, np.nan)
    full = np.flatnonzero(np.diff(edges))
    if len(full):
        best[full] = np.maximum.reduceat(nearness, edges[full])
    return np.where(best > -1, best, np.nan)


def _standard(values: Floats, measured: NDArray[np.bool_]) -> Floats:
    """Return values in standard deviations from their mean; zero where nothing was measured."""
    known = values[measured]
    spread = float(known.std()) if len(known) else 0.0
    return np.where(measured, (values - known.mean()) / spread, 0.0) if spread else np.zeros(len(values))


def _lent(scores: Floats) -> Floats:
    """Return scores with what neighbours lend each other."""
    lent = scores.copy()
    for distance, weight in enumerate(NEIGHBOUR_WEIGHTS, start=1):
        lent[distance:] += weight * scores[:-distance]
        lent[:-distance] += weight * scores[distance:]
    return lent
