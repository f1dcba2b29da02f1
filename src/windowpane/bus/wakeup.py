"""Wake those who wait for news. Words that follow one another quickly wake them once.

A model's client often brings many words with one packet. To wake a listener for each of them costs more than all that
is done with the words.
"""

import asyncio

import anyio

WORDS_TOGETHER_S = 0.005
"""How long a word waits for the next ones after a wake-up: less than a frame of a screen."""


class Wakeup:
    """What listeners wait for. Each looks for news before it waits, so a call that none waits for is not lost."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._called_at = 0.0

    async def wait(self) -> None:
        """Wait for the next call."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()

    def now(self) -> None:
        """Wake all that wait."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._event is not None:
            self._event.set()
            self._event = None

    def soon(self) -> None:
        """Wake all that wait: at once, or, a moment after the last time, together with what comes until then."""
        if self._timer is not None or self._event is None:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now < (due := self._called_at + WORDS_TOGETHER_S):
            self._called_at = due
            self._timer = loop.call_at(due, self.now)
        else:
            self._called_at = now
            self.now()
