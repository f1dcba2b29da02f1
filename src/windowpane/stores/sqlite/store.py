"""Sessions in one SQLite file, which any number of processes share.

Writes go through one thread with group commit (`writer.py`); reads have connections of their own and do not
wait. The SQL is in `log.py`, the file itself in `file.py`.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import anyio
import anyio.to_thread

from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import InvalidSettingError, StoreUnavailableError
from windowpane.stores.append import Append, check_name
from windowpane.stores.base import Appended, Cost, SessionPage, SessionRow, Snapshot, Store
from windowpane.stores.clock import from_us, now_us
from windowpane.stores.cursor import check_limit, parse_cursor
from windowpane.stores.sqlite import log, texts
from windowpane.stores.sqlite.file import DatabaseFile, Synchronous, connect, open_file, translated_errors
from windowpane.stores.sqlite.finding import SQLiteIndex
from windowpane.stores.sqlite.writer import SQLiteWriter
from windowpane.stores.watch import Watchers
from windowpane.supervise import keep_running

T = TypeVar("T")

_READERS = 8
_LOOK_EVERY_S = 0.01
_FEW = 20
"""So many sessions are looked up sooner than a thread is asked to."""

_LARGEST_INTEGER = 2**63 - 1


class SQLiteStore(Store):
    """A store in one file. With `synchronous="FULL"` what was acknowledged survives a power cut."""

    def __init__(self, path: str | Path, synchronous: Synchronous = "FULL") -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise InvalidSettingError("synchronous", f"FULL or NORMAL, not {synchronous!r}")
        self._path = Path(path).absolute()
        self._synchronous: Synchronous = synchronous
        self._watchers = Watchers()
        self._writer: SQLiteWriter | None = None
        self._lookout: asyncio.Task[None] | None = None
        self._idle: deque[sqlite3.Connection] = deque()
        self._glancing: sqlite3.Connection | None = None
        self.index = SQLiteIndex(self._read, partial(self._write, lasting=False))

    async def __aenter__(self) -> Self:
        """Open the file, creating or updating it as needed.

        Raises:
            StoreCorruptError: the file is damaged or not ours.
            StoreTooNewError: a newer version wrote it.
            StoreUnavailableError: it cannot be opened or written.
        """
        await anyio.to_thread.run_sync(open_file, self._path, self._synchronous)
        self._readers = anyio.CapacityLimiter(_READERS)
        self._watchers = Watchers()
        with translated_errors(self._path):
            self._writer = SQLiteWriter(self._path, self._synchronous)
            self._glancing = connect(self._path)
            self._glancing.execute("PRAGMA busy_timeout = 0")
        return self

    async def __aexit__(self, *exc: object) -> None:
        writer, self._writer = self._writer, None
        self._watchers.close()
        if self._glancing is not None:
            self._glancing.close()
            self._glancing = None
        if writer is None:
            return
        with anyio.CancelScope(shield=True):
            if self._lookout is not None:
                self._lookout.cancel()
                await asyncio.wait([self._lookout])
            await writer.close()
            for _ in range(_READERS):
                await self._readers.acquire_on_behalf_of(object())
            while self._idle:
                self._idle.pop().close()

    async def add(self, append: Append) -> Appended:
        """Store an append; see `Store.add`."""
        tell = partial(self._watchers.tell, append)
        return await self._write(lambda db: log.append(db, append), changed=tell, lasting=append.lasting)

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number, in order; see `Store.read`."""
        check_limit(limit)
        if self._has_nothing_after(session_id, after):
            return []
        return await self._read(lambda db: log.read(db, session_id, min(after, _LARGEST_INTEGER), limit), session_id)

    async def row(self, session_id: SessionId) -> SessionRow:
        """Return what is known about a session without reading its log; see `Store.row`."""
        return await self._read(lambda db: log.row(db, session_id), session_id)

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """Return sessions, last touched first; see `Store.sessions`."""
        check_limit(limit)
        before = parse_cursor(cursor)
        return await self._read(
            lambda db: log.sessions(db, owner, agent, limit, before), owner or "", agent or "", cursor or ""
        )

    async def now(self) -> datetime:
        """Return the time by the clock that this store tells time by; see `Store.now`."""
        self._open_writer()
        return from_us(now_us())

    async def check_writable(self) -> None:
        """Make sure that something can be written, which takes room on the disk; see `Store.check_writable`."""
        await self._write(log.write_again, lasting=False)

    async def touch(self, session_id: SessionId) -> None:
        """Note that the session was used now; see `Store.touch`."""
        await self._write(lambda db: log.touch(db, session_id), session_id)

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session so that nothing of it is left, in the file either; see `Store.delete`."""
        await self._write(
            lambda db: log.delete(db, session_id),
            session_id,
            changed=lambda _: self._watchers.wake(session_id),
            erases=True,
        )

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session unless it is in use; see `Store.delete_idle`."""
        return await self._write(
            lambda db: log.delete_idle(db, row, holder),
            row.id,
            holder or "",
            changed=lambda _: self._watchers.wake(row.id),
            erases=True,
        )

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        """Replace events with `Erased` and forget blobs and the snapshot, for good; see `Store.erase`."""
        await self._write(lambda db: log.erase(db, session_id, seqs, blobs, fence), session_id, *blobs, erases=True)

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session; see `Store.blobs`."""
        return await self._read(lambda db: texts.blobs(db, session_id, hashes), session_id, *hashes)

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session; see `Store.blob_hashes`."""
        return await self._read(lambda db: log.blob_hashes(db, session_id), session_id)

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """Keep a folded state, unless a later one is kept already; see `Store.put_snapshot`."""
        await self._write(lambda db: log.put_snapshot(db, session_id, snapshot), session_id)

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """Return the latest folded state, or None; see `Store.snapshot`."""
        return await self._read(lambda db: log.snapshot(db, session_id), session_id)

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        """Keep the words of a reply that is not complete; see `Store.put_partial`."""
        await self._write(lambda db: log.put_partial(db, session_id, body, fence), session_id, lasting=False)

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, or None; see `Store.partial`."""
        return await self._read(lambda db: log.partial(db, session_id), session_id)

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """Keep the vectors of messages; see `Store.put_vectors`."""
        await self._write(lambda db: log.put_vectors(db, session_id, vectors, as_of), session_id, lasting=False)

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return the vectors of messages that are kept; see `Store.vectors`."""
        return await self._read(lambda db: log.vectors(db, session_id, seqs), session_id)

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's one lease; see `Store.acquire`."""
        return await self._write(
            lambda db: log.acquire(db, session_id, holder, ttl_s), session_id, holder, lasting=False
        )

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """Renew leases; see `Store.renew`."""
        return await self._write(
            lambda db: log.renew(db, holders, ttl_s), *holders.keys(), *holders.values(), lasting=False
        )

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the lease back; see `Store.release`."""
        await self._write(lambda db: log.release(db, session_id, holder), session_id, holder, lasting=False)

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        """Add to what an owner's model calls cost on a day; see `Store.add_cost`."""
        await self._write(lambda db: log.add_cost(db, owner, day, cost), owner)

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        """Return what an owner's model calls cost, by day; see `Store.costs`."""
        return await self._read(lambda db: log.costs(db, owner, since), owner)

    async def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number, old ones first, then new ones; see `Store.subscribe`."""
        # The first look is into an index, and the lookout would not make up for it: so it is never spared.
        del unread
        self._open_writer()
        if self._glancing is not None and (self._lookout is None or self._lookout.done()):
            self._lookout = asyncio.create_task(
                keep_running("sqlite.look_out", partial(self._look_out, self._glancing))
            )
        async for recorded in self._watchers.follow(self.read, session_id, after):
            yield recorded

    async def _write(
        self,
        work: Callable[[sqlite3.Connection], T],
        *names: str,
        changed: Callable[[T], None] | None = None,
        erases: bool = False,
        lasting: bool = True,
    ) -> T:
        for name in names:
            check_name(name)
        return await self._open_writer().run(work, changed=changed, erases=erases, lasting=lasting)

    async def _read(self, work: Callable[[sqlite3.Connection], T], *names: str) -> T:
        for name in names:
            check_name(name)
        file = self._open_writer().file
        return await anyio.to_thread.run_sync(self._with_reader, work, file, limiter=self._readers)

    def _has_nothing_after(self, session_id: SessionId, after: int) -> bool:
        """Tell whether a log surely ends there, without the detour over a thread: that is what is asked most often.

        It is one look into an index, which does not wait; where it would have to, a thread reads instead.
        """
        self._open_writer()
        check_name(session_id)
        if after < 1 or self._glancing is None:
            return False
        try:
            return log.last_seqs(self._glancing, [session_id]).get(session_id) == after
        except sqlite3.Error:
            return False

    def _open_writer(self) -> SQLiteWriter:
        if self._writer is None:
            raise StoreUnavailableError("the store is closed")
        return self._writer

    def _with_reader(self, work: Callable[[sqlite3.Connection], T], file: DatabaseFile) -> T:
        with translated_errors(self._path):
            file.check()
            try:
                db = self._idle.pop()
            except IndexError:
                db = connect(self._path)
                db.execute("PRAGMA query_only = ON")
            try:
                return work(db)
            finally:
                if self._writer is None:
                    db.close()
                else:
                    self._idle.append(db)

    async def _look_out(self, db: sqlite3.Connection) -> None:
        """While a session is watched, notice what other processes append and delete."""
        version = None
        while self._watchers.are_any:
            try:
                before, (version,) = version, db.execute("PRAGMA data_version").fetchone()
                if version != before:
                    seen = self._watchers.seen
                    stand = await self._stand(seen)
                    for session_id, seq in seen.items():
                        if stand.get(session_id) != seq:
                            self._watchers.wake(session_id)
            except (sqlite3.Error, StoreUnavailableError):
                # A busy moment is no reason to hold up the event loop: the next look comes soon.
                version = None
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _stand(self, session_ids: Collection[SessionId]) -> dict[SessionId, int]:
        if self._glancing is not None and len(session_ids) <= _FEW:
            return log.last_seqs(self._glancing, session_ids)
        return await self._read(partial(log.last_seqs, session_ids=session_ids))
