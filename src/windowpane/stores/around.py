"""A store around another that does everything as the other does: what a kind of store changes is written over."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import date, datetime
from typing import Self

from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.stores.append import Append
from windowpane.stores.base import Appended, Cost, SessionPage, SessionRow, Snapshot, Store, Tail


class StoreAround(Store):
    """Another store, as it is."""

    def __init__(self, store: Store) -> None:
        self.inner = store
        self.encrypted, self.index, self.bus = store.encrypted, store.index, store.bus

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.inner.__aexit__(*exc)

    async def add(self, append: Append) -> Appended:
        """See `Store.add`."""
        return await self.inner.add(append)

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """See `Store.read`."""
        return await self.inner.read(session_id, after=after, limit=limit)

    async def tails(self, after: Mapping[SessionId, int | None]) -> dict[SessionId, Tail]:
        """See `Store.tails`."""
        return await self.inner.tails(after)

    async def row(self, session_id: SessionId) -> SessionRow:
        """See `Store.row`."""
        return await self.inner.row(session_id)

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """See `Store.sessions`."""
        return await self.inner.sessions(owner, agent=agent, limit=limit, cursor=cursor)

    async def now(self) -> datetime:
        """See `Store.now`."""
        return await self.inner.now()

    async def check_writable(self) -> None:
        """See `Store.check_writable`."""
        return await self.inner.check_writable()

    async def touch(self, session_id: SessionId) -> None:
        """See `Store.touch`."""
        return await self.inner.touch(session_id)

    async def delete(self, session_id: SessionId) -> None:
        """See `Store.delete`."""
        return await self.inner.delete(session_id)

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """See `Store.delete_idle`."""
        return await self.inner.delete_idle(row, holder=holder)

    async def erase(
        self, session_id: SessionId, seqs: Sequence[int], *, blobs: Sequence[BlobHash] = (), fence: int | None = None
    ) -> None:
        """See `Store.erase`."""
        return await self.inner.erase(session_id, seqs, blobs=blobs, fence=fence)

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """See `Store.blobs`."""
        return await self.inner.blobs(session_id, hashes)

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """See `Store.blob_hashes`."""
        return await self.inner.blob_hashes(session_id)

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """See `Store.put_snapshot`."""
        return await self.inner.put_snapshot(session_id, snapshot)

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """See `Store.snapshot`."""
        return await self.inner.snapshot(session_id)

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        """See `Store.put_partial`."""
        return await self.inner.put_partial(session_id, body, fence=fence)

    async def partial(self, session_id: SessionId) -> bytes | None:
        """See `Store.partial`."""
        return await self.inner.partial(session_id)

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """See `Store.put_vectors`."""
        return await self.inner.put_vectors(session_id, vectors, as_of=as_of)

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """See `Store.vectors`."""
        return await self.inner.vectors(session_id, seqs)

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """See `Store.acquire`."""
        return await self.inner.acquire(session_id, holder, ttl_s)

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """See `Store.renew`."""
        return await self.inner.renew(holders, ttl_s)

    async def release(self, session_id: SessionId, holder: str) -> None:
        """See `Store.release`."""
        return await self.inner.release(session_id, holder)

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        """See `Store.add_cost`."""
        return await self.inner.add_cost(owner, day, cost)

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        """See `Store.costs`."""
        return await self.inner.costs(owner, since=since)

    def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """See `Store.subscribe`."""
        return self.inner.subscribe(session_id, after=after, unread=unread)
