"""Connections to the servers that a URL names, made by redis-py.

The library connects, encrypts, logs in, asks Sentinels who the primary is, and speaks the protocol. It does not try
again by itself: an append has to know that an earlier attempt may have been done.
"""

from typing import Any, cast

from redis.asyncio import Connection, Sentinel, SentinelConnectionPool, SSLConnection

from windowpane.stores.redis.url import HostPort, RedisLogin, RedisUrl


class Connector:
    """Makes connections. Nothing is connected before its user says so."""

    def __init__(self, url: RedisUrl, answer_s: float) -> None:
        self._options = _options(url, url.login, answer_s)
        self._tls = url.tls is not None
        self._sentinel: Sentinel | None = None
        self._primary: SentinelConnectionPool | None = None
        if url.topology == "sentinel":
            login = RedisLogin(url.login.username, url.login.password) if url.sentinel_auth else RedisLogin()
            asking = _options(url, login, answer_s) | {"socket_timeout": answer_s, "ssl": self._tls}
            self._sentinel = Sentinel([(one.host, one.port) for one in url.hosts], sentinel_kwargs=asking)
            self._primary = SentinelConnectionPool(url.service, self._sentinel, ssl=self._tls, **self._options)

    def connection(self, address: HostPort) -> Connection:
        """Return a connection for one user. With Sentinels it goes to the primary that they name when it connects."""
        if self._primary is not None:
            return cast("Connection", self._primary.make_connection())
        kind = SSLConnection if self._tls else Connection
        return kind(host=address.host, port=address.port, **self._options)

    async def close(self) -> None:
        """Disconnect from the Sentinels."""
        if self._sentinel is not None:
            await self._sentinel.aclose()


def _options(url: RedisUrl, login: RedisLogin, answer_s: float) -> dict[str, Any]:
    options: dict[str, Any] = {
        "username": login.username,
        "password": login.password,
        "db": login.database,
        "protocol": 2,
        # Each user of a connection waits in its own way: one deadline for an exchange, none for a subscription.
        "socket_timeout": None,
        "socket_connect_timeout": answer_s,
        "retry": None,
        "driver_info": None,
    }
    if url.tls is not None:
        options |= {
            "ssl_ca_certs": url.tls.ca_certs,
            "ssl_certfile": url.tls.certfile,
            "ssl_keyfile": url.tls.keyfile,
            "ssl_check_hostname": url.tls.check_hostname,
        }
    return options
