"""Sessions as states: read once, kept up to date, changed safely.

A worker keeps the folded states of the sessions it used last and reads only what is new. A change is a function from
the state to events: it is appended only if the log still stands where the function saw it, and otherwise decided
again on the newer state. So two workers never undo one another.

Where sessions expire, to ask for a state is to use the session, and the store is told so, at most every moment.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from pydantic import ValidationError

from windowpane import telemetry
from windowpane.context.events import Event, FetchedCleared, HistoryCleared, MessageRemoved, Recorded
from windowpane.context.fold import fold
from windowpane.context.ids import BlobHash, SessionId, owner_of
from windowpane.context.session import SessionState
from windowpane.errors import SequenceConflictError, StoreRolledBackError, WindowpaneError
from windowpane.remarks import get_logger
from windowpane.stores.append import TakeLease
from windowpane.stores.base import Snapshot, Store
from windowpane.stores.codec import decode_state, encode_state

SNAPSHOT_EVERY = 200
"""A snapshot is kept when the log has grown by this many events since the last one."""

log = get_logger()


@dataclass(frozen=True, slots=True)
class Changed:
    """The state after a change, and what was appended; nothing when the change turned out to be none.

    `fence` is the number of the lease that was taken with it.
    """

    state: SessionState
    recorded: tuple[Recorded, ...] = ()
    fence: int | None = None


class Sessions:
    """The states of a store's sessions."""

    def __init__(self, store: Store, capacity: int = 1000, *, touch_every_s: float | None = None) -> None:
        self.store = store
        self._capacity = capacity
        self._touch_every_s = touch_every_s
        self._touched: dict[SessionId, float] = {}
        self._states: OrderedDict[SessionId, SessionState] = OrderedDict()
        self._snapshots: dict[SessionId, int] = {}
        self._erasing: set[SessionId] = set()
        self.complete_clearing: Callable[[SessionId], Awaitable[bool]] | None = None
        """Erases what the log of a session says is gone, and tells whether nothing is left."""

    async def state(self, session_id: SessionId) -> SessionState:
        """Return the session's state as of now, for a caller who uses it.

        Raises:
            SessionNotFoundError: no such session.
        """
        await self._touch(session_id)
        state = await self.glance(session_id)
        if session_id in self._erasing and self.complete_clearing and await self.complete_clearing(session_id):
            self._erasing.discard(session_id)
        return state

    def kept(self, session_id: SessionId) -> SessionState | None:
        """Return the state that this worker has, which may be old; None when the session must be read.

        Right for one who then appends: what is decided on an old state is not stored.
        """
        return None if session_id in self._erasing else self._states.get(session_id)

    async def glance(self, session_id: SessionId) -> SessionState:
        """Return the session's state as of now, for a list of sessions: it is not used by that.

        Raises:
            SessionNotFoundError: no such session.
        """
        known = self._states.get(session_id) or await self._from_snapshot(session_id)
        try:
            news = await self.store.read(session_id, after=known.seq if known else 0)
        except StoreRolledBackError:
            self.forget(session_id)
            raise
        return self._folded(session_id, news, known)

    async def glance_at(
        self, session_ids: Sequence[SessionId], stand: Mapping[SessionId, int] | None = None
    ) -> dict[SessionId, SessionState]:
        """Return the states of those of these sessions that exist, as `glance` does, with one look at the store.

        `stand` is where their logs were just seen to stand: a state that stands there too is not read again.
        """
        known = {session_id: self._states.get(session_id) for session_id in session_ids}
        states = {each.id: each for each in known.values() if each and stand and stand.get(each.id) == each.seq}
        behind = {name: each and each.seq for name, each in known.items() if name not in states}
        try:
            tails = await self.store.tails(behind) if behind else {}
        except StoreRolledBackError as error:
            self.forget(SessionId(error.session_id))
            raise
        for session_id, tail in tails.items():
            before = known[session_id] or (tail.snapshot and self._decoded(session_id, tail.snapshot))
            if before is None and tail.snapshot is not None:
                # The snapshot cannot be read, so the whole log is.
                states[session_id] = await self.glance(session_id)
            else:
                states[session_id] = self._folded(session_id, tail.events, before)
        return states

    def _folded(self, session_id: SessionId, news: Sequence[Recorded], known: SessionState | None) -> SessionState:
        if any(isinstance(entry.event, HistoryCleared | MessageRemoved | FetchedCleared) for entry in news):
            # The worker that said so may have been killed before it had erased the texts.
            self._erasing.add(session_id)
        state = fold(session_id, news, known)
        self._keep(state)
        return state

    async def owner(self, session_id: SessionId) -> str:
        """Return whose session it is; a session whose state is not at hand is not read for that.

        Raises:
            SessionNotFoundError: no such session.
        """
        if session_id in self._states:
            return (await self.glance(session_id)).owner
        return owner_of((await self.store.row(session_id)).owner)

    async def change(
        self,
        session_id: SessionId,
        decide: Callable[[SessionState], Sequence[Event]],
        *,
        blobs: Mapping[BlobHash, str] | None = None,
        unread: bool = False,
        fence: int | None = None,
        take: TakeLease | None = None,
        release: str | None = None,
        lasting: bool = True,
    ) -> Changed:
        """Append what `decide` makes of the current state; it is asked again when another worker was first.

        With `unread`, the state that this worker has is tried first, without reading the log: right for a worker that
        holds the session's lease. What was decided on it is appended only if the log still stands there. `fence` is
        the number of that lease. `take`, `release` and `lasting` are those of `Store.append`.

        Raises:
            SessionNotFoundError: no such session.
            SessionBusyError: the lease is to be taken, and another holds it.
            LeaseLostError: another took the session's lease since.
            StoreRolledBackError: the log was longer before. The next call begins with what it holds now.
        """
        append = partial(self.store.append, blobs=blobs, fence=fence, take=take, release=release, lasting=lasting)
        known = self._states.get(session_id) if unread else None
        while True:
            if known is not None and (events := _decided_early(decide, known)):
                state = known
            else:
                state = await self.state(session_id)
                events = decide(state)
            known = None
            if not events:
                return Changed(state)
            try:
                with telemetry.append(session_id, len(events)):
                    appended = await append(session_id, events, expected_seq=state.seq)
            except SequenceConflictError as conflict:
                if conflict.actual_seq < state.seq:
                    self.forget(session_id)
                    raise StoreRolledBackError(session_id, state.seq, conflict.actual_seq) from None
                continue
            except StoreRolledBackError:
                self.forget(session_id)
                raise
            recorded = tuple(
                Recorded(appended.first_seq + index, appended.at, event) for index, event in enumerate(events)
            )
            after = fold(session_id, recorded, state)
            self._keep(after)
            await self._maybe_snapshot(after)
            return Changed(after, recorded, appended.fence)

    async def create(
        self, session_id: SessionId, events: Sequence[Event], blobs: Mapping[BlobHash, str] | None = None
    ) -> Changed:
        """Begin a session."""
        with telemetry.append(session_id, len(events)):
            appended = await self.store.append(session_id, events, expected_seq=0, blobs=blobs)
        recorded = tuple(Recorded(appended.first_seq + index, appended.at, event) for index, event in enumerate(events))
        state = fold(session_id, recorded)
        self._keep(state)
        return Changed(state, recorded)

    def forget(self, session_id: SessionId) -> None:
        """Drop what is remembered about a session that was deleted or erased."""
        self._erasing.discard(session_id)
        self._states.pop(session_id, None)
        self._snapshots.pop(session_id, None)
        self._touched.pop(session_id, None)

    async def _touch(self, session_id: SessionId) -> None:
        if self._touch_every_s is None:
            return
        now = anyio.current_time()
        if session_id not in self._touched or now - self._touched[session_id] >= self._touch_every_s:
            await self.store.touch(session_id)
            self._touched[session_id] = now

    def _keep(self, state: SessionState) -> None:
        known = self._states.get(state.id)
        if known is None or known.seq <= state.seq:
            self._states[state.id] = state
        self._states.move_to_end(state.id)
        while len(self._states) > self._capacity:
            oldest, _ = self._states.popitem(last=False)
            self._snapshots.pop(oldest, None)
            self._touched.pop(oldest, None)

    async def _from_snapshot(self, session_id: SessionId) -> SessionState | None:
        snapshot = await self.store.snapshot(session_id)
        return snapshot and self._decoded(session_id, snapshot)

    def _decoded(self, session_id: SessionId, snapshot: Snapshot) -> SessionState | None:
        try:
            state = decode_state(snapshot.body)
        except ValidationError:
            # Written by another version: the log has everything.
            log.info("snapshot.ignored", session=session_id)
            return None
        self._snapshots[session_id] = snapshot.seq
        return state

    async def _maybe_snapshot(self, state: SessionState) -> None:
        if state.seq - self._snapshots.get(state.id, 0) >= SNAPSHOT_EVERY:
            self._snapshots[state.id] = state.seq
            await self.store.put_snapshot(state.id, Snapshot(state.seq, encode_state(state)))


def _decided_early(decide: Callable[[SessionState], Sequence[Event]], known: SessionState) -> Sequence[Event]:
    """Return what is decided on a state that may be old; nothing when it is refused, which newer events may undo."""
    try:
        return decide(known)
    except WindowpaneError:
        return ()
