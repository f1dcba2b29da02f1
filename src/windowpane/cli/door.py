"""Open the engine: for one command, or for a conversation. With `--url`, a server does a command's work instead.

A command asks the engine here or the server there for the same value, and prints it the same way.

In a conversation it has a thread of its own, because the main thread waits for a person. So the line editor and
Ctrl-C work as in any program, while tool servers stay connected and turns run on.
"""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from windowpane.cli.progress import show_indexing
from windowpane.context.events import Live
from windowpane.engine import Engine
from windowpane.settings import Settings
from windowpane.wiring import open_engine

if TYPE_CHECKING:
    # It takes as long to load as the engine does, and most commands do without it.
    from windowpane.client import Client

LOOK_UP_S = 0.2
"""How long Ctrl-C can go unnoticed: one that comes in the instant before a wait begins does not end the wait."""

T = TypeVar("T")


class Server(Protocol):
    """A server that does the work."""

    def ask(self, there: "Callable[[Client], Awaitable[T]]") -> T:
        """Return what a function makes of a client of it."""
        ...


Place = Settings | Server
"""Where the work is done: here, with these settings, or there."""


def ask(place: Place, here: Callable[[Engine], Awaitable[T]], there: "Callable[[Client], Awaitable[T]]") -> T:
    """Return what one function makes of an open engine, or the other of a server."""
    return with_engine(place, here) if isinstance(place, Settings) else place.ask(there)


def with_engine(settings: Settings, ask: Callable[[Engine], Awaitable[T]]) -> T:
    """Return what a function makes of an open engine."""

    async def opened() -> T:
        async with open_engine(settings, on_progress=show_indexing) as engine:
            return await ask(engine)

    return anyio.run(opened)


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Ctrl-C was pressed."""


class Events:
    """The events of a turn, to be taken one by one, and Ctrl-C among them, so that it never costs one of them.

    While it is open, the first Ctrl-C is an event, and the second is what it always is.
    """

    def __init__(self, portal: BlockingPortal, events: AsyncIterator[Live]) -> None:
        self._portal = portal
        self._events = events
        self._queue: SimpleQueue[Live | Interrupted | BaseException | None] = SimpleQueue()
        self._pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._press)
        self._portal.start_task_soon(self._pump)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def take(self) -> Live | Interrupted | None:
        """Wait for the next event and return it, or None when there are no more."""
        while True:
            try:
                event = self._queue.get(timeout=LOOK_UP_S)
            except Empty:
                continue
            if isinstance(event, BaseException):
                raise event
            return event

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True
        self._queue.put(Interrupted())

    async def _pump(self) -> None:
        try:
            async for event in self._events:
                self._queue.put(event)
        except BaseException as error:
            self._queue.put(error)
            raise
        self._queue.put(None)


class Door:
    """An open engine, from another thread."""

    def __init__(self, portal: BlockingPortal, engine: Engine) -> None:
        self._portal = portal
        self.engine = engine

    def wait(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what the engine answers."""
        return self._portal.call(ask)

    def events(self, events: AsyncIterator[Live]) -> Events:
        """Begin to follow a turn."""
        return Events(self._portal, events)


@contextmanager
def open_door(settings: Settings) -> Generator[Door]:
    """Open the engine for as long as the conversation lasts."""
    opening = open_engine(settings, on_progress=show_indexing)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as engine:
        yield Door(portal, engine)
