"""A pane in a thread of its own, because in a conversation the main thread waits for the user to type.

So the line editor and Ctrl-C work as in any program, while tool servers stay connected and turns continue.
"""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from windowpane.api.pane import Pane
from windowpane.cli.connect import open_pane
from windowpane.context.events import Live

LOOK_UP_S = 0.2
"""How long Ctrl-C can go unnoticed: if it comes just before a wait begins, it does not end the wait."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Ctrl-C was pressed."""


class Events:
    """The events of a turn, one by one, with Ctrl-C as one of them, so that no event is lost.

    While it is open, the first Ctrl-C is an event, and the second raises `KeyboardInterrupt` as usual.
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

    @contextmanager
    def asking(self) -> Generator[None]:
        """Let Ctrl-C raise `KeyboardInterrupt` in this block, in which the user is asked."""
        mine = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, mine)

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


class PaneThread:
    """An open pane that runs in another thread."""

    def __init__(self, portal: BlockingPortal, pane: Pane) -> None:
        self._portal = portal
        self.pane = pane

    def wait(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what a call of the pane answers."""
        return self._portal.call(ask)

    def events(self, events: AsyncIterator[Live]) -> Events:
        """Start following a turn."""
        return Events(self._portal, events)


@contextmanager
def open_thread() -> Generator[PaneThread]:
    """Open a pane for as long as the conversation lasts."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_pane(warm=True)) as pane:
        yield PaneThread(portal, pane)
