"""A bus on NATS: each session is a subject, so a server sends a worker only what it watches.

nats://user:password@host:4222,host:4222     one or more servers of a cluster (tls:// uses TLS)
?prefix=windowpane                           how every subject begins, so that several installations can share a server
"""

from collections.abc import Awaitable, Callable, Collection
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from windowpane.bus.connected import ANSWER_S, ConnectedBus, Link, LinkLostError
from windowpane.errors import InvalidSettingError

Subscribe = Callable[..., Awaitable[Subscription]]

_ANSWER_S = int(ANSWER_S)


class NatsBus(ConnectedBus):
    """A bus on one NATS server or a cluster.

    Raises:
        InvalidSettingError: the URL says something that cannot be used.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query))
        self._prefix = given.pop("prefix", "windowpane")
        if given or not parts.netloc or parts.path.strip("/"):
            raise InvalidSettingError("bus_url", "write nats://user:password@host:4222, with nothing but ?prefix=name")
        login, at, hosts = parts.netloc.rpartition("@")
        self._servers = [f"{parts.scheme}://{login}{at}{host}" for host in hosts.split(",")]
        super().__init__(f"{parts.scheme}://{hosts}")

    async def connect(self) -> Link:
        """Return a new connection; see `ConnectedBus.connect`."""
        link = _NatsLink(self.deliver, self.wake, self._prefix)
        try:
            # It connects once: when and how often to try again is the same for every bus.
            connect = cast("Callable[..., Awaitable[Client]]", nats.connect)  # pyright: ignore[reportUnknownMemberType]
            link.client = await connect(
                self._servers,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                connect_timeout=ANSWER_S,
                error_cb=link.on_error,
                closed_cb=link.on_closed,
                disconnected_cb=link.on_closed,
            )
        except (NatsError, OSError, ValueError) as error:
            raise LinkLostError(str(error) or type(error).__name__) from error
        return link


class _NatsLink(Link):
    client: Client

    def __init__(self, deliver: Callable[[str, bytes], None], wake: Callable[[], None], prefix: str) -> None:
        self.lost = False
        self._deliver = deliver
        self._wake = wake
        self._prefix = prefix
        self._subscribed: dict[str, Subscription] = {}

    async def exchange(
        self, begin: Collection[str], end: Collection[str], messages: Collection[tuple[str, bytes]]
    ) -> None:
        """Subscribe, unsubscribe and send; see `Link.exchange`."""
        try:
            for topic in begin:
                subscribe = cast("Subscribe", self.client.subscribe)  # pyright: ignore[reportUnknownMemberType]
                self._subscribed[topic] = await subscribe(f"{self._prefix}.{topic}", cb=self._hear)
            for topic in end:
                await self._subscribed.pop(topic).unsubscribe()
            for topic, message in messages:
                await self.client.publish(f"{self._prefix}.{topic}", message)
            if begin:
                await self.client.flush(_ANSWER_S)
        except (NatsError, OSError) as error:
            raise LinkLostError(str(error) or type(error).__name__) from error

    async def check(self) -> None:
        """See that the server answers; see `Link.check`."""
        try:
            await self.client.flush(_ANSWER_S)
        except (NatsError, OSError) as error:
            raise LinkLostError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        """End the connection; see `Link.close`."""
        await self.client.close()

    async def on_error(self, error: Exception) -> None:
        """Take no notice: what an error means for the connection is said by what is called next."""

    async def on_closed(self) -> None:
        """Note that the connection broke."""
        self.lost = True
        self._wake()

    async def _hear(self, message: Msg) -> None:
        self._deliver(message.subject.removeprefix(f"{self._prefix}."), message.data)
