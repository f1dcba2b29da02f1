"""The last body of each session that this worker answered lately, so that the next turn's calls store what is new."""

from collections import OrderedDict
from datetime import datetime

from windowpane.calls.skeleton import LastBody
from windowpane.context.ids import SessionId
from windowpane.context.session import SessionState

MOST_SESSIONS = 128
"""Of more sessions the next call is written whole, once."""


class LastBodies:
    """Bodies by session. One is forgotten with the session, and when anything was erased since it was stored."""

    def __init__(self) -> None:
        self._kept: OrderedDict[SessionId, tuple[datetime | None, int, LastBody]] = OrderedDict()

    def of(self, state: SessionState) -> LastBody | None:
        """Return the last body of a session, if everything that it is made of is stored still."""
        created_at, erased_seq, body = self._kept.get(state.id, (None, 0, None))
        return body if (created_at, erased_seq) == (state.created_at, state.erased_seq) else None

    def put(self, state: SessionState, body: LastBody | None) -> None:
        """Keep the last body of a turn."""
        if body is not None:
            self._kept[state.id] = state.created_at, state.erased_seq, body
            self._kept.move_to_end(state.id)
            if len(self._kept) > MOST_SESSIONS:
                self._kept.popitem(last=False)
