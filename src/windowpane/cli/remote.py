"""The commands over a server: what `--url` names does the work, and this only prints.

The session that was used last is `last` here too; the beginning of an id is enough when it is one of the latest 200.
"""

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import typer
from pydantic import TypeAdapter

from windowpane.cli.context import draw
from windowpane.cli.exporting import draw_numbers, draw_statistics, write_export
from windowpane.cli.importing import exported_in
from windowpane.cli.screen import Screen, counted
from windowpane.cli.sessions import UNNAMED, draw_message
from windowpane.client import Client
from windowpane.context.events import ApprovalRequested, Delta, Recorded, TurnFinished
from windowpane.context.messages import Decision
from windowpane.errors import InvalidInputError, RemoteError, SessionNotFoundError
from windowpane.server.sessions import SessionView

T = TypeVar("T")

LATEST = 200
_VIEW: TypeAdapter[SessionView] = TypeAdapter(SessionView)
_VIEWS: TypeAdapter[tuple[SessionView, ...]] = TypeAdapter(tuple[SessionView, ...])


def with_client(url: str, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Return what a function makes of a server. `WINDOWPANE_TOKEN` is the token to show there."""

    async def opened() -> T:
        async with Client(url, token=os.environ.get("WINDOWPANE_TOKEN")) as client:
            return await ask(client)

    return anyio.run(opened)


async def find(client: Client, text: str) -> SessionView:
    """Return the session that an id, the beginning of one, or `last` means.

    Raises:
        SessionNotFoundError: none.
        InvalidInputError: more than one.
    """
    listed = (await client.sessions(limit=LATEST)).sessions
    if text == "last" and listed:
        return listed[0]
    found = [session for session in listed if session.id.startswith(text)]
    if len(found) > 1 and all(session.id != text for session in found):
        raise InvalidInputError(f"{len(found)} sessions begin with {text!r}; write more of the id")
    if found:
        return next((session for session in found if session.id == text), found[0])
    try:
        return await client.session(text)
    except RemoteError:
        raise SessionNotFoundError(text) from None


def list_sessions(url: str, *, agent: str | None, limit: int, as_json: bool) -> None:
    """Print the sessions that were used last."""
    found = with_client(url, lambda client: client.sessions(agent=agent, limit=min(limit, LATEST))).sessions
    screen = Screen()
    if as_json:
        screen.write(_VIEWS.dump_json(found, indent=2).decode() + "\n")
        return
    for session in found:
        moment = f"{session.updated_at:%Y-%m-%d %H:%M}" if session.updated_at else "never"
        messages = counted(session.message_count, "message")
        screen.line(f"{session.id}  {moment}  {session.agent}  {messages}  {session.name or UNNAMED}")
    if not found:
        screen.line("No sessions yet. `windowpane chat` begins one.")


def show_session(url: str, session: str, *, as_json: bool) -> None:
    """Print a session's items and the latest of its conversation."""

    async def shown(client: Client) -> None:
        view = await find(client, session)
        page = await client.messages(view.id, limit=LATEST)
        screen = Screen()
        if as_json:
            screen.write(_VIEW.dump_json(view, indent=2).decode() + "\n")
            return
        screen.line(f"{view.name or UNNAMED}  {view.id}", "bold")
        for message in page.messages:
            draw_message(screen, message)

    with_client(url, shown)


def rename_session(url: str, session: str, name: str) -> None:
    """Give a session another name."""

    async def renamed(client: Client) -> SessionView:
        return await client.update_session((await find(client, session)).id, {"name": name})

    view = with_client(url, renamed)
    Screen().line(f"{view.id} is now named {view.name!r}" if view.name else f"{view.id} has no name now")


def delete_session(url: str, session: str, *, yes: bool) -> None:
    """Delete a session, after asking."""
    view = with_client(url, lambda client: find(client, session))
    what = f"{view.name or UNNAMED} {view.id} with {counted(view.message_count, 'message')}"
    if not yes and not typer.confirm(f"Delete {what} for good?"):
        Screen().line("Nothing was deleted.")
        raise typer.Exit(1)
    with_client(url, lambda client: client.delete_session(view.id))
    Screen().line(f"Deleted {what}")


def preview(url: str, message: str, *, session: str | None, agent: str | None, messages: bool, as_json: bool) -> None:
    """Print the request that a message would make in a session, or in a new one, which is deleted again."""

    async def previewed(client: Client) -> None:
        view = await find(client, session) if session else await client.create_session(agent)
        try:
            draw(await client.preview(view.id, message), None, messages=messages, as_json=as_json)
        finally:
            if session is None:
                await client.delete_session(view.id)

    with_client(url, previewed)


def context(url: str, session: str, turn: int | None, *, messages: bool, as_json: bool) -> None:
    """Print the record of a turn's request."""

    async def shown(client: Client) -> None:
        view = await find(client, session)
        request = await client.request(view.id, turn or view.turn_count)
        draw(request, None, messages=messages, as_json=as_json)

    with_client(url, shown)


def export_session(url: str, session: str, file: Path | None) -> None:
    """Write a session as one JSON document."""

    async def exported(client: Client) -> None:
        write_export(await client.export_session((await find(client, session)).id), file)

    with_client(url, exported)


def import_session(url: str, file: Path) -> None:
    """Store an exported session as a new one."""
    document = exported_in(file)
    Screen().line(with_client(url, lambda client: client.import_session(document)).id)


def stats(url: str, session: str | None, *, as_json: bool) -> None:
    """Print what a session holds and cost, or how much all of them hold together."""

    async def of_one(client: Client) -> None:
        view = await find(client, session or "")
        draw_statistics(view.id, await client.statistics(view.id), as_json=as_json)

    async def of_all(client: Client) -> None:
        totals = {"sessions": 0, "messages": 0, "turns": 0, "tokens": 0, "fetched": 0}
        async for view in _all(client):
            totals["sessions"] += 1
            totals["messages"] += view.message_count
            totals["turns"] += view.turn_count
            totals["tokens"] += view.token_count
            totals["fetched"] += view.fetched.page + view.fetched.web_search
        draw_numbers(totals, as_json=as_json)

    with_client(url, of_all if session is None else of_one)


async def _all(client: Client) -> AsyncIterator[SessionView]:
    cursor: str | None = None
    while True:
        page = await client.sessions(limit=LATEST, cursor=cursor)
        for view in page.sessions:
            yield view
        cursor = page.cursor
        if cursor is None:
            return


def chat(url: str, *, session: str | None, agent: str | None, model: str | None, message: str | None, yes: bool) -> int:
    """Talk to an agent of a server: once with a message or piped input, else line by line. Return the exit code."""

    async def talked(client: Client) -> int:
        view = await find(client, session) if session else await client.create_session(agent)
        if model:
            await client.update_session(view.id, {"settings": {"model": model}})
        if message is not None:
            return await _answer(client, view.id, message, yes)
        code = 0
        while line := await anyio.to_thread.run_sync(_typed):
            code = await _answer(client, view.id, line, yes)
        return code

    return with_client(url, talked)


def _typed() -> str:
    """Return the next message: all of piped input, or one line of what a person types; empty at the end."""
    if not sys.stdin.isatty():
        return sys.stdin.read().strip()
    try:
        return input("> ").strip()
    except EOFError:
        return ""


async def _answer(client: Client, session: str, message: str, yes: bool) -> int:
    screen = Screen(remarks_aside=True)
    events = client.stream(session, message)
    while True:
        waiting: tuple[str, ...] = ()
        failed = False
        async for event in events:
            if isinstance(event, Delta) and event.kind == "text":
                screen.write(event.text)
            elif isinstance(event, Recorded) and isinstance(event.event, ApprovalRequested):
                waiting = tuple(call.id for call in event.event.calls)
                screen.remark(
                    f"asks for: {', '.join(str(call.ref or call.offered_name) for call in event.event.calls)}"
                )
            elif isinstance(event, Recorded) and isinstance(event.event, TurnFinished):
                failed = event.event.outcome != "completed"
                if event.event.error is not None:
                    screen.fail(event.event.error.message)
        screen.write("\n")
        if not waiting:
            return 1 if failed else 0
        decision: Decision = "allow_once" if yes or _allowed() else "deny"
        events = client.decide(session, dict.fromkeys(waiting, decision))


def _allowed() -> bool:
    return sys.stdin.isatty() and typer.confirm("Allow it once?", err=True)
