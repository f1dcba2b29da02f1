"""One connection to one server: commands go out, and answers come back in the order of the commands.

A server answers in the order it was asked, so more can be asked while it works. Only `hiredis`, which reads answers, is
a library: a client's streams and tasks would cost more than all the rest of an append.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import TypeAlias, cast

import hiredis
from hiredis import ReplyError

Command = tuple[bytes, ...]
Reply: TypeAlias = "bytes | int | ReplyError | list[Reply] | None"
"""What the server answered; what it refuses is an answer too."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where one server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ConnectionLostError(Exception):
    """The connection broke: what was asked may have been done or not. `__cause__` tells how."""


@dataclass(slots=True, eq=False)
class Question:
    """Commands that the server gets in one piece and one after the other, and who waits for the answers."""

    packed: bytes
    how_many: int
    answers: asyncio.Future[list[Reply]]
    replies: list[Reply] = field(default_factory=list["Reply"])

    def fail(self, why: BaseException) -> None:
        if not self.answers.done():
            lost = ConnectionLostError(str(why) or type(why).__name__)
            lost.__cause__ = why
            self.answers.set_exception(lost)


async def connect(
    address: Address,
    *,
    tls: SSLContext | None,
    login: Sequence[Command],
    answer_s: float,
    unasked: Callable[[Reply], None] | None = None,
) -> "Talk":
    """Return a connection that the server let in. `unasked` takes what the server says when nobody waits for it.

    Raises:
        OSError: nobody is there, or not in time.
        ConnectionLostError: the server hung up.
        ReplyError: the server does not let us in.
    """
    async with asyncio.timeout(answer_s):
        loop = asyncio.get_running_loop()
        _, talk = await loop.create_connection(lambda: Talk(answer_s, unasked), address.host, address.port, ssl=tls)
        try:
            await _log_in(talk, login)
        except BaseException:
            talk.hang_up()
            raise
    return talk


async def _log_in(talk: "Talk", login: Sequence[Command]) -> None:
    if login:
        asking = question(login)
        talk.ask([asking])
        if refused := refusal(await asking.answers):
            raise refused


def question(commands: Sequence[Command]) -> Question:
    """Return commands as they are sent."""
    packed = b"".join([_pack(command) for command in commands])
    return Question(packed, len(commands), asyncio.get_running_loop().create_future())


def refusal(replies: Sequence[Reply]) -> ReplyError | None:
    """Return the first error among the replies."""
    return next((reply for reply in replies if isinstance(reply, ReplyError)), None)


class Talk(asyncio.Protocol):
    """What was asked on one connection, and the answers as they come."""

    def __init__(self, answer_s: float, unasked: Callable[[Reply], None] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._answer_s = answer_s
        self._unasked = unasked
        self._reader = hiredis.Reader()
        self._heard_at = 0.0
        self._watching: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.unanswered: deque[Question] = deque()
        self.lost: asyncio.Future[BaseException] = self._loop.create_future()
        """Why the connection is lost, once it is."""

    def ask(self, questions: Sequence[Question]) -> None:
        """Send commands. Their answers come, or a `ConnectionLostError`."""
        if self.lost.done():
            for one in questions:
                one.fail(self.lost.result())
            return
        if not self.unanswered:
            self._heard_at = self._loop.time()
        self.unanswered.extend(questions)
        self._write(b"".join([one.packed for one in questions]))
        if self._watching is None:
            self._watching = self._loop.call_later(self._answer_s, self._watch)

    def say(self, *commands: Command) -> None:
        """Send commands whose answers come unasked."""
        self._write(b"".join([_pack(command) for command in commands]))

    def hang_up(self) -> None:
        """Disconnect. What was not answered is lost."""
        self._lose(ConnectionError("it was given up"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                self._take(reply)
        except hiredis.ProtocolError as error:
            self._lose(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(exc or ConnectionError("the server closed the connection"))

    def _write(self, packed: bytes) -> None:
        if self._transport is not None:
            self._transport.write(packed)

    def _take(self, reply: Reply) -> None:
        if self.unanswered:
            one = self.unanswered[0]
            one.replies.append(reply)
            if len(one.replies) == one.how_many:
                self.unanswered.popleft()
                if not one.answers.done():
                    one.answers.set_result(one.replies)
        elif self._unasked is not None:
            self._unasked(reply)
        else:
            self._lose(ConnectionError(f"the server said {reply!r:.100}"))

    def _watch(self) -> None:
        """Give up when nothing was heard for too long while somebody waits."""
        self._watching = None
        left_s = self._heard_at + self._answer_s - self._loop.time()
        if self.unanswered and left_s > 0:
            self._watching = self._loop.call_later(left_s, self._watch)
        elif self.unanswered:
            self._lose(TimeoutError(f"no answer for {self._answer_s:g} s"))

    def _lose(self, why: BaseException) -> None:
        if self.lost.done():
            return
        self.lost.set_result(why)
        if self._watching is not None:
            self._watching.cancel()
        if self._transport is not None:
            self._transport.abort()
        while self.unanswered:
            self.unanswered.popleft().fail(why)


# The library leaves its type out.
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]
