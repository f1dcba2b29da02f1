"""Many callers on one connection: what is given in the same moment goes out in one write.

While one exchange with the server is under way, more commands queue up; the next exchange takes all of them. So a
hundred callers pay for one round trip, and for one wait for the disk when the server syncs every write.

redis-py has pipelines too. Each takes a connection from a pool, measures itself and gives it back, which costs more
processor time than the rest of an append. So its connections are used without them.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import hiredis
from redis.asyncio import Connection
from redis.exceptions import RedisError, ResponseError

Command = tuple[bytes, ...]
Reply: TypeAlias = "bytes | int | ResponseError | list[Reply] | None"
"""What the server answered; what it refuses is an answer too."""


class ConnectionLostError(Exception):
    """The connection broke: what was asked may have been done or not. `__cause__` tells how."""

    def __init__(self, why: BaseException) -> None:
        super().__init__(str(why) or type(why).__name__)
        self.__cause__ = why


@dataclass(slots=True, eq=False)
class PendingCall:
    """Commands that the server gets in one piece and one after the other, and the caller who waits for the replies."""

    packed: bytes
    how_many: int
    replies: asyncio.Future[list[Reply]]


class Pipeline:
    """One connection. Each caller gets the replies to its own commands. A connection that breaks is made again."""

    def __init__(self, connection: Connection, answer_s: float) -> None:
        self._connection = connection
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        # As long as there are callers: each waits for its own call, so the queue needs no size.
        self._waiting: list[PendingCall] = []
        self._exchanging: asyncio.Task[Any] | None = None
        self._unread = 0
        """How many replies to what was sent last are still to come."""
        self._broken_off: str | None = None
        self._heard_at = 0.0
        self._watching: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def busy(self) -> bool:
        """Tell whether a caller waits for a reply."""
        return self._exchanging is not None

    async def send(self, commands: Sequence[Command]) -> list[Reply]:
        """Return the server's replies to some commands.

        When the caller is cancelled, the commands are done either all or none.

        Raises:
            ConnectionLostError: no answer came.
        """
        packed = b"".join([_pack(command) for command in commands])
        if self._exchanging is not None:
            call = PendingCall(packed, len(commands), self._loop.create_future())
            self._waiting.append(call)
            return await call.replies
        # A single caller needs no task and no future: most turns have one.
        self._exchanging = asyncio.current_task()
        try:
            with self._lost_when_broken():
                await self._write(packed, len(commands))
                return await self._read(len(commands))
        finally:
            # When the caller was cancelled, its replies are still to come and are read without it.
            more = self._waiting or self._unread
            self._exchanging = self._loop.create_task(self._exchange_waiting()) if more else None
            await self._stay_closed()

    def renew(self) -> None:
        """Connect again before the next exchange."""
        self._connection.mark_for_reconnect()

    async def close(self) -> None:
        """Give up what waits and disconnect."""
        self._closed = True
        if self._watching is not None:
            self._watching.cancel()
        self._give_up(self._waiting, ConnectionError("the connection was closed"))
        self._break_off("the connection was closed")
        await self._connection.disconnect(nowait=True)

    async def _exchange_waiting(self) -> None:
        calls: list[PendingCall] = []
        try:
            with self._lost_when_broken():
                await self._read(self._unread)
            while self._waiting:
                calls, self._waiting = self._waiting, []
                calls = [call for call in calls if not call.replies.done()]
                with self._lost_when_broken():
                    how_many = sum(call.how_many for call in calls)
                    await self._write(b"".join([call.packed for call in calls]), how_many)
                    for call in calls:
                        replies = await self._read(call.how_many)
                        if not call.replies.done():
                            call.replies.set_result(replies)
        except ConnectionLostError as lost:
            # Callers that were answered keep their replies. The others learn that theirs are lost, also those whose
            # commands were not sent yet: they try again, and the server tells what was done.
            self._give_up([*calls, *self._waiting], lost.__cause__ or lost)
        except Exception as error:
            # A mistake here must leave no caller waiting for ever.
            self._forget_connection()
            self._give_up([*calls, *self._waiting], error)
            raise
        finally:
            self._exchanging = None
            await self._stay_closed()

    async def _stay_closed(self) -> None:
        """Disconnect what was connecting while the pipeline was closed."""
        if self._closed:
            await self._connection.disconnect(nowait=True)

    def _give_up(self, calls: Sequence[PendingCall], why: BaseException) -> None:
        self._waiting = []
        for call in calls:
            if not call.replies.done():
                call.replies.set_exception(ConnectionLostError(why))

    async def _write(self, packed: bytes, how_many: int) -> None:
        connection = self._connection
        self._heard_at = self._loop.time()
        if self._watching is None:
            self._watching = self._loop.call_later(self._answer_s, self._watch)
        # A server that closed the connection meanwhile has not seen the commands: nothing needs to be repeated.
        if not connection.is_connected or connection.should_reconnect() or await connection.can_read():
            await connection.disconnect(nowait=True)
            await connection.connect()
        await connection.send_packed_command(packed, check_health=False)
        self._unread = how_many

    async def _read(self, how_many: int) -> list[Reply]:
        replies: list[Reply] = []
        while len(replies) < how_many:
            try:
                replies.append(cast("Reply", await self._connection.read_response(disconnect_on_error=False)))
            except ResponseError as refused:
                replies.append(refused)
            self._unread -= 1
        self._heard_at = self._loop.time()
        return replies

    @contextmanager
    def _lost_when_broken(self) -> Generator[None]:
        """Say that the connection is lost when an exchange fails or is broken off."""
        try:
            yield
        except (RedisError, OSError) as error:
            self._forget_connection()
            raise ConnectionLostError(error) from error
        except asyncio.CancelledError:
            why, self._broken_off = self._broken_off, None
            if why is not None or not self._unread:
                self._forget_connection()
            task = asyncio.current_task()
            if why is None or task is None or task.uncancel() > 0:
                raise
            lost = ConnectionError(why)
            raise ConnectionLostError(lost) from lost

    def _forget_connection(self) -> None:
        self._unread = 0
        self._connection.mark_for_reconnect()

    def _watch(self) -> None:
        """Break the exchange off when nothing was heard for too long.

        One timer serves many exchanges: a deadline for each would cost a tenth of it.
        """
        self._watching = None
        if self._exchanging is None:
            return
        left_s = self._heard_at + self._answer_s - self._loop.time()
        if left_s > 0:
            self._watching = self._loop.call_later(left_s, self._watch)
        else:
            self._break_off(f"no answer for {self._answer_s:g} s")

    def _break_off(self, why: str) -> None:
        if self._exchanging is not None:
            self._broken_off = why
            self._exchanging.cancel()


# The library leaves its type out.
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]
