"""Work beside something else: it begins when that takes longer, and ends with it."""

import anyio
import anyio.lowlevel
import pytest

from windowpane.supervise import Later, beside


class Work:
    """Work that goes on until it is ended. It fails as often as it is told to, when it begins."""

    def __init__(self, failures: int = 0) -> None:
        self.begun = anyio.Event()
        self.ended = anyio.Event()
        self.attempts = 0
        self._failures = failures

    async def __call__(self) -> None:
        self.attempts += 1
        if self.attempts <= self._failures:
            raise RuntimeError("not yet")
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()


async def test_work_runs_beside_a_block_and_ends_with_it() -> None:
    work = Work()

    async with beside(Later(0, "work", work)):
        await work.begun.wait()

    assert (work.attempts, work.ended.is_set()) == (1, True)


async def test_a_block_that_is_over_sooner_begins_no_work() -> None:
    work = Work()

    async with beside(Later(3600, "work", work)):
        await anyio.lowlevel.checkpoint()

    assert work.attempts == 0


async def test_work_that_fails_begins_again_and_disturbs_nothing() -> None:
    work = Work(failures=2)

    async with beside(Later(0, "work", work)):
        await work.begun.wait()

    assert (work.attempts, work.ended.is_set()) == (3, True)


async def test_work_ends_with_a_block_that_fails() -> None:
    work = Work()

    async def fail() -> None:
        async with beside(Later(0, "work", work)):
            await work.begun.wait()
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"):
        await fail()

    assert work.ended.is_set()


async def test_work_ends_with_a_block_that_is_cancelled() -> None:
    work = Work()

    with anyio.CancelScope() as scope:
        async with beside(Later(0, "work", work)):
            await work.begun.wait()
            scope.cancel()
            await anyio.sleep_forever()

    assert (scope.cancelled_caught, work.ended.is_set()) == (True, True)
