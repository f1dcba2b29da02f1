"""What happens in one running turn, to those who follow it: a feed keeps all of it, so a follower misses nothing."""

from collections.abc import AsyncIterator
from typing import Protocol

from windowpane.bus.wakeup import Wakeup
from windowpane.context.events import Delta, Live
from windowpane.errors import WindowpaneError


class Relay(Protocol):
    """Hears what a turn says, in the moment in which it says it."""

    def tell(self, event: Live) -> None:
        """Hear an event."""
        ...

    def close(self) -> None:
        """Hear no more."""
        ...


class Feed:
    """Everything one running turn has emitted, in order. `relay` hears all of it at once."""

    def __init__(self, relay: Relay | None = None) -> None:
        self._relay = relay
        self._seen: list[Live] = []
        self._closed = False
        self._error: WindowpaneError | None = None
        self._news = Wakeup()

    def publish(self, event: Live) -> None:
        """Add an event and wake the listeners."""
        self._seen.append(event)
        if self._relay is not None:
            self._relay.tell(event)
        if isinstance(event, Delta):
            self._news.soon()
        else:
            self._news.now()

    def close(self, error: WindowpaneError | None = None) -> None:
        """End the feed for everyone who has read all of it; with an error when the turn has no recorded end."""
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
