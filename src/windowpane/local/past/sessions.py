"""Sessions as a store has them, of every owner."""

from windowpane.api.sessions import SessionListView, SessionView
from windowpane.context.ids import SessionId
from windowpane.local.views import session_view
from windowpane.sessions.listing import list_sessions
from windowpane.stores.sessions import Sessions


class PastSessions:
    """Lists and reads sessions."""

    def __init__(self, states: Sessions) -> None:
        self._states = states

    async def list(self, *, agent: str | None = None, limit: int = 50, cursor: str | None = None) -> SessionListView:
        """Return sessions, last used first."""
        found = await list_sessions(self._states, agent=agent, limit=limit, cursor=cursor)
        encrypted = self._states.store.encrypted
        return SessionListView(tuple(map(session_view, found.sessions)), found.cursor, names_only=encrypted)

    async def get(self, session_id: str) -> SessionView:
        """Return a session as it is now.

        Raises:
            SessionNotFoundError: no such session.
        """
        return session_view(await self._states.state(SessionId(session_id)))
