"""The second loop: calls are brought there and back, and end with those who asked for them."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import anyio
import anyio.lowlevel
import pytest

from patience import PATIENCE_S
from windowpane.second_loop import SecondLoop

asked_by: ContextVar[str] = ContextVar("asked_by", default="")


async def thread() -> int:
    return threading.get_ident()


async def test_a_call_runs_in_another_thread_and_calls_back_from_there() -> None:
    second = SecondLoop()
    here = threading.get_ident()

    async def there() -> tuple[int, int, int]:
        return threading.get_ident(), await second.run(thread), await second.back(thread)

    async with second.holding():
        ran, ran_again, called_back = await second.run(there)
        returned = await second.called_back(thread)()

    assert ran != here
    assert (ran_again, called_back, returned) == (ran, here, here)


async def test_without_a_second_loop_they_are_plain_calls() -> None:
    second = SecondLoop()
    called: list[int] = []
    before = [await second.run(thread), await second.back(thread)]
    async with second.holding():
        pass
    second.call(lambda: called.append(threading.get_ident()))
    after = [await second.run(thread), await second.back(thread)]

    assert {*before, *called, *after} == {threading.get_ident()}


async def test_the_loop_that_serves_goes_on_while_the_second_one_is_busy() -> None:
    second = SecondLoop()
    served = threading.Event()

    async def busy() -> bool:
        # The whole loop waits, as it does while something is computed.
        return served.wait(PATIENCE_S)

    async with second.holding(), anyio.create_task_group() as tasks:

        async def serve() -> None:
            served.set()

        answer = asyncio.ensure_future(second.run(busy))
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(serve)
        assert await answer


async def test_what_lives_there_is_opened_used_and_closed_in_one_thread() -> None:
    second = SecondLoop()
    seen: list[int] = []

    @asynccontextmanager
    async def resident() -> AsyncGenerator[None]:
        seen.append(threading.get_ident())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            yield
            tasks.cancel_scope.cancel()
        seen.append(threading.get_ident())

    async with second.holding(resident()):
        seen.append(await second.run(thread))

    assert len(seen) == 3
    assert len({*seen}) == 1
    assert seen[0] != threading.get_ident()


async def test_short_calls_are_made_before_what_is_brought_later() -> None:
    second = SecondLoop()
    made: list[int] = []

    async def look() -> list[int]:
        return [*made]

    async with second.holding():
        second.call(lambda: made.append(1))
        second.call(lambda: made.append(2))
        seen = await second.run(look)

    assert seen == [1, 2]


async def test_a_call_that_is_cancelled_here_is_cancelled_there() -> None:
    second = SecondLoop()
    begun, ended = threading.Event(), threading.Event()

    async def forever() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with second.holding():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second.run, forever)
            assert await anyio.to_thread.run_sync(begun.wait, PATIENCE_S)
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(ended.wait, PATIENCE_S)


async def test_what_a_call_raises_is_raised_here() -> None:
    second = SecondLoop()

    async def fail() -> None:
        raise LookupError("not there")

    async with second.holding():
        with pytest.raises(LookupError, match="not there"):
            await second.run(fail)
        assert await second.run(thread) != threading.get_ident()


@pytest.mark.parametrize("when", ["opened", "closed"])
async def test_what_cannot_be_opened_or_closed_there_says_so_here(when: str) -> None:
    second = SecondLoop()

    @asynccontextmanager
    async def resident() -> AsyncGenerator[None]:
        if when == "opened":
            raise LookupError(when)
        yield
        raise LookupError(when)

    with pytest.raises(LookupError, match=when):
        async with second.holding(resident()):
            assert await second.run(thread) != threading.get_ident()

    assert await second.run(thread) == threading.get_ident()


async def test_what_lives_there_can_ask_the_loop_that_serves_while_it_closes() -> None:
    second = SecondLoop()
    asked: list[int] = []

    @asynccontextmanager
    async def resident() -> AsyncGenerator[None]:
        yield
        asked.append(await second.back(thread))

    async with second.holding(resident()):
        pass

    assert asked == [threading.get_ident()]


async def test_a_caller_who_is_cancelled_still_closes_what_lives_there() -> None:
    second = SecondLoop()
    closed = threading.Event()

    @asynccontextmanager
    async def resident() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            closed.set()

    with anyio.CancelScope() as scope:
        async with second.holding(resident()):
            scope.cancel()
            await anyio.sleep_forever()

    assert closed.is_set()


async def test_a_call_takes_the_context_of_its_caller_along() -> None:
    second = SecondLoop()

    async def who() -> str:
        return asked_by.get()

    async with second.holding():
        asked_by.set("a turn")
        assert await second.run(who) == "a turn"
