"""Wake-ups between processes: NOTIFY says "look", and where it cannot be heard, a look from time to time does.

Nothing depends on a wake-up. It is sent after the commit, for all sessions that changed meanwhile at once, and it may
be lost. Watchers are therefore also compared with the logs now and then: rarely while wake-ups are heard, often while
they are not, as through a pooler that hands each transaction to another connection.
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from uuid import UUID

from windowpane.context.ids import SessionId
from windowpane.errors import StoreError
from windowpane.stores.postgres import log
from windowpane.stores.postgres.connections import (
    ConnectionPool,
    DriverConnection,
    ask,
    close_connection,
    translated_errors,
)
from windowpane.stores.watch import Watchers
from windowpane.supervise import keep_running

_CHANNEL = "windowpane"
_TELL_EVERY_S = 0.005
_LOOK_OFTEN_S = 0.05
_LOOK_RARELY_S = 2.0
_LONGEST_MESSAGE = 7999


class Notifier:
    """Tells other processes which sessions changed here, and wakes the watchers here when others tell."""

    def __init__(self, connections: ConnectionPool, me: UUID, watchers: Watchers) -> None:
        self._connections = connections
        self._me = str(me)
        self._watchers = watchers
        self._changed: dict[SessionId, None] = {}
        self._telling: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._heard = asyncio.Event()

    def tell(self, session_id: SessionId) -> None:
        """Let others know, soon, that a session changed. Watchers here are woken at once."""
        self._watchers.wake(session_id)
        self._changed[session_id] = None
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(keep_running("postgres.tell", self._tell))

    def listen(self) -> None:
        """Hear others, for as long as a session is watched."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._attend())

    async def close(self) -> None:
        """Tell what is left to tell, and stop listening."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        if self._telling is not None:
            await asyncio.wait([self._telling])

    async def _tell(self) -> None:
        while self._changed:
            changed, self._changed = list(self._changed), {}
            for message in self._messages(changed):
                # A process that misses it compares its watchers with the logs anyway.
                with suppress(StoreError):
                    await self._connections.run(partial(log.wake, message=message))
            await asyncio.sleep(_TELL_EVERY_S)

    def _messages(self, changed: Sequence[SessionId]) -> list[str]:
        """Return messages that hold all of it. A session whose name is too long for one is left to those who look."""
        message = json.dumps({"from": self._me, "sessions": changed})
        if len(message) <= _LONGEST_MESSAGE:
            return [message]
        if len(changed) == 1:
            return []
        half = len(changed) // 2
        return self._messages(changed[:half]) + self._messages(changed[half:])

    async def _attend(self) -> None:
        await asyncio.gather(keep_running("postgres.listen", self._listen), keep_running("postgres.look", self._look))

    async def _listen(self) -> None:
        """Keep a connection that hears what others tell."""
        while self._watchers.seen:
            with suppress(StoreError), translated_errors(self._connections.url):
                connection = await self._connections.connect(directly=True)
                try:
                    await self._hear_from(connection)
                finally:
                    await close_connection(connection)
            await asyncio.sleep(_LOOK_OFTEN_S)

    async def _hear_from(self, connection: DriverConnection) -> None:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await ask(connection, connection.add_listener(_CHANNEL, self._hear))
        for session_id in self._watchers.seen:
            self._watchers.wake(session_id)
        while self._watchers.seen and not lost.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_RARELY_S):
                    await lost.wait()
            async with asyncio.timeout(self._connections.url.timeout_s):
                await ask(connection, connection.execute("SELECT"))

    async def _look(self) -> None:
        """Compare watchers with the logs: rarely while it is shown that what is told is heard, else often."""
        while seen := self._watchers.seen:
            self._heard.clear()
            with suppress(StoreError):
                await self._connections.run(partial(log.wake, message=json.dumps({"from": self._me, "sessions": []})))
                stand = await self._connections.run(partial(log.last_seqs, session_ids=seen))
                for session_id, seq in seen.items():
                    if stand.get(session_id) != seq:
                        self._watchers.wake(session_id)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_OFTEN_S):
                    await self._heard.wait()
                await asyncio.sleep(_LOOK_RARELY_S)

    def _hear(self, _connection: object, _pid: int, _channel: str, message: str) -> None:
        told = json.loads(message)
        if told["from"] == self._me:
            # Watchers of what changed here were woken here. It only shows that wake-ups come through.
            self._heard.set()
            return
        for session_id in told["sessions"]:
            self._watchers.wake(SessionId(session_id))
