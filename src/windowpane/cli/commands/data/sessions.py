"""`windowpane sessions`: list, show, rename and delete sessions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import ask
from windowpane.cli.lookup import LATEST, find_session, find_there
from windowpane.cli.options import ANYWHERE, Json, SessionArgument, new_app, where
from windowpane.cli.render_session import UNNAMED, draw_message, draw_sessions, moment_text
from windowpane.cli.terminal import Screen, confirmed, counted
from windowpane.context.events import SessionItem
from windowpane.context.messages import Message
from windowpane.insight.view import badge

if TYPE_CHECKING:
    from windowpane.cli.old_client import Client
    from windowpane.cli.render_session import AnySession
    from windowpane.engine import Engine

app = new_app()

ALL_MESSAGES = 1_000_000


@app.callback(invoke_without_command=True)
@where(*ANYWHERE)
def sessions(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions of this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Maximum number of sessions.")] = 20,
    as_json: Json = False,
) -> None:
    """List, show, rename and delete sessions. Without a command, lists them, most recently used first.

    \b
    Examples:
      windowpane sessions
      windowpane sessions show last
      windowpane sessions rename ses_4k "Invoice import"
      windowpane sessions delete ses_4k
    """
    if context.invoked_subcommand is None:
        _list(agent, limit, as_json=as_json)


def _list(agent: str | None, limit: int, *, as_json: bool) -> None:
    async def here(engine: "Engine") -> "tuple[Sequence[AnySession], bool]":
        found = await engine.sessions(agent=agent, limit=limit)
        return found.sessions, found.cursor is not None

    async def there(client: "Client") -> "tuple[Sequence[AnySession], bool]":
        page = await client.sessions(agent=agent, limit=min(limit, LATEST))
        found = list(page.sessions)
        while page.cursor is not None and len(found) < limit:
            page = await client.sessions(agent=agent, limit=min(limit - len(found), LATEST), cursor=page.cursor)
            found += page.sessions
        return found, page.cursor is not None

    found, more = ask(here, there)
    screen = Screen()
    if as_json:
        screen.json([_summary(state) for state in found])
        return
    draw_sessions(screen, found)
    if more:
        screen.remark(f"Only the {limit} most recent sessions are listed; use --limit for more.")


@app.command("show")
@where(*ANYWHERE)
def show_session(session: SessionArgument, as_json: Json = False) -> None:
    """Print a session's items and conversation.

    \b
    Example:
      windowpane sessions show last
    """

    async def here(engine: "Engine") -> "tuple[AnySession, Sequence[SessionItem], Sequence[Message]]":
        state = await engine.session(await find_session(engine, session))
        return state, state.context_items, await engine.messages(state.id, limit=ALL_MESSAGES)

    async def there(client: "Client") -> "tuple[AnySession, Sequence[SessionItem], Sequence[Message]]":
        view = await find_there(client, session)
        return view, view.items, await _messages_there(client, view.id)

    state, items, messages = ask(here, there)
    screen = Screen()
    if as_json:
        screen.json(_summary(state) | {"context_items": items, "conversation": messages})
        return
    screen.line(f"{state.title or UNNAMED}  {state.id}", "bold")
    screen.line(f"agent {state.agent}, {counted(state.turn_count, 'turn')}, started {moment_text(state.created_at)}")
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


@app.command("rename")
@where(*ANYWHERE)
def rename_session(
    session: SessionArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="New name; an empty text removes the name.")],
) -> None:
    """Rename a session.

    \b
    Example:
      windowpane sessions rename last "Invoice import"
    """

    async def here(engine: "Engine") -> "AnySession":
        return await engine.update_session(await find_session(engine, session), {"name": name})

    async def there(client: "Client") -> "AnySession":
        return await client.update_session((await find_there(client, session)).id, {"name": name})

    state = ask(here, there)
    Screen().line(f"{state.id} is now called {state.name!r}" if state.name else f"{state.id} has no name now")


@app.command("delete")
@where(*ANYWHERE)
def delete_session(
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a session permanently: its messages, records and texts.

    \b
    Example:
      windowpane sessions delete ses_4k
    """

    async def found_here(engine: "Engine") -> "AnySession":
        return await engine.session(await find_session(engine, session))

    async def found_there(client: "Client") -> "AnySession":
        return await find_there(client, session)

    state = ask(found_here, found_there)
    what = f"{state.title or UNNAMED} {state.id} with {counted(state.message_count, 'message')}"
    if not yes and not confirmed(f"Delete {what} permanently?"):
        Screen().line("Nothing was deleted.")
        raise typer.Exit(1)
    ask(lambda engine: engine.delete_session(state.id), lambda client: client.delete_session(state.id))
    Screen().line(f"Deleted {what}")


def _summary(state: "AnySession") -> dict[str, object]:
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
