"""`windowpane sessions`: list, find, show, rename and delete sessions."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane, open_list, with_pane
from windowpane.cli.lookup import PAGE, all_sessions, find_session, sessions_of
from windowpane.cli.options import ANYWHERE, Json, SessionArgument, new_app, where
from windowpane.cli.render_session import UNNAMED, draw_message, draw_sessions, moment_text
from windowpane.cli.terminal import Screen, confirmed, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.api.pane import Pane
    from windowpane.api.sessions import SessionView
    from windowpane.context.messages import Message

app = new_app()


@app.callback(invoke_without_command=True)
@where(*ANYWHERE)
def sessions(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions of this agent.")] = None,
    search: Annotated[
        str | None, typer.Option("--search", help="Only sessions with this in their name or conversation.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=1000, help="Maximum number of sessions.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """List, show, rename and delete sessions. Without a command, lists them, most recently used first.

    \b
    Examples:
      windowpane sessions
      windowpane sessions --search invoice
      windowpane sessions show last
      windowpane sessions rename ses_4k "Invoice import"
      windowpane sessions delete ses_4k
    """
    if context.invoked_subcommand is not None:
        return
    if search:
        with_pane(lambda pane: _search(pane, agent, search, limit, as_json=as_json))
    else:
        import anyio

        anyio.run(partial(_list, agent, limit, as_json=as_json))


async def _list(agent: str | None, limit: int, *, as_json: bool) -> None:
    async with open_list() as pages:
        found = await sessions_of(pages, agent=agent, limit=limit + 1)
    _draw(Screen(remarks_aside=as_json), found, limit, as_json=as_json)


async def _search(pane: "Pane", agent: str | None, search: str, limit: int, *, as_json: bool) -> None:
    found = await all_sessions(pane, agent=agent, query=search, limit=limit + 1)
    screen = Screen(remarks_aside=as_json)
    if (await pane.sessions.list(limit=1)).names_only:
        screen.remark("Conversations are encrypted: only names were searched.")
    _draw(screen, found, limit, as_json=as_json)


def _draw(screen: Screen, found: "Sequence[SessionView]", limit: int, *, as_json: bool) -> None:
    if as_json:
        screen.json([_summary(session) for session in found[:limit]])
        return
    draw_sessions(screen, found[:limit])
    if len(found) > limit:
        screen.remark(f"Only the {limit} most recent sessions are listed; use --limit for more.")


@app.command("show")
@on_pane
async def show_session(pane: "Pane", session: SessionArgument, as_json: Json = False) -> None:
    """Print a session's items and conversation.

    \b
    Example:
      windowpane sessions show last
    """
    from windowpane.insight.view import badge

    found = await find_session(pane, session)
    messages = await _messages(pane, found.id)
    screen = Screen()
    if as_json:
        screen.json(_summary(found) | {"context_items": found.items, "conversation": messages})
        return
    screen.line(f"{found.title or UNNAMED}  {found.id}", "bold")
    screen.line(f"agent {found.agent}, {counted(found.turn_count, 'turn')}, started {moment_text(found.created_at)}")
    if found.settings.current_intent:
        screen.line(f"intent: {found.settings.current_intent}")
    for item in found.items:
        screen.line(f"  {item.ref} [{badge(item.mode)}]")
    for message in messages:
        draw_message(screen, message)


async def _messages(pane: "Pane", session_id: str) -> "list[Message]":
    page = await pane.sessions.messages(session_id, limit=PAGE)
    found = list(page.messages)
    while page.before is not None:
        page = await pane.sessions.messages(session_id, before=page.before, limit=PAGE)
        found = [*page.messages, *found]
    return found


@app.command("find")
@on_pane
async def find_turns(
    pane: "Pane",
    line: Annotated[list[str], typer.Argument(metavar="WORD", help="Words, or what a request had.")],
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=100, help="Maximum number of turns.")] = 20,
    as_json: Json = False,
) -> None:
    """Find turns, messages and names in all sessions, the latest first.

    Words are found from their beginning. A turn is also found by what its request had: left-out:NAME, sent:NAME,
    over:10k or under:500 tokens, is:degraded, agent:NAME.

    \b
    Examples:
      windowpane sessions find invoice due
      windowpane sessions find left-out:billing over:5k
    """
    view = await pane.sessions.find(" ".join(line), limit=limit)
    screen = Screen(remarks_aside=as_json)
    if view.names_only:
        screen.remark("Conversations are encrypted: only names were searched.")
    if not view.complete:
        screen.remark("Some sessions are not indexed yet; ask again in a moment.")
    if as_json:
        screen.json(view)
        return
    for found in view.found:
        place = f"turn {found.turn}" if found.turn else "message" if found.seq else "name"
        screen.line(f"{found.title or UNNAMED}  {found.session_id}, {place}, {moment_text(found.at)}", "bold")
        if found.excerpt:
            screen.line(f"  {found.excerpt}")
    if not view.found:
        screen.remark("Nothing was found.")
    if view.cursor:
        screen.remark(f"Only the {limit} latest are listed; use --limit for more.")


@app.command("rename")
@on_pane
async def rename_session(
    pane: "Pane",
    session: SessionArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="New name; an empty text removes the name.")],
) -> None:
    """Rename a session.

    \b
    Example:
      windowpane sessions rename last "Invoice import"
    """
    changed = await pane.sessions.update((await find_session(pane, session)).id, {"name": name})
    Screen().line(f"{changed.id} is now called {changed.name!r}" if changed.name else f"{changed.id} has no name now")


@app.command("delete")
@on_pane
async def delete_session(
    pane: "Pane",
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a session permanently: its messages, records and texts.

    \b
    Example:
      windowpane sessions delete ses_4k
    """
    found = await find_session(pane, session)
    what = f"{found.title or UNNAMED} {found.id} with {counted(found.message_count, 'message')}"
    if not yes and not confirmed(f"Delete {what} permanently?"):
        Screen().line("Nothing was deleted.")
        raise typer.Exit(1)
    await pane.sessions.delete(found.id)
    Screen().line(f"Deleted {what}")


def _summary(session: "SessionView") -> dict[str, object]:
    return {
        "id": session.id,
        "name": session.name,
        "agent": session.agent,
        "owner": session.owner,
        "model": session.settings.model,
        "turns": session.turn_count,
        "messages": session.message_count,
        "created_at": session.created_at.isoformat() if session.created_at else None,
        "updated_at": session.updated_at.isoformat() if session.updated_at else None,
    }
