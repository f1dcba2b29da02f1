"""Sessions in a PostgreSQL database, which any number of workers on any number of machines share.

Appends go through one connection per process, all that wait in one statement (`writer.py`). Everything else
uses a pool of connections (`connections.py`); the SQL is in `log.py` and, where several steps must be one,
in functions of the schema (`migrations/`). All times are those of the server's clock. Processes wake one
another through a bus (`notify.py`): NOTIFY (`bus.py`), unless another is given.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, Self, TypeVar
from uuid import uuid4

import anyio

from windowpane.bus.base import Bus
from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import LeaseLostError, SessionNotFoundError, StoreUnavailableError
from windowpane.stores.append import Append, check_name
from windowpane.stores.base import Appended, Cost, SessionPage, SessionRow, Snapshot, Store, Tail
from windowpane.stores.cursor import check_limit, parse_cursor
from windowpane.stores.postgres import log
from windowpane.stores.postgres.bus import PostgresBus
from windowpane.stores.postgres.connections import (
    ConnectionPool,
    DriverConnection,
    close_connection,
    parse_postgres_url,
    translated_errors,
)
from windowpane.stores.postgres.finding import PostgresIndex
from windowpane.stores.postgres.notify import Notifier
from windowpane.stores.postgres.schema import migrate
from windowpane.stores.postgres.writer import PostgresWriter
from windowpane.stores.watch import Watchers

T = TypeVar("T")


class PostgresStore(Store):
    """A store in the schema `windowpane` of one database, named as `postgresql://user:password@host:port/database`.

    Raises:
        InvalidSettingError: the URL says something that cannot be used.
    """

    def __init__(self, url: str, bus: Bus | None = None) -> None:
        self._url = parse_postgres_url(url)
        self._own_bus = PostgresBus(self._url)
        self._used_bus = self.bus = bus or self._own_bus
        self._connections = ConnectionPool(self._url)
        self._watchers = Watchers()
        self._writer: PostgresWriter | None = None
        self.index = PostgresIndex(self._run)

    async def __aenter__(self) -> Self:
        """Connect, creating or updating the schema as needed.

        Raises:
            StoreTooNewError: a newer version wrote it.
            StoreUnavailableError: the server cannot be reached or used.
        """
        connection = await self._connections.retry(self._connections.connect)
        with translated_errors(self._url):
            try:
                await migrate(self._url, connection)
            finally:
                await close_connection(connection)
        await self._connections.open()
        me = uuid4()
        self._watchers = Watchers()
        await self._own_bus.__aenter__()
        self._notifier = Notifier(self._connections, me, self._watchers, self._used_bus)
        self._writer = PostgresWriter(self._connections, me, self._stored)
        return self

    async def __aexit__(self, *exc: object) -> None:
        writer, self._writer = self._writer, None
        self._watchers.close()
        if writer is None:
            return
        with anyio.CancelScope(shield=True):
            await writer.close()
            await self._notifier.close()
            await self._own_bus.__aexit__(None, None, None)
            await self._connections.close()

    async def add(self, append: Append) -> Appended:
        """Store an append; see `Store.add`."""
        if self._writer is None:
            raise StoreUnavailableError("the store is closed")
        return await self._writer.append(append)

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number, in order; see `Store.read`."""
        check_limit(limit)
        return _of(session_id, await self._run(lambda db: log.read(db, session_id, after, limit), session_id))

    async def tails(self, after: Mapping[SessionId, int | None]) -> dict[SessionId, Tail]:
        """Return the ends of several logs; see `Store.tails`. It is one statement."""
        return await self._run(lambda db: log.tails(db, after), *after)

    async def row(self, session_id: SessionId) -> SessionRow:
        """Return what is known about a session without reading its log; see `Store.row`."""
        return _of(session_id, await self._run(lambda db: log.row(db, session_id), session_id))

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """Return sessions, last touched first; see `Store.sessions`."""
        check_limit(limit)
        before = parse_cursor(cursor)
        return await self._run(
            lambda db: log.sessions(db, owner, agent, limit, before), owner or "", agent or "", cursor or ""
        )

    async def now(self) -> datetime:
        """Return the time by the clock that this store tells time by; see `Store.now`."""
        return await self._run(log.now)

    async def touch(self, session_id: SessionId) -> None:
        """Note that the session was used now; see `Store.touch`."""
        _of(session_id, await self._run(lambda db: log.touch(db, session_id), session_id))

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session so that nothing of it is left; see `Store.delete`."""
        _of(session_id, await self._remove(session_id, partial(log.delete, session_id=session_id)))

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session unless it is in use; see `Store.delete_idle`."""
        check_name(holder or "")
        return await self._remove(row.id, partial(log.delete_idle, idle=row, holder=holder)) or False

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        """Replace events with `Erased` and forget blobs and the snapshot, for good; see `Store.erase`."""
        became = await self._run(lambda db: log.erase(db, session_id, seqs, blobs, fence), session_id, *blobs)
        if became == "fenced":
            raise LeaseLostError(session_id)
        _of(session_id, became if became == "erased" else None)

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session; see `Store.blobs`."""
        return await self._run(lambda db: log.blobs(db, session_id, hashes), session_id, *hashes)

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session; see `Store.blob_hashes`."""
        return _of(session_id, await self._run(lambda db: log.blob_hashes(db, session_id), session_id))

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """Keep a folded state, unless a later one is kept already; see `Store.put_snapshot`."""
        await self._run(lambda db: log.put_snapshot(db, session_id, snapshot), session_id)

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """Return the latest folded state, or None; see `Store.snapshot`."""
        return await self._run(lambda db: log.snapshot(db, session_id), session_id)

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        """Keep the words of a reply that is not complete; see `Store.put_partial`."""
        await self._run(lambda db: log.put_partial(db, session_id, body, fence), session_id)

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, or None; see `Store.partial`."""
        return await self._run(lambda db: log.partial(db, session_id), session_id)

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """Keep the vectors of messages; see `Store.put_vectors`."""
        await self._run(lambda db: log.put_vectors(db, session_id, vectors, as_of), session_id)

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return the vectors of messages that are kept; see `Store.vectors`."""
        return await self._run(lambda db: log.vectors(db, session_id, seqs), session_id)

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's one lease; see `Store.acquire`."""
        found = await self._run(lambda db: log.acquire(db, session_id, holder, ttl_s), session_id, holder)
        return _of(session_id, found) or None

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """Renew leases; see `Store.renew`. It is one statement."""
        return await self._run(lambda db: log.renew(db, holders, ttl_s), *holders.keys(), *holders.values())

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the lease back; see `Store.release`."""
        if self._writer is not None:
            # An append that takes this lease goes another way, and must not come after its release.
            await self._writer.settled(session_id)
        await self._run(lambda db: log.release(db, session_id, holder), session_id, holder)

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        """Add to what an owner's model calls cost on a day; see `Store.add_cost`."""
        await self._run(lambda db: log.add_cost(db, owner, day, cost), owner)

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        """Return what an owner's model calls cost, by day; see `Store.costs`."""
        return await self._run(lambda db: log.costs(db, owner, since), owner)

    async def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number, old ones first, then new ones; see `Store.subscribe`."""
        if self._writer is None:
            raise StoreUnavailableError("the store is closed")
        async with self._notifier.listening(session_id, unread=unread):
            self._notifier.look()
            async for recorded in self._watchers.follow(self.read, session_id, after, unread=unread):
                yield recorded

    def _stored(self, append: Append, appended: Appended) -> None:
        self._watchers.tell(append, appended)
        # The first append of a turn does not wait for the disk: the next one, which does, comes at once.
        self._notifier.tell(append.session_id, more_follows=not append.lasting)

    async def _run(self, work: Callable[[DriverConnection], Coroutine[Any, Any, T]], *names: str) -> T:
        for name in names:
            check_name(name)
        if self._writer is None:
            raise StoreUnavailableError("the store is closed")
        return await self._connections.run(work)

    async def _remove(
        self, session_id: SessionId, work: Callable[[DriverConnection], Coroutine[Any, Any, bool | None]]
    ) -> bool | None:
        """Remove a session. It is also removed if it is gone after an attempt whose answer was lost."""
        attempts = 0

        async def attempt(db: DriverConnection) -> bool | None:
            nonlocal attempts
            attempts += 1
            removed = await work(db)
            return True if removed is None and attempts > 1 else removed

        removed = await self._run(attempt, session_id)
        if removed:
            self._watchers.wake(session_id)
            self._notifier.tell(session_id)
        return removed


def _of(session_id: SessionId, found: T | None) -> T:
    if found is None:
        raise SessionNotFoundError(session_id)
    return found
