"""`windowpane sessions`: list, show, rename and delete sessions."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import typer
from pydantic import TypeAdapter

from windowpane.cli.door import Place, ask
from windowpane.cli.naming import LATEST, find_session, find_there
from windowpane.cli.screen import Screen, counted
from windowpane.context.events import SessionItem
from windowpane.context.messages import ApprovalMessage, AssistantMessage, ErrorMessage, Message
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.insight.view import badge

if TYPE_CHECKING:
    from windowpane.api.sessions import SessionView
    from windowpane.client import Client

    AnySession = SessionState | SessionView

UNNAMED = "(no name)"
ALL_MESSAGES = 1_000_000
_MESSAGES: TypeAdapter[Sequence[Message]] = TypeAdapter(Sequence[Message])
_ITEMS: TypeAdapter[Sequence[SessionItem]] = TypeAdapter(Sequence[SessionItem])


def list_sessions(place: Place, *, agent: str | None, limit: int, as_json: bool) -> None:
    """Print the sessions that were used last."""

    async def here(engine: Engine) -> "tuple[Sequence[AnySession], bool]":
        found = await engine.sessions(agent=agent, limit=limit)
        return found.sessions, found.cursor is not None

    async def there(client: "Client") -> "tuple[Sequence[AnySession], bool]":
        page = await client.sessions(agent=agent, limit=min(limit, LATEST))
        found = list(page.sessions)
        while page.cursor is not None and len(found) < limit:
            page = await client.sessions(agent=agent, limit=min(limit - len(found), LATEST), cursor=page.cursor)
            found += page.sessions
        return found, page.cursor is not None

    found, more = ask(place, here, there)
    screen = Screen()
    if as_json:
        screen.write(json.dumps([_summary(state) for state in found], indent=2) + "\n")
        return
    draw_sessions(screen, found)
    if more:
        screen.remark(f"These are the last {limit}; --limit shows more.")


def show_session(place: Place, session: str, *, as_json: bool) -> None:
    """Print a session's items and its conversation."""

    async def here(engine: Engine) -> "tuple[AnySession, Sequence[SessionItem], Sequence[Message]]":
        state = await engine.session(await find_session(engine, session))
        return state, state.context_items, await engine.messages(state.id, limit=ALL_MESSAGES)

    async def there(client: "Client") -> "tuple[AnySession, Sequence[SessionItem], Sequence[Message]]":
        view = await find_there(client, session)
        return view, view.items, await _messages_there(client, view.id)

    state, items, messages = ask(place, here, there)
    screen = Screen()
    if as_json:
        body = _summary(state) | {
            "context_items": _ITEMS.dump_python(items, mode="json"),
            "conversation": _MESSAGES.dump_python(messages, mode="json"),
        }
        screen.write(json.dumps(body, indent=2, ensure_ascii=False) + "\n")
        return
    screen.line(f"{state.title or UNNAMED}  {state.id}", "bold")
    screen.line(f"agent {state.agent}, {counted(state.turn_count, 'turn')}, begun {_moment(state.created_at)}")
    for item in items:
        screen.line(f"  {item.ref} [{badge(item.mode)}]")
    for message in messages:
        draw_message(screen, message)


async def _messages_there(client: "Client", session_id: str) -> list[Message]:
    page = await client.messages(session_id, limit=LATEST)
    found = list(page.messages)
    while page.before is not None:
        page = await client.messages(session_id, before=page.before, limit=LATEST)
        found = [*page.messages, *found]
    return found


def rename_session(place: Place, session: str, name: str) -> None:
    """Give a session another name."""

    async def here(engine: Engine) -> "AnySession":
        return await engine.update_session(await find_session(engine, session), {"name": name})

    async def there(client: "Client") -> "AnySession":
        return await client.update_session((await find_there(client, session)).id, {"name": name})

    state = ask(place, here, there)
    Screen().line(f"{state.id} is now named {state.name!r}" if state.name else f"{state.id} has no name now")


def delete_session(place: Place, session: str, *, yes: bool) -> None:
    """Delete a session, after asking."""

    async def found_here(engine: Engine) -> "AnySession":
        return await engine.session(await find_session(engine, session))

    async def found_there(client: "Client") -> "AnySession":
        return await find_there(client, session)

    state = ask(place, found_here, found_there)
    what = f"{state.title or UNNAMED} {state.id} with {counted(state.message_count, 'message')}"
    if not yes and not typer.confirm(f"Delete {what} for good?"):
        Screen().line("Nothing was deleted.")
        raise typer.Exit(1)
    ask(place, lambda engine: engine.delete_session(state.id), lambda client: client.delete_session(state.id))
    Screen().line(f"Deleted {what}")


def draw_sessions(screen: Screen, states: "Sequence[AnySession]") -> None:
    """Print sessions, one per line."""
    for state in states:
        screen.line(
            f"{state.id}  {_moment(state.updated_at)}  {state.agent}  "
            f"{counted(state.message_count, 'message')}  {state.title or UNNAMED}"
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


def _summary(state: "AnySession") -> dict[str, str | int | None]:
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
