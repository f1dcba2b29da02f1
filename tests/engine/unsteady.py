"""A store that goes away and comes back, as a database does: for tests of what lives on meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeVar

from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import StoreUnavailableError
from windowpane.stores.append import Append
from windowpane.stores.base import Appended, SessionPage, SessionRow, Snapshot
from windowpane.stores.memory import MemoryStore

T = TypeVar("T")

Fault = Literal["not done", "done, not answered", "unexpected"]
"""What a call does while the store is away: nothing, its work without an answer, or something that is a mistake."""


class UnsteadyStore(MemoryStore):
    """A store in memory whose calls are counted from `lose()` on, and fail from the nth on, so many of them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self._fault: Fault = "not done"
        self._from, self._upto = 0, 0

    def lose(self, nth: int = 1, calls: int = 1_000_000, fault: Fault = "not done") -> None:
        """Go away at the nth call from now on, for so many calls."""
        self.calls, self._from, self._upto, self._fault = 0, nth, nth + calls, fault

    def come_back(self) -> None:
        """Answer every call again."""
        self._upto = 0

    async def add(self, append: Append) -> Appended:
        return await self._call(lambda: super(UnsteadyStore, self).add(append))

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        return await self._call(lambda: super(UnsteadyStore, self).read(session_id, after=after, limit=limit))

    async def row(self, session_id: SessionId) -> SessionRow:
        return await self._call(lambda: super(UnsteadyStore, self).row(session_id))

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        return await self._call(
            lambda: super(UnsteadyStore, self).sessions(owner, agent=agent, limit=limit, cursor=cursor)
        )

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        return await self._call(lambda: super(UnsteadyStore, self).blobs(session_id, hashes))

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        return await self._call(lambda: super(UnsteadyStore, self).snapshot(session_id))

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        return await self._call(lambda: super(UnsteadyStore, self).acquire(session_id, holder, ttl_s))

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        return await self._call(lambda: super(UnsteadyStore, self).renew(holders, ttl_s))

    async def release(self, session_id: SessionId, holder: str) -> None:
        return await self._call(lambda: super(UnsteadyStore, self).release(session_id, holder))

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        self.calls += 1
        if not self._from <= self.calls < self._upto:
            return await work()
        if self._fault == "unexpected":
            raise RuntimeError("a mistake in the store")
        if self._fault == "done, not answered":
            await work()
        raise StoreUnavailableError("the store is away")
