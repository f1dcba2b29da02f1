"""Watchers of sessions, and how they are woken.

The log is the truth. A wake-up only says "read": a watcher then reads what stands after the last event it has seen.
What this process appended itself is handed over instead, and taken only where it follows what the watcher has seen. So
a watcher misses nothing and sees nothing twice, whatever it is told and in whatever order.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterable
from contextlib import contextmanager
from typing import Protocol

from windowpane.context.events import Recorded
from windowpane.context.ids import SessionId
from windowpane.errors import SessionNotFoundError, StoreUnavailableError
from windowpane.stores.append import Append, Appended
from windowpane.stores.codec import decode_event

_READ_AT_ONCE = 500
_MOST_HANDED = 500


class Read(Protocol):
    """The store's `read`."""

    def __call__(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Awaitable[list[Recorded]]: ...


class Watcher:
    """A reader that has seen a session's log up to `seq`. `reads`: there may be more in the log."""

    def __init__(self, seq: int, *, reads: bool = True) -> None:
        self.seq = seq
        self.reads = reads
        self.changed = asyncio.Event()
        self._handed: list[Recorded] = []

    def wake(self) -> None:
        """Read the log again."""
        self.reads = True
        self.changed.set()

    def hand(self, entries: Iterable[Recorded]) -> None:
        """Take what was appended."""
        self._handed += entries
        if len(self._handed) > _MOST_HANDED:
            self._handed.clear()
            self.reads = True
        self.changed.set()

    def take(self) -> list[Recorded]:
        """Return what was handed over, if it follows what was seen; else the log is read.

        A number that was seen already may be one that the store had lost and gave again: reading finds that out.
        """
        handed, self._handed = self._handed, []
        if any(entry.seq != seq for seq, entry in enumerate(handed, self.seq + 1)):
            self.reads = True
            return []
        return handed


class Watchers:
    """All watchers of sessions in this process."""

    def __init__(self) -> None:
        self._watching: defaultdict[SessionId, set[Watcher]] = defaultdict(set)
        self._closed = False

    @property
    def are_any(self) -> bool:
        """Tell whether a session is watched."""
        return bool(self._watching)

    @property
    def seen(self) -> dict[SessionId, int]:
        """Return for each watched session how far its slowest watcher has come."""
        return {session_id: min(one.seq for one in watchers) for session_id, watchers in self._watching.items()}

    async def follow(
        self, read: Read, session_id: SessionId, after: int, *, unread: bool = False
    ) -> AsyncGenerator[Recorded]:
        """Yield a session's events after a sequence number until the session is deleted or `close` is called.

        With `unread` the log is first read when something is told about it.
        """
        with self._watcher(session_id, Watcher(after, reads=not unread)) as watcher:
            while not self._closed:
                # Cleared before looking: what comes while we look or yield sets it again, so it is not missed.
                watcher.changed.clear()
                events = watcher.take()
                if not events and watcher.reads:
                    watcher.reads = False
                    try:
                        events = await read(session_id, after=watcher.seq, limit=_READ_AT_ONCE)
                    except SessionNotFoundError:
                        return
                    except StoreUnavailableError:
                        if self._closed:
                            return
                        raise
                    watcher.reads = watcher.reads or len(events) == _READ_AT_ONCE
                for recorded in events:
                    watcher.seq = recorded.seq
                    yield recorded
                if not events and not watcher.reads:
                    await watcher.changed.wait()

    def tell(self, append: Append, appended: Appended) -> None:
        """Hand what this process appended to those who watch the session."""
        watchers = self._watching.get(append.session_id)
        if not watchers or appended.repeated:
            return
        if append.original_times is not None:
            self.wake(append.session_id)
            return
        events = append.events or map(decode_event, append.bodies)
        entries = [Recorded(seq, appended.at, event) for seq, event in enumerate(events, appended.first_seq)]
        for watcher in watchers:
            watcher.hand(entries)

    def wake(self, session_id: SessionId) -> None:
        """Have the watchers of a session read again."""
        for watcher in self._watching.get(session_id, ()):
            watcher.wake()

    def close(self) -> None:
        """End every `follow`."""
        self._closed = True
        for session_id in self._watching:
            self.wake(session_id)

    @contextmanager
    def _watcher(self, session_id: SessionId, watcher: Watcher) -> Generator[Watcher]:
        self._watching[session_id].add(watcher)
        try:
            yield watcher
        finally:
            self._watching[session_id].discard(watcher)
            if not self._watching[session_id]:
                del self._watching[session_id]
