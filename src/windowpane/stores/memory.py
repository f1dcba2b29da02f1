"""Sessions in this process's memory: for tests, for trying things out, and for work that need not be kept."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Self

from windowpane.context.events import Erased, Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import (
    LeaseLostError,
    SequenceConflictError,
    SessionBusyError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from windowpane.stores.append import Append
from windowpane.stores.base import COSTS_KEPT, Appended, Cost, SessionPage, SessionRow, Snapshot, Store
from windowpane.stores.clock import from_us, next_fence, now_us, to_us
from windowpane.stores.codec import decode_event, encode_event
from windowpane.stores.cursor import check_limit, list_position, page, parse_cursor
from windowpane.stores.watch import Watchers

_ERASED = encode_event(Erased())


@dataclass(slots=True)
class _Session:
    """Everything that is kept of one session. Events are kept as JSON, so they come back as from any other store."""

    row: SessionRow
    log: list[tuple[datetime, bytes]] = field(default_factory=list[tuple[datetime, bytes]])
    keys: dict[str, Appended] = field(default_factory=dict[str, Appended])
    blobs: dict[BlobHash, str] = field(default_factory=dict[BlobHash, str])
    snapshot: Snapshot | None = None
    erased_seq: int = 0
    lease: tuple[str, datetime] | None = None
    fence: int = 0
    partial: bytes | None = None
    vectors: dict[int, bytes] = field(default_factory=dict[int, bytes])


class MemoryStore(Store):
    """A store that forgets everything when the process ends."""

    def __init__(self) -> None:
        self._sessions: dict[SessionId, _Session] = {}
        self._costs: dict[tuple[str, date], Cost] = {}
        self._watchers = Watchers()
        self._closed = False

    async def __aenter__(self) -> Self:
        if self._closed:
            self._watchers, self._closed = Watchers(), False
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._closed = True
        self._watchers.close()

    async def add(self, append: Append) -> Appended:
        """Store an append; see `Store.add`."""
        self._check_open()
        now = now_us()
        times = [from_us(at) for at in append.times(now)]
        touched_at = from_us(append.touched(now))
        session = self._sessions.get(append.session_id) or _begun(append, times[0], touched_at)
        if append.key is not None and append.key in session.keys:
            return replace(session.keys[append.key], repeated=True)
        if append.fence is not None and append.fence < session.fence:
            raise LeaseLostError(append.session_id)
        last_seq = session.row.last_seq
        if append.expected_seq is not None and append.expected_seq != last_seq:
            raise SequenceConflictError(append.session_id, append.expected_seq, last_seq)
        fence = None if append.take is None else _take(session, append.take.holder, append.take.ttl_s)
        if append.take is not None and fence is None:
            raise SessionBusyError(append.session_id)
        appended = Appended(last_seq + 1, last_seq + len(append.bodies), times[-1], fence=fence)
        session.log += zip(times, append.bodies, strict=True)
        touched_at = max(touched_at, session.row.touched_at)
        session.row = replace(session.row, last_seq=appended.last_seq, touched_at=touched_at)
        for texts in (append.blobs, *append.bundles.values()):
            session.blobs |= texts
        if append.key is not None:
            session.keys[append.key] = replace(appended, fence=None)
        if append.release is not None:
            _release(session, append.release)
        self._sessions[append.session_id] = session
        self._watchers.tell(append, appended)
        return appended

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number, in order; see `Store.read`."""
        check_limit(limit)
        log = self._session(session_id).log
        start = max(after, 0)
        stop = len(log) if limit is None else start + limit
        return [Recorded(seq, at, decode_event(body)) for seq, (at, body) in enumerate(log[start:stop], start + 1)]

    async def row(self, session_id: SessionId) -> SessionRow:
        """Return what is known about a session without reading its log; see `Store.row`."""
        return self._session(session_id).row

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """Return sessions, last touched first; see `Store.sessions`."""
        check_limit(limit)
        self._check_open()
        before = parse_cursor(cursor)
        found = [
            row
            for row in (session.row for session in self._sessions.values())
            if owner in (None, row.owner)
            and agent in (None, row.agent)
            and (before is None or list_position(row.touched_at, row.id) < before)
        ]
        found.sort(key=lambda row: list_position(row.touched_at, row.id), reverse=True)
        return page(found[: limit + 1], limit)

    async def now(self) -> datetime:
        """Return the time by the clock that this store tells time by; see `Store.now`."""
        self._check_open()
        return datetime.now(UTC)

    async def touch(self, session_id: SessionId) -> None:
        """Note that the session was used now; see `Store.touch`."""
        session = self._session(session_id)
        session.row = replace(session.row, touched_at=max(datetime.now(UTC), session.row.touched_at))

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session so that nothing of it is left; see `Store.delete`."""
        self._session(session_id)
        del self._sessions[session_id]
        self._watchers.wake(session_id)

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session unless it is in use; see `Store.delete_idle`."""
        self._check_open()
        session = self._sessions.get(row.id)
        if session is None or (session.row.last_seq, session.row.touched_at) != (row.last_seq, row.touched_at):
            return False
        if session.lease is not None and session.lease[0] != holder and session.lease[1] > datetime.now(UTC):
            return False
        await self.delete(row.id)
        return True

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        """Replace events with `Erased` and forget blobs and the snapshot, for good; see `Store.erase`."""
        session = self._session(session_id)
        if fence is not None and fence < session.fence:
            raise LeaseLostError(session_id)
        for seq in seqs:
            if 1 <= seq <= len(session.log):
                at, _ = session.log[seq - 1]
                session.log[seq - 1] = (at, _ERASED)
        for blob_hash in blobs:
            session.blobs.pop(blob_hash, None)
        session.snapshot = session.partial = None
        session.vectors.clear()
        session.erased_seq = session.row.last_seq

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session; see `Store.blobs`."""
        self._check_open()
        session = self._sessions.get(session_id)
        kept = session.blobs if session else {}
        return {blob_hash: kept[blob_hash] for blob_hash in hashes if blob_hash in kept}

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session; see `Store.blob_hashes`."""
        return sorted(self._session(session_id).blobs)

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """Keep a folded state, unless a later one is kept already; see `Store.put_snapshot`."""
        self._check_open()
        session = self._sessions.get(session_id)
        # A state from before an erasure may still hold what was erased.
        if session is None or snapshot.seq <= session.erased_seq:
            return
        if session.snapshot is None or snapshot.seq > session.snapshot.seq:
            session.snapshot = snapshot

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """Return the latest folded state, or None; see `Store.snapshot`."""
        self._check_open()
        session = self._sessions.get(session_id)
        return session.snapshot if session else None

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        """Keep the words of a reply that is not complete; see `Store.put_partial`."""
        self._check_open()
        session = self._sessions.get(session_id)
        if session is not None and session.fence <= fence:
            session.partial = body

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, or None; see `Store.partial`."""
        self._check_open()
        session = self._sessions.get(session_id)
        return session.partial if session else None

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """Keep the vectors of messages; see `Store.put_vectors`."""
        self._check_open()
        session = self._sessions.get(session_id)
        if session is not None and session.erased_seq < as_of:
            session.vectors |= vectors

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return the vectors of messages that are kept; see `Store.vectors`."""
        self._check_open()
        session = self._sessions.get(session_id)
        kept = session.vectors if session else {}
        return {seq: body for seq, body in kept.items() if seqs is None or seq in seqs}

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's one lease; see `Store.acquire`."""
        return _take(self._session(session_id), holder, ttl_s)

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """Renew leases; see `Store.renew`."""
        self._check_open()
        held = {
            session_id: session
            for session_id, holder in holders.items()
            if (session := self._sessions.get(session_id)) and session.lease and session.lease[0] == holder
        }
        for session_id, session in held.items():
            _take(session, holders[session_id], ttl_s)
        return set(held)

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the lease back; see `Store.release`."""
        self._check_open()
        session = self._sessions.get(session_id)
        if session is not None:
            _release(session, holder)

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        """Add to what an owner's model calls cost on a day; see `Store.add_cost`."""
        self._check_open()
        self._costs = {key: kept for key, kept in self._costs.items() if key[1] >= day - COSTS_KEPT}
        self._costs[owner, day] = self._costs.get((owner, day), Cost()) + cost

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        """Return what an owner's model calls cost, by day; see `Store.costs`."""
        self._check_open()
        return {day: cost for (whose, day), cost in self._costs.items() if whose == owner and day >= since}

    def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number, old ones first, then new ones; see `Store.subscribe`."""
        return self._watchers.follow(self.read, session_id, after, unread=unread)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store is closed")

    def _session(self, session_id: SessionId) -> _Session:
        self._check_open()
        try:
            return self._sessions[session_id]
        except KeyError:
            raise SessionNotFoundError(session_id) from None


def _take(session: _Session, holder: str, ttl_s: float) -> int | None:
    now = from_us(now_us())
    if session.lease is None or session.lease[0] != holder:
        if session.lease is not None and session.lease[1] > now:
            return None
        session.fence = next_fence(session.fence, to_us(now))
    session.lease = (holder, now + timedelta(seconds=ttl_s))
    return session.fence


def _release(session: _Session, holder: str) -> None:
    if session.lease is not None and session.lease[0] == holder:
        session.lease = None


def _begun(append: Append, created_at: datetime, touched_at: datetime) -> _Session:
    if append.begins is None:
        raise SessionNotFoundError(append.session_id)
    begins = append.begins
    return _Session(SessionRow(append.session_id, begins.owner, begins.agent, 0, created_at, touched_at))
