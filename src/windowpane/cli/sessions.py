"""`windowpane sessions`: list, show, rename and delete sessions."""

import json
from datetime import datetime

import typer
from pydantic import TypeAdapter

from windowpane.cli.door import with_engine
from windowpane.cli.naming import find_session
from windowpane.cli.screen import Screen, counted
from windowpane.context.messages import ApprovalMessage, AssistantMessage, ErrorMessage, Message
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.insight.view import badge
from windowpane.settings import Settings

UNNAMED = "(no name)"
ALL_MESSAGES = 1_000_000
_MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])
_STATE: TypeAdapter[SessionState] = TypeAdapter(SessionState)


def list_sessions(settings: Settings, *, agent: str | None, limit: int, as_json: bool) -> None:
    """Print the sessions that were used last."""

    async def listed(engine: Engine) -> None:
        found = await engine.sessions(agent=agent, limit=limit)
        screen = Screen()
        if as_json:
            screen.write(json.dumps([_summary(state) for state in found.sessions], indent=2) + "\n")
            return
        draw_sessions(screen, found.sessions)
        if found.cursor is not None:
            screen.remark(f"These are the last {limit}; --limit shows more.")

    with_engine(settings, listed)


def show_session(settings: Settings, session: str, *, as_json: bool) -> None:
    """Print a session's items and its conversation."""

    async def shown(engine: Engine) -> None:
        session_id = await find_session(engine, session)
        state = await engine.session(session_id)
        messages = await engine.messages(session_id, limit=ALL_MESSAGES)
        screen = Screen()
        if as_json:
            body = _summary(state) | {
                "context_items": _STATE.dump_python(state, mode="json", include={"context_items"})["context_items"],
                "conversation": _MESSAGES.dump_python(messages, mode="json"),
            }
            screen.write(json.dumps(body, indent=2, ensure_ascii=False) + "\n")
            return
        screen.line(f"{state.name or UNNAMED}  {state.id}", "bold")
        screen.line(f"agent {state.agent}, {counted(state.turn_count, 'turn')}, begun {_moment(state.created_at)}")
        for item in state.context_items:
            screen.line(f"  {item.ref} [{badge(item.mode)}]")
        for message in messages:
            draw_message(screen, message)

    with_engine(settings, shown)


def rename_session(settings: Settings, session: str, name: str) -> None:
    """Give a session another name."""

    async def renamed(engine: Engine) -> None:
        state = await engine.update_session(await find_session(engine, session), {"name": name})
        Screen().line(f"{state.id} is now named {state.name!r}" if state.name else f"{state.id} has no name now")

    with_engine(settings, renamed)


def delete_session(settings: Settings, session: str, *, yes: bool) -> None:
    """Delete a session, after asking."""

    async def found(engine: Engine) -> SessionState:
        return await engine.session(await find_session(engine, session))

    async def deleted(engine: Engine) -> None:
        await engine.delete_session(state.id)

    state = with_engine(settings, found)
    what = f"{state.name or UNNAMED} {state.id} with {counted(state.message_count, 'message')}"
    if not yes and not typer.confirm(f"Delete {what} for good?"):
        Screen().line("Nothing was deleted.")
        raise typer.Exit(1)
    with_engine(settings, deleted)
    Screen().line(f"Deleted {what}")


def draw_sessions(screen: Screen, states: tuple[SessionState, ...]) -> None:
    """Print sessions, one per line."""
    for state in states:
        screen.line(
            f"{state.id}  {_moment(state.updated_at)}  {state.agent}  "
            f"{counted(state.message_count, 'message')}  {state.name or UNNAMED}"
        )
    if not states:
        screen.line("No sessions yet. `windowpane chat` begins one.")


def draw_message(screen: Screen, message: Message) -> None:
    """Print one message of a conversation under a line that says whose it is."""
    turn = f" (turn {message.turn})" if message.turn is not None else ""
    screen.line()
    screen.line(f"{message.role}{turn}", "bold")
    if isinstance(message, AssistantMessage):
        _draw_reply(screen, message)
    elif isinstance(message, ApprovalMessage):
        for approval in message.tool_call_approvals:
            screen.line(f"  {approval.call.ref or approval.call.offered_name}: {_words(approval.decision)}")
    else:
        screen.line(message.content, "red" if isinstance(message, ErrorMessage) else "")


def _draw_reply(screen: Screen, message: AssistantMessage) -> None:
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


def _summary(state: SessionState) -> dict[str, str | int | None]:
    return {
        "id": state.id,
        "name": state.name,
        "agent": state.agent,
        "owner": state.owner,
        "model": state.settings.model,
        "turns": state.turn_count,
        "messages": state.message_count,
        "created_at": state.created_at.isoformat() if state.created_at else None,
        "updated_at": state.updated_at.isoformat() if state.updated_at else None,
    }


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "never"


def _words(decision: str | None) -> str:
    return "not decided" if decision is None else decision.replace("_", " ")
