"""A store around another that keeps large texts as objects.

The other store keeps, in place of such a text, the name of its object, under a name of its own: so a text of the same
hash that is kept there as it is stays apart. Every upload is an object of its own. It is uploaded before the append and
removed when the append did not come to name it, so an append that fails leaves nothing that is shown, and no text is
named that is not there. What an end at the wrong moment leaves over, `sweep` removes.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Self

import anyio

from windowpane.bus.base import topic_of
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import (
    SessionNotFoundError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
    WindowpaneError,
)
from windowpane.remarks import get_logger
from windowpane.stores.append import Append
from windowpane.stores.around import StoreAround
from windowpane.stores.base import Appended, SessionRow, Store
from windowpane.stores.blobs.base import Objects
from windowpane.stores.packing import pack, unpack

AT_ONCE = 8
"""How many objects are sent or fetched at the same time."""

SWEEP_AFTER = timedelta(hours=1)
"""An object that no session names is left alone for so long: it may be about to be named."""

_MARK = "object."

log = get_logger()


class ObjectTextStore(StoreAround):
    """Another store, whose texts of at least `from_bytes` bytes are objects."""

    def __init__(self, store: Store, objects: Objects, from_bytes: int) -> None:
        super().__init__(store)
        self._objects = objects
        self._from_bytes = from_bytes

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.inner.__aexit__(*exc)

    async def add(self, append: Append) -> Appended:
        """Upload large texts, then store the append; see `Store.add`."""
        bodies = {
            blob_hash: body
            for blob_hash, text in append.blobs.items()
            if len(body := text.encode("utf-8", "surrogatepass")) >= self._from_bytes
        }
        if not bodies:
            return await self.inner.add(append)
        session_id = append.session_id
        uploads = {blob_hash: f"{topic_of(session_id)}/{secrets.token_hex(16)}" for blob_hash in bodies}
        small = {blob_hash: text for blob_hash, text in append.blobs.items() if blob_hash not in bodies}
        named = {_alias(session_id, blob_hash): name for blob_hash, name in uploads.items()}
        try:
            await self._put({uploads[blob_hash]: body for blob_hash, body in bodies.items()})
            appended = await self.inner.add(replace(append, blobs=small | named))
        except StoreUnavailableError:
            # It may have been stored, or will be yet: the sweep finds out.
            raise
        except WindowpaneError:
            await self._remove(uploads.values())
            raise
        # A text that the session has already keeps the object it has.
        with suppress(StoreError):
            kept = await self.inner.blobs(session_id, list(named))
            await self._remove(name for alias, name in named.items() if kept.get(alias) != name)
        return appended

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session; see `Store.blobs`."""
        aliases = {_alias(session_id, blob_hash): blob_hash for blob_hash in hashes}
        found = await self.inner.blobs(session_id, [*hashes, *aliases])
        fetched = await self._get([name for key, name in found.items() if key in aliases])
        return {aliases.get(key, key): fetched[text] if key in aliases else text for key, text in found.items()}

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session; see `Store.blob_hashes`."""
        kept = await self.inner.blob_hashes(session_id)
        return sorted({_hash_of(session_id, name) or name for name in kept})

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session and its objects; see `Store.delete`."""
        names = await self._names(session_id)
        await self.inner.delete(session_id)
        await self._objects.delete(names)

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session and its objects, unless it is in use; see `Store.delete_idle`."""
        try:
            names = await self._names(row.id)
        except SessionNotFoundError:
            return False
        removed = await self.inner.delete_idle(row, holder=holder)
        if removed:
            await self._remove(names)
        return removed

    async def erase(
        self,
        session_id: SessionId,
        seqs: Sequence[int],
        *,
        blobs: Sequence[BlobHash] = (),
        fence: int | None = None,
    ) -> None:
        """Erase events and texts, and remove the objects of these; see `Store.erase`."""
        aliases = [_alias(session_id, blob_hash) for blob_hash in blobs]
        names = list((await self.inner.blobs(session_id, aliases)).values()) if aliases else []
        await self.inner.erase(session_id, seqs, blobs=[*blobs, *aliases], fence=fence)
        await self._objects.delete(names)

    async def sweep(self, now: datetime) -> tuple[int, int]:
        """Remove objects that no session names; return how many there were, and how many were removed."""
        named: set[str] = set()
        cursor: str | None = None
        while True:
            page = await self.inner.sessions(cursor=cursor, limit=200)
            for row in page.rows:
                # One that is deleted meanwhile names nothing.
                with suppress(SessionNotFoundError):
                    named.update(await self._names(row.id))
            if (cursor := page.cursor) is None:
                break
        there, orphans = 0, list[str]()
        async for name, put_at in self._objects.list():
            there += 1
            if name not in named and put_at < now - SWEEP_AFTER:
                orphans.append(name)
        await self._objects.delete(orphans)
        return there, len(orphans)

    async def _names(self, session_id: SessionId) -> list[str]:
        """Return the names of a session's objects."""
        aliases = [name for name in await self.inner.blob_hashes(session_id) if _hash_of(session_id, name)]
        return list((await self.inner.blobs(session_id, aliases)).values()) if aliases else []

    async def _put(self, bodies: Mapping[str, bytes]) -> None:
        failed: list[StoreError] = []
        places = anyio.CapacityLimiter(AT_ONCE)

        async def put(name: str, body: bytes) -> None:
            async with places:
                try:
                    await self._objects.put(name, await anyio.to_thread.run_sync(pack, body))
                except StoreError as error:
                    failed.append(error)

        async with anyio.create_task_group() as tasks:
            for name, body in bodies.items():
                tasks.start_soon(put, name, body)
        if failed:
            await self._remove(bodies)
            raise failed[0]

    async def _get(self, names: Sequence[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        failed: list[StoreError] = []
        places = anyio.CapacityLimiter(AT_ONCE)

        async def get(name: str) -> None:
            async with places:
                try:
                    body = await self._objects.get(name)
                except StoreError as error:
                    failed.append(error)
                    return
                if body is None:
                    failed.append(StoreCorruptError(name, "an object that a session names is gone"))
                else:
                    texts[name] = (await anyio.to_thread.run_sync(unpack, body)).decode("utf-8", "surrogatepass")

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(get, name)
        if failed:
            raise failed[0]
        return texts

    async def _remove(self, names: Iterable[str]) -> None:
        """Remove objects if that is possible; what is left the sweep removes."""
        try:
            await self._objects.delete(list(names))
        except StoreError as error:
            log.warning("blobs.orphaned", code=error.code, why=str(error))


def _alias(session_id: SessionId, blob_hash: BlobHash) -> BlobHash:
    """Return under what the name of a text's object is kept. It is no other session's, and no hash."""
    return BlobHash(f"{_MARK}{topic_of(session_id)}.{blob_hash}")


def _hash_of(session_id: SessionId, name: BlobHash) -> BlobHash | None:
    mark = f"{_MARK}{topic_of(session_id)}."
    return BlobHash(name.removeprefix(mark)) if name.startswith(mark) else None
