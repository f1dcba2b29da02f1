"""A store around another that keeps nothing but sealed texts.

Events, texts and snapshots are sealed on their way in and opened on their way out, so every store can be encrypted and
none knows about it. What stays readable is what the other store needs: ids, owners, agents, times, numbers and sizes.

A session's data key is stored among its texts, wrapped by the master key, with every append: an append whose key is
there already adds nothing, and one whose key is not, because the session was deleted and came back meanwhile, brings
it along. So no event is ever stored that cannot be read.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Self, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from windowpane.bus.sealed import SealedBus
from windowpane.context.events import Erased, Recorded, Sealed
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import AgentText, bundle_name
from windowpane.errors import (
    SequenceConflictError,
    SessionNotFoundError,
    StoreCorruptError,
    StoreNotEncryptedError,
    WrongEncryptionKeyError,
)
from windowpane.remarks import get_logger
from windowpane.stores.append import Append, check_name
from windowpane.stores.base import Appended, Cost, SessionPage, SessionRow, Snapshot, Store, Tail
from windowpane.stores.codec import decode_event
from windowpane.stores.encrypted.keys import DamagedSealError, DataKey, KeyRing
from windowpane.stores.encrypted.sealing import (
    AGENT,
    KEY,
    PlainText,
    SealedTexts,
    key_name,
    plain_text,
    seal_event,
    seal_snapshot,
    seal_vector,
    text_hash,
    text_names,
    unseal_event,
    unseal_snapshot,
    unseal_text,
    unseal_vector,
)

KNOWN_SESSIONS = 10_000
"""Of how many sessions the data keys are remembered."""

_IN_A_THREAD = 2**19
"""From so many bytes on, sealing would hold up others."""

_PARTIAL = 0
"""Stands for the place of a snapshot where the words of an incomplete reply are sealed; no snapshot is of place 0."""

T = TypeVar("T")

log = get_logger()


@dataclass(slots=True)
class _SessionKeys:
    """The data keys of a session that are known, by id. `writing` is that of the latest event."""

    known: dict[str, DataKey] = field(default_factory=dict[str, DataKey])
    writing: DataKey | None = None


class EncryptedStore(Store):
    """Another store, whose texts only those read who have the key.

    Every method of a store is written here, also where it only passes on: one that were inherited could pass on a text
    that is not encrypted.
    """

    encrypted = True

    def __init__(self, store: Store, keys: KeyRing) -> None:
        self.inner = store
        self.bus = SealedBus(store.bus, keys) if store.bus is not None else None
        self._keys = keys
        self._sessions: OrderedDict[SessionId, _SessionKeys] = OrderedDict()
        self._texts = SealedTexts()
        self._at_the_end: WeakValueDictionary[SessionId, anyio.Lock] = WeakValueDictionary()

    async def __aenter__(self) -> Self:
        """Open the other store.

        Raises:
            StoreNotEncryptedError: its sessions are not encrypted.
            WrongEncryptionKeyError: they are encrypted with another key.
        """
        await self.inner.__aenter__()
        try:
            await self._check_latest()
        except BaseException:
            await self.inner.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.inner.__aexit__(*exc)

    async def add(self, append: Append) -> Appended:
        """Store an append; see `Store.add`."""
        if append.expected_seq is not None:
            return await self._add(append, append.expected_seq)
        # An event is bound to its number, so the number must be known before. In turn, so that their order stays.
        async with self._at_the_end.setdefault(append.session_id, anyio.Lock()):
            seq = (await self.inner.row(append.session_id)).last_seq
            while True:
                try:
                    return await self._add(append, seq)
                except SequenceConflictError as conflict:
                    seq = conflict.actual_seq

    async def _add(self, append: Append, last_seq: int) -> Appended:
        session_id = append.session_id
        known = self._sessions.get(session_id)
        key = known.writing if known is not None and append.begins is None else None
        key = key or self._keys.writing.new_data_key(session_id)
        append_key = None if append.key is None else self._append_key(session_id, append.key)
        bodies = await _worked(
            lambda: tuple(
                seal_event(key, session_id, seq, body) for seq, body in enumerate(append.bodies, last_seq + 1)
            ),
            sum(map(len, append.bodies)),
        )
        blobs = {**await self._sealed_texts(key, session_id, append.blobs), key_name(key.id): key.wrapped}
        sealed = [await self._sealed_texts(key, session_id, texts) for texts in append.bundles.values()]
        bundles = {bundle_name(texts): texts for texts in sealed}
        appended = await self.inner.add(
            replace(
                append, bodies=bodies, events=(), expected_seq=last_seq, key=append_key, blobs=blobs, bundles=bundles
            )
        )
        if not appended.repeated:
            self._remember(session_id, key)
        return appended

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Return the events after a sequence number, in order; see `Store.read`."""
        return await self._opened(session_id, await self.inner.read(session_id, after=after, limit=limit))

    async def tails(self, after: Mapping[SessionId, int | None]) -> dict[SessionId, Tail]:
        """Return the ends of several logs; see `Store.tails`."""
        found: dict[SessionId, Tail] = {}
        for session_id, tail in (await self.inner.tails(after)).items():
            with suppress(SessionNotFoundError):
                snapshot = tail.snapshot and await self._opened_snapshot(session_id, tail.snapshot)
                if snapshot is None and tail.snapshot is not None:
                    found[session_id] = Tail(None, await self.read(session_id))
                else:
                    found[session_id] = Tail(snapshot, await self._opened(session_id, tail.events))
        return found

    async def row(self, session_id: SessionId) -> SessionRow:
        """Return what is known about a session without reading its log; see `Store.row`."""
        return await self.inner.row(session_id)

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """Return sessions, last touched first; see `Store.sessions`."""
        return await self.inner.sessions(owner, agent=agent, limit=limit, cursor=cursor)

    async def now(self) -> datetime:
        """Return the time by the clock that this store tells time by; see `Store.now`."""
        return await self.inner.now()

    async def check_writable(self) -> None:
        """Make sure that something can be written; see `Store.check_writable`."""
        await self.inner.check_writable()

    async def touch(self, session_id: SessionId) -> None:
        """Note that the session was used now; see `Store.touch`."""
        await self.inner.touch(session_id)

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session and its key, so that nothing of it is left that could be read; see `Store.delete`."""
        self._sessions.pop(session_id, None)
        await self.inner.delete(session_id)

    async def delete_idle(self, row: SessionRow, *, holder: str | None = None) -> bool:
        """Remove a session unless it is in use; see `Store.delete_idle`."""
        if not await self.inner.delete_idle(row, holder=holder):
            return False
        self._sessions.pop(row.id, None)
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
        await self.inner.erase(session_id, seqs, blobs=list(self._names(session_id, blobs)), fence=fence)

    async def blobs(self, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
        """Return those of the texts that are stored with the session; see `Store.blobs`."""
        names = self._names(session_id, hashes)
        found = await self.inner.blobs(session_id, list(names))
        if not found:
            return {}
        own = {sealed.partition(".")[0] for name, sealed in found.items() if not name.startswith(AGENT)}
        keys = await self._data_keys(session_id, own)

        def opened() -> dict[BlobHash, str]:
            return {names[name]: self._opened_text(keys, session_id, name, sealed) for name, sealed in found.items()}

        return await _worked(opened, sum(map(len, found.values())))

    async def blob_hashes(self, session_id: SessionId) -> list[BlobHash]:
        """Return the hashes of all texts that are stored with the session; see `Store.blob_hashes`."""
        names = await self.inner.blob_hashes(session_id)
        hashes: set[BlobHash] = set()
        for name in names:
            if name.startswith(KEY):
                continue
            if (blob_hash := text_hash(self._keys, session_id, name)) is None:
                raise WrongEncryptionKeyError(None, self._keys.ids)
            hashes.add(blob_hash)
        return sorted(hashes)

    async def put_snapshot(self, session_id: SessionId, snapshot: Snapshot) -> None:
        """Keep a folded state, unless a later one is kept already; see `Store.put_snapshot`."""
        known = self._sessions.get(session_id)
        if known is None or known.writing is None:
            # A snapshot may be lost at any time, and one without a stored key could not be read.
            return
        key = known.writing
        body = await _worked(lambda: seal_snapshot(key, session_id, snapshot.seq, snapshot.body), len(snapshot.body))
        await self.inner.put_snapshot(session_id, Snapshot(snapshot.seq, body))

    async def snapshot(self, session_id: SessionId) -> Snapshot | None:
        """Return the latest folded state, or None; see `Store.snapshot`. A damaged one is none: the log has all."""
        found = await self.inner.snapshot(session_id)
        return found and await self._opened_snapshot(session_id, found)

    async def _opened_snapshot(self, session_id: SessionId, found: Snapshot) -> Snapshot | None:
        key_id = found.body.partition(b".")[0].decode("ascii", "replace")
        try:
            keys = await self._data_keys(session_id, {key_id})
            body = await _worked(
                lambda: unseal_snapshot(keys[key_id], session_id, found.seq, found.body), len(found.body)
            )
        except (DamagedSealError, StoreCorruptError, SessionNotFoundError):
            log.warning("snapshot.ignored", session=session_id, why="it is damaged")
            return None
        return Snapshot(found.seq, body)

    async def put_partial(self, session_id: SessionId, body: bytes, *, fence: int) -> None:
        """Keep the words of a reply that is not complete; see `Store.put_partial`."""
        known = self._sessions.get(session_id)
        if known is None or known.writing is None:
            return
        key = known.writing
        sealed = await _worked(lambda: seal_snapshot(key, session_id, _PARTIAL, body), len(body))
        await self.inner.put_partial(session_id, sealed, fence=fence)

    async def partial(self, session_id: SessionId) -> bytes | None:
        """Return the words of a reply that is not complete, or None; see `Store.partial`."""
        sealed = await self.inner.partial(session_id)
        if sealed is None:
            return None
        key_id = sealed.partition(b".")[0].decode("ascii", "replace")
        try:
            keys = await self._data_keys(session_id, {key_id})
            return await _worked(lambda: unseal_snapshot(keys[key_id], session_id, _PARTIAL, sealed), len(sealed))
        except (DamagedSealError, StoreCorruptError, SessionNotFoundError):
            log.warning("partial.ignored", session=session_id, why="it is damaged")
            return None

    async def put_vectors(self, session_id: SessionId, vectors: Mapping[int, bytes], *, as_of: int) -> None:
        """Keep the vectors of messages; see `Store.put_vectors`."""
        known = self._sessions.get(session_id)
        if known is None or known.writing is None:
            return
        key = known.writing
        sealed = await _worked(
            lambda: {seq: seal_vector(key, session_id, seq, body) for seq, body in vectors.items()},
            sum(map(len, vectors.values())),
        )
        await self.inner.put_vectors(session_id, sealed, as_of=as_of)

    async def vectors(self, session_id: SessionId, seqs: Sequence[int] | None = None) -> dict[int, bytes]:
        """Return the vectors of messages that are kept; see `Store.vectors`. Damaged ones are made again."""
        sealed = await self.inner.vectors(session_id, seqs)
        key_ids = {body.partition(b".")[0].decode("ascii", "replace") for body in sealed.values()}
        try:
            keys = await self._data_keys(session_id, key_ids)
            return await _worked(
                lambda: {seq: unseal_vector(keys, session_id, seq, body) for seq, body in sealed.items()},
                sum(map(len, sealed.values())),
            )
        except (DamagedSealError, StoreCorruptError, SessionNotFoundError):
            log.warning("vectors.ignored", session=session_id, why="they are damaged")
            return {}

    async def acquire(self, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
        """Take or renew the session's one lease; see `Store.acquire`."""
        return await self.inner.acquire(session_id, holder, ttl_s)

    async def renew(self, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
        """Renew leases; see `Store.renew`."""
        return await self.inner.renew(holders, ttl_s)

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the lease back; see `Store.release`."""
        await self.inner.release(session_id, holder)

    async def add_cost(self, owner: str, day: date, cost: Cost) -> None:
        """Add to what an owner's model calls cost on a day; see `Store.add_cost`."""
        await self.inner.add_cost(owner, day, cost)

    async def costs(self, owner: str, *, since: date) -> dict[date, Cost]:
        """Return what an owner's model calls cost, by day; see `Store.costs`."""
        return await self.inner.costs(owner, since=since)

    async def subscribe(self, session_id: SessionId, *, after: int, unread: bool = False) -> AsyncGenerator[Recorded]:
        """Yield every event after a sequence number, old ones first, then new ones; see `Store.subscribe`."""
        async for recorded in self.inner.subscribe(session_id, after=after, unread=unread):
            try:
                (opened,) = await self._opened(session_id, [recorded])
            except SessionNotFoundError:
                return
            yield opened

    async def _check_latest(self) -> None:
        """Read one event of the session that was used last, so that a wrong key is noticed before anything is done."""
        for row in (await self.inner.sessions(limit=1)).rows:
            # Deleted at this moment: another look is not worth it.
            with suppress(SessionNotFoundError):
                await self.read(row.id, limit=1)

    def _append_key(self, session_id: SessionId, key: str) -> str:
        return self._keys.writing.name("append", session_id, b"k" + key.encode())

    def _names(self, session_id: SessionId, hashes: Iterable[BlobHash]) -> dict[BlobHash, BlobHash]:
        """Return every name under which these texts may be stored, with the hash that it stands for."""
        names: dict[BlobHash, BlobHash] = {}
        check_name(session_id)
        for blob_hash in hashes:
            check_name(blob_hash)
            names |= dict.fromkeys(text_names(self._keys, session_id, blob_hash), blob_hash)
        return names

    async def _sealed_texts(
        self, key: DataKey, session_id: SessionId, texts: Mapping[BlobHash, str]
    ) -> dict[BlobHash, str]:
        sealed: dict[BlobHash, str] = {}
        new: list[tuple[BlobHash, PlainText]] = []
        for blob_hash, text in texts.items():
            key_id = self._keys.writing.id if isinstance(text, AgentText) else key.id
            if (kept := self._texts.get(key_id, blob_hash)) is not None:
                sealed[kept[0]] = kept[1]
            else:
                new.append((blob_hash, plain_text(self._keys, key, session_id, blob_hash, text)))
        bodies = await _worked(lambda: [each.sealed() for _, each in new], sum(len(each.text) for _, each in new))
        for (blob_hash, each), body in zip(new, bodies, strict=True):
            sealed[each.name] = body
            self._texts.put(each.key_id, blob_hash, each.name, body)
        return sealed

    def _opened_text(self, keys: Mapping[str, DataKey], session_id: SessionId, name: BlobHash, sealed: str) -> str:
        shared = name.startswith(AGENT)
        cipher = self._keys.of(sealed).agent_cipher if shared else keys[sealed.partition(".")[0]].cipher
        try:
            return unseal_text(cipher, session_id, name, sealed)
        except DamagedSealError:
            raise StoreCorruptError(
                f"a text of session {session_id!r}", "it was changed since it was encrypted"
            ) from None

    async def _opened(self, session_id: SessionId, log: Sequence[Recorded]) -> list[Recorded]:
        """Return events as they were given."""
        sealed = [_sealed(recorded) for recorded in log]
        keys = await self._data_keys(session_id, {each.key for each in sealed if each is not None})

        def opened() -> list[Recorded]:
            return [
                recorded if each is None else _opened_event(keys[each.key], session_id, recorded, each)
                for recorded, each in zip(log, sealed, strict=True)
            ]

        events = await _worked(opened, sum(len(each.box) for each in sealed if each is not None))
        latest = next((each.key for each in reversed(sealed) if each is not None), None)
        if latest is not None:
            self._remember(session_id, keys[latest])
        return events

    async def _data_keys(self, session_id: SessionId, key_ids: set[str]) -> Mapping[str, DataKey]:
        """Return the data keys of a session, those among them that this process does not know from the store.

        Raises:
            SessionNotFoundError: the session is gone, and its keys with it.
            StoreCorruptError: a key is missing or damaged.
            WrongEncryptionKeyError: a key is wrapped by a master key that was not given.
        """
        known = self._sessions[session_id].known if session_id in self._sessions else {}
        missing = [key_id for key_id in key_ids if key_id not in known]
        if not missing:
            return known
        wrapped = await self.inner.blobs(session_id, [key_name(key_id) for key_id in missing])
        found = dict(known)
        for key_id in missing:
            if key_name(key_id) not in wrapped:
                await self.inner.row(session_id)
                raise StoreCorruptError(f"session {session_id!r}", "its encryption key is missing")
            stored = wrapped[key_name(key_id)]
            try:
                found[key_id] = self._keys.of(stored).unwrap(session_id, key_id, stored)
            except DamagedSealError:
                raise StoreCorruptError(f"session {session_id!r}", "its encryption key was changed") from None
        return found

    def _remember(self, session_id: SessionId, key: DataKey) -> None:
        """Note that this is the key of the session's latest event."""
        keys = self._sessions.setdefault(session_id, _SessionKeys())
        keys.known[key.id] = keys.writing = key
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > KNOWN_SESSIONS:
            self._sessions.popitem(last=False)


def _sealed(recorded: Recorded) -> Sealed | None:
    """Return the sealed form of an event; None for one that was erased.

    Raises:
        StoreNotEncryptedError: it is readable as it is.
    """
    event: object = recorded.event
    if isinstance(event, Sealed):
        return event
    if isinstance(event, Erased):
        return None
    raise StoreNotEncryptedError


def _opened_event(key: DataKey, session_id: SessionId, recorded: Recorded, sealed: Sealed) -> Recorded:
    try:
        body = unseal_event(key, session_id, recorded.seq, sealed)
    except DamagedSealError:
        where = f"event {recorded.seq} of session {session_id!r}"
        raise StoreCorruptError(where, "it was changed since it was encrypted") from None
    return replace(recorded, event=decode_event(body))


async def _worked(work: Callable[[], T], size: int) -> T:
    """Return what the work gives, done in a thread when it is much."""
    return work() if size < _IN_A_THREAD else await anyio.to_thread.run_sync(work)
