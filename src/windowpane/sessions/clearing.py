"""Erase what a session's log says is gone: a cleared conversation, a removed message, cleared pages.

The log is told first, so that every worker stops using the texts, and then they are erased. A worker that is killed
between the two leaves them. So the worker that reads such a log next looks whether they are gone, and erases them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.calls.skeleton import names_in
from windowpane.context.events import (
    AgentChanged,
    CallEnded,
    CallSent,
    Erased,
    Event,
    FetchedAdded,
    FetchedCleared,
    HistoryCleared,
    ItemAdded,
    ItemReadmitted,
    ItemRemoved,
    MessageAdded,
    MessageRemoved,
    Recorded,
    ReferenceAdded,
    ReferenceRemoved,
    RequestBuilt,
    ServerArrived,
    SessionContext,
    SessionCreated,
    SessionUpdated,
    SummaryMade,
)
from windowpane.context.fold import fold
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import LeaseLostError, SessionBusyError, StoreError
from windowpane.remarks import get_logger
from windowpane.request.catalog import read_catalog
from windowpane.request.record import texts_of
from windowpane.sessions.attachments import file_blobs
from windowpane.sessions.erasing import SessionLeases
from windowpane.stores.base import Store

log = get_logger()


@dataclass(frozen=True, slots=True)
class Clearing:
    """Erases what logs say is gone."""

    store: Store
    leases: SessionLeases

    async def complete(self, session_id: SessionId) -> bool:
        """Erase what a worker that was killed has left over; tell whether nothing is left now.

        A session that another worker has, or a store that is away, is left for the next time.
        """
        try:
            if not left_over(session_id, await self.store.read(session_id)):
                return True
            lease = await self.leases.take(session_id)
            try:
                await self.erase(session_id, fence=lease.fence)
            finally:
                await self.leases.release(session_id, lease)
        except (SessionBusyError, LeaseLostError, StoreError) as error:
            log.info("clearing.put_off", session=session_id, code=error.code)
            return False
        log.info("clearing.completed", session=session_id)
        return True

    async def erase(self, session_id: SessionId, *, fence: int) -> None:
        """Erase what the log says is gone, under the lease with the number `fence`.

        Raises:
            SessionNotFoundError: no such session.
            LeaseLostError: another worker has taken the session over. Nothing was erased.
        """
        events = await self.store.read(session_id)
        texts: set[BlobHash] = set()
        seqs: set[int] = set()
        for told, gone in left_over(session_id, events):
            seqs |= {entry.seq for entry in gone}
            # A text may have been sent again since: what later requests and calls name is theirs too.
            later = set(await _texts(self.store, session_id, [entry for entry in events if entry.seq > told.seq]))
            texts |= set(await self._made_of(session_id, told.event, gone)) - later
        # The references that the session made from files stay, as its other items do.
        texts -= {own.blob for own in fold(session_id, events).own_references}
        await self.store.erase(session_id, sorted(seqs), blobs=sorted(texts), fence=fence)

    async def _made_of(self, session_id: SessionId, told: Event, gone: Sequence[Recorded]) -> Sequence[BlobHash]:
        """Return the names of what was made of the texts that are gone. Only a cleared history does not name it."""
        if isinstance(told, MessageRemoved | FetchedCleared):
            return told.erased
        return await _texts(self.store, session_id, gone)


def left_over(session_id: SessionId, events: Sequence[Recorded]) -> list[tuple[Recorded, list[Recorded]]]:
    """Return each event that tells of an erasure and those that should have been erased with it, oldest first."""
    cleared = max((entry.seq for entry in events if isinstance(entry.event, HistoryCleared)), default=0)
    held = {each.seq for each in fold(session_id, events).fetched}

    def is_gone(told: Recorded, entry: Recorded) -> bool:
        match told.event, entry.event:
            case HistoryCleared(), event:
                return told.seq == cleared and _is_conversation(event)
            case MessageRemoved(seq=seq), MessageAdded():
                return entry.seq == seq
            case MessageRemoved(seq=seq, drops_summary=True), SummaryMade(summary=summary):
                return summary.through_seq >= seq
            case FetchedCleared(kind=kind), FetchedAdded(items=items):
                # What came in together with it, and stays, may still stand where it came in.
                return entry.seq not in held and any(kind in (None, item.kind) for item in items)
            case _:
                return False

    tellers = [entry for entry in events if isinstance(entry.event, HistoryCleared | MessageRemoved | FetchedCleared)]
    found = ((told, [entry for entry in events if entry.seq < told.seq and is_gone(told, entry)]) for told in tellers)
    return [(told, gone) for told, gone in found if gone]


async def _texts(store: Store, session_id: SessionId, events: Sequence[Recorded]) -> list[BlobHash]:
    """Return the names of everything that was kept of the requests, calls and files of these events, each once."""
    built = [entry.event for entry in events if isinstance(entry.event, RequestBuilt)]
    sent = [entry.event for entry in events if isinstance(entry.event, CallSent)]
    answers = [entry.event.answer for entry in events if isinstance(entry.event, CallEnded) and entry.event.answer]
    records = [event.request for event in built]
    catalogs = [event.catalog for event in built if event.catalog]
    bodies = [call.body for call in sent]
    found = await store.blobs(session_id, list(dict.fromkeys([*records, *catalogs, *bodies])))
    names = [*records, *catalogs, *bodies, *answers, *(call.head for call in sent)]
    names += [name for record in records if record in found for name in texts_of(found[record])]
    names += [entry.hash for each in catalogs if each in found for entry in read_catalog(found[each]).entries]
    names += [name for body in bodies if body in found for name in names_in(found[body])]
    names += file_blobs(entry.event for entry in events)
    return list(dict.fromkeys(names))


def _is_conversation(event: Event) -> bool:
    return not isinstance(
        event,
        SessionCreated
        | SessionUpdated
        | AgentChanged
        | ItemAdded
        | ItemRemoved
        | ItemReadmitted
        | ReferenceAdded
        | ReferenceRemoved
        | ServerArrived
        | SessionContext
        | FetchedAdded
        | FetchedCleared
        | HistoryCleared
        | Erased,
    )
