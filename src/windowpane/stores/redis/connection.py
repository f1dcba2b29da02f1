"""A lasting connection to one server: what is given in the same moment goes out in one write.

Nobody waits for another's answer. A hundred callers pay for one round trip, and for one wait for the disk when the
server syncs every write. A connection that breaks is made again for the next command.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from windowpane.stores.redis.protocol import Command, Question, Reply, Talk, question

Connect = Callable[[], Awaitable[Talk]]


class Link:
    """Commands go out in the order they were given; each caller gets the replies to its own."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        # As long as there are callers: each waits for its own, so it needs no size.
        self._waiting: list[Question] = []
        self._talk: Talk | None = None
        self._talking: asyncio.Task[BaseException] | None = None

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._waiting or (self._talk and self._talk.unanswered))

    async def send(self, commands: Sequence[Command]) -> list[Reply]:
        """Return the server's replies to some commands, which it gets in one piece and one after the other.

        When the caller is cancelled, the commands are done either all or none.

        Raises:
            ConnectionLostError: no answer came.
        """
        one = question(commands)
        self._waiting.append(one)
        if self._talking is None:
            self._talking = asyncio.create_task(self._keep_talking())
            self._talking.add_done_callback(self._over)
        elif len(self._waiting) == 1:
            # Whoever gives something before the loop comes around goes along.
            asyncio.get_running_loop().call_soon(self._ask)
        return await one.answers

    def renew(self) -> None:
        """Connect anew before the next command. What was sent and not answered is lost."""
        if self._talking is not None:
            self._talking.cancel()

    async def close(self) -> None:
        """Give up what waits and disconnect."""
        if self._talking is not None:
            self._talking.cancel()
            await asyncio.wait([self._talking])

    async def _keep_talking(self) -> BaseException:
        """Connect, stay until the connection is lost, and return why it was."""
        self._talk = await self._connect()
        try:
            self._ask()
            return await asyncio.shield(self._talk.lost)
        finally:
            self._talk.hang_up()

    def _ask(self) -> None:
        if self._talk is not None:
            waiting, self._waiting = self._waiting, []
            self._talk.ask([one for one in waiting if not one.answers.done()])

    def _over(self, talking: asyncio.Task[BaseException]) -> None:
        if talking.cancelled():
            why: BaseException = ConnectionError("it was given up")
        else:
            why = talking.exception() or talking.result()
        waiting, self._waiting = self._waiting, []
        self._talk = self._talking = None
        for one in waiting:
            one.fail(why)
