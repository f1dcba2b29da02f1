"""A bus on Redis or Valkey: each session is a channel, so a server sends a worker only what it watches.

A connection that subscribed can do nothing else, so there are two. In a cluster they go to one of its servers, and the
cluster passes messages on.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import cast

from redis.asyncio import Connection
from redis.exceptions import RedisError

from windowpane.bus.connected import ANSWER_S, ConnectedBus, Link, LinkLostError
from windowpane.stores.redis.connection import Connector
from windowpane.stores.redis.pipeline import Command, Reply
from windowpane.stores.redis.url import RedisUrl


class RedisBus(ConnectedBus):
    """A bus on one server, on a cluster, or on the primary that Sentinels name."""

    def __init__(self, url: RedisUrl) -> None:
        super().__init__(str(url))
        self._url = url
        self._attempts = 0

    async def connect(self) -> Link:
        """Return a new connection, to another server of a cluster each time; see `ConnectedBus.connect`."""
        connector = Connector(self._url, ANSWER_S)
        host = self._url.hosts[self._attempts % len(self._url.hosts)]
        self._attempts += 1
        link = _RedisLink(connector, connector.connection(host), connector.connection(host), self)
        try:
            await link.open()
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def prefix(self) -> bytes:
        """Return how every channel begins."""
        return f"{self._url.prefix}:bus:".encode()


class _RedisLink(Link):
    def __init__(self, connector: Connector, telling: Connection, hearing: Connection, bus: RedisBus) -> None:
        self.lost = False
        self._connector = connector
        self._telling = telling
        self._hearing = hearing
        self._deliver: Callable[[str, bytes], None] = bus.deliver
        self._wake: Callable[[], None] = bus.wake
        self._prefix = bus.prefix
        self._waiting: dict[bytes, asyncio.Event] = {}
        self._listening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect."""
        with _lost_when_broken():
            await self._telling.connect()
            await self._hearing.connect()
        self._listening = asyncio.create_task(self._listen())

    async def exchange(
        self, begin: Collection[str], end: Collection[str], messages: Collection[tuple[str, bytes]]
    ) -> None:
        """Subscribe, unsubscribe and send; see `Link.exchange`."""
        if begin:
            channels = [self._channel(topic) for topic in begin]
            await self._order(b"SUBSCRIBE", channels)
        if end:
            with _lost_when_broken():
                await _send(self._hearing, (b"UNSUBSCRIBE", *(self._channel(topic) for topic in end)))
        if messages:
            commands = [(b"PUBLISH", self._channel(topic), message) for topic, message in messages]
            with _lost_when_broken():
                await _send(self._telling, *commands)
                for _ in commands:
                    await self._telling.read_response()

    async def check(self) -> None:
        """See that both connections are answered; see `Link.check`."""
        with _lost_when_broken():
            await _send(self._telling, (b"PING",))
            await self._telling.read_response()
        await self._order(b"PING", [b"alive"])

    async def close(self) -> None:
        """End the connections; see `Link.close`."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await self._telling.disconnect(nowait=True)
        await self._hearing.disconnect(nowait=True)
        await self._connector.close()

    async def _order(self, command: bytes, words: list[bytes]) -> None:
        """Send something on the connection that hears, and wait until the server has answered about each word."""
        events = [self._waiting.setdefault(word, asyncio.Event()) for word in words]
        with _lost_when_broken():
            await _send(self._hearing, (command, *words))
        for event in events:
            await event.wait()

    async def _listen(self) -> None:
        try:
            with _lost_when_broken():
                while True:
                    self._take(cast("Reply", await self._hearing.read_response(timeout=math.inf)))
        except LinkLostError:
            self.lost = True
            self._wake()

    def _take(self, reply: Reply) -> None:
        match reply:
            case [b"subscribe", bytes(word), *_] | [b"pong", bytes(word)]:
                if event := self._waiting.pop(word, None):
                    event.set()
            case [b"message", bytes(channel), bytes(message)]:
                self._deliver(channel.removeprefix(self._prefix).decode("ascii", "replace"), message)
            case _:
                pass

    def _channel(self, topic: str) -> bytes:
        return self._prefix + topic.encode()


async def _send(connection: Connection, *commands: Command) -> None:
    await connection.send_packed_command(connection.pack_commands(commands))


@contextmanager
def _lost_when_broken() -> Generator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise LinkLostError(str(error) or type(error).__name__) from error
