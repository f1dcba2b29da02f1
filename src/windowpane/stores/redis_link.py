"""One connection to one server: everything that waits goes out in one write.

While the server works on what was sent, more callers queue up; the next write takes all of them. So a hundred callers
pay for one round trip, and for one wait for the disk when the server syncs every write.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from redis.asyncio.connection import Connection, SSLConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

Command = tuple[bytes, ...]
Reply: TypeAlias = "bytes | int | RedisError | list[Reply] | None"
"""What the server answered; what it refuses is an answer too."""

LOST = (RedisConnectionError, RedisTimeoutError, OSError, TimeoutError)
"""What a connection raises that is lost or was never made."""

_MOST_AT_ONCE = 512
_MOST_BYTES_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Address:
    """Where one server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Wire(Protocol):
    """The part of the library's connection that is used here."""

    async def connect(self) -> None: ...

    async def disconnect(self, nowait: bool = False) -> None: ...

    async def send_packed_command(self, command: Sequence[bytes], check_health: bool = True) -> None: ...

    async def read_response(self, *, timeout: float | None = None) -> Reply: ...  # noqa: ASYNC109 - the library's name


Connect = Callable[[], Wire]


def wire(address: Address, options: dict[str, object], *, tls: bool) -> Wire:
    """Return a connection that is not connected yet."""
    kind = cast("Callable[..., Wire]", SSLConnection if tls else Connection)
    return kind(host=address.host, port=address.port, protocol=2, **options)


def pack(command: Command) -> bytes:
    """Return a command as it is written."""
    return b"*%d\r\n%b" % (len(command), b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in command]))


class LinkLostError(Exception):
    """The connection broke: what was sent may have been done or not. `__cause__` tells how."""


@dataclass(slots=True, eq=False)
class _Job:
    packed: list[bytes]
    future: asyncio.Future[list[Reply]]


class Link:
    """Commands go out in the order they were given; each caller gets the replies to its own."""

    def __init__(self, connect: Connect, answer_s: float) -> None:
        self._connect = connect
        self._answer_s = answer_s
        self._wire: Wire | None = None
        # As long as there are callers: each waits for its own job, so the queue needs no size.
        self._waiting: deque[_Job] = deque()
        self._serving: asyncio.Task[None] | None = None
        self._outdated = False

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._serving is not None and not self._serving.done()

    async def send(self, commands: Sequence[Command]) -> list[Reply]:
        """Return the server's replies to some commands, which it gets in one piece and one after the other.

        When the caller is cancelled, the commands are done either all or none.

        Raises:
            LinkLostError: no answer came.
        """
        job = _Job([pack(command) for command in commands], asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if not self.busy:
            self._serving = asyncio.create_task(self._serve())
        return await job.future

    def renew(self) -> None:
        """Connect anew before the next command."""
        self._outdated = True

    async def close(self) -> None:
        """Give up what waits and disconnect."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
        self._fail(self._waiting, RedisConnectionError("the store is closed"))
        self._waiting.clear()
        await self._hang_up()

    async def _serve(self) -> None:
        while self._waiting:
            jobs = self._take()
            try:
                async with asyncio.timeout(self._answer_s):
                    await self._exchange(jobs)
            except LOST as error:
                await self._hang_up()
                self._fail(jobs, error)
            except asyncio.CancelledError:
                await self._hang_up()
                self._fail(jobs, RedisConnectionError("the store is closed"))
                raise

    def _take(self) -> list[_Job]:
        jobs: list[_Job] = []
        size = 0
        while self._waiting and len(jobs) < _MOST_AT_ONCE and size < _MOST_BYTES_AT_ONCE:
            job = self._waiting.popleft()
            if not job.future.done():
                jobs.append(job)
                size += sum(map(len, job.packed))
        return jobs

    async def _exchange(self, jobs: Sequence[_Job]) -> None:
        if self._outdated:
            self._outdated = False
            await self._hang_up()
        if self._wire is None:
            # Kept before it is connected, so that it is hung up when that is interrupted.
            self._wire = self._connect()
            await self._wire.connect()
        await self._wire.send_packed_command([word for job in jobs for word in job.packed], check_health=False)
        for job in jobs:
            replies = [await read_reply(self._wire) for _ in job.packed]
            if not job.future.done():
                job.future.set_result(replies)

    async def _hang_up(self) -> None:
        lost, self._wire = self._wire, None
        if lost is not None:
            with suppress(*LOST):
                await lost.disconnect(nowait=True)

    def _fail(self, jobs: Sequence[_Job], why: BaseException) -> None:
        for job in jobs:
            if not job.future.done():
                lost = LinkLostError(str(why) or type(why).__name__)
                lost.__cause__ = why
                job.future.set_exception(lost)


async def read_reply(wire: Wire) -> Reply:
    """Return the next reply; what the server refuses is a reply too."""
    try:
        return await wire.read_response(timeout=math.inf)
    except ResponseError as refused:
        return refused


def refusal(replies: Sequence[Reply]) -> RedisError | None:
    """Return the first error among the replies."""
    return next((reply for reply in replies if isinstance(reply, RedisError)), None)
