"""Where a Redis or Valkey is, as one URL says it.

redis://user:password@host:6379/0                  one server (valkey:// is the same; rediss:// and valkeys:// use TLS)
redis+cluster://host:7000,host:7001                a cluster, by some of its servers
redis+sentinel://host:26379,host:26379/service/0   the primary that these Sentinels name for a service

?prefix=windowpane       how every key begins, so that several installations can share a server
?durable=no              accept a server that may forget what it acknowledged
?expire_after_s=3600     let the server remove a session that was not used for this long
?patience_s=15           how long to try again while the server is away
?sentinel_auth=yes       send the user and the password to the Sentinels too

?ssl_ca_certs=file       with TLS: who may sign the server's certificate, instead of those the system trusts
?ssl_certfile=file       with TLS: our own certificate, and its key if that is in another file (ssl_keyfile=file)
?ssl_check_hostname=no   with TLS: accept a certificate for another name
"""

import ssl
from dataclasses import dataclass
from math import isfinite
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from windowpane.errors import InvalidSettingError

Topology = Literal["single", "cluster", "sentinel"]

_KINDS = ("redis", "rediss", "valkey", "valkeys")
_TOPOLOGIES: dict[str, Topology] = {"": "single", "cluster": "cluster", "sentinel": "sentinel"}
SCHEMES = tuple(f"{kind}+{name}" if name else kind for name in _TOPOLOGIES for kind in _KINDS)

_PORT = 6379
_SENTINEL_PORT = 26379
_KNOWN = (
    "prefix",
    "durable",
    "expire_after_s",
    "patience_s",
    "db",
    "sentinel_auth",
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_check_hostname",
)
_PATIENCE_S = 15.0
_SHORTEST_S = 0.001


@dataclass(frozen=True, slots=True)
class HostPort:
    """Where one server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RedisLogin:
    """What a server is told first: who we are, and which database is meant."""

    username: str | None = None
    password: str | None = None
    database: int = 0


@dataclass(frozen=True, slots=True)
class Tls:
    """The files that prove who is who, and whether the server's name is compared with its certificate."""

    ca_certs: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """What a URL says. `hosts` are Sentinels when the topology is "sentinel", and `service` is what they call it."""

    hosts: tuple[HostPort, ...]
    topology: Topology
    service: str
    login: RedisLogin
    sentinel_auth: bool
    tls: Tls | None
    prefix: str
    durable: bool
    expire_ms: int | None
    patience_s: float

    def __str__(self) -> str:
        return ", ".join(map(str, self.hosts))

    @property
    def is_cluster(self) -> bool:
        """Tell whether keys are spread over several servers."""
        return self.topology == "cluster"


def parse_redis_url(url: str, setting: str = "store_url") -> RedisUrl:
    """Return what a URL says.

    Raises:
        InvalidSettingError: it says nothing that can be used. The message does not repeat the password.
    """
    parts = urlsplit(url)
    kind, _, topology_name = parts.scheme.partition("+")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.scheme not in SCHEMES:
        raise _unusable(setting, f"begin with one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}")
    if unknown := sorted(query.keys() - set(_KNOWN)):
        raise _unusable(setting, f"{unknown[0]!r} is not one of {', '.join(_KNOWN)}")
    prefix = query.get("prefix", "windowpane")
    if not prefix or "{" in prefix or "}" in prefix:
        raise _unusable(setting, f"prefix={prefix!r} must not be empty and holds no braces")
    topology = _TOPOLOGIES[topology_name]
    port = _SENTINEL_PORT if topology == "sentinel" else _PORT
    try:
        service, database = _path(parts, topology)
        expire_s = _seconds(query, "expire_after_s")
        return RedisUrl(
            hosts=tuple(_host_and_port(host, port) for host in parts.netloc.rpartition("@")[2].split(",")),
            topology=topology,
            service=service,
            login=_login(parts, query.get("db") or database),
            sentinel_auth=_yes(query, "sentinel_auth", "no"),
            tls=_tls(query) if kind in ("rediss", "valkeys") else None,
            prefix=prefix,
            durable=_yes(query, "durable", "yes"),
            expire_ms=None if expire_s is None else round(expire_s * 1000),
            patience_s=_seconds(query, "patience_s") or _PATIENCE_S,
        )
    except (ValueError, OSError) as error:
        raise _unusable(setting, str(error)) from None


def _path(parts: SplitResult, topology: Topology) -> tuple[str, str]:
    """Return the name of the service, which only Sentinels need, and the database."""
    path = unquote(parts.path.strip("/"))
    if topology != "sentinel":
        return "", path
    service, _, database = path.partition("/")
    if not service:
        raise ValueError("name the service after the Sentinels, as in redis+sentinel://host:26379/mymaster")
    return service, database


def _host_and_port(host: str, default_port: int) -> HostPort:
    parts = urlsplit(f"//{host}")
    return HostPort(parts.hostname or "localhost", parts.port or default_port)


def _login(parts: SplitResult, database: str) -> RedisLogin:
    name, _, password = (unquote(word) for word in parts.netloc.rpartition("@")[0].partition(":"))
    return RedisLogin(name or None, password or None, int(database or 0))


def _tls(query: dict[str, str]) -> Tls:
    tls = Tls(
        ca_certs=query.get("ssl_ca_certs"),
        certfile=query.get("ssl_certfile"),
        keyfile=query.get("ssl_keyfile"),
        check_hostname=_yes(query, "ssl_check_hostname", "yes"),
    )
    # Read the files now: a wrong name is a wrong setting, not a server that is away.
    context = ssl.create_default_context(cafile=tls.ca_certs)
    if tls.certfile is not None:
        context.load_cert_chain(tls.certfile, tls.keyfile)
    return tls


def _yes(query: dict[str, str], name: str, default: Literal["yes", "no"]) -> bool:
    said = query.get(name, default)
    if said not in ("yes", "no"):
        raise ValueError(f"write {name}=yes or {name}=no")
    return said == "yes"


def _seconds(query: dict[str, str], name: str) -> float | None:
    if name not in query:
        return None
    seconds = float(query[name])
    if not (isfinite(seconds) and seconds >= _SHORTEST_S):
        raise ValueError(f"{name}={query[name]} is not a number of seconds")
    return seconds


def _unusable(setting: str, why: str) -> InvalidSettingError:
    return InvalidSettingError(setting, f"cannot be used for Redis: {why}")
