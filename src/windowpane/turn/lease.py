"""Take a session for one worker: its turn runs under a lease, which the worker renews while it works.

A worker that sleeps longer than its lease does not know that another has taken the session. So a lease has a number,
its fence, which every append of the turn carries, and the store refuses an older one. A turn takes its lease with its
first append and gives it back with its last; all leases of a worker are renewed together.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from windowpane.context.ids import SessionId, new_holder_id
from windowpane.errors import SessionBusyError, StoreError
from windowpane.remarks import get_logger
from windowpane.stores.append import TakeLease
from windowpane.stores.base import Lease, Store

log = get_logger()

POLL_S = 0.05
"""How often a session that is busy is tried again."""


class Leases:
    """The leases of a store's sessions. A lease that is not renewed for `lease_s` is free again."""

    def __init__(self, store: Store, lease_s: float) -> None:
        self._store = store
        self.lease_s = lease_s
        self._kept: dict[SessionId, tuple[str, Callable[[], None]]] = {}

    def new(self) -> TakeLease:
        """Return what asks for a lease together with an append."""
        return TakeLease(new_holder_id(), self.lease_s)

    async def take(self, session_id: SessionId, *, wait_s: float = 0, ttl_s: float | None = None) -> Lease:
        """Take the session for this worker.

        Raises:
            SessionNotFoundError: no such session.
            SessionBusyError: another worker has it and did not give it back within `wait_s`.
        """
        deadline = anyio.current_time() + wait_s
        while (lease := await self.take_now(session_id, ttl_s)) is None:
            if anyio.current_time() >= deadline:
                raise SessionBusyError(session_id)
            await anyio.sleep(POLL_S)
        return lease

    async def take_now(self, session_id: SessionId, ttl_s: float | None = None) -> Lease | None:
        """Take the session if no worker has it, else return None."""
        holder = new_holder_id()
        fence = await self._store.acquire(session_id, holder, ttl_s or self.lease_s)
        return None if fence is None else Lease(holder, fence)

    async def release(self, session_id: SessionId, lease: Lease) -> None:
        """Give the session back, also while being cancelled. A lease that the store cannot take back runs out."""
        with anyio.CancelScope(shield=True):
            try:
                await self._store.release(session_id, lease.holder)
            except StoreError as error:
                log.info("lease.runs_out", session=session_id, code=error.code)

    @contextmanager
    def kept(self, session_id: SessionId, lease: Lease, lost: Callable[[], None]) -> Generator[None]:
        """Have a lease renewed while a block runs, and call `lost` if it is. While the store is away it is held."""
        self._kept[session_id] = mine = (lease.holder, lost)
        try:
            yield
        finally:
            if self._kept.get(session_id) is mine:
                del self._kept[session_id]

    async def renew_kept(self) -> None:
        """Renew all leases that are kept, again and again."""
        while True:
            await anyio.sleep(self.lease_s / 3)
            if not (kept := dict(self._kept)):
                continue
            try:
                renewed = await self._store.renew({name: holder for name, (holder, _) in kept.items()}, self.lease_s)
            except StoreError as error:
                log.info("leases.not_renewed", leases=len(kept), code=error.code)
                continue
            for session_id, mine in kept.items():
                if session_id not in renewed and self._kept.get(session_id) is mine:
                    mine[1]()
