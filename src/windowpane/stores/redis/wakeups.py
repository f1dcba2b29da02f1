"""Hear from the servers which sessions to read again.

Every append and every deletion is published on the session's channel. A message only says "read": a lost one costs
time, not events. So watchers also read when a subscription begins, for the first time or again, and every few seconds
their logs are compared with what they have seen.
"""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import cast

from redis.asyncio import Connection
from redis.exceptions import RedisError, ResponseError

from windowpane.context.ids import SessionId
from windowpane.errors import StoreUnavailableError
from windowpane.stores.redis.connection import Connector
from windowpane.stores.redis.keys import RedisKeys
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.pipeline import Command, Reply
from windowpane.stores.redis.url import HostPort
from windowpane.supervise import keep_running

CHECK_EVERY_S = 5.0
"""How often logs are compared with what watchers have seen, whether or not a message came."""

_CONNECT_S = 10.0
_RECONNECT_AFTER_S = 0.1
_SILENT_PINGS = 3


class Wakeups:
    """Calls `wake` for a session that changed, and `check` from time to time, while a session is watched."""

    def __init__(
        self,
        connector: Connector,
        nodes: Nodes,
        keys: RedisKeys,
        wake: Callable[[SessionId], None],
        check: Callable[[], Awaitable[None]],
        *,
        check_every_s: float,
        sharded: bool,
    ) -> None:
        self._connector = connector
        self._nodes = nodes
        self._keys = keys
        self._wake = wake
        self._check = check
        self._check_every_s = check_every_s
        self._sharded = sharded
        self._wanted: Counter[SessionId] = Counter()
        self._listeners: dict[HostPort, ChannelListener] = {}
        self._checking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listening(self, session_id: SessionId) -> AsyncGenerator[None]:
        """Hear about a session for as long as this lasts."""
        self._wanted[session_id] += 1
        try:
            await self._subscribe(session_id)
            if self._checking is None or self._checking.done():
                self._checking = asyncio.create_task(keep_running("redis.check", self._keep_checking))
            yield
        finally:
            self._wanted[session_id] -= 1
            if not self._wanted[session_id]:
                del self._wanted[session_id]
                for listener in self._listeners.values():
                    await listener.unsubscribe(self._keys.row(session_id))

    async def close(self) -> None:
        """Hear nothing any more."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait([self._checking])
        for listener in self._listeners.values():
            await listener.close()
        self._listeners.clear()

    async def _subscribe(self, session_id: SessionId) -> None:
        """Listen where the session is now. In a cluster it may have moved since."""
        channel = self._keys.row(session_id)
        address = self._nodes.address(channel)
        if address not in self._listeners:
            self._listeners[address] = ChannelListener(
                lambda: self._connector.connection(address), self._heard, sharded=self._sharded
            )
        for where, listener in list(self._listeners.items()):
            if where == address:
                await listener.subscribe(channel)
            else:
                await listener.unsubscribe(channel)

    def _heard(self, channel: bytes) -> None:
        session_id = self._keys.session_of(channel)
        if session_id is not None:
            self._wake(session_id)

    async def _keep_checking(self) -> None:
        while self._wanted:
            await asyncio.sleep(self._check_every_s)
            if any(listener.incomplete for listener in self._listeners.values()):
                await self._nodes.refresh_slots()
            for session_id in list(self._wanted):
                await self._subscribe(session_id)
            for listener in self._listeners.values():
                await listener.check()
            with suppress(StoreUnavailableError):
                await self._check()


class ChannelListener:
    """One connection that hears one server's messages, and is made again when it breaks."""

    def __init__(self, connect: Callable[[], Connection], heard: Callable[[bytes], None], *, sharded: bool) -> None:
        self._connect = connect
        self._heard = heard
        self._subscribe, self._unsubscribe = (
            (b"SSUBSCRIBE", b"SUNSUBSCRIBE") if sharded else (b"SUBSCRIBE", b"UNSUBSCRIBE")
        )
        self._wanted: set[bytes] = set()
        self._confirmed: set[bytes] = set()
        self._connection: Connection | None = None
        self._listening: asyncio.Task[None] | None = None
        self._silent_pings = 0

    @property
    def incomplete(self) -> bool:
        """Tell whether the server does not send all that is wanted."""
        return not self._wanted <= self._confirmed

    async def subscribe(self, channel: bytes) -> None:
        """Hear a channel, beginning with the server's word that it is heard."""
        if channel in self._wanted:
            return
        self._wanted.add(channel)
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(keep_running("redis.listen", self._keep_listening))
        else:
            await self._send((self._subscribe, channel))

    async def unsubscribe(self, channel: bytes) -> None:
        """Do not hear a channel any more."""
        if channel in self._wanted:
            self._wanted.discard(channel)
            await self._send((self._unsubscribe, channel))

    async def check(self) -> None:
        """See that the connection is alive and that all is heard that is wanted."""
        self._silent_pings += 1
        if self._silent_pings > _SILENT_PINGS and self._listening is not None and self._connection is not None:
            # A connection can be dead without a sign. Cancelled, the task disconnects; another one connects again.
            self._listening.cancel()
            self._listening = asyncio.create_task(keep_running("redis.listen", self._keep_listening))
        else:
            missing = self._wanted - self._confirmed
            await self._send((b"PING",), *((self._subscribe, channel) for channel in missing))

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _send(self, *commands: Command) -> None:
        connection = self._connection
        # While there is no connection there is nothing to send: the next one begins with all that is wanted.
        if commands and connection is not None and connection.is_connected:
            # What goes wrong is noticed where the answers are read.
            with suppress(RedisError, OSError):
                await connection.send_packed_command(connection.pack_commands(commands))

    async def _keep_listening(self) -> None:
        while self._wanted:
            with suppress(RedisError, OSError):
                await self._listen_until_lost()
            await asyncio.sleep(_RECONNECT_AFTER_S)

    async def _listen_until_lost(self) -> None:
        connection = self._connect()
        try:
            async with asyncio.timeout(_CONNECT_S):
                await connection.connect()
            self._connection, self._silent_pings = connection, 0
            await self._send(*((self._subscribe, channel) for channel in self._wanted))
            while True:
                # An error says that the channel is on another server: the next check subscribes there.
                with suppress(ResponseError):
                    self._take(cast("Reply", await connection.read_response(timeout=math.inf)))
        finally:
            if self._connection is connection:
                self._connection = None
                self._confirmed.clear()
            await connection.disconnect(nowait=True)

    def _take(self, reply: Reply) -> None:
        self._silent_pings = 0
        match reply:
            case [b"subscribe" | b"ssubscribe", bytes(channel), *_]:
                # What was published before the subscription began is found by reading.
                self._confirmed.add(channel)
                self._heard(channel)
            case [b"unsubscribe" | b"sunsubscribe", bytes(channel), *_]:
                # In a cluster also unasked, when the channel moved to another server.
                self._confirmed.discard(channel)
            case [b"message" | b"smessage", bytes(channel), *_]:
                self._heard(channel)
            case _:
                # A pong.
                pass
