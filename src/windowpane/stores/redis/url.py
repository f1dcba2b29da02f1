"""Where a Redis or Valkey is, as one URL says it.

redis://user:password@host:6379/0        one server (valkey:// is the same; rediss:// and valkeys:// with TLS)
redis+cluster://host:7000,host:7001      a cluster, by some of its servers (rediss+cluster:// with TLS)

?prefix=windowpane       how every key begins, so that several installations can share a server
?durable=no              accept a server that may forget what it acknowledged
?expire_after_s=3600     let the server remove a session that was not used for so long
?patience_s=15           how long to try again while the server is away

?ssl_ca_certs=file       with TLS: who may sign the server's certificate, instead of those the system trusts
?ssl_certfile=file       with TLS: our own certificate, and its key if that is in another file (ssl_keyfile=file)
?ssl_check_hostname=no   with TLS: accept a certificate for another name
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from windowpane.errors import InvalidSettingError
from windowpane.stores.redis.protocol import Address, Command, Reply, Talk, connect

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
_KNOWN = (
    "prefix",
    "durable",
    "expire_after_s",
    "patience_s",
    "db",
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_check_hostname",
)
_PATIENCE_S = 15.0
_SHORTEST_S = 0.001


@dataclass(frozen=True, slots=True)
class Place:
    """What a URL says."""

    seeds: tuple[Address, ...]
    cluster: bool
    tls: ssl.SSLContext | None
    login: tuple[Command, ...]
    """What a server is told first: who we are, and which database is meant."""
    prefix: str
    durable: bool
    expire_ms: int | None
    patience_s: float

    def __str__(self) -> str:
        return ", ".join(map(str, self.seeds))

    async def connect(self, address: Address, answer_s: float, unasked: Callable[[Reply], None] | None = None) -> Talk:
        """Connect to one server; see `redis_talk.connect`."""
        return await connect(address, tls=self.tls, login=self.login, answer_s=answer_s, unasked=unasked)


def read_place(url: str) -> Place:
    """Return what a URL says.

    Raises:
        InvalidSettingError: it says nothing that can be used. The message does not repeat the password.
    """
    parts = urlsplit(url)
    kind, _, cluster = parts.scheme.partition("+")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.scheme not in SCHEMES:
        raise _wrong(f"begin with one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    if unknown := sorted(query.keys() - set(_KNOWN)):
        raise _wrong(f"{unknown[0]!r} is not one of {', '.join(_KNOWN)}")
    prefix = query.get("prefix", "windowpane")
    if not prefix or "{" in prefix or "}" in prefix:
        raise _wrong(f"prefix={prefix!r} must not be empty and holds no braces")
    try:
        expire_s = _seconds(query, "expire_after_s")
        return Place(
            seeds=tuple(_address(host) for host in parts.netloc.rpartition("@")[2].split(",")),
            cluster=cluster == "cluster",
            tls=_tls(query) if kind in ("rediss", "valkeys") else None,
            login=_login(parts, query),
            prefix=prefix,
            durable=_yes(query, "durable"),
            expire_ms=None if expire_s is None else round(expire_s * 1000),
            patience_s=_seconds(query, "patience_s") or _PATIENCE_S,
        )
    except (ValueError, OSError) as error:
        raise _wrong(str(error)) from None


def _address(host: str) -> Address:
    parts = urlsplit(f"//{host}")
    return Address(parts.hostname or "localhost", parts.port or _PORT)


def _login(parts: SplitResult, query: dict[str, str]) -> tuple[Command, ...]:
    credentials = parts.netloc.rpartition("@")[0]
    name, _, password = (unquote(word).encode() for word in credentials.partition(":"))
    database = int(query.get("db") or parts.path.strip("/") or 0)
    return (
        *([(b"AUTH", *([name] if name else []), password)] if credentials else []),
        *([(b"SELECT", b"%d" % database)] if database else []),
    )


def _tls(query: dict[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=query.get("ssl_ca_certs"))
    if "ssl_certfile" in query:
        context.load_cert_chain(query["ssl_certfile"], query.get("ssl_keyfile"))
    context.check_hostname = _yes(query, "ssl_check_hostname")
    return context


def _yes(query: dict[str, str], name: str) -> bool:
    if query.get(name, "yes") not in ("yes", "no"):
        raise ValueError(f"write {name}=yes or {name}=no")
    return query.get(name) != "no"


def _seconds(query: dict[str, str], name: str) -> float | None:
    if name not in query:
        return None
    seconds = float(query[name])
    if not (isfinite(seconds) and seconds >= _SHORTEST_S):
        raise ValueError(f"{name}={query[name]} is not a number of seconds")
    return seconds


def _wrong(why: str) -> InvalidSettingError:
    return InvalidSettingError("store_url", f"cannot be used for Redis: {why}")
