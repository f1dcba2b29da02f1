"""A bus in the database: each session is a channel of NOTIFY, so a worker hears only what it watches.

One connection listens and tells. It goes straight to the server (`listen` in the URL), because a pooler that hands each
transaction to another connection hears nothing for its clients; that this is so is noticed and said.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any
from uuid import uuid4

from windowpane.bus.connected import ANSWER_S, ConnectedBus, Link, LinkLostError
from windowpane.errors import WindowpaneError
from windowpane.stores.postgres.connections import (
    ConnectionPool,
    DriverConnection,
    ServerAddress,
    ask,
    close_connection,
    translated_errors,
)

_PREFIX = "windowpane_"
_HEARD_WITHIN_S = 1.0

# It need not survive a power cut, so it does not wait for the disk.
_TELL = """
SELECT pg_notify(topic, message), quick
FROM (SELECT set_config('synchronous_commit', 'off', true) AS quick OFFSET 0) AS setting,
     unnest($1::text[], $2::text[]) AS told(topic, message)
"""


class PostgresBus(ConnectedBus):
    """A bus of one database."""

    def __init__(self, url: ServerAddress) -> None:
        super().__init__(url.shown)
        self._url = url
        self._connections = ConnectionPool(url)

    async def connect(self) -> Link:
        """Return a new connection; see `ConnectedBus.connect`."""
        try:
            with translated_errors(self._url):
                connection = await self._connections.connect(directly=True)
        except WindowpaneError as error:
            raise LinkLostError(str(error)) from error
        return _PostgresLink(self._url, connection, self.deliver, self.wake)


class _PostgresLink(Link):
    def __init__(
        self,
        url: ServerAddress,
        connection: DriverConnection,
        deliver: Callable[[str, bytes], None],
        wake: Callable[[], None],
    ) -> None:
        self.lost = False
        self._url = url
        self._connection = connection
        self._deliver = deliver
        self._wake = wake
        self._me = uuid4().hex
        self._echo = asyncio.Event()
        self._listens = False
        connection.add_termination_listener(self._on_lost)

    async def exchange(
        self, begin: Collection[str], end: Collection[str], messages: Collection[tuple[str, bytes]]
    ) -> None:
        """Subscribe, unsubscribe and send; see `Link.exchange`."""
        for topic in begin:
            await self._ask(self._connection.add_listener(_PREFIX + topic, self._hear))
        for topic in end:
            await self._ask(self._connection.remove_listener(_PREFIX + topic, self._hear))
        if messages:
            topics = [_PREFIX + topic for topic, _ in messages]
            await self._ask(
                self._connection.execute(_TELL, topics, [b64encode(message).decode() for _, message in messages])
            )

    async def check(self) -> None:
        """See that what is told is heard; see `Link.check`."""
        if not self._listens:
            await self._ask(self._connection.add_listener(_PREFIX + self._me, self._hear))
            self._listens = True
        self._echo.clear()
        await self._ask(self._connection.execute(_TELL, [_PREFIX + self._me], [""]))
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARD_WITHIN_S):
                await self._echo.wait()
        if not self._echo.is_set():
            raise LinkLostError(
                "what is told is not heard; behind a pooler name the server itself in the URL: ?listen=HOST:PORT"
            )

    async def close(self) -> None:
        """End the connection; see `Link.close`."""
        self._connection.remove_termination_listener(self._on_lost)
        await close_connection(self._connection)

    async def _ask(self, question: Coroutine[Any, Any, object]) -> None:
        try:
            with translated_errors(self._url):
                async with asyncio.timeout(ANSWER_S):
                    await ask(self._connection, question)
        except (WindowpaneError, TimeoutError) as error:
            raise LinkLostError(str(error) or "no answer") from error

    def _hear(self, _connection: object, _pid: int, channel: str, message: str) -> None:
        topic = channel.removeprefix(_PREFIX)
        if topic == self._me:
            self._echo.set()
            return
        # Another program may use the channel: what is not ours is nothing to us.
        with suppress(ValueError):
            self._deliver(topic, b64decode(message, validate=True))

    def _on_lost(self, _connection: object) -> None:
        self.lost = True
        self._wake()
