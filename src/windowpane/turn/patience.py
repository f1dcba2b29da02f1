"""Wait for a store that is away: a running turn keeps what it has, and tries again."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio

from windowpane.context.sets import ChangeMode, ContextSets, SetChange
from windowpane.errors import StoreUnavailableError
from windowpane.remarks import get_logger
from windowpane.supervise import Backoff
from windowpane.tools.context_tools import SessionSets

log = get_logger()

T = TypeVar("T")

STORE_PATIENCE_S = 120.0
"""How long a running turn waits for a store that is away, before it gives up what it could not store."""


class StorePatience:
    """How long turns wait for the store: up to `limit_s` each time, and no longer once `end()` was called."""

    def __init__(self, limit_s: float = STORE_PATIENCE_S) -> None:
        self._limit_s = limit_s
        self._ended = anyio.Event()

    def begin(self) -> None:
        """Be patient, also after `end()`."""
        self._ended = anyio.Event()

    def end(self) -> None:
        """Wait no more: the process is about to stop."""
        self._ended.set()

    async def retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that may be done more than once, again and again while the store is away.

        Raises:
            StoreUnavailableError: it was away for too long.
        """
        try:
            return await work()
        except StoreUnavailableError as error:
            if self._ended.is_set():
                raise
            log.warning("store.away", why=str(error))
        backoff = Backoff()
        deadline = anyio.current_time() + self._limit_s
        while True:
            with anyio.move_on_after(backoff.next_s()):
                await self._ended.wait()
            try:
                return await work()
            except StoreUnavailableError:
                if self._ended.is_set() or anyio.current_time() >= deadline:
                    raise


@dataclass(frozen=True, slots=True)
class PatientSets:
    """The working context of one session, which is waited for. To make the same change twice changes nothing more."""

    inner: SessionSets
    patience: StorePatience

    async def set(self, set_name: str, items: Sequence[str], mode: ChangeMode) -> SetChange:
        """Change one set, and return what became of it."""
        return await self.patience.retry(partial(self.inner.set, set_name, items, mode))

    async def sets(self) -> ContextSets:
        """Return all sets."""
        return await self.patience.retry(self.inner.sets)
