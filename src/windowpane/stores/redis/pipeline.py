"""Many callers on one connection: what is given in the same moment goes out in one write.

While one exchange with the server is under way, more commands queue up; the next exchange takes all of them. So a
hundred callers pay for one round trip, and for one wait for the disk when the server syncs every write.

redis-py has pipelines too. Each takes a connection from a pool, measures itself and gives it back, which costs more
processor time than the rest of an append. So its connections are used without them.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

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
class Call:
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
        self._waiting: list[Call] = []
        self._exchanging: asyncio.Task[None] | None = None
        self._heard_at = 0.0
        self._watching: asyncio.TimerHandle | None = None

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
        call = Call(packed, len(commands), self._loop.create_future())
        self._waiting.append(call)
        if self._exchanging is None:
            # The task starts when the event loop comes around: what is given until then goes along.
            self._exchanging = self._loop.create_task(self._exchange_all())
        return await call.replies

    def renew(self) -> None:
        """Connect again before the next exchange."""
        self._connection.mark_for_reconnect()

    async def close(self) -> None:
        """Give up what waits and disconnect."""
        if self._watching is not None:
            self._watching.cancel()
        if self._exchanging is not None:
            self._exchanging.cancel("the connection was closed")
            await asyncio.wait([self._exchanging])
        await self._connection.disconnect(nowait=True)

    async def _exchange_all(self) -> None:
        calls: list[Call] = []
        try:
            while self._waiting:
                calls, self._waiting = self._waiting, []
                calls = [call for call in calls if not call.replies.done()]
                await self._exchange(calls)
        except (RedisError, OSError, asyncio.CancelledError) as error:
            # Those who were answered before keep their replies. The others learn that theirs are lost, also those
            # whose commands were not sent yet: they try again, and find out what was done.
            await self._connection.disconnect(nowait=True)
            for call in (*calls, *self._waiting):
                if not call.replies.done():
                    call.replies.set_exception(ConnectionLostError(error))
            self._waiting = []
        finally:
            self._exchanging = None

    async def _exchange(self, calls: Sequence[Call]) -> None:
        connection = self._connection
        self._heard_at = self._loop.time()
        if self._watching is None:
            self._watching = self._loop.call_later(self._answer_s, self._watch)
        # A server that closed the connection meanwhile has not seen the commands: nothing needs to be repeated.
        if not connection.is_connected or connection.should_reconnect() or await connection.can_read():
            await connection.disconnect(nowait=True)
            await connection.connect()
        await connection.send_packed_command(b"".join([call.packed for call in calls]), check_health=False)
        for call in calls:
            replies: list[Reply] = []
            while len(replies) < call.how_many:
                try:
                    replies.append(cast("Reply", await connection.read_response()))
                except ResponseError as refused:
                    replies.append(refused)
            self._heard_at = self._loop.time()
            if not call.replies.done():
                call.replies.set_result(replies)

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
            self._exchanging.cancel(f"no answer for {self._answer_s:g} s")


# The library leaves its type out.
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]
