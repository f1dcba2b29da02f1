"""A store that forgets unused sessions: by time, and by number, the least recently used first.

It is a store around another. A session is over when it was last used longer ago than the limit, or when as many others
as the limit allows were used later. One that is in use is never over: it is removed in one step with the check that
it was not used since it was looked at and that its lease is free. Any number of workers may do this at once.

With an archive a session is copied there before it is removed, and a request for its id brings it back. The
archive keeps its copy, so that the next time only the difference is copied; deleting and erasing reach both.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Self, TypeVar

import anyio

from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId, new_holder_id
from windowpane.errors import InvalidSettingError, SessionNotFoundError, WindowpaneError
from windowpane.remarks import get_logger
from windowpane.stores.append import Append
from windowpane.stores.around import StoreAround
from windowpane.stores.base import Appended, SessionRow, Store
from windowpane.stores.cursor import cursor_before, list_position
from windowpane.stores.detect import refuse_sealed
from windowpane.stores.session_copy import copy_new_session, copy_session, find_row
from windowpane.supervise import keep_running

UNUSED_S = 3600.0
SESSIONS = 500

T = TypeVar("T")

_PAGE = 500
_SWEEP_EVERY_S = 30.0
_LEASE_S = 60.0
_ARCHIVING_S = 1.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a session is kept since it was last used, and how many are kept."""

    unused_s: float = UNUSED_S
    sessions: int = SESSIONS

    def __post_init__(self) -> None:
        if self.unused_s <= 0:
            raise InvalidSettingError("expire_after_s", f"must be more than 0, not {self.unused_s:g}")
        if self.sessions < 1:
            raise InvalidSettingError("max_sessions", f"must be at least 1, not {self.sessions}")


@dataclass(frozen=True, slots=True)
class Expired:
    """A session that was removed, and why: it was `unused` for too long, or there were too many (`excess`)."""

    row: SessionRow
    why: Literal["unused", "excess"]


class ExpiringStore(StoreAround):
    """A store whose sessions expire. Lists and what is asked for several sessions leave out those that are archived."""

    def __init__(self, store: Store, limits: Limits | None = None, *, archive: Store | None = None) -> None:
        super().__init__(store)
        self._limits = limits or Limits()
        self._archive = archive
        self._sweeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        if self._archive is not None:
            try:
                await self._archive.__aenter__()
                await refuse_sealed(self._archive)
            except BaseException:
                await self.inner.__aexit__(None, None, None)
                raise
        self._sweeper = asyncio.create_task(keep_running("expiry.sweep", self._keep_sweeping))
        return self

    async def __aexit__(self, *exc: object) -> None:
        with anyio.CancelScope(shield=True):
            if self._sweeper is not None:
                self._sweeper.cancel()
                await asyncio.wait([self._sweeper])
            try:
                await self.inner.__aexit__(*exc)
            finally:
                if self._archive is not None:
                    await self._archive.__aexit__(*exc)

    async def sweep(self) -> list[Expired]:
        """Remove every session that is over, the least recently used first, and return what was removed.

        Raises:
            StoreError: the store or the archive cannot do its work; what is not archived is not removed.
        """
        return await self._remove(await self._over())

    async def add(self, append: Append) -> Appended:
        """Store an append; see `Store.add`. A session that begins makes older ones give way."""
        begins = append.expected_seq == 0
        if begins:
            # An id that is in the archive is taken.
            await self._restore(append.session_id)
        appended = await self._or_restored(append.session_id, lambda: self.inner.add(append))
        if begins and not appended.repeated:
            try:
                await self._remove(await self._excess())
            except WindowpaneError as error:
                log.warning("expiry.failed", code=error.code, why=str(error))
        return appended

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number, in order; see `Store.read`."""
        return await self._or_restored(session_id, lambda: self.inner.read(session_id, after=after, limit=limit))

    async def row(self, session_id: SessionId) -> SessionRow:
        """Return what is known about a session without reading its log; see `Store.row`."""
        return await self._or_restored(session_id, lambda: self.inner.row(session_id))

    async def touch(self, session_id: SessionId) -> None:
        """Note that the session was used now; see `Store.touch`. It is too late for one that is over."""
        row = await self.row(session_id)
        over = self._archive is None and row.touched_at < await self._unused_since()
        if over and await self._remove([Expired(row, "unused")]):
            raise SessionNotFoundError(session_id)
        await self._or_restored(session_id, lambda: self.inner.touch(session_id))

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session so that nothing of it is left, in the archive either; see `Store.delete`."""
        # The archive first: what is only there would come back. And again, because it may have just been archived.
        archived = await self._delete_archived(session_id)
        try:
            await self.inner.delete(session_id)
        except SessionNotFoundError:
            if not archived:
                raise
        finally:
            await self._delete_archived(session_id)

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session unless it is in use, from the archive too; see `Store.delete_idle`."""
        if not await self.inner.delete_idle(row, holder=holder):
            return False
        await self._delete_archived(row.id)
        return True

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        """Replace events with `Erased` and forget blobs, in the archive too; see `Store.erase`."""
        # The archive first: what a killed worker left is only looked for in the store. And again, because a copy may
        # have been made meanwhile; who copies after that compares, and finds what was erased here.
        await self._erase_archived(session_id, seqs, blobs)
        await self._or_restored(session_id, lambda: self.inner.erase(session_id, seqs, blobs=blobs, fence=fence))
        await self._erase_archived(session_id, seqs, blobs)

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session; see `Store.blobs`."""
        found = await self.inner.blobs(session_id, hashes)
        if not found and hashes and await self._restore(session_id):
            return await self.inner.blobs(session_id, hashes)
        return found

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session; see `Store.blob_hashes`."""
        return await self._or_restored(session_id, lambda: self.inner.blob_hashes(session_id))

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's one lease; see `Store.acquire`."""
        deadline = anyio.current_time() + _ARCHIVING_S
        while True:
            fence = await self._or_restored(session_id, lambda: self.inner.acquire(session_id, holder, ttl_s))
            # It may be on its way to the archive: then it comes back in a moment.
            if fence is not None or self._archive is None or anyio.current_time() > deadline:
                return fence
            await anyio.sleep(0.02)

    async def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number; see `Store.subscribe`. It ends when the session expires."""
        if not unread:
            with suppress(SessionNotFoundError):
                await self.row(session_id)
        async for recorded in self.inner.subscribe(session_id, after=after, unread=unread):
            yield recorded

    async def _erase_archived(self, session_id: SessionId, seqs: Sequence[int], blobs: Sequence[BlobHash]) -> None:
        if self._archive is not None:
            with suppress(SessionNotFoundError):
                await self._archive.erase(session_id, seqs, blobs=blobs)

    async def _keep_sweeping(self) -> None:
        while True:
            try:
                await self.sweep()
            except WindowpaneError as error:
                log.warning("expiry.failed", code=error.code, why=str(error))
            await anyio.sleep(min(_SWEEP_EVERY_S, self._limits.unused_s / 4))

    async def _over(self) -> list[Expired]:
        """Return every session that is over."""
        excess = await self._excess()
        known = {one.row.id for one in excess}
        unused = await self._rows(cursor_before(await self._unused_since()))
        return [*excess, *(Expired(row, "unused") for row in unused if row.id not in known)]

    async def _excess(self) -> list[Expired]:
        """Return the sessions that are too many."""
        kept = await self.inner.sessions(limit=self._limits.sessions)
        return [] if kept.cursor is None else [Expired(row, "excess") for row in await self._rows(kept.cursor)]

    async def _rows(self, cursor: str | None) -> list[SessionRow]:
        rows: list[SessionRow] = []
        while cursor is not None:
            page = await self.inner.sessions(limit=_PAGE, cursor=cursor)
            rows += page.rows
            cursor = page.cursor
        return rows

    async def _remove(self, over: Sequence[Expired]) -> list[Expired]:
        archive = self._archive
        removed: list[Expired] = []
        for one in sorted(over, key=lambda one: list_position(one.row.touched_at, one.row.id)):
            gone = self.inner.delete_idle(one.row) if archive is None else self._move_to(archive, one.row)
            if await gone:
                log.info(
                    "session.expired",
                    session=one.row.id,
                    why=one.why,
                    last_used=one.row.touched_at.isoformat(),
                    archived=archive is not None,
                )
                removed.append(one)
        return removed

    async def _move_to(self, archive: Store, row: SessionRow) -> bool:
        """Copy a session to the archive and remove it here; False when it is in use or gone already."""
        holder = new_holder_id()
        held_since = anyio.current_time()
        try:
            if await self.inner.acquire(row.id, holder, _LEASE_S) is None:
                return False
        except SessionNotFoundError:
            return False
        try:
            await copy_session(self.inner, archive, row.id)
            # Taken again, because copying may have taken long.
            held_since = anyio.current_time()
            if await self.inner.acquire(row.id, holder, _LEASE_S) is None:
                return False
            if await self.inner.delete_idle(row, holder=holder):
                return True
            await self.inner.row(row.id)
        except SessionNotFoundError:
            # While it was held, only a deletion by a caller can have removed it.
            if anyio.current_time() - held_since < _LEASE_S / 2:
                await self._delete_archived(row.id)
        finally:
            with anyio.CancelScope(shield=True):
                await self.inner.release(row.id, holder)
        return False

    async def _or_restored(self, session_id: SessionId, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what the store answers, once more when the session had to be brought back first."""
        try:
            return await ask()
        except SessionNotFoundError:
            if not await self._restore(session_id):
                raise
            return await ask()

    async def _restore(self, session_id: SessionId) -> bool:
        """Bring a session back from the archive; tell whether it is there now."""
        if self._archive is None or await find_row(self.inner, session_id) is not None:
            return self._archive is not None
        try:
            await copy_new_session(self._archive, self.inner, session_id, touched_at=await self.inner.now())
        except SessionNotFoundError:
            return False
        if await find_row(self._archive, session_id) is None:
            # Deleted while it was being brought back.
            with suppress(SessionNotFoundError):
                await self.inner.delete(session_id)
            return False
        log.info("session.restored", session=session_id)
        return True

    async def _delete_archived(self, session_id: SessionId) -> bool:
        if self._archive is None:
            return False
        try:
            await self._archive.delete(session_id)
        except SessionNotFoundError:
            return False
        return True

    async def _unused_since(self) -> datetime:
        """Return the time before which a session must have been used last to be over, by the store's own clock."""
        return await self.inner.now() - timedelta(seconds=self._limits.unused_s)
