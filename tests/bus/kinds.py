"""Every bus that keeps the contract. Another bus joins by adding one entry to `KINDS`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bus.nats_server import NatsServer
from stores.postgres_server import PostgresServer
from stores.redis_server import RedisServer
from windowpane.bus.base import Bus
from windowpane.bus.nats import NatsBus
from windowpane.bus.sealed import SealedBus
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.postgres.bus import PostgresBus
from windowpane.stores.postgres.connections import parse_postgres_url
from windowpane.stores.redis.bus import RedisBus
from windowpane.stores.redis.url import parse_redis_url

KEY = "YSBrZXkgdGhhdCBvbmx5IHRlc3RzIHdpbGwgdXNlLi4="


class BusServer(Protocol):
    """A server of a test's own, which the test may kill."""

    place: str

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class BusKind:
    """A bus: how a test makes its server in a directory, and how any process opens it."""

    name: str
    serve: Callable[[Path], BusServer]
    open: Callable[[str], Bus]


def _postgres(place: str) -> Bus:
    return PostgresBus(parse_postgres_url(place))


def _redis(place: str) -> Bus:
    return RedisBus(parse_redis_url(place))


def _sealed_nats(place: str) -> Bus:
    return SealedBus(NatsBus(place), KeyRing.parse(KEY, "encryption_key"))


KINDS = (
    BusKind("postgres", lambda directory: PostgresServer(directory, durable=False), _postgres),
    BusKind("redis", lambda directory: RedisServer(directory, durability="none"), _redis),
    BusKind("nats", NatsServer, NatsBus),
    BusKind("nats-sealed", NatsServer, _sealed_nats),
)
