"""Wake those who wait for news."""

import anyio


class Wakeup:
    """What listeners wait for. Each looks for news before it waits, so a call that none waits for is not lost."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    async def wait(self) -> None:
        """Wait for the next call."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()

    def now(self) -> None:
        """Wake all that wait."""
        if self._event is not None:
            self._event.set()
            self._event = None
