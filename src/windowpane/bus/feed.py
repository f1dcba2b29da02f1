"""What happens in one running turn, to those who follow it: a feed keeps all of it, so a follower misses nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from windowpane.bus.wakeup import Wakeup
from windowpane.bus.words import joined
from windowpane.context.events import Delta, Live
from windowpane.errors import WindowpaneError

WORDS_TOGETHER_S = 0.005
"""How long a word waits for the next ones after words were told: less than a frame of a screen."""


class Relay(Protocol):
    """Hears what a turn says, in the moment in which it says it."""

    def tell(self, event: Live) -> None:
        """Hear an event."""
        ...

    def close(self) -> None:
        """Hear no more."""
        ...


class Feed:
    """Everything one running turn has emitted, in order. `relay` hears all of it at once.

    A model's client often brings many words with one packet. To tell each of them costs more than all that is done with
    them, so words that follow one another quickly are told together.
    """

    def __init__(self, relay: Relay | None = None) -> None:
        self._relay = relay
        self._seen: list[Live] = []
        self._words: list[Delta] = []
        self._timer: asyncio.TimerHandle | None = None
        self._told_at = 0.0
        self._closed = False
        self._error: WindowpaneError | None = None
        self._news = Wakeup()

    def publish(self, event: Live) -> None:
        """Add an event and wake the listeners. Words wait a moment for those that follow, if some came just before."""
        if isinstance(event, Delta):
            self._words.append(event)
            if self._timer is None:
                self._tell_words_soon()
        else:
            self._tell_words()
            self._tell(event)

    def close(self, error: WindowpaneError | None = None) -> None:
        """End the feed for everyone who has read all of it; with an error when the turn has no recorded end."""
        self._tell_words()
        self._closed = True
        self._error = error
        if self._relay is not None:
            self._relay.close()
        self._news.now()

    async def listen(self) -> AsyncIterator[Live]:
        """Yield everything from the beginning, then what comes, until the feed closes.

        Words that have come meanwhile are yielded together.

        Raises:
            WindowpaneError: the end of the turn could not be recorded.
        """
        position = 0
        while True:
            while position < len(self._seen):
                event, position = self._next(position)
                yield event
            if self._closed:
                if self._error is not None:
                    raise self._error
                return
            await self._news.wait()

    def _next(self, position: int) -> tuple[Live, int]:
        """Return what comes at a position, and the position after it."""
        first, end = self._seen[position], position + 1
        if not isinstance(first, Delta):
            return first, end
        words: list[str] = [first.text]
        while end < len(self._seen) and isinstance(more := self._seen[end], Delta) and more.kind == first.kind:
            words.append(more.text)
            end += 1
        return (Delta(first.turn, "".join(words), first.kind) if len(words) > 1 else first), end

    def _tell_words_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if (due := self._told_at + WORDS_TOGETHER_S) <= (now := loop.time()):
            self._told_at = now
            self._tell_words()
        else:
            self._told_at = due
            self._timer = loop.call_at(due, self._tell_words)

    def _tell_words(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._words:
            words, self._words = self._words, []
            for delta in joined(words):
                self._tell(delta)

    def _tell(self, event: Live) -> None:
        self._seen.append(event)
        if self._relay is not None:
            self._relay.tell(event)
        self._news.now()
