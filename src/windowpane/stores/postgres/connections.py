"""How the server is reached: its address, its connections, and what is done when one is lost.

What is sent through `ConnectionPool.run` may arrive twice: when a connection is lost, it is not known whether the
server had done the work, and it is sent again on another connection until the time is up. So all of it must be
idempotent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from windowpane.errors import (
    InvalidInputError,
    InvalidSettingError,
    StoreCorruptError,
    StoreUnavailableError,
    WindowpaneError,
)
from windowpane.errors.stores import NO_ANSWER

T = TypeVar("T")


class DriverConnection(Protocol):
    """What is used of the driver's connections. What it reads has no types: those are given where it is read."""

    async def execute(self, query: str, *values: object) -> str: ...

    async def fetch(self, query: str, *values: object) -> list[Any]: ...

    async def fetchrow(self, query: str, *values: object) -> Any: ...

    async def fetchval(self, query: str, *values: object) -> Any: ...

    def transaction(self) -> AbstractAsyncContextManager[object]: ...

    async def add_listener(
        self, channel: str, callback: Callable[["DriverConnection", int, str, str], None]
    ) -> None: ...

    async def remove_listener(
        self, channel: str, callback: Callable[["DriverConnection", int, str, str], None]
    ) -> None: ...

    def add_termination_listener(self, callback: Callable[["DriverConnection"], None]) -> None: ...

    def remove_termination_listener(self, callback: Callable[["DriverConnection"], None]) -> None: ...

    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


_APPLICATION = "windowpane"
_PAUSES_S = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
_ATTEMPTS = 2
_FAREWELL_S = 1.0
_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where the server is and how to treat it.

    `timeout_s` is how long one operation may take, reconnecting included. `pooler` tells that transactions of one
    connection may reach different servers, as through pgbouncer in transaction mode. `listen` is the host and port
    that wake-ups are heard from, when connections do not go straight to the server.
    """

    dsn: str = field(repr=False)
    shown: str
    timeout_s: float
    connections: int
    pooler: bool
    listen: tuple[str, int] | None


def parse_postgres_url(url: str) -> ServerAddress:
    """Return what a URL says. `timeout_s`, `connections`, `pooler` and `listen` are ours, the rest is PostgreSQL's.

    Raises:
        InvalidSettingError: one of ours cannot be used.
    """
    parts = urlsplit(url)
    try:
        # The driver's own error would repeat what stands there, which can be the half of a password.
        hosts = [urlsplit(f"//{host}").port for host in parts.netloc.rpartition("@")[2].split(",")]
    except ValueError:
        hosts = []
    if not hosts:
        raise InvalidSettingError(
            "store_url", "its port is no number; write `/`, `?`, `#` and `@` in a password as %2F, %3F, %23 and %40"
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    try:
        return ServerAddress(
            timeout_s=_positive(float(given.pop("timeout_s", "10"))),
            connections=int(_positive(int(given.pop("connections", "8")))),
            pooler={"transaction": True, "session": False}[given.pop("pooler", "session")],
            listen=_host_and_port(given.pop("listen")) if "listen" in given else None,
            dsn=urlunsplit(parts._replace(query=urlencode(given))),
            shown=urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="")),
        )
    except (ValueError, KeyError):
        raise InvalidSettingError(
            "store_url",
            "timeout_s and connections are numbers above 0, pooler is session or transaction, "
            "and listen is the server's own HOST:PORT",
        ) from None


def _positive(number: float) -> float:
    if not number > 0:
        raise ValueError(number)
    return number


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host:
        raise ValueError(text)
    return host.strip("[]"), int(port)


class ConnectionPool:
    """Connections to one server: a pool for reads and small writes, and single ones for users that keep theirs."""

    def __init__(self, url: ServerAddress) -> None:
        self.url = url
        self._plain = False
        self._pool: Any = None
        self._unwanted: set[asyncio.Task[DriverConnection]] = set()

    async def open(self) -> None:
        """Get ready to connect; nothing is connected before it is needed."""
        create_pool = cast("Callable[..., Awaitable[Any]]", asyncpg.create_pool)  # pyright: ignore[reportUnknownMemberType]
        self._pool = await create_pool(
            min_size=0, max_size=self.url.connections, connect=self._connect_for_pool, reset=_nothing_to_reset
        )

    async def close(self) -> None:
        """Let what runs finish, for as long as an operation may take, and disconnect."""
        if self._unwanted:
            await asyncio.wait(self._unwanted)
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(self.url.timeout_s):
                await pool.close()
        except (TimeoutError, *LOST):
            pool.terminate()

    async def run(self, work: Callable[[DriverConnection], Coroutine[Any, Any, T]]) -> T:
        """Do work on a connection of the pool, and again on another one when it is lost.

        Raises:
            StoreUnavailableError: it could not be done in time, or the server refused.
        """
        return await self.retry(lambda: self._with_pooled(work))

    async def retry(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Attempt something until it is done or the time is up. Each attempt leaves no lost connection behind.

        Raises:
            StoreUnavailableError: it could not be done in time, or the server refused.
        """
        why: Exception | None = None
        tries = 0
        with translated_errors(self.url):
            try:
                async with asyncio.timeout(self.url.timeout_s):
                    while True:
                        try:
                            # A connection may be dead without a sign: leave time to try another one.
                            async with asyncio.timeout(self.url.timeout_s / _ATTEMPTS):
                                return await attempt()
                        except AGAIN as error:
                            if isinstance(error, ValueError):
                                raise  # The driver refuses a value or a setting: that is no connection's fault.
                            why = error
                            await asyncio.sleep(_PAUSES_S[min(tries, len(_PAUSES_S) - 1)])
                            tries += 1
            except TimeoutError:
                raise StoreUnavailableError(
                    f"{self.url.shown} gave no answer within {self.url.timeout_s:g} s"
                    f"{f' ({why})' if str(why or '') else ''}. {NO_ANSWER}"
                ) from why

    async def connect(self, *, directly: bool = False) -> DriverConnection:
        """Return a connection of one's own; `directly` to the server even if others go through a pooler."""
        connecting = asyncio.create_task(self._connected(directly=directly))
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            # The driver leaves loose ends when it is interrupted: let it connect, then end the connection.
            self._unwanted.add(connecting)
            connecting.add_done_callback(self._end_unwanted)
            raise

    def _end_unwanted(self, connecting: asyncio.Task[DriverConnection]) -> None:
        self._unwanted.discard(connecting)
        if not connecting.cancelled() and connecting.exception() is None:
            connecting.result().terminate()

    async def _connected(self, *, directly: bool) -> DriverConnection:
        listen = self.url.listen if directly else None
        where = {"host": listen[0], "port": listen[1]} if listen else {}
        try:
            return await self._connect(where, plain=self._plain)
        except asyncpg.ProtocolViolationError as error:
            if "startup parameter" not in str(error) or self._plain:
                raise
            # So says a pooler that sets nothing for its clients. Time-outs are then ours alone.
            if not directly:
                self._plain = True
            return await self._connect(where, plain=True)

    async def _connect(self, where: dict[str, Any], *, plain: bool) -> DriverConnection:
        timeout_ms = str(round(self.url.timeout_s * _MILLISECONDS))
        connect = cast("Callable[..., Awaitable[DriverConnection]]", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]
        return await connect(
            self.url.dsn,
            **where,
            timeout=self.url.timeout_s,
            # Through a pooler a prepared statement may not be where its next use arrives.
            statement_cache_size=0 if plain or self.url.pooler else 100,
            server_settings={"application_name": _APPLICATION}
            | ({} if plain else {"statement_timeout": timeout_ms, "lock_timeout": timeout_ms}),
        )

    async def _connect_for_pool(self, *_arguments: object, **_options: object) -> DriverConnection:
        return await self.connect()

    async def _with_pooled(self, work: Callable[[DriverConnection], Coroutine[Any, Any, T]]) -> T:
        pool = self._pool
        if pool is None:
            raise StoreUnavailableError("the store is closed")
        connection = await pool.acquire()
        try:
            return await ask(connection, work(connection))
        finally:
            await pool.release(connection)


async def ask(connection: DriverConnection, question: Coroutine[Any, Any, T]) -> T:
    """Return the answer to a question that was put to a connection. When it fails or is given up, both end.

    The driver is not interrupted: it would open another connection to have the question cancelled, and wait for it.
    """
    asking = asyncio.create_task(question)
    try:
        return await asyncio.shield(asking)
    except BaseException:
        connection.terminate()
        # What it says to that is of no interest.
        await asyncio.gather(asking, return_exceptions=True)
        raise


async def close_connection(connection: DriverConnection) -> None:
    """End a connection, in good order if that is quick."""
    try:
        async with asyncio.timeout(_FAREWELL_S):
            await connection.close()
    except LOST:
        connection.terminate()


async def _nothing_to_reset(_connection: DriverConnection) -> None:
    """Spare a question per use: nothing here changes a connection."""


LOST: tuple[type[Exception], ...] = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
)
"""What is raised when there is no connection, or no longer."""

AGAIN: tuple[type[Exception], ...] = (
    *LOST,
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
)
"""What may go better the next time."""

REFUSED = (asyncpg.DataError, asyncpg.ProgramLimitExceededError, ValueError)
"""What is raised about something that was given, and will be again."""


@contextmanager
def translated_errors(url: ServerAddress) -> Generator[None]:
    """Turn what the driver raises into errors of ours."""
    try:
        yield
    except (asyncpg.PostgresError, *LOST) as error:
        raise translated_error(url, error) from error


def translated_error(url: ServerAddress, error: Exception) -> WindowpaneError:
    """Return the error of ours that says what the driver says."""
    if isinstance(error, REFUSED):
        return InvalidInputError(f"PostgreSQL cannot keep what was given: {_said(error)}")
    if isinstance(error, (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)):
        return StoreCorruptError(url.shown, str(error))
    hint = next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), "")
    return StoreUnavailableError(f"{url.shown}: {_said(error)}{hint}")


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


_HINTS: dict[type[Exception], str] = {
    asyncpg.InvalidPasswordError: "; see the user and the password in `store_url`",
    asyncpg.InvalidAuthorizationSpecificationError: "; see the user and the password in `store_url`",
    asyncpg.InvalidCatalogNameError: "; create the database, for example with `createdb`",
    asyncpg.InsufficientPrivilegeError: "; let this user create the schema `windowpane`, or create it for them",
    asyncpg.ReadOnlySQLTransactionError: "; this is a replica: name the primary server in `store_url`",
    asyncpg.InvalidSQLStatementNameError: "; through pgbouncer add `?pooler=transaction` to `store_url`",
    asyncpg.DuplicatePreparedStatementError: "; through pgbouncer add `?pooler=transaction` to `store_url`",
    asyncpg.DiskFullError: "; make room on the server and try again",
    asyncpg.QueryCanceledError: "; the server was too slow, and what was asked has not been done",
    OSError: "; see that the server runs and can be reached",
}
