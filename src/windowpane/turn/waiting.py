"""What an open turn waits for: decisions about tool calls, and results of tools that the caller runs."""

from collections.abc import Mapping, Sequence

from windowpane.context.events import (
    ApprovalDecided,
)
from windowpane.context.ids import Actor
from windowpane.context.messages import Decision, ToolResult
from windowpane.context.session import SessionState
from windowpane.errors import (
    NoResultAwaitedError,
    NothingToApproveError,
)


def decision(state: SessionState, decisions: Mapping[str, Decision], actor: Actor) -> ApprovalDecided:
    """Return what is recorded of these decisions.

    Raises:
        NothingToApproveError: no call waits, or one of the ids is not a waiting call's.
    """
    waiting = {call.id for call in state.open_turn.undecided} if state.open_turn else set[str]()
    if state.open_turn is None or not waiting:
        raise NothingToApproveError("no tool call of this session waits for a decision")
    if not decisions:
        raise NothingToApproveError(f"no decision was given; these calls wait: {', '.join(sorted(waiting))}")
    if unknown := sorted(set(decisions) - waiting):
        raise NothingToApproveError(
            f"these calls do not wait for a decision: {', '.join(unknown)}; these do: {', '.join(sorted(waiting))}"
        )
    return ApprovalDecided(turn=state.open_turn.turn, decisions=dict(decisions), actor=actor)


def check_results(state: SessionState, results: Sequence[ToolResult]) -> None:
    """Make sure that these results are waited for.

    Raises:
        NoResultAwaitedError: no call waits for one, or one of the ids is not a waiting call's.
    """
    waiting = {call.id for call in state.open_turn.for_client} if state.open_turn else set[str]()
    if not waiting:
        raise NoResultAwaitedError("no tool call of this session waits for a result; send a message instead")
    if not results:
        raise NoResultAwaitedError(f"no result was given; these calls wait: {', '.join(sorted(waiting))}")
    if unknown := sorted({result.call_id for result in results} - waiting):
        waited = ", ".join(sorted(waiting))
        raise NoResultAwaitedError(
            f"these tool calls are not waiting for a result: {', '.join(unknown)}; these wait: {waited}"
        )
