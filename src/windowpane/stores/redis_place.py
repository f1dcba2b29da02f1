"""Where a Redis or Valkey is, as one URL says it.

    redis://user:password@host:6379/0        one server (valkey:// is the same; rediss:// and valkeys:// with TLS)
    redis+cluster://host:7000,host:7001      a cluster, by some of its servers (rediss+cluster:// with TLS)

    ?prefix=windowpane       how every key begins, so that several installations can share a server
    ?durable=no              accept a server that may forget what it acknowledged
    ?expire_after_s=3600     let the server remove a session that was not used for so long
    ?patience_s=15           how long to try again while the server is away

Other parameters go to the client library, such as `ssl_ca_certs`.
"""

from dataclasses import dataclass
from math import isfinite
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis.asyncio.connection import parse_url

from windowpane.errors import InvalidSettingError
from windowpane.stores.redis_link import Address, Wire, wire

SCHEMES = (
    "redis",
    "rediss",
    "valkey",
    "valkeys",
    "redis+cluster",
    "rediss+cluster",
    "valkey+cluster",
    "valkeys+cluster",
)

_PORT = 6379
_OURS = ("prefix", "durable", "expire_after_s", "patience_s")
_PATIENCE_S = 15.0
_SHORTEST_S = 0.001


@dataclass(frozen=True, slots=True)
class Place:
    """What a URL says."""

    seeds: tuple[Address, ...]
    cluster: bool
    tls: bool
    options: dict[str, object]
    prefix: str
    durable: bool
    expire_ms: int | None
    patience_s: float

    def __str__(self) -> str:
        return ", ".join(map(str, self.seeds))

    def wire(self, address: Address) -> Wire:
        """Return a connection to one server, not connected yet."""
        return wire(address, self.options, tls=self.tls)


def read_place(url: str) -> Place:
    """Return what a URL says.

    Raises:
        InvalidSettingError: it says nothing that can be used. The message does not repeat the password.
    """
    try:
        parts = urlsplit(url)
        kind, _, cluster = parts.scheme.partition("+")
        credentials, at, hosts = parts.netloc.rpartition("@")
        seeds = tuple(_address(host) for host in hosts.split(","))
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        ours = {name: query.pop(name) for name in _OURS if name in query}
        library = parse_url(f"redis://{credentials}{at}host{parts.path}?{urlencode(query)}")
        options: dict[str, object] = {name: value for name, value in library.items() if name != "host"}
        expire_s = _seconds(ours, "expire_after_s")
        patience_s = _seconds(ours, "patience_s")
    except ValueError as error:
        raise _wrong(str(error)) from None
    if parts.scheme not in SCHEMES:
        raise _wrong(f"begin with one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    prefix = ours.get("prefix", "windowpane")
    if not prefix or "{" in prefix or "}" in prefix:
        raise _wrong(f"prefix={prefix!r} must not be empty and holds no braces")
    if ours.get("durable", "yes") not in ("yes", "no"):
        raise _wrong("write durable=yes or durable=no")
    place = Place(
        seeds=seeds,
        cluster=cluster == "cluster",
        tls=kind in ("rediss", "valkeys"),
        options=options,
        prefix=prefix,
        durable=ours.get("durable") != "no",
        expire_ms=None if expire_s is None else round(expire_s * 1000),
        patience_s=patience_s or _PATIENCE_S,
    )
    try:
        place.wire(seeds[0])
    except TypeError as error:
        raise _wrong(str(error)) from None
    return place


def _address(host: str) -> Address:
    parts = urlsplit(f"//{host}")
    return Address(parts.hostname or "localhost", parts.port or _PORT)


def _seconds(ours: dict[str, str], name: str) -> float | None:
    if name not in ours:
        return None
    seconds = float(ours[name])
    if not (isfinite(seconds) and seconds >= _SHORTEST_S):
        raise ValueError(f"{name}={ours[name]} is not a number of seconds")
    return seconds


def _wrong(why: str) -> InvalidSettingError:
    return InvalidSettingError("store_url", f"cannot be used for Redis: {why}")
