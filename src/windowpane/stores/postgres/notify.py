"""Wake-ups between processes: a message on the bus says "read"; where it is not heard, a look from time to time does.

Nothing depends on a wake-up. It is sent after the commit and may be lost. Watchers are therefore also compared with the
logs now and then: rarely while the bus carries messages, often while it does not.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from uuid import UUID

from windowpane.bus.base import LOOK, Bus
from windowpane.context.ids import SessionId
from windowpane.errors import StoreError
from windowpane.stores.postgres import log
from windowpane.stores.postgres.connections import ConnectionPool
from windowpane.stores.watch import Watchers
from windowpane.supervise import keep_running

HOLD_S = 0.25
"""How long a wake-up that another will soon follow waits for it, so that one message serves for both."""

_HEARD_WITHIN_S = 0.25
_LOOK_OFTEN_S = 0.05
_LOOK_RARELY_S = 2.0
_PAUSES = 8


class Notifier:
    """Tells other processes which sessions changed here, and wakes the watchers here when others tell."""

    def __init__(self, connections: ConnectionPool, me: UUID, watchers: Watchers, bus: Bus) -> None:
        self._connections = connections
        self._message = LOOK + me.bytes
        self._watchers = watchers
        self._bus = bus
        self._looking: asyncio.Task[None] | None = None
        self._held: dict[SessionId, asyncio.TimerHandle] = {}

    def tell(self, session_id: SessionId, *, more_follows: bool = False) -> None:
        """Let others know, soon, that a session changed; a little later where the next change will tell it."""
        if more_follows:
            if session_id not in self._held:
                later = asyncio.get_running_loop().call_later(HOLD_S, self.tell, session_id)
                self._held[session_id] = later
            return
        if held := self._held.pop(session_id, None):
            held.cancel()
        self._bus.publish(session_id, self._message)

    @asynccontextmanager
    async def listening(self, session_id: SessionId, *, unread: bool = False) -> AsyncGenerator[None]:
        """Hear about a session for as long as this lasts; from the beginning, if the bus is there.

        With `unread` the beginning is not waited for: what comes before it is found by looking.
        """
        begun = asyncio.Event()

        def hear(message: bytes) -> None:
            if not message:
                begun.set()
            # Watchers of what changed here were told here.
            news = message.startswith(LOOK) and message != self._message
            if news or (not message and not unread):
                self._watchers.wake(session_id)

        unsubscribe = self._bus.subscribe(session_id, hear)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if unread or self._bus.away else _HEARD_WITHIN_S):
                    await begun.wait()
            yield
        finally:
            unsubscribe()

    def look(self) -> None:
        """Compare watchers with the logs, for as long as a session is watched."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(keep_running("postgres.look", self._look))

    async def close(self) -> None:
        """Say what is left to say, and look no more."""
        for session_id in tuple(self._held):
            self.tell(session_id)
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_OFTEN_S)
            for _ in range(_PAUSES):
                if not self._bus.away:
                    await asyncio.sleep(_LOOK_RARELY_S / _PAUSES)
            if not (seen := self._watchers.seen):
                return
            with suppress(StoreError):
                stand = await self._connections.run(partial(log.last_seqs, session_ids=seen))
                for session_id, seq in seen.items():
                    if stand.get(session_id) != seq:
                        self._watchers.wake(session_id)
