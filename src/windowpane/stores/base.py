"""The store port: what every store promises.

A store keeps, per session, an append-only log of events, the texts (blobs) that its requests were made of, and the
latest snapshot of its folded state. It knows nothing about what events mean, except that `session.created` names the
owner and the agent that sessions are listed by. Everything else is built on these few operations, and one contract
suite (`tests/stores/`) runs against every store.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Protocol

import anyio.to_thread

from windowpane.bus.base import Bus
from windowpane.context.events import Event, Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import BlobNotFoundError, SessionNotFoundError
from windowpane.stores.append import Append, Appended, OriginalTimes, TakeLease, checked_append
from windowpane.stores.finding import TextIndex


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What a list of sessions shows before any log is read. `touched_at` is the last append or touch."""

    id: SessionId
    owner: str
    agent: str
    last_seq: int
    created_at: datetime
    touched_at: datetime


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions, last touched first, and the cursor for the next page; None when this was the last."""

    rows: tuple[SessionRow, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A folded state as bytes, and the sequence number it stands at."""

    seq: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log: the events after some place, and the snapshot that stands there, if one does."""

    snapshot: Snapshot | None
    events: list[Recorded]


@dataclass(frozen=True, slots=True)
class Cost:
    """What model calls cost, in billionths of a dollar, so that sums are exact; and how many have no known price."""

    nano_dollars: int = 0
    unpriced_calls: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.nano_dollars + other.nano_dollars, self.unpriced_calls + other.unpriced_calls)


COSTS_KEPT = timedelta(days=62)
"""How long the costs of a day are kept at least: for the present month and the one before."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One worker's right to run a session's turn: who holds it, and its number."""

    holder: str
    fence: int


MANY_EVENTS = 500
"""So many events are encoded in a thread, so that other requests do not wait."""


class Store(Protocol):
    """One log per session, and what each owner's model calls cost a day.

    Stores inherit from it, so that what they have in common is written once. All operations may raise
    `StoreUnavailableError`. A store is opened by `async with`; it may be used by any number
    of tasks at once, and the same data by any number of processes.
    """

    encrypted: bool = False
    """Whether only those who have the key can read what is kept."""

    index: TextIndex | None = None
    """The store's own full-text search; None where it has none."""

    bus: Bus | None = None
    """What carries messages between the processes that share the store; None where it cannot."""

    async def __aenter__(self) -> "Store": ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def append(
        self,
        session_id: SessionId,
        events: Sequence[Event],
        *,
        expected_seq: int | None = None,
        key: str | None = None,
        blobs: Mapping[BlobHash, str] | None = None,
        original_times: OriginalTimes | None = None,
        fence: int | None = None,
        take: TakeLease | None = None,
        release: str | None = None,
        lasting: bool = True,
    ) -> Appended:
        """Add events to the end of the log, all or none, durable when this returns, `blobs` with them.

        Texts that are marked as one bundle (`context.items.bundled`) are kept once for all sessions that have it.

        The first event of a session is `session.created`, appended with `expected_seq=0`; without it a session does
        not exist. With `expected_seq` the log must stand exactly there. With `key` a repeated call stores nothing and
        returns where the first call stored; the key belongs to the session. With `fence`, the number of a lease, no
        other may have taken the lease since; that is looked at in the same step.

        With `take` the session's lease is taken in the same step, as `acquire` does, and `release` gives back the lease
        of a holder, as `release()` does. When nothing is stored, or it was stored before, the lease stays as it is.
        What is not `lasting` may be lost in a power cut until a later append to the session is durable.

        Events happen now, and the session is touched now. With `original_times` each happened when that says, a
        session that begins with them was created at the first of those times, and it is touched as of then, if that
        is later.

        Raises:
            SessionNotFoundError: the session does not exist and this append does not begin it.
            LeaseLostError: the session's lease was taken by another since (and `key` was not seen before).
            SequenceConflictError: the log does not stand at `expected_seq` (and `key` was not seen before).
            SessionBusyError: the lease is to be taken and another holds it; the log stands at `expected_seq`.
        """
        check = partial(
            checked_append,
            session_id,
            events,
            expected_seq=expected_seq,
            key=key,
            blobs=blobs,
            original_times=original_times,
            fence=fence,
            take=take,
            release=release,
            lasting=lasting,
        )
        # Imports and copies append whole sessions, which take seconds to encode.
        return await self.add(check() if len(events) < MANY_EVENTS else await anyio.to_thread.run_sync(check))

    async def add(self, append: Append) -> Appended:
        """Store an append that was checked. `append` makes one from what its caller gives, and says what it means."""
        ...

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number, in order. Reading changes nothing.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def tails(self, after: Mapping[SessionId, int | None]) -> dict[SessionId, Tail]:
        """Return the ends of several logs: what comes after a number, or, with None, after the session's snapshot.

        What was erased meanwhile is in neither. A session that does not exist is left out.
        """
        found: dict[SessionId, Tail] = {}
        for session_id, seq in after.items():
            with suppress(SessionNotFoundError):
                snapshot = await self.snapshot(session_id) if seq is None else None
                start = snapshot.seq if snapshot is not None else seq or 0
                found[session_id] = Tail(snapshot, await self.read(session_id, after=start))
        return found

    async def row(self, session_id: SessionId) -> SessionRow:
        """Return what is known about a session without reading its log.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """Return sessions, last touched first; of every owner when `owner` is None."""
        ...

    async def now(self) -> datetime:
        """Return the time by the clock that the store's times are of, which may be another than this process's."""
        ...

    async def check_writable(self) -> None:
        """Make sure that something can be written. It changes nothing."""
        # To give back a lease that was never taken changes nothing, but the store must be able to write for it.
        await self.release(SessionId("readiness"), "readiness")

    async def touch(self, session_id: SessionId) -> None:
        """Note that the session was used now."""
        ...

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session so that nothing of it is left: log, blobs, snapshot, vectors, lease, keys.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session as `delete` does, unless it is in use, and tell whether it was removed.

        It is in use when its log or its last touch is not what the row says, or when another than `holder` holds its
        lease. All of that is decided in one step with the removal.
        """
        ...

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        """Replace events with `Erased` and forget blobs, the snapshot and vectors, for good. The numbering stays.

        Raises:
            SessionNotFoundError: no such session.
            LeaseLostError: another took the lease since the one with the number `fence`. Nothing was erased.
        """
        ...

    async def blob(self, session_id: SessionId, blob_hash: BlobHash) -> str:
        """Return a text that was stored with the session.

        Raises:
            SessionNotFoundError: no such session, or not any more.
            BlobNotFoundError: the session has no such text.
        """
        found = await self.blobs(session_id, [blob_hash])
        if blob_hash not in found:
            await self.row(session_id)
            raise BlobNotFoundError(blob_hash)
        return found[blob_hash]

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session."""
        ...

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session, in the order of the alphabet.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """Keep a folded state, unless a later one is kept already. A convenience that may be lost at any time."""
        ...

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """Return the latest folded state, or None."""
        ...

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        """Keep the words of a reply that is not complete, in place of those kept before.

        Does nothing when there is no such session, or when another took its lease since the one with this number. It
        need not survive a power cut. What is kept goes with `erase` and `delete`.
        """
        ...

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, as they were kept last, or None."""
        ...

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """Keep the vectors of messages, by their sequence numbers, in place of those kept before.

        `as_of` is where the log stood when the messages were read. Does nothing when there is no such session, or when
        something was erased since. It need not survive a power cut. What is kept goes with `erase` and `delete`.
        """
        ...

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return the vectors of messages that are kept, by their sequence numbers: those of `seqs`, or all of them."""
        ...

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's one lease; None when another holder has it and it has not run out.

        Returns the lease's fence: a number that stays when the lease is renewed, also after it ran out, and that is
        greater for each holder that takes it. It is about the time in microseconds, by the store's clock, so that it
        also grows where the store lost the last one.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """Renew the leases of these sessions that these holders have, also after they ran out. None is taken.

        Returns the sessions whose lease was renewed.
        """
        ...

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the lease back. Does nothing when the holder does not hold it."""
        ...

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        """Add to what an owner's model calls cost on a day. Deleting a session takes nothing away.

        It is added at least once: when a connection breaks at the wrong moment, twice. Days are kept for `COSTS_KEPT`.
        """
        ...

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        """Return what an owner's model calls cost, by day; days without calls are not in it."""
        ...

    def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number, old ones first, then new ones as they come, from any process.

        With `unread` the caller has just seen the log end there: a store may then spare the first look, and tell what
        came in between some seconds later. It ends when the session is deleted or the store is closed.
        """
        ...
