"""One engine for a process whose code waits: it runs in a thread of its own, and callers wait for it.

A worker that was forked gets an engine of its own; one that ends closes it.
"""

import atexit
import os
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing
from typing import TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from windowpane.engine import Engine

T = TypeVar("T")


class Running:
    """An engine that is open, for as long as the process lives or until it is closed."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._pid = 0
        self._stack = ExitStack()
        self._engine: Engine
        self._portal: BlockingPortal

    def ask(self, question: Callable[[Engine], Awaitable[T]]) -> T:
        """Return what the engine answers."""
        self._open()
        return self._portal.call(question, self._engine)

    def follow(self, question: Callable[[Engine], AsyncGenerator[T]]) -> Iterator[T]:
        """Yield what the engine says, as it says it. The engine goes on when the caller stops listening."""
        self._open()
        heard: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()

        async def listen() -> None:
            try:
                async with aclosing(question(self._engine)) as events:
                    async for event in events:
                        heard.put((event,))
            finally:
                heard.put(None)

        told = self._portal.start_task_soon(listen)
        while (event := heard.get()) is not None:
            yield event[0]
        told.result()

    def close(self) -> None:
        """Close the engine. The next question opens another."""
        with self._lock:
            if self._pid == os.getpid():
                self._stack.close()
            self._pid = 0

    def _open(self) -> None:
        with self._lock:
            if self._pid == os.getpid():
                return
            self._stack = ExitStack()
            self._portal = self._stack.enter_context(start_blocking_portal())
            self._engine = self._portal.call(self._made)
            self._stack.enter_context(self._portal.wrap_async_context_manager(self._engine))
            self._pid = os.getpid()
            atexit.register(self.close)

    async def _made(self) -> Engine:
        return self._make()
