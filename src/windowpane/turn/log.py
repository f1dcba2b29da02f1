"""Write a turn's events into the log of its session, as long as the turn is open."""

from collections.abc import Mapping, Sequence

from windowpane.context.events import Event, TurnError, TurnFinished
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.session import SessionState
from windowpane.errors import ModelError, WindowpaneError
from windowpane.stores.sessions import Changed, Sessions


async def append_to_turn(
    sessions: Sessions,
    session_id: SessionId,
    turn: int,
    events: Sequence[Event],
    blobs: Mapping[BlobHash, str] | None = None,
) -> Changed:
    """Append events of a turn, unless the turn is no longer the open one."""

    def still_open(state: SessionState) -> Sequence[Event]:
        return events if state.open_turn is not None and state.open_turn.turn == turn else ()

    return await sessions.change(session_id, still_open, blobs=blobs, unread=True)


def failed(turn: int, error: WindowpaneError) -> TurnFinished:
    """Return the end of a turn that failed, with what the model had said."""
    partial = error.partial if isinstance(error, ModelError) else ""
    return TurnFinished(
        turn=turn, outcome="failed", error=TurnError(code=error.code, message=str(error), partial=partial)
    )


def crashed(turn: int) -> TurnFinished:
    """Return the end of a turn that failed in a way that no part of the program expects."""
    error = TurnError(code="internal", message="unexpected error; see the server log")
    return TurnFinished(turn=turn, outcome="failed", error=error)


def interrupted(turn: int) -> TurnFinished:
    """Return the end of a turn whose worker is gone."""
    error = TurnError(code="interrupted", message="the server stopped in the middle of this turn; send it again")
    return TurnFinished(turn=turn, outcome="interrupted", error=error)
