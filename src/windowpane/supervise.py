"""Background work that cannot take the process down.

A task group ends all of its tasks when one of them raises. So every task that outlives the call that began it runs
under one of these: `supervised` for work that ends, `keep_running` for work that goes on, `beside` for work that goes
on while something else is done.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from windowpane.errors import WindowpaneError
from windowpane.remarks import get_logger

log = get_logger()

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
"""Pauses between attempts double from the first to the longest."""


class Backoff:
    """Pauses that double from attempt to attempt."""

    def __init__(self) -> None:
        self._next_s = FIRST_PAUSE_S

    @property
    def begun(self) -> bool:
        """Tell whether an attempt has failed since the last that succeeded."""
        return self._next_s > FIRST_PAUSE_S

    def next_s(self) -> float:
        """Return how long to wait now, after one more failure."""
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_PAUSE_S)
        return pause_s

    def reset(self) -> None:
        """Begin again with the first pause: an attempt succeeded."""
        self._next_s = FIRST_PAUSE_S


async def supervised(name: str, work: Callable[[], Awaitable[object]], **facts: object) -> None:
    """Do some work. What it raises is logged, once, with `facts`, and goes no further."""
    try:
        await work()
    except WindowpaneError as error:
        log.warning("task.failed", task=name, code=error.code, why=str(error), **facts)
    except Exception:
        # A background task is an edge: an unexpected error is logged here and ends nothing else.
        log.exception("task.crashed", task=name, **facts)


async def keep_running(name: str, work: Callable[[], Awaitable[object]], **facts: object) -> None:
    """Do work that goes on until it returns. When it raises, it begins again after a pause.

    Of failures in a row only the first is logged.
    """
    backoff = Backoff()
    while True:
        began = anyio.current_time()
        try:
            await work()
        except WindowpaneError as error:
            if not backoff.begun:
                log.warning("task.failed", task=name, code=error.code, why=str(error), **facts)
        except Exception:
            if not backoff.begun:
                log.exception("task.crashed", task=name, **facts)
        else:
            return
        if anyio.current_time() - began > LONGEST_PAUSE_S:
            backoff.reset()
        await anyio.sleep(backoff.next_s())


@dataclass(frozen=True, slots=True)
class Later:
    """Work that is needed beside something else once that has taken so long."""

    after_s: float
    name: str
    work: Callable[[], Awaitable[object]]


@asynccontextmanager
async def beside(*later: Later) -> AsyncGenerator[None]:
    """Keep work running beside a block, until the block ends. A block that is over before pays for no task."""
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    def begin(each: Later) -> None:
        tasks.append(loop.create_task(keep_running(each.name, each.work), name=each.name))

    timers = [loop.call_later(each.after_s, begin, each) for each in later]
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        for task in tasks:
            task.cancel()
        if tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(tasks)
