"""Pages of a store's sessions, last used first. It needs a store alone, so that a command can list them at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windowpane.context.ids import SessionId
from windowpane.context.session import SessionState
from windowpane.stores.sessions import Sessions


@dataclass(frozen=True, slots=True)
class SessionList:
    """Some sessions, last used first, and the cursor of the next page."""

    sessions: tuple[SessionState, ...]
    cursor: str | None


async def list_sessions(
    states: Sessions, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
) -> SessionList:
    """Return sessions, last used first: of an owner, or of all, without those that were made for a single request."""
    found: list[SessionState] = []
    while True:
        page = await states.store.sessions(owner, agent=agent, limit=limit - len(found), cursor=cursor)
        stand = {row.id: row.last_seq for row in page.rows}
        these = await list_these(states, [*stand], page.cursor, stand=stand)
        # A list of one owner does not have them: they are kept under a name of their own.
        found += these.sessions if owner is not None else [state for state in these.sessions if state.listed]
        cursor = page.cursor
        if owner is not None or cursor is None or len(found) == limit:
            return SessionList(tuple(found), cursor)


async def list_these(
    states: Sessions,
    session_ids: Sequence[SessionId],
    cursor: str | None = None,
    *,
    stand: Mapping[SessionId, int] | None = None,
) -> SessionList:
    """Return sessions of a page whose next has this cursor. `stand` is where their logs were just seen to stand."""
    # A session may be deleted while the list is being read.
    found = await states.glance_at(session_ids, stand)
    return SessionList(tuple(found[session_id] for session_id in session_ids if session_id in found), cursor)
