"""Follow turns that run elsewhere, by the log and by words on the bus, and close those whose worker is gone."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import partial

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from windowpane.bus.words import lengths
from windowpane.context.events import Delta, Live, Missed, ModelReplied, Recorded, TurnFinished, WatchEvent
from windowpane.context.ids import SessionId
from windowpane.context.session import SessionState
from windowpane.errors import LeaseLostError, SessionNotFoundError, StoreUnavailableError
from windowpane.live import KEPT, SessionHubs
from windowpane.stores.sessions import Sessions
from windowpane.supervise import supervised
from windowpane.turn.lease import POLL_S, Leases
from windowpane.turn.log import append_to_turn, interrupted
from windowpane.turn.patience import StorePatience
from windowpane.turn.words import kept_words

CLOSE_WITHIN_S = 1.0
"""How long a reader waits until a turn that was left behind is closed. A store may be slow to write."""


class Follower:
    """Follows turns of other workers."""

    def __init__(self, sessions: Sessions, leases: Leases, patience: StorePatience, audience: SessionHubs) -> None:
        self._sessions = sessions
        self._audience = audience
        self._leases = leases
        self._patience = patience
        self._attended: set[SessionId] = set()
        self._closing: dict[SessionId, anyio.Event] = {}
        self._tasks: anyio.abc.TaskGroup

    def open_in(self, tasks: anyio.abc.TaskGroup) -> None:
        """Attend to turns in this task group."""
        self._tasks = tasks

    async def follow(
        self, session_id: SessionId, turn: int, *, after: int | None = None, words: bool = True
    ) -> AsyncGenerator[Live]:
        """Yield a turn's events until it ends or waits; with `words` also what it writes, as it writes it.

        A store that goes away is waited for.

        Without `after` from its beginning, else after that sequence number.

        Raises:
            StoreUnavailableError: the store is away at the beginning, or was away for too long.
        """
        state = await self._sessions.state(session_id)
        seen = (state.turn_starts.of(turn) or 1) - 1 if after is None else after
        told = lengths(())
        while True:
            # The state is read before the entries: what came between the two is among them, also the end of the turn.
            for entry in await self._patience.retry(partial(self._sessions.store.read, session_id, after=seen)):
                seen = entry.seq
                if isinstance(entry.event, ModelReplied):
                    told = lengths(())
                yield entry
                if isinstance(entry.event, TurnFinished) and entry.event.turn == turn:
                    return
            if state.open_turn is None or state.open_turn.turn != turn or state.open_turn.waits:
                return
            silent_at = anyio.current_time() + self._leases.lease_s
            if words:
                async with aclosing(self._words_until_news(state, seen, told, silent_at)) as spoken:
                    async for delta in spoken:
                        yield delta
            silent = anyio.current_time() >= silent_at
            if silent or not await self._patience.retry(partial(self._news, session_id, seen)):
                close = partial(self.close_if_abandoned, session_id, turn, interrupted(turn))
                await self._patience.retry(close)
            state = await self._patience.retry(partial(self._sessions.state, session_id))

    def attend(self, state: SessionState) -> None:
        """Close the session's open turn when its worker is gone, also if no client follows it."""
        turn = state.open_turn
        if turn is None or turn.waits or state.id in self._attended:
            return
        self._attended.add(state.id)
        self._tasks.start_soon(supervised, "turn.attend", partial(self._attend, state.id, turn.turn))

    async def close_now(self, state: SessionState) -> None:
        """Close the session's open turn if its worker is gone by now, and wait for that a moment."""
        turn = state.open_turn
        if turn is None or turn.waits:
            return
        if (closed := self._closing.get(state.id)) is None:
            closed = self._closing[state.id] = anyio.Event()
            self._tasks.start_soon(supervised, "turn.close", partial(self._close, state.id, turn.turn, closed))
        with anyio.move_on_after(CLOSE_WITHIN_S):
            await closed.wait()

    async def cancel(self, session_id: SessionId, turn: int) -> None:
        """End a turn as cancelled, unless a worker runs it, which is told by the log.

        While a decision about a turn that waits is being checked, its session is held. It may be refused, so this
        waits for it: a turn that goes on waiting would not be cancelled by anyone.
        """
        deadline = anyio.current_time() + self._leases.lease_s
        while True:
            await self.close_if_abandoned(session_id, turn, TurnFinished(turn=turn, outcome="cancelled"))
            open_turn = (await self._sessions.state(session_id)).open_turn
            waits = open_turn is not None and open_turn.turn == turn and open_turn.waits
            if not waits or anyio.current_time() >= deadline:
                return
            await anyio.sleep(POLL_S)

    async def close_if_abandoned(self, session_id: SessionId, turn: int, end: TurnFinished) -> None:
        """End a turn with an event if no worker holds its session. One that waits is not interrupted."""
        lease = await self._leases.take_now(session_id)
        if lease is None:
            return
        try:
            state = await self._sessions.state(session_id)
            waits = state.open_turn is not None and state.open_turn.waits
            if not (waits and end.outcome == "interrupted"):
                said = await kept_words(self._sessions.store, state)
                # One that was taken over meanwhile is closed by the worker that has it.
                with suppress(LeaseLostError):
                    await append_to_turn(self._sessions, session_id, turn, [*said, end], fence=lease.fence)
        finally:
            await self._leases.release(session_id, lease)

    async def _attend(self, session_id: SessionId, turn: int) -> None:
        # A session that is deleted meanwhile has no turn to close; other callers report a store that fails.
        try:
            with suppress(SessionNotFoundError, StoreUnavailableError):
                async with aclosing(self.follow(session_id, turn, words=False)) as events:
                    async for _ in events:
                        pass
        finally:
            self._attended.discard(session_id)

    async def _close(self, session_id: SessionId, turn: int, closed: anyio.Event) -> None:
        try:
            await self.close_if_abandoned(session_id, turn, interrupted(turn))
        finally:
            del self._closing[session_id]
            closed.set()

    async def _words_until_news(
        self, state: SessionState, after: int, told: dict[str, int], until: float
    ) -> AsyncGenerator[Delta]:
        """Yield what the turn writes until the log goes on, but not longer than until a time.

        `told` are the characters of each kind that were yielded of this reply, and are not yielded again.
        """
        sender, receiver = anyio.create_memory_object_stream[WatchEvent](KEPT)
        scope = anyio.CancelScope()
        self._tasks.start_soon(supervised, "turn.words", partial(self._watch, state, after, sender, scope))
        begins = lengths(())
        try:
            while (event := await _received(receiver, until)) is not None:
                if isinstance(event, Recorded) and event.seq > after:
                    return
                if isinstance(event, Missed):
                    begins = lengths(())
                elif isinstance(event, Delta):
                    new = event.text[max(told[event.kind] - begins[event.kind], 0) :]
                    begins[event.kind] += len(event.text)
                    if new:
                        told[event.kind] = begins[event.kind]
                        yield Delta(event.turn, new, event.kind)
        finally:
            scope.cancel()
            receiver.close()

    async def _watch(
        self, state: SessionState, after: int, sender: MemoryObjectSendStream[WatchEvent], scope: anyio.CancelScope
    ) -> None:
        watch = self._audience.watch(state.id, state.seq, state.sets, after, turn=state.open_turn)
        with scope, sender:
            async with aclosing(watch) as events:
                async for event in events:
                    await sender.send(event)

    async def _news(self, session_id: SessionId, after: int) -> bool:
        """Wait for something new in the log, but not longer than a lease lasts; tell whether there is."""
        with anyio.move_on_after(self._leases.lease_s):
            async with aclosing(self._sessions.store.subscribe(session_id, after=after)) as entries:
                async for _ in entries:
                    return True
        return False


async def _received(receiver: MemoryObjectReceiveStream[WatchEvent], until: float) -> WatchEvent | None:
    """Return what comes next; None when nothing more does, or not in time."""
    with anyio.CancelScope(deadline=until), suppress(anyio.EndOfStream):
        return await receiver.receive()
    return None
