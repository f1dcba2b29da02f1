"""Erase the conversation that a session's log says was cleared.

The log is told first, so that every worker stops using the texts, and then they are erased. A worker that is killed
between the two leaves them. So the worker that reads such a log next looks whether they are gone, and erases them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from windowpane.calls.body import names_in
from windowpane.context.events import (
    CallSent,
    Erased,
    Event,
    FetchedAdded,
    FetchedCleared,
    HistoryCleared,
    ItemAdded,
    ItemReadmitted,
    ItemRemoved,
    Recorded,
    RequestBuilt,
    ServerArrived,
    SessionContext,
    SessionCreated,
    SessionUpdated,
)
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import LeaseLostError, SessionBusyError, StoreError
from windowpane.request.catalog import read_catalog
from windowpane.request.record import texts_of
from windowpane.sessions.erasing import SessionLeases
from windowpane.stores.base import Store

log = structlog.get_logger()


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
            if not left_over(await self.store.read(session_id)):
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
        gone = left_over(events)
        seqs = [entry.seq for entry in gone]
        # A text may have been sent again since: what later requests and calls name is theirs too.
        kept = set(await _texts(self.store, session_id, [entry for entry in events if entry.seq not in set(seqs)]))
        texts = [name for name in await _texts(self.store, session_id, gone) if name not in kept]
        await self.store.erase(session_id, seqs, blobs=texts, fence=fence)


def left_over(events: Sequence[Recorded]) -> list[Recorded]:
    """Return the events of a log that should have been erased, oldest first."""
    cleared = max((entry.seq for entry in events if isinstance(entry.event, HistoryCleared)), default=0)
    return [entry for entry in events if entry.seq < cleared and _is_conversation(entry.event)]


async def _texts(store: Store, session_id: SessionId, events: Sequence[Recorded]) -> list[BlobHash]:
    """Return the names of everything that was kept of the requests and the calls among these events, each once."""
    built = [entry.event for entry in events if isinstance(entry.event, RequestBuilt)]
    sent = [entry.event for entry in events if isinstance(entry.event, CallSent)]
    records = [event.request for event in built]
    catalogs = [event.catalog for event in built if event.catalog]
    bodies = [call.body for call in sent]
    found = await store.blobs(session_id, list(dict.fromkeys([*records, *catalogs, *bodies])))
    names = [*records, *catalogs, *bodies, *(call.head for call in sent)]
    names += [name for record in records if record in found for name in texts_of(found[record])]
    names += [entry.hash for each in catalogs if each in found for entry in read_catalog(found[each]).entries]
    names += [name for body in bodies if body in found for name in names_in(found[body])]
    return list(dict.fromkeys(names))


def _is_conversation(event: Event) -> bool:
    return not isinstance(
        event,
        SessionCreated
        | SessionUpdated
        | ItemAdded
        | ItemRemoved
        | ItemReadmitted
        | ServerArrived
        | SessionContext
        | FetchedAdded
        | FetchedCleared
        | HistoryCleared
        | Erased,
    )
