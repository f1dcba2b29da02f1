"""Search the past of sessions.

Like the search for items, this one never keeps the reply waiting. The vector of the question is waited for until the
deadline; those of earlier messages are not waited for at all. What has none is judged by its words, and is embedded in
the background. As a rule there is nothing to do: a turn's messages are embedded after its reply (`prepare`), and their
vectors are kept with the session, so that another process finds them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import process_time
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import anyio
import anyio.abc
import anyio.to_thread
import numpy as np

from windowpane.calls.recorder import recording_apart
from windowpane.context.ids import SessionId
from windowpane.context.messages import Message
from windowpane.errors import WindowpaneError
from windowpane.remarks import get_logger
from windowpane.search.base import Floats, SearchQuery
from windowpane.search.embedding.base import Embedder
from windowpane.search.embedding.vectors import SCALE, Key, Stored, stored
from windowpane.search.index import (
    AT_ONCE_CHARACTERS,
    AT_ONCE_PASSAGES,
    DEADLINE_S,
    TEXTS_AT_ONCE,
    Clock,
    too_slow,
    why_not,
)
from windowpane.search.past import AFTER, BEFORE, Held, HistoryResult, Past, Spoken
from windowpane.supervise import supervised

log = get_logger()

MOST_KEPT_PASSAGES = 60_000
"""How many passages are kept in memory over all sessions, some 2 kB each; what was not searched longest goes first."""

MOST_SESSIONS = 256
RETRY_S = 30.0
IN_A_THREAD = 200
"""From this many new messages on, taking them in would hold up others."""

AHEAD = 4
"""So many passages are embedded after a turn: those of the turn, and of one before it. What is missing besides follows
in steps of as many."""

REST = 4.0
"""So many times the processor time that such a step took is left to others before the next one."""

FREE_S = 0.005
"""A step that took no more of this processor was made elsewhere: the next ones may be larger."""

_OF_A_TURN = BEFORE + 2 + AFTER
"""So many messages at the end hold the two that a turn settles, with their neighbours."""


class SessionVectors(Protocol):
    """Keeps the vectors of a session's messages with the session; `stores/base.py` says what is promised."""

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return what is kept, by the sequence numbers of messages: of these, or of all."""
        ...

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """Keep vectors, unless something was erased since the log stood at `as_of`."""
        ...


class _Left(NamedTuple):
    """What is to be embedded: of the first messages of a past, as the log stood at `as_of`."""

    past: Past
    first: int
    as_of: int


class HistoryIndex:
    """The past of the sessions that were searched last.

    Entered as a context manager it goes on embedding in the background; otherwise only while a search runs.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        *,
        most_passages: int = MOST_KEPT_PASSAGES,
        clock: Clock = anyio.current_time,
    ) -> None:
        self._embedder = embedder
        self._kept: SessionVectors | None = None
        self._most_passages = most_passages
        self._clock = clock
        self._sessions: dict[SessionId, Past] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._taking_in = anyio.Lock(fast_acquire=True)
        self._embedding = anyio.Lock(fast_acquire=True)
        self._left: dict[SessionId, _Left] = {}
        self._trouble = ""
        self._retry_at = 0.0
        self._answered = False

    def keep_in(self, kept: SessionVectors) -> None:
        """Keep vectors there, and look for them there first."""
        self._kept = kept

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
        as_of: int = 0,
        deadline_s: float = DEADLINE_S,
    ) -> HistoryResult:
        """Measure what was said before `before_seq` against a query.

        `messages` are those since `held(session_id)`, oldest first; what is known already is passed over. `as_of` is
        where the log stood when they were read. Never raises for want of a model: what is amiss is in `degraded`.
        """
        deadline = anyio.current_time() + deadline_s
        past = await self._taken_in(session_id, messages, await self._made_elsewhere(session_id, messages))
        count = past.count_before(before_seq)
        vector: Stored | None = None
        if count:
            with anyio.CancelScope(deadline=deadline):
                vector = await self._query_vector(query)
                if vector is not None and past.missing(count, 1):
                    await self._embed_or_leave(session_id, _Left(past, count, as_of))
        if count <= AT_ONCE_PASSAGES and len(query.message) <= AT_ONCE_CHARACTERS:
            result = past.measure(query, vector, count)
        else:
            result = await anyio.to_thread.run_sync(past.measure, query, vector, count)
        notes = self._notes(past, vector, count, deadline_s)
        return replace(result, degraded=notes) if notes else result

    async def prepare(
        self, session_id: SessionId, recent: Sequence[Message], *, message_count: int, as_of: int
    ) -> None:
        """Embed what is settled and keep the vectors with the session, for the searches to come.

        That is a few passages after a turn. Of a past that was brought in the others follow in the background.
        `recent` are the session's latest messages, of `message_count` in all. Of a session that is not held here, and
        has more than those, only what the last turn has settled is embedded.
        """
        if self._embedder is None:
            return
        held = self.held(session_id)
        new = [message for message in recent if message.seq > held.seq]
        if held.count + len(new) == message_count:
            past = await self._taken_in(session_id, new, {})
        else:
            past = Past(self._embedder.model, partial=True)
            past.add([message for message in recent if isinstance(message, Spoken)][-_OF_A_TURN:])
        left = _Left(past, past.settled, as_of)
        async with recording_apart():
            if self._tasks is None or self._sessions.get(session_id) is not past:
                await self._embed_missing(session_id, left)
                return
            await self._embed_some(session_id, left, AHEAD)
        if past.missing(left.first, 1):
            self._leave(self._tasks, session_id, left)

    async def prepare_some(self, session_id: SessionId, messages: Sequence[Message]) -> None:
        """Embed a few of the session's messages, which are all sent whole as yet, and keep their vectors in memory.

        So there is little left to do in the one turn after which some of them are not sent any more.
        """
        if self._embedder is None:
            return
        held = self.held(session_id)
        new = [message for message in messages if message.seq > held.seq]
        if held.count + len(new) != len(messages):
            self.forget(session_id)
            new = [*messages]
        past = await self._taken_in(session_id, new, {})
        async with recording_apart(), self._embedding:
            missing = past.missing(past.settled, AHEAD)
            await self._fill(past, missing)

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
                if found is None or vector is None:
                    break
                near[start : start + len(some)] = found @ vector.astype(np.float64) / (SCALE * SCALE)
        return near

    async def _made_elsewhere(self, session_id: SessionId, messages: Sequence[Message]) -> Mapping[int, bytes]:
        """Return the vectors that another process, or this one before it was started again, made of messages."""
        past = self._sessions.get(session_id)
        if self._kept is None or self._embedder is None or (past is not None and not messages):
            return {}
        wanted = None if past is None else [*past.unkept, *(message.seq for message in messages)]
        return await self._kept.vectors(session_id, wanted)

    async def _taken_in(self, session_id: SessionId, messages: Sequence[Message], kept: Mapping[int, bytes]) -> Past:
        async with self._taking_in:
            past = self._sessions.pop(session_id, None) or Past(self._embedder.model if self._embedder else "")
            self._sessions[session_id] = past
            new = [message for message in messages if message.seq > past.held.seq]
            if len(new) < IN_A_THREAD or past.held.count:
                _take_in(past, new, kept)
            else:
                # No other task has it yet: what embeds in the background would change it at the same time.
                await anyio.to_thread.run_sync(_take_in, past, new, kept)
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
        if found is None:
            return None
        if len(found) == 1:
            return found[0]
        return np.rint((1 - query.context_share) * found[0] + query.context_share * found[1]).astype(np.int16)

    async def _embed_or_leave(self, session_id: SessionId, left: _Left) -> None:
        """Embed what is missing: in the background if there is a task group for it, else now."""
        if self._tasks is None:
            await self._embed_missing(session_id, left)
        else:
            self._leave(self._tasks, session_id, left)

    def _leave(self, tasks: anyio.abc.TaskGroup, session_id: SessionId, left: _Left) -> None:
        """Have what is missing embedded in the background, by one task for each session."""
        goes_on = session_id in self._left
        self._left[session_id] = left
        if not goes_on:
            tasks.start_soon(supervised, "history.index", partial(self._catch_up, session_id))

    async def _catch_up(self, session_id: SessionId) -> None:
        """Embed what is missing in small steps, with rests: turns that run meanwhile go first."""
        most = AHEAD
        try:
            # Until the session is forgotten: it was deleted, or others were searched since.
            while self._sessions.get(session_id) is (left := self._left[session_id]).past:
                began = process_time()
                async with recording_apart():
                    if not await self._embed_some(session_id, left, most):
                        return
                spent = process_time() - began
                most = TEXTS_AT_ONCE if spent <= FREE_S else AHEAD
                await anyio.sleep(REST * spent)
        finally:
            del self._left[session_id]

    async def _embed_missing(self, session_id: SessionId, left: _Left) -> None:
        while await self._embed_some(session_id, left, TEXTS_AT_ONCE):
            pass

    async def _embed_some(self, session_id: SessionId, left: _Left, most: int) -> bool:
        """Embed some of what is missing, and keep it; False when nothing is, or when it cannot be done now."""
        # A few at a time: sessions take turns, and a second search of the same one finds done what was done.
        async with self._embedding:
            missing = left.past.missing(left.first, most)
            filled = await self._fill(left.past, missing)
        await self._keep(session_id, left.past.to_keep(), left.as_of)
        return filled

    async def _fill(self, past: Past, missing: Mapping[Key, str]) -> bool:
        """Embed what is missing; False when nothing is, or when it cannot be done now."""
        vectors = await self._embed(list(missing.values())) if missing else None
        if vectors is not None:
            past.fill(dict(zip(missing, vectors, strict=True)))
        return vectors is not None

    async def _keep(self, session_id: SessionId, vectors: Mapping[int, bytes], as_of: int) -> None:
        """Keep vectors with their session. Without them they are made again one day."""
        if self._kept is not None and vectors:
            try:
                await self._kept.put_vectors(session_id, vectors, as_of=as_of)
            except WindowpaneError as error:
                log.info("vectors.not_kept", session=session_id, code=error.code)

    async def _embed(self, texts: Sequence[str]) -> Stored | None:
        """Return vectors, in the order of their texts, or None when that fails or failed a moment ago."""
        if self._embedder is None or self._clock() < self._retry_at:
            return None
        try:
            vectors = stored(await self._embedder.embed(texts))
        except Exception as error:  # noqa: BLE001 (whatever a model fails with, the reply does not depend on it)
            self._trouble, self._retry_at = why_not(error), self._clock() + RETRY_S
            return None
        self._trouble, self._retry_at, self._answered = "", 0.0, True
        return vectors

    def _notes(self, past: Past, vector: Stored | None, count: int, deadline_s: float) -> tuple[str, ...]:
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


def _take_in(past: Past, messages: Sequence[Message], kept: Mapping[int, bytes]) -> None:
    past.add(messages)
    past.take(kept)
