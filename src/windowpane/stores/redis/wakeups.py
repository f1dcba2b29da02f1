"""Hear from the servers which sessions to look at.

Every append and every deletion is published on the session's channel. A message only says "look": a lost one costs
time, not events. So watchers also look when a subscription begins (again), and every few seconds where the log stands.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from hiredis import ReplyError

from windowpane.context.ids import SessionId
from windowpane.errors import StoreUnavailableError
from windowpane.stores.redis.keys import Keys
from windowpane.stores.redis.nodes import Nodes
from windowpane.stores.redis.protocol import Address, Command, ConnectionLostError, Reply, Talk
from windowpane.stores.redis.url import Place

LOOK_EVERY_S = 5.0
"""How often watchers look without having been told to."""

_CONNECT_S = 10.0
_WAIT_S = 0.1
_SILENT_PINGS = 3


class Wakeups:
    """Calls `ring` for a session that changed, and `look` from time to time, while somebody listens."""

    def __init__(
        self,
        place: Place,
        nodes: Nodes,
        keys: Keys,
        ring: Callable[[SessionId], None],
        look: Callable[[], Awaitable[None]],
        look_every_s: float,
    ) -> None:
        self._place = place
        self._nodes = nodes
        self._keys = keys
        self._ring = ring
        self._look = look
        self._look_every_s = look_every_s
        self._wanted: Counter[SessionId] = Counter()
        self._ears: dict[Address, Ear] = {}
        self._looking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listening(self, session_id: SessionId) -> AsyncGenerator[None]:
        """Hear about a session for as long as this lasts."""
        self._wanted[session_id] += 1
        self._hear(session_id)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_from_time_to_time())
        try:
            yield
        finally:
            self._wanted[session_id] -= 1
            if not self._wanted[session_id]:
                del self._wanted[session_id]
                for ear in self._ears.values():
                    ear.drop(self._keys.row(session_id))

    async def close(self) -> None:
        """Hear nothing any more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        for ear in self._ears.values():
            await ear.close()
        self._ears.clear()

    def _hear(self, session_id: SessionId) -> None:
        channel = self._keys.row(session_id)
        address = self._nodes.address(channel)
        if address not in self._ears:
            self._ears[address] = Ear(
                lambda take: self._place.connect(address, _CONNECT_S, take), self._heard, sharded=self._place.cluster
            )
        for where, ear in self._ears.items():
            if where == address:
                ear.want(channel)
            else:
                ear.drop(channel)

    def _heard(self, channel: bytes) -> None:
        session_id = self._keys.session_of(channel)
        if session_id is not None:
            self._ring(session_id)

    async def _look_from_time_to_time(self) -> None:
        while self._wanted:
            await asyncio.sleep(self._look_every_s)
            if any(ear.lacks for ear in self._ears.values()):
                await self._nodes.look_again()
            # A session moves to another server when a cluster changes.
            for session_id in list(self._wanted):
                self._hear(session_id)
            for ear in self._ears.values():
                ear.check()
            with suppress(StoreUnavailableError):
                await self._look()


class Ear:
    """One connection that hears one server's messages, and is made again when it breaks."""

    def __init__(
        self,
        connect: Callable[[Callable[[Reply], None]], Awaitable[Talk]],
        heard: Callable[[bytes], None],
        *,
        sharded: bool,
    ) -> None:
        self._connect = connect
        self._heard = heard
        self._subscribe, self._unsubscribe = (
            (b"SSUBSCRIBE", b"SUNSUBSCRIBE") if sharded else (b"SUBSCRIBE", b"UNSUBSCRIBE")
        )
        self._wanted: set[bytes] = set()
        self._held: set[bytes] = set()
        self._talk: Talk | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._silent_pings = 0

    @property
    def lacks(self) -> bool:
        """Whether the server does not send all that is wanted."""
        return not self._wanted <= self._held

    def want(self, channel: bytes) -> None:
        """Hear a channel, beginning with the server's word that it is heard."""
        if channel in self._wanted:
            return
        self._wanted.add(channel)
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._hear())
        else:
            self._say((self._subscribe, channel))

    def drop(self, channel: bytes) -> None:
        """Do not hear a channel any more."""
        if channel in self._wanted:
            self._wanted.discard(channel)
            self._say((self._unsubscribe, channel))

    def check(self) -> None:
        """See that the connection is alive and that all is heard that is wanted."""
        self._silent_pings += 1
        if self._silent_pings > _SILENT_PINGS and self._hearing is not None and self._talk is not None:
            self._hearing.cancel()
            self._hearing = asyncio.create_task(self._hear())
        else:
            self._say((b"PING",), *((self._subscribe, channel) for channel in self._wanted - self._held))

    async def close(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.wait([self._hearing])

    def _say(self, *commands: Command) -> None:
        if self._talk is not None:
            self._talk.say(*commands)

    async def _hear(self) -> None:
        while self._wanted:
            with suppress(OSError, ConnectionLostError, ReplyError):
                await self._hear_until_lost()
            await asyncio.sleep(_WAIT_S)

    async def _hear_until_lost(self) -> None:
        talk = await self._connect(self._take)
        try:
            self._talk, self._silent_pings = talk, 0
            self._say(*((self._subscribe, channel) for channel in self._wanted))
            await asyncio.shield(talk.lost)
        finally:
            self._talk = None
            self._held.clear()
            talk.hang_up()

    def _take(self, reply: Reply) -> None:
        self._silent_pings = 0
        match reply:
            case [b"subscribe" | b"ssubscribe", bytes(channel), *_]:
                self._held.add(channel)
                self._heard(channel)
            case [b"unsubscribe" | b"sunsubscribe", bytes(channel), *_]:
                # In a cluster also unasked, when the channel moved to another server.
                self._held.discard(channel)
            case [b"message" | b"smessage", bytes(channel), *_]:
                self._heard(channel)
            case _:
                # A pong, or an error because the channel is elsewhere: whoever looks from time to time finds it.
                pass
