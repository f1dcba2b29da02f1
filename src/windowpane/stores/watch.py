"""Watchers of sessions, and how they are woken.

The log is the truth; a wake-up only says "read". A watcher therefore misses nothing and sees nothing twice, however
many wake-ups it gets: it reads what stands after the last event it has seen.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import contextmanager
from typing import Protocol

from windowpane.context.events import Recorded
from windowpane.context.ids import SessionId
from windowpane.errors import SessionNotFoundError, StoreUnavailableError

_READ_AT_ONCE = 500


class Read(Protocol):
    """The store's `read`."""

    def __call__(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Awaitable[list[Recorded]]: ...


class Watcher:
    """A reader that has seen a session's log up to `seq`."""

    def __init__(self, seq: int) -> None:
        self.seq = seq
        self.changed = asyncio.Event()


class Watchers:
    """All watchers of sessions in this process."""

    def __init__(self) -> None:
        self._watching: defaultdict[SessionId, set[Watcher]] = defaultdict(set)
        self._closed = False

    @property
    def seen(self) -> dict[SessionId, int]:
        """Return for each watched session how far its slowest watcher has come."""
        return {session_id: min(one.seq for one in watchers) for session_id, watchers in self._watching.items()}

    async def follow(self, read: Read, session_id: SessionId, after: int) -> AsyncGenerator[Recorded]:
        """Yield a session's events after a sequence number until the session is deleted or `close` is called."""
        with self._watcher(session_id, after) as watcher:
            while not self._closed:
                # Cleared before reading: an event that comes while we read sets it again, so it is not missed.
                watcher.changed.clear()
                try:
                    events = await read(session_id, after=watcher.seq, limit=_READ_AT_ONCE)
                except SessionNotFoundError:
                    return
                except StoreUnavailableError:
                    if self._closed:
                        return
                    raise
                for recorded in events:
                    watcher.seq = recorded.seq
                    yield recorded
                if len(events) < _READ_AT_ONCE:
                    await watcher.changed.wait()

    def wake(self, session_id: SessionId) -> None:
        """Have the watchers of a session read again."""
        for watcher in self._watching.get(session_id, ()):
            watcher.changed.set()

    def close(self) -> None:
        """End every `follow`."""
        self._closed = True
        for session_id in self._watching:
            self.wake(session_id)

    @contextmanager
    def _watcher(self, session_id: SessionId, seq: int) -> Generator[Watcher]:
        watcher = Watcher(seq)
        self._watching[session_id].add(watcher)
        try:
            yield watcher
        finally:
            self._watching[session_id].discard(watcher)
            if not self._watching[session_id]:
                del self._watching[session_id]
