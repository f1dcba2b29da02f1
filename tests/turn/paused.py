"""A worker's store that stands still when it is told to, as the whole worker does when its machine pauses it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Literal, TypeVar

import anyio

from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.stores.append import Append
from windowpane.stores.base import Appended, Cost, SessionPage, SessionRow, Snapshot, Store

T = TypeVar("T")

Moment = Literal["before", "after"]
"""When a worker stops: before a call is done, or after it is done and before the answer is taken."""


class PausedStore(Store):
    """A view of an open store for one worker. Its calls are counted; at the nth all of them stop until `go_on()`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._nth, self._moment = 0, "before"
        self._running = anyio.Event()
        self._running.set()
        self._leases: dict[SessionId, str] = {}
        self.calls = 0
        self.paused = anyio.Event()

    def pause(self, nth: int, moment: Moment) -> None:
        """Stop at the nth call from now on."""
        self.calls, self._nth, self._moment, self.paused = 0, nth, moment, anyio.Event()

    def go_on(self) -> None:
        """Wake up."""
        self._nth = 0
        self._running.set()

    async def let_lease_run_out(self, session_id: SessionId) -> None:
        """Do what time does during a pause: the lease of this worker is over, for the store."""
        if holder := self._leases.get(session_id):
            await self._store.acquire(session_id, holder, 0)

    async def __aenter__(self) -> PausedStore:
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    async def add(self, append: Append) -> Appended:
        async def work() -> Appended:
            appended = await self._store.add(append)
            if append.take is not None:
                self._leases[append.session_id] = append.take.holder
            if append.release is not None:
                self._leases.pop(append.session_id, None)
            return appended

        return await self._call(work)

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        return await self._call(lambda: self._store.read(session_id, after=after, limit=limit))

    async def row(self, session_id: SessionId) -> SessionRow:
        return await self._call(lambda: self._store.row(session_id))

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        return await self._call(lambda: self._store.sessions(owner, agent=agent, limit=limit, cursor=cursor))

    async def now(self) -> datetime:
        return await self._call(self._store.now)

    async def touch(self, session_id: SessionId) -> None:
        await self._call(lambda: self._store.touch(session_id))

    async def delete(self, session_id: SessionId) -> None:
        await self._call(lambda: self._store.delete(session_id))

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        return await self._call(lambda: self._store.delete_idle(row, holder=holder))

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        return await self._call(lambda: self._store.blob_hashes(session_id))

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        await self._call(lambda: self._store.erase(session_id, seqs, blobs=blobs, fence=fence))

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        return await self._call(lambda: self._store.blobs(session_id, hashes))

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        return await self._call(lambda: self._store.snapshot(session_id))

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        await self._call(lambda: self._store.put_snapshot(session_id, snapshot))

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        await self._call(lambda: self._store.add_cost(owner, day, cost))

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        return await self._call(lambda: self._store.costs(owner, since=since))

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        await self._call(lambda: self._store.put_partial(session_id, body, fence=fence))

    async def partial(self, session_id: SessionId) -> bytes | None:
        return await self._call(lambda: self._store.partial(session_id))

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        await self._call(lambda: self._store.put_vectors(session_id, vectors, as_of=as_of))

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        return await self._call(lambda: self._store.vectors(session_id, seqs))

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        async def work() -> int | None:
            fence = await self._store.acquire(session_id, holder, ttl_s)
            if fence is not None:
                self._leases[session_id] = holder
            return fence

        return await self._call(work)

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        return await self._call(lambda: self._store.renew(holders, ttl_s))

    async def release(self, session_id: SessionId, holder: str) -> None:
        async def work() -> None:
            await self._store.release(session_id, holder)
            self._leases.pop(session_id, None)

        await self._call(work)

    async def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        async for entry in self._store.subscribe(session_id, after=after, unread=unread):
            await self._running.wait()
            yield entry

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        self.calls += 1
        stops = self.calls == self._nth
        if stops and self._moment == "before":
            self._stop()
        await self._running.wait()
        answer = await work()
        if stops and self._moment == "after":
            self._stop()
        await self._running.wait()
        return answer

    def _stop(self) -> None:
        self._running = anyio.Event()
        self.paused.set()
