"""An event loop in a thread of its own, for work that would hold others up.

What a message needs is chosen, recalled and put together in milliseconds in which nothing else of the same loop runs.
On the loop that serves, the words of all other answers would wait for it.

What lives on the second loop is used there alone, so that it needs no locks. `run` brings a call there; `back` brings
one from there to the loop that serves, where stores, models and tool servers live. As long as there is no second loop
both are plain calls.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import copy_context
from threading import Thread
from typing import ParamSpec, Protocol, TypeVar

import anyio

P = ParamSpec("P")
T = TypeVar("T")


class Bring(Protocol):
    """Awaits a call on one of the two loops."""

    async def __call__(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T: ...


class SecondLoop:
    """Where the requests of an engine are built."""

    def __init__(self) -> None:
        self._first: asyncio.AbstractEventLoop | None = None
        self._second: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def holding(self, *residents: AbstractAsyncContextManager[object]) -> AsyncGenerator[None]:
        """Have the loop run, and these open on it. What they raise while they are opened or closed is raised here."""
        opened: Future[asyncio.Event] = Future()
        ended: Future[None] = Future()

        async def live() -> None:
            async with AsyncExitStack() as stack:
                for resident in residents:
                    await stack.enter_async_context(resident)
                self._second, stop = asyncio.get_running_loop(), asyncio.Event()
                opened.set_result(stop)
                await stop.wait()
                # What is still asked for is a plain call again: those that live here are about to close.
                self._second = None

        def work() -> None:
            try:
                asyncio.run(live())
            except BaseException as error:  # noqa: BLE001 - whatever it is, the loop that waits for this one is told
                (ended if opened.done() else opened).set_exception(error)
            else:
                ended.set_result(None)

        self._first = asyncio.get_running_loop()
        Thread(target=copy_context().run, args=(work,), name="windowpane-second-loop", daemon=True).start()
        opening = asyncio.wrap_future(opened)
        try:
            # A caller that is cancelled meanwhile waits below until there is something to close.
            await asyncio.shield(opening)
            yield
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    self.call((await opening).set)
                    await asyncio.wrap_future(ended)
            finally:
                self._first = None

    async def run(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await a call on the second loop. One that is cancelled here is cancelled there."""
        return await _on(self._second, work, *args, **kwargs)

    async def back(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await a call on the loop that serves. One that is cancelled here is cancelled there."""
        return await _on(self._first, work, *args, **kwargs)

    def called_back(self, work: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """Return what makes a call on the loop that serves, wherever it is called."""

        async def called(*args: P.args, **kwargs: P.kwargs) -> T:
            return await self.back(work, *args, **kwargs)

        return called

    def call(self, work: Callable[[], object]) -> None:
        """Have a short call made on the second loop, before those that are brought there later."""
        if self._second is None:
            work()
        else:
            self._second.call_soon_threadsafe(work)


async def _on(
    loop: asyncio.AbstractEventLoop | None, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    if loop is None or loop is asyncio.get_running_loop():
        return await work(*args, **kwargs)

    async def called() -> T:
        return await work(*args, **kwargs)

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(called(), loop))
