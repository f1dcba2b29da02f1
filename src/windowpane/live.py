"""What happens, to those who watch: one hub per watched session.

A hub is for any number of listeners, who may stay for days: it takes the session's log as the store tells it, puts the
text that is being written in between, and keeps only the latest of both. A listener who falls behind is told so and
goes on from the log at its own pace. A listener never holds anything up.

The text that another worker writes comes over the bus (`bus/words.py`). Where no worker answers there, the words that
are kept beside the log are read now and then.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

import anyio
import anyio.abc

from windowpane.bus.base import Bus
from windowpane.bus.wakeup import Wakeup
from windowpane.bus.words import (
    ASK_EVERY_S,
    ASKED_FOR_S,
    Question,
    Speaker,
    SpokenWords,
    decoded,
    encoded,
    joined,
    lengths,
)
from windowpane.context.events import (
    ApprovalDecided,
    ApprovalRequested,
    Delta,
    FetchedCleared,
    HistoryCleared,
    Live,
    Missed,
    ModelReplied,
    Recorded,
    SessionContext,
    SessionDeleted,
    ToolProgress,
    TurnFinished,
    TurnStarted,
    WatchEvent,
)
from windowpane.context.ids import SessionId
from windowpane.context.session import OpenTurn
from windowpane.context.sets import ContextSets
from windowpane.errors import SessionNotFoundError, StoreUnavailableError, WindowpaneError
from windowpane.remarks import get_logger
from windowpane.supervise import Backoff, keep_running, supervised

log = get_logger()

KEPT = 512
"""How many things a listener may be behind before it has to go back to the log."""

PAGE = 200
"""How many events are read from the log at once."""


LOOK_EVERY_S = 1.0
"""How often kept words are read while no worker says them."""

Read = Callable[[int], Awaitable[list[Recorded]]]
"""Return some events after a sequence number."""


class Log(Protocol):
    """What a hub needs of a store."""

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number."""
        ...

    def subscribe(self, session_id: SessionId, *, after: int) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number, until the session is deleted or the store is closed."""
        ...

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, as they were kept last, or None."""
        ...


class Hub:
    """One session as it happens, in one order for all who listen: the log's, with the deltas in their places.

    `seq` and `sets` are how far the log was told, and the working context there. `writing` is the turn that
    may be writing a reply, and how many it has written before, or None.
    """

    def __init__(self, seq: int, sets: ContextSets, kept: int = KEPT, turn: OpenTurn | None = None) -> None:
        self.seq = seq
        self.sets = sets
        self._waiting = (turn.turn, len(turn.steps)) if turn else None
        self.writing = None if turn and turn.waits else self._waiting
        self._kept: deque[Live] = deque(maxlen=kept)
        self._told = 0
        self._replied_at = 0
        self._saying: list[Delta] = []
        self._said = lengths(())
        self._early: deque[tuple[int, Delta, int | None]] = deque(maxlen=kept)
        self._end: Literal["open", "closed", "deleted", "failed"] = "open"
        self._news = Wakeup()

    def record(self, entry: Recorded) -> None:
        """Tell the next event of the log."""
        if entry.seq <= self.seq:
            return
        self.seq = entry.seq
        match entry.event:
            case TurnStarted(turn=turn):
                self.writing = (turn, 0)
            case ModelReplied() | TurnFinished() as end:
                self._replied_at = entry.seq
                self._saying.clear()
                self._said = lengths(())
                replied = isinstance(end, ModelReplied) and self.writing
                self.writing = (end.turn, replied[1] + 1) if replied else None
            case ApprovalRequested():
                self._waiting, self.writing = self.writing, None
            case ApprovalDecided():
                self.writing = self._waiting or self.writing
            case SessionContext(reason="changed", context=sets):
                self.sets = sets
            case HistoryCleared() | FetchedCleared():
                self._kept.clear()
            case _:
                pass
        self._tell(entry)
        early, self._early = self._early, deque(maxlen=self._early.maxlen)
        for after, delta, offset in early:
            self.speak(after, delta, offset)

    def speak(self, after: int, delta: Delta, offset: int | None = None) -> None:
        """Tell a little more of the answer that is being written after an event of the log, when that was told.

        The log may also be ahead: what belongs to an answer that stands in it already is not told any more. With
        `offset`, the place of the delta among the characters of its kind, what was told already is left out, and what
        begins too late is not told: what lies between was lost, and comes again.
        """
        if after > self.seq:
            self._early.append((after, delta, offset))
        elif self._replied_at <= after:
            told = self._said[delta.kind]
            if offset is not None:
                if offset > told or offset + len(delta.text) <= told:
                    return
                delta = Delta(delta.turn, delta.text[told - offset :], delta.kind)
            self._said[delta.kind] += len(delta.text)
            self._saying.append(delta)
            self._tell(delta)

    def catch_up(self, kept: bytes | None) -> None:
        """Tell what was kept of the answer that is being written and was not told yet."""
        words = json.loads(kept) if kept else None
        if words and (words["turn"], words["step"]) == self.writing:
            self.speak(self.seq, Delta(words["turn"], words["text"]), 0)

    async def changed(self) -> None:
        """Wait until there is something new."""
        await self._news.wait()

    @property
    def said(self) -> Question:
        """Return how much was told of the answer that is being written."""
        return Question(**self._said)

    def report(self, progress: ToolProgress) -> None:
        """Tell how far a running tool has come."""
        self._tell(progress)

    def end(self, why: Literal["closed", "deleted", "failed"]) -> None:
        """Let each listener go that has heard all of it."""
        if self._end == "open":
            self._end = why
            self._news.now()

    async def listen(self, read: Read, after: int | None = None) -> AsyncGenerator[WatchEvent]:
        """Yield what stands in the log after `after`, the working context as it is then, and what comes.

        Without `after` it begins with now.

        Raises:
            StoreUnavailableError: the log cannot be read any more.
        """
        seq = self.seq if after is None else after
        loaded = False
        while True:
            while self.seq != seq:
                if self.seq < seq:
                    if self._end != "open":
                        break
                    await self._news.wait()
                    continue
                try:
                    entries = await read(seq)
                except SessionNotFoundError:
                    yield SessionDeleted()
                    return
                if not entries:
                    # The log has lost what was told of it: the listener's own read says so.
                    break
                for entry in entries:
                    seq = entry.seq
                    yield entry
            # From here to the first yield no other task runs, so the three belong together.
            position, context, unfinished = self._told, self.sets, joined(self._saying)
            if not loaded:
                loaded = True
                yield SessionContext(reason="load", context=context)
            for delta in unfinished:
                yield delta
            while position >= self._told - len(self._kept):
                if position == self._told:
                    if self._end == "open":
                        await self._news.wait()
                        continue
                    if self._end == "deleted":
                        yield SessionDeleted()
                    if self._end == "failed":
                        raise StoreUnavailableError("the session's log cannot be read at the moment; try again later")
                    return
                live = self._kept[position - self._told]
                position += 1
                if isinstance(live, Recorded):
                    seq = live.seq
                yield live
            yield Missed(seq)

    def _tell(self, live: Live) -> None:
        self._kept.append(live)
        self._told += 1
        self._news.now()


@dataclass(slots=True)
class _Voice:
    """What a turn of this process is saying: the deltas since the event `after`."""

    after: int = 0
    deltas: list[Delta] = field(default_factory=list[Delta])


@dataclass(slots=True)
class _Watched:
    hub: Hub
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    listeners: int = 0
    answered_at: float = 0.0
    """When another worker was last heard saying something."""


class SessionHubs:
    """All who watch a session through this process."""

    def __init__(self, log: Log, kept: int = KEPT, bus: Bus | None = None) -> None:
        self._log = log
        self._bus = bus
        self._kept = kept
        self._sessions: dict[SessionId, _Watched] = {}
        self._voices: dict[SessionId, _Voice] = {}
        self._closed = False
        self._tasks: anyio.abc.TaskGroup

    def open_in(self, tasks: anyio.abc.TaskGroup) -> None:
        """Follow logs in this task group."""
        self._tasks = tasks
        self._closed = False

    @property
    def closed(self) -> bool:
        """Tell whether all listeners were let go."""
        return self._closed

    def close(self) -> None:
        """Let all listeners go; one that comes now is let go at once."""
        self._closed = True
        for watched in self._sessions.values():
            watched.hub.end("closed")

    async def watch(
        self,
        session_id: SessionId,
        seq: int,
        sets: ContextSets,
        after: int | None = None,
        *,
        turn: OpenTurn | None = None,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield what `Hub.listen` does. `seq`, `sets` and `turn` are the session as the caller has just read it."""

        async def read(after: int) -> list[Recorded]:
            backoff = Backoff()
            while True:
                try:
                    return await self._log.read(session_id, after=after, limit=PAGE)
                except StoreUnavailableError:
                    if self._closed:
                        raise
                await anyio.sleep(backoff.next_s())

        if self._closed:
            return
        watched = self._sessions.get(session_id) or self._open(session_id, seq, sets, turn)
        watched.listeners += 1
        try:
            async with aclosing(watched.hub.listen(read, None if after is None else min(after, seq))) as events:
                async for event in events:
                    yield event
        finally:
            watched.listeners -= 1
            if not watched.listeners:
                watched.scope.cancel()
                self._forget(session_id, watched)

    def relay(self, session_id: SessionId) -> "SessionRelay":
        """Return what passes on what a turn of this process says, to those who watch its session."""
        voice = self._voices[session_id] = _Voice()
        return SessionRelay(self, session_id, voice, Speaker(self._bus, session_id) if self._bus is not None else None)

    def hub(self, session_id: SessionId) -> Hub | None:
        """Return the hub of a session that is watched."""
        watched = self._sessions.get(session_id)
        return watched.hub if watched is not None else None

    def silence(self, session_id: SessionId, voice: _Voice) -> None:
        """Forget what a turn was saying, when it has ended."""
        if self._voices.get(session_id) is voice:
            del self._voices[session_id]

    def _open(self, session_id: SessionId, seq: int, sets: ContextSets, turn: OpenTurn | None) -> _Watched:
        watched = self._sessions[session_id] = _Watched(Hub(seq, sets, self._kept, turn))
        if voice := self._voices.get(session_id):
            for delta in voice.deltas:
                watched.hub.speak(voice.after, delta)
        self._tasks.start_soon(supervised, "session.watch", partial(self._follow, session_id, watched))
        return watched

    async def _follow(self, session_id: SessionId, watched: _Watched) -> None:
        """Bring the log to a hub, until it has no listeners or there is nothing more."""
        why: Literal["closed", "deleted", "failed"] = "failed"
        try:
            with watched.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(keep_running, "session.words", partial(self._bring_words, session_id, watched))
                    why = await self._bring_log(session_id, watched.hub)
                    tasks.cancel_scope.cancel()
        finally:
            watched.hub.end("closed" if self._closed or watched.scope.cancelled_caught else why)
            self._forget(session_id, watched)

    async def _bring_log(self, session_id: SessionId, hub: Hub) -> Literal["closed", "deleted", "failed"]:
        """Bring the log to a hub and return why it ended. While the store is away, its listeners stay."""
        backoff = Backoff()
        while not self._closed:
            try:
                async with aclosing(self._log.subscribe(session_id, after=hub.seq)) as entries:
                    async for entry in entries:
                        backoff.reset()
                        hub.record(entry)
                await self._log.read(session_id, limit=1)
                return "closed"
            except SessionNotFoundError:
                return "deleted"
            except StoreUnavailableError as error:
                if not backoff.begun:
                    log.info("watch.waits", session=session_id, code=error.code)
            except WindowpaneError as error:
                log.info("watch.ended", session=session_id, code=error.code)
                return "failed"
            await anyio.sleep(backoff.next_s())
        return "closed"

    async def _bring_words(self, session_id: SessionId, watched: _Watched) -> None:
        """Bring the words that another worker writes to a hub, whenever there is one that does."""

        def hear(body: bytes) -> None:
            if isinstance(message := decoded(body), SpokenWords) and session_id not in self._voices:
                watched.answered_at = anyio.current_time()
                watched.hub.speak(message.after, message.delta, message.offset)

        unsubscribe = self._bus.subscribe(session_id, hear) if self._bus is not None else None
        try:
            while True:
                if watched.hub.writing is None or session_id in self._voices:
                    await watched.hub.changed()
                else:
                    await self._ask_for_words(session_id, watched)
        finally:
            if unsubscribe is not None:
                unsubscribe()

    async def _ask_for_words(self, session_id: SessionId, watched: _Watched) -> None:
        """Ask on the bus for the rest of a reply, again and again. Without an answer, read what was kept of it."""
        begun_at, backoff = anyio.current_time(), Backoff()
        while watched.hub.writing is not None and session_id not in self._voices:
            if self._bus is not None:
                self._bus.publish(session_id, encoded(watched.hub.said))
            silent_s = anyio.current_time() - max(begun_at, watched.answered_at)
            if self._bus is None or self._bus.away or silent_s > ASKED_FOR_S:
                with suppress(WindowpaneError):
                    watched.hub.catch_up(await self._log.partial(session_id))
            if anyio.current_time() < watched.answered_at + ASKED_FOR_S:
                await anyio.sleep(ASK_EVERY_S)
                continue
            with anyio.move_on_after(min(backoff.next_s(), LOOK_EVERY_S)):
                await watched.hub.changed()

    def _forget(self, session_id: SessionId, watched: _Watched) -> None:
        if self._sessions.get(session_id) is watched:
            del self._sessions[session_id]


@dataclass(frozen=True, slots=True)
class SessionRelay:
    """Passes on what one turn of this process says, as it says it. The log has the rest."""

    hubs: SessionHubs
    session_id: SessionId
    voice: _Voice
    speaker: Speaker | None

    def tell(self, event: Live) -> None:
        """Pass an event on."""
        if isinstance(event, Delta):
            if self.speaker is not None:
                self.speaker.say(self.voice.after, event)
            self.voice.deltas.append(event)
            if hub := self.hubs.hub(self.session_id):
                hub.speak(self.voice.after, event)
        elif isinstance(event, ToolProgress):
            if hub := self.hubs.hub(self.session_id):
                hub.report(event)
        else:
            self.voice.after = event.seq
            if isinstance(event.event, ModelReplied | TurnFinished):
                self.voice.deltas.clear()
                if self.speaker is not None:
                    self.speaker.end()

    def close(self) -> None:
        """Say no more."""
        if self.speaker is not None:
            self.speaker.close()
        self.hubs.silence(self.session_id, self.voice)
