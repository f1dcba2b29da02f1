"""Take a session for one worker: its turn runs under a lease, which the worker renews while it works."""

import anyio
import structlog

from windowpane.context.ids import SessionId, new_holder_id
from windowpane.errors import SessionBusyError, SessionNotFoundError, StoreError
from windowpane.stores.base import Store

log = structlog.get_logger()

POLL_S = 0.05
"""How often a session that is busy is tried again."""


class Leases:
    """The leases of a store's sessions. A lease that is not renewed for `lease_s` is free again."""

    def __init__(self, store: Store, lease_s: float) -> None:
        self._store = store
        self.lease_s = lease_s

    async def take(self, session_id: SessionId, *, wait_s: float = 0, ttl_s: float | None = None) -> str:
        """Take the session for this worker and return the holder's name.

        Raises:
            SessionNotFoundError: no such session.
            SessionBusyError: another worker has it and did not give it back within `wait_s`.
        """
        holder = new_holder_id()
        deadline = anyio.current_time() + wait_s
        while not await self._store.acquire(session_id, holder, ttl_s or self.lease_s):
            if anyio.current_time() >= deadline:
                raise SessionBusyError(session_id)
            await anyio.sleep(POLL_S)
        return holder

    async def take_now(self, session_id: SessionId) -> str | None:
        """Take the session if no worker has it, and return the holder's name, else None."""
        holder = new_holder_id()
        return holder if await self._store.acquire(session_id, holder, self.lease_s) else None

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the session back, also while being cancelled. A lease that the store cannot take back runs out."""
        with anyio.CancelScope(shield=True):
            try:
                await self._store.release(session_id, holder)
            except StoreError as error:
                log.info("lease.runs_out", session=session_id, code=error.code)

    async def keep(self, session_id: SessionId, holder: str) -> None:
        """Renew a lease until it is lost, then return. While the store is away it counts as held."""
        held = True
        while held:
            await anyio.sleep(self.lease_s / 3)
            try:
                held = await self._store.acquire(session_id, holder, self.lease_s)
            except SessionNotFoundError:
                held = False
            except StoreError as error:
                log.info("lease.not_renewed", session=session_id, code=error.code)
