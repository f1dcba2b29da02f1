"""What this process was told by a server: what stands where in some logs, and what time it is there.

A server that lost its latest writes, such as a replica that took over, continues the log with other events under the
same numbers. A caller that continues from an event of the lost part would mix two histories without noticing. So the
time of the last event that was seen is kept for a while, and compared when a caller continues from there.
"""

import time
from collections import OrderedDict

from windowpane.context.ids import SessionId

_SESSIONS = 10_000
_PLACES = 8


class SeenPositions:
    """The times of events that were last in what was read or appended, for the sessions used last."""

    def __init__(self) -> None:
        self._known: OrderedDict[SessionId, OrderedDict[int, int]] = OrderedDict()

    def note(self, session_id: SessionId, seq: int, at_us: int) -> None:
        """Remember that an event of this time stands here."""
        places = self._known.setdefault(session_id, OrderedDict())
        self._known.move_to_end(session_id)
        places[seq] = at_us
        places.move_to_end(seq)
        if len(places) > _PLACES:
            places.popitem(last=False)
        if len(self._known) > _SESSIONS:
            self._known.popitem(last=False)

    def at(self, session_id: SessionId, seq: int) -> int | None:
        """Return the time of the event that stood here; None when it is not remembered."""
        places = self._known.get(session_id)
        return places.get(seq) if places else None

    def forget(self, session_id: SessionId) -> None:
        """Drop what is remembered about a session that was deleted."""
        self._known.pop(session_id, None)


class ServerClock:
    """Follows the server's clock between two answers."""

    def __init__(self) -> None:
        self._said_us = 0
        self._when = time.monotonic()

    def heard(self, at_us: int) -> None:
        """Note that the server said a time just now."""
        if at_us > self.now():
            self._said_us, self._when = at_us, time.monotonic()

    def now(self) -> int:
        """Return the time in microseconds."""
        return self._said_us + int((time.monotonic() - self._when) * 1_000_000)
