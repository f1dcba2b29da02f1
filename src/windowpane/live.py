"""Turns as they happen: one feed per running turn, for any number of listeners.

A feed keeps everything its turn has said so far, so a listener who comes late or reads slowly misses nothing and
never holds the turn up. When the turn ends or stops to wait for a person, the feed closes.
"""

from collections.abc import AsyncIterator

import anyio

from windowpane.context.events import Live


class Feed:
    """Everything one running turn has emitted, in order."""

    def __init__(self) -> None:
        self._seen: list[Live] = []
        self._closed = False
        self._news = anyio.Event()

    def publish(self, event: Live) -> None:
        """Add an event and wake the listeners."""
        self._seen.append(event)
        self._ring()

    def close(self) -> None:
        """End the feed for everyone who has read all of it."""
        self._closed = True
        self._ring()

    async def listen(self) -> AsyncIterator[Live]:
        """Yield everything from the beginning, then what comes, until the feed closes."""
        position = 0
        while True:
            while position < len(self._seen):
                yield self._seen[position]
                position += 1
            if self._closed:
                return
            await self._news.wait()

    def _ring(self) -> None:
        self._news.set()
        self._news = anyio.Event()
