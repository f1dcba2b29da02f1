"""Print sessions and their messages in the terminal."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.sessions import SessionView
    from windowpane.context.messages import AssistantMessage, Message

UNNAMED = "(no name)"


def draw_sessions(screen: Screen, sessions: "Sequence[SessionView]") -> None:
    """Print sessions, one per line."""
    for session in sessions:
        screen.line(
            f"{session.id}  {moment_text(session.updated_at)}  {session.agent}  "
            f"{counted(session.message_count, 'message')}  {session.title or UNNAMED}"
        )
    if not sessions:
        screen.line("No sessions yet. `windowpane chat` starts one.")


def draw_message(screen: Screen, message: "Message") -> None:
    """Print one message of a conversation, below its role and turn."""
    from windowpane.context.messages import ApprovalMessage, AssistantMessage, ErrorMessage, UserMessage

    turn = f" (turn {message.turn})" if message.turn is not None else ""
    screen.line()
    screen.line(f"{message.role}{turn}", "bold")
    if isinstance(message, AssistantMessage):
        _draw_reply(screen, message)
    elif isinstance(message, ApprovalMessage):
        for approval in message.tool_call_approvals:
            screen.line(f"  {approval.call.ref or approval.call.offered_name}: {_decision_text(approval.decision)}")
    else:
        screen.line(message.content, "red" if isinstance(message, ErrorMessage) else "")
        for file in message.attachments if isinstance(message, UserMessage) else ():
            screen.line(f"  + {file.label}", "dim")


def _draw_reply(screen: Screen, message: "AssistantMessage") -> None:
    for step in message.model_reply.steps:
        if step.text:
            screen.line(step.text)
        for call in step.tool_calls:
            screen.line(f"  → {call.ref or call.offered_name} {call.arguments}", "dim")
            result = step.result_of(call.id)
            if result is not None:
                screen.line(f"  ← {'failed: ' if result.is_error else ''}{result.content}", "dim")
    if message.outcome != "completed":
        screen.line(f"({message.outcome})", "yellow")


def moment_text(at: datetime | None) -> str:
    """Return a point in time as it is listed."""
    return f"{at:%Y-%m-%d %H:%M}" if at else "never"


def _decision_text(decision: str | None) -> str:
    return "not decided" if decision is None else decision.replace("_", " ")
