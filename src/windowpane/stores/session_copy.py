"""Bring one session from a store to another, whole: its events with their times, its texts, its age.

A copy is never started over: what the target has is compared with what the source has, what was erased in one is erased
in the other, and what is missing is added. So it does not matter how often this is done, where it was stopped, or
whether the session grows meanwhile, and a copy that turns out to be another session is left alone.
"""

import hashlib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from windowpane.context.catalog import Catalog
from windowpane.context.events import Erased, Event, Recorded, ReferenceAdded, RequestBuilt
from windowpane.context.ids import BlobHash, SessionId, content_hash
from windowpane.context.items import bundled
from windowpane.errors import DifferentSessionError, SequenceConflictError, SessionNotFoundError
from windowpane.json_codec import JsonCodec
from windowpane.stores.append import OriginalTimes
from windowpane.stores.base import SessionRow, Store
from windowpane.stores.clock import to_us
from windowpane.stores.codec import encode_event

PAGE = 500
"""How many events are read or added at once."""

_BLOBS_AT_ONCE = 200
_CATALOG = JsonCodec(Catalog)


async def copy_session(source: Store, target: Store, session_id: SessionId) -> int:
    """Make the target's copy of a session the same as the source's; return how many events that added.

    When this returns, both were compared and found to be the same, also in their texts.

    Raises:
        SessionNotFoundError: the source has no such session.
        DifferentSessionError: the target has another session of this id, or one that went on by itself.
    """
    added = 0
    while True:
        there = await _compared(source, target, session_id)
        if there.erased or there.surplus:
            await target.erase(session_id, there.erased, blobs=there.surplus)
        position = there.last_seq
        try:
            while more := await _add(source, target, session_id, position):
                position += more
        except SequenceConflictError:
            # Another process copies it too: compare again and go on from there.
            continue
        if position == there.last_seq and not (there.erased or there.surplus):
            return added
        added += position - there.last_seq


async def copy_new_session(source: Store, target: Store, session_id: SessionId, *, touched_at: datetime) -> None:
    """Copy a session that the target does not have in one step, so that no reader ever sees half of it.

    When another process is first, its copy is left alone.

    Raises:
        SessionNotFoundError: the source has no such session.
    """
    log = await source.read(session_id)
    texts = await source.blobs(session_id, await source.blob_hashes(session_id))
    blobs = {**texts, **bundled_catalogs([entry.event for entry in log], texts)}
    moved = OriginalTimes(tuple(entry.at for entry in log), touched_at)
    try:
        await target.append(
            session_id, [entry.event for entry in log], expected_seq=0, blobs=blobs, original_times=moved
        )
    except SequenceConflictError:
        return


async def session_digest(store: Store, session_id: SessionId) -> str:
    """Return one hash over a session's log and texts. Two sessions with one digest are the same.

    Raises:
        SessionNotFoundError: no such session.
    """
    whole = hashlib.sha256()
    async for entry in _entries(store, session_id):
        whole.update(f"{entry.seq} {to_us(entry.at)} ".encode() + encode_event(entry.event) + b"\n")
    hashes = await store.blob_hashes(session_id)
    for start in range(0, len(hashes), _BLOBS_AT_ONCE):
        some = hashes[start : start + _BLOBS_AT_ONCE]
        texts = await store.blobs(session_id, some)
        for blob_hash in some:
            whole.update(f"{blob_hash} {content_hash(texts.get(blob_hash, ''))}\n".encode())
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class _Copy:
    """How far a copy goes, and what of it is gone from the source."""

    last_seq: int = 0
    erased: Sequence[int] = ()
    surplus: Sequence[BlobHash] = ()


async def _compared(source: Store, target: Store, session_id: SessionId) -> _Copy:
    await source.row(session_id)
    copy = await find_row(target, session_id)
    if copy is None:
        return _Copy()
    erased: list[int] = []
    position = 0
    while position < copy.last_seq:
        ours = await source.read(session_id, after=position, limit=PAGE)
        theirs = await target.read(session_id, after=position, limit=PAGE)
        if len(theirs) > len(ours):
            raise DifferentSessionError(session_id, f"it goes on after event {position + len(ours)}")
        for our, their in zip(ours, theirs, strict=False):
            if our == their:
                continue
            if not isinstance(our.event, Erased) or our.at != their.at:
                raise DifferentSessionError(session_id, f"its event {our.seq} is another one")
            erased.append(our.seq)
        position += len(theirs)
    surplus = set(await target.blob_hashes(session_id)) - set(await source.blob_hashes(session_id))
    return _Copy(position, erased, sorted(surplus))


async def _add(source: Store, target: Store, session_id: SessionId, last_seq: int) -> int:
    """Add the next events to a copy and return how many there were.

    Raises:
        SequenceConflictError: the copy does not stand at `last_seq` any more.
    """
    row = await source.row(session_id)
    rest = await source.read(session_id, after=last_seq, limit=PAGE)
    # Read after the events, so that every text that they need is among them.
    kept = await source.blob_hashes(session_id)
    there = set(await target.blob_hashes(session_id)) if last_seq else set[BlobHash]()
    missing = [blob_hash for blob_hash in kept if blob_hash not in there]
    if not rest:
        if missing and (await source.row(session_id)).last_seq == last_seq:
            raise DifferentSessionError(session_id, f"it lacks {len(missing)} of its texts")
        return 0
    bundles = await _bundles(source, session_id, rest, missing)
    others = [blob_hash for blob_hash in missing if blob_hash not in bundles]
    pages = -(-max(row.last_seq - last_seq, len(rest)) // PAGE)
    blobs = {**await source.blobs(session_id, others[: -(-len(others) // pages)]), **bundles}
    moved = OriginalTimes(tuple(entry.at for entry in rest), row.touched_at)
    events = [entry.event for entry in rest]
    await target.append(session_id, events, expected_seq=last_seq, blobs=blobs, original_times=moved)
    return len(rest)


async def _bundles(
    source: Store, session_id: SessionId, page: Sequence[Recorded], missing: Sequence[BlobHash]
) -> dict[BlobHash, str]:
    """Return the texts of the catalogs that these events are the first to name, marked as bundles."""
    events = [entry.event for entry in page if isinstance(entry.event, RequestBuilt)]
    new = [event for event in events if event.catalog in missing]
    if not new:
        return {}
    bodies = await source.blobs(session_id, [event.catalog for event in new if event.catalog])
    names = {entry.hash for body in bodies.values() for entry in _CATALOG.adapter.validate_json(body).entries}
    own = [entry.event async for entry in _entries(source, session_id) if isinstance(entry.event, ReferenceAdded)]
    return bundled_catalogs([*own, *new], {**bodies, **await source.blobs(session_id, sorted(names))})


def bundled_catalogs(events: Iterable[Event], texts: Mapping[BlobHash, str]) -> dict[BlobHash, str]:
    """Return those of the texts that the catalogs of these turns are made of, marked as bundles.

    Only catalogs know which texts are the agent's. References that the session made from files are not.
    """
    events = list(events)
    own = {event.reference.blob for event in events if isinstance(event, ReferenceAdded)}
    catalogs = {event.catalog for event in events if isinstance(event, RequestBuilt) and event.catalog in texts}
    bundles: list[dict[BlobHash, str]] = []
    for catalog in filter(None, catalogs):
        names = {entry.hash for entry in _CATALOG.adapter.validate_json(texts[catalog]).entries}
        shared = names - own if names & own else {catalog, *names}
        bundles.append({name: texts[name] for name in shared if name in texts})
    return bundled(*bundles)


async def find_row(store: Store, session_id: SessionId) -> SessionRow | None:
    """Return a session's row, or None when the store does not have it."""
    try:
        return await store.row(session_id)
    except SessionNotFoundError:
        return None


async def _entries(store: Store, session_id: SessionId) -> AsyncGenerator[Recorded]:
    after = 0
    while page := await store.read(session_id, after=after, limit=PAGE):
        for entry in page:
            yield entry
        after = page[-1].seq
