"""How long a model may be silent: only the time counts in which it is waited for."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from windowpane.models.silence import Silence


async def words(*pauses_s: float) -> AsyncGenerator[str]:
    for number, pause_s in enumerate(pauses_s):
        await anyio.sleep(pause_s)
        yield str(number)


async def test_a_stream_that_falls_silent_ends_the_block_without_an_error() -> None:
    heard: list[str] = []

    with Silence(30) as silence:
        silence.begin()
        async for word in words(0, 0, 3600):
            heard.append(word)
            silence.allow(0.05 if word == "1" else 30)
            silence.begin()

    assert (heard, silence.broken) == (["0", "1"], True)


async def test_a_caller_may_take_longer_with_a_word_than_the_model_may() -> None:
    heard: list[str] = []

    with Silence(0.2) as silence:
        silence.begin()
        async for word in words(0, 0, 0):
            silence.end()
            heard.append(word)
            await anyio.sleep(0.5)
            silence.begin()

    assert (heard, silence.broken) == (["0", "1", "2"], False)


async def test_an_error_of_the_stream_passes_and_is_no_silence() -> None:
    async def broken() -> AsyncGenerator[str]:
        raise ConnectionError("gone")
        yield ""

    with pytest.raises(ConnectionError, match="gone"), Silence(30) as silence:
        await anext(broken())

    assert silence.broken is False


async def test_cancelling_from_outside_is_no_silence() -> None:
    with anyio.CancelScope() as outer, Silence(30) as silence:
        silence.begin()
        async for _ in words(0, 3600):
            outer.cancel()

    assert (outer.cancelled_caught, silence.broken) == (True, False)
