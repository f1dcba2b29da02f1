"""Begin a turn: what the log says first, before anything can go wrong with the message."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from windowpane.agents.base import Agent
from windowpane.context.events import Event, Recorded, SessionContext, SessionUpdated, TurnFinished, TurnStarted
from windowpane.context.messages import Attachment
from windowpane.context.session import SessionState
from windowpane.errors import ApprovalPendingError
from windowpane.stores.base import Lease
from windowpane.text.tokens import count
from windowpane.turn.log import interrupted

NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """A turn that was begun, or, with nothing recorded, one that the same key had begun before.

    `state` is the session then; `agent` is as its folder says it now, for the whole turn. `lease` is the one that the
    turn runs under.
    """

    turn: int
    state: SessionState
    agent: Agent
    lease: Lease
    recorded: tuple[Recorded, ...] = ()


def opening_events(
    state: SessionState,
    message: str,
    attachments: tuple[Attachment, ...] = (),
    *,
    resumed: bool,
    key: str | None = None,
) -> list[Event]:
    """Return what begins a turn: the message, and, where it resumes the session, the working context to go on with."""
    number, tokens = state.last_turn + 1, count(message)
    started = TurnStarted(
        turn=number, message=message, key=key, tokens=tokens, resumed=resumed, attachments=attachments
    )
    return [started, SessionContext(reason="resume", context=state.sets, actor="system")] if resumed else [started]


def setting_events(state: SessionState, settings: Mapping[str, Any]) -> list[Event]:
    """Return what changes the session to settings that came with a message or with results."""
    changes = {name: value for name, value in settings.items() if getattr(state.settings, name) != value}
    return [SessionUpdated(changes=changes, actor="user")] if changes else []


def closing_events(state: SessionState) -> list[Event]:
    """Return what closes a turn that its worker left behind, before another begins.

    Raises:
        ApprovalPendingError: the turn was not left behind; it waits for a person.
    """
    turn = state.open_turn
    if turn is None:
        return []
    if turn.undecided:
        raise ApprovalPendingError(turn.turn, tuple(str(call.ref or call.offered_name) for call in turn.undecided))
    if turn.for_client:
        # The client sends another message instead of the results it owes: it has given the turn up.
        return [TurnFinished(turn=turn.turn, outcome="cancelled")]
    return [interrupted(turn.turn)]
