"""What every bus with a server has in common: one connection that is kept, and what is sent over it.

A task connects, subscribes to what is wanted and sends what waits, all that came together at once. When the connection
breaks, it says so once, tries again with growing pauses, and begins with all that is wanted then. Of messages that wait
too long the oldest are dropped.
"""

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol, Self

from windowpane import telemetry
from windowpane.bus.base import LARGEST_MESSAGE, Bus, Hear, topic_of
from windowpane.context.ids import SessionId
from windowpane.remarks import get_logger
from windowpane.supervise import Backoff, keep_running

log = get_logger()

WAITING = 10_000
"""How many messages wait while there is no connection."""

TOGETHER = 500
"""How many messages are sent at once."""

PAUSE_S = 0.005
"""How long to gather what goes out together."""

CHECK_EVERY_S = 2.0
"""How often to see that the connection is alive."""

LINGER_S = 60.0
"""How long a topic is still subscribed to when none hears it any more. A conversation has its next turn soon."""

ANSWER_S = 5.0
CLOSE_S = 1.0


class LinkLostError(Exception):
    """A connection to a bus could not be made, or broke."""


class Link(Protocol):
    """One connection to a server. All operations raise `LinkLostError` when it is of no use any more."""

    lost: bool
    """Whether the connection broke. The link that notices calls `ConnectedBus.wake`."""

    async def exchange(
        self, begin: Collection[str], end: Collection[str], messages: Collection[tuple[str, bytes]]
    ) -> None:
        """Subscribe to topics, unsubscribe from others and send messages. What was begun is heard when it returns."""
        ...

    async def check(self) -> None:
        """See that messages that are sent are heard."""
        ...

    async def close(self) -> None:
        """End the connection, whatever became of it."""
        ...


class ConnectedBus(Bus):
    """A bus on a server."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._hearing: dict[str, list[Hear]] = {}
        self._confirmed: set[str] = set()
        self._left: dict[str, float] = {}
        self._outbox: deque[tuple[str, bytes]] = deque(maxlen=WAITING)
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._open = False
        self._away = ""

    @property
    def away(self) -> str:
        """Why messages are not carried at the moment; see `Bus.away`."""
        return self._away

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._open = False
        if self._task is not None:
            self._news.set()
            # What is left to say is said, unless there is no connection to say it on.
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if self._away else CLOSE_S):
                    await asyncio.shield(self._task)
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def publish(self, session_id: SessionId, message: bytes) -> None:
        """Send a message soon; see `Bus.publish`."""
        if len(message) <= LARGEST_MESSAGE:
            self._outbox.append((topic_of(session_id), message))
            self._work()

    def subscribe(self, session_id: SessionId, hear: Hear) -> Callable[[], None]:
        """Call `hear` with each message about a session; see `Bus.subscribe`."""
        topic = topic_of(session_id)
        hearing = self._hearing.setdefault(topic, [])
        hearing.append(hear)
        self._left.pop(topic, None)
        if topic in self._confirmed:
            asyncio.get_running_loop().call_soon(hear, b"")
        self._work()

        def end() -> None:
            if hear in hearing:
                hearing.remove(hear)
            if not hearing and self._hearing.get(topic) is hearing:
                del self._hearing[topic]
                now = asyncio.get_running_loop().time()
                self._forget_left(now - LINGER_S)
                self._left[topic] = now

        return end

    @abstractmethod
    async def connect(self) -> Link:
        """Return a new connection.

        Raises:
            LinkLostError: there is none to be had.
        """
        ...

    def deliver(self, topic: str, message: bytes) -> None:
        """Give a message to those who hear it."""
        for hear in tuple(self._hearing.get(topic, ())):
            hear(message)

    def wake(self) -> None:
        """Look at once at what there is to do."""
        self._news.set()

    def _work(self) -> None:
        self.wake()
        if self._open and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(keep_running("bus", self._keep_connected))

    async def _keep_connected(self) -> None:
        backoff = Backoff()
        while self._open or self._outbox:
            try:
                async with asyncio.timeout(ANSWER_S):
                    link = await self.connect()
                try:
                    await self._use(link, backoff)
                finally:
                    await link.close()
            except (LinkLostError, TimeoutError) as error:
                if not self._away:
                    telemetry.cut_off_bus()
                    log.warning("bus.away", bus=self._shown, why=str(error) or "no answer")
                self._away = str(error) or "no answer"
            await asyncio.sleep(backoff.next_s())

    async def _use(self, link: Link, backoff: Backoff) -> None:
        self._confirmed = set()
        checked = 0.0
        loop = asyncio.get_running_loop()
        while not link.lost:
            self._news.clear()
            self._forget_left(loop.time() - LINGER_S)
            wanted = set(self._hearing) | self._confirmed & set(self._left)
            begin, end = wanted - self._confirmed, self._confirmed - wanted
            messages = [self._outbox.popleft() for _ in range(min(TOGETHER, len(self._outbox)))]
            async with asyncio.timeout(ANSWER_S):
                if begin or end or messages:
                    await link.exchange(begin, end, messages)
                    await asyncio.sleep(PAUSE_S)
                if self._away or loop.time() >= checked + CHECK_EVERY_S:
                    await link.check()
                    checked = loop.time()
                    backoff.reset()
                    self._back()
            self._confirmed = wanted
            for topic in begin:
                self.deliver(topic, b"")
            if not self._open and not self._outbox:
                return
            if not self._outbox:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_EVERY_S):
                        await self._news.wait()
        raise LinkLostError("the connection broke")

    def _forget_left(self, before: float) -> None:
        """Forget the topics that none has heard since some time; the first that were left come first."""
        while self._left and next(iter(self._left.values())) < before:
            del self._left[next(iter(self._left))]

    def _back(self) -> None:
        if self._away:
            log.info("bus.back", bus=self._shown)
            self._away = ""
