"""Write a turn's events into the log of its session, as long as the turn is open.

A store that goes away in the middle of an append may have stored the events or not. So before they are appended again
the log is read, and the second append is made only where the log still stands there: nothing is stored twice.
"""

from collections.abc import Mapping, Sequence

from windowpane.context.events import Event, Recorded, TurnError, TurnFinished
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.session import SessionState
from windowpane.errors import (
    ModelError,
    ModelRateLimitedError,
    ModelRejectedError,
    StoreUnavailableError,
    WindowpaneError,
)
from windowpane.stores.codec import encode_event
from windowpane.stores.sessions import Changed, Sessions
from windowpane.turn.patience import StorePatience


async def append_to_turn(
    sessions: Sessions,
    session_id: SessionId,
    turn: int,
    events: Sequence[Event],
    blobs: Mapping[BlobHash, str] | None = None,
    *,
    fence: int | None,
    release: str | None = None,
) -> Changed:
    """Append events of a turn, unless the turn is no longer the open one. `fence` is the number of its lease.

    `release` is the holder whose lease is given back with them.

    Raises:
        LeaseLostError: another worker has taken the session over.
    """

    def still_open(state: SessionState) -> Sequence[Event]:
        return events if _is_open(state, turn) else ()

    return await sessions.change(session_id, still_open, blobs=blobs, unread=True, fence=fence, release=release)


async def append_patiently(
    sessions: Sessions,
    before: SessionState,
    turn: int,
    events: Sequence[Event],
    patience: StorePatience,
    blobs: Mapping[BlobHash, str] | None = None,
    *,
    fence: int,
    release: str | None = None,
) -> Changed:
    """Append events of a turn as `append_to_turn` does, and try again while the store is away.

    `before` is a state of the session from before the first attempt.

    Raises:
        LeaseLostError: another worker has taken the session over.
        StoreUnavailableError: the store was away for too long.
    """
    try:
        return await append_to_turn(sessions, before.id, turn, events, blobs, fence=fence, release=release)
    except StoreUnavailableError:
        return await patience.retry(lambda: _append_if_missing(sessions, before, turn, events, blobs, fence, release))


async def _append_if_missing(
    sessions: Sessions,
    before: SessionState,
    turn: int,
    events: Sequence[Event],
    blobs: Mapping[BlobHash, str] | None,
    fence: int,
    release: str | None,
) -> Changed:
    while True:
        state = await sessions.state(before.id)
        news = await sessions.store.read(before.id, after=before.seq)
        if found := _own(news, events):
            return Changed(await sessions.state(before.id), found)
        looked_at = news[-1].seq if news else before.seq

        def nothing_came(now: SessionState, seq: int = looked_at) -> Sequence[Event]:
            return events if now.seq == seq and _is_open(now, turn) else ()

        if not _is_open(state, turn):
            return Changed(state)
        changed = await sessions.change(before.id, nothing_came, blobs=blobs, fence=fence, release=release)
        if changed.recorded:
            return changed


def _is_open(state: SessionState, turn: int) -> bool:
    return state.open_turn is not None and state.open_turn.turn == turn


def _own(news: Sequence[Recorded], events: Sequence[Event]) -> tuple[Recorded, ...]:
    """Return these events as the log has them, one after the other; nothing where it has not."""
    wanted = [encode_event(event) for event in events]
    written = [encode_event(entry.event) for entry in news]
    for start in range(len(written) - len(wanted) + 1):
        if written[start : start + len(wanted)] == wanted:
            return tuple(news[start : start + len(wanted)])
    return ()


def failed(turn: int, error: WindowpaneError) -> TurnFinished:
    """Return the end of a turn that failed, with what the model had said."""
    partial = error.partial if isinstance(error, ModelError) else ""
    status = error.status if isinstance(error, ModelRejectedError) else None
    wait_s = error.retry_after_s if isinstance(error, ModelRateLimitedError) else None
    reason = TurnError(code=error.code, message=str(error), partial=partial, status=status, retry_after_s=wait_s)
    return TurnFinished(turn=turn, outcome="failed", error=reason)


def crashed(turn: int, why: Exception) -> TurnFinished:
    """Return the end of a turn that failed in a way that no part of the program expects."""
    known = "the server ran out of memory; ask for less, or give it more" if isinstance(why, MemoryError) else None
    error = TurnError(code="internal", message=known or "unexpected error; see the server log")
    return TurnFinished(turn=turn, outcome="failed", error=error)


def interrupted(turn: int) -> TurnFinished:
    """Return the end of a turn whose worker is gone."""
    error = TurnError(code="interrupted", message="the server stopped in the middle of this turn; send it again")
    return TurnFinished(turn=turn, outcome="interrupted", error=error)
