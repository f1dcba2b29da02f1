"""A server that does the work of commands, and the chat with one of its agents."""

import sys
from contextlib import aclosing

import anyio.to_thread
import typer

from windowpane.cli.connect import with_client
from windowpane.cli.lookup import find_there
from windowpane.cli.old_client import Client
from windowpane.cli.terminal import Screen
from windowpane.context.events import ApprovalRequested, Delta, Recorded, TurnFinished
from windowpane.context.messages import Decision


def chat(*, session: str | None, agent: str | None, model: str | None, message: str | None, yes: bool) -> int:
    """Talk to an agent of a server: once with a message or piped input, else line by line. Return the exit code."""

    async def talked(client: Client) -> int:
        view = await find_there(client, session) if session else await client.create_session(agent)
        if model:
            await client.update_session(view.id, {"settings": {"model": model}})
        if message is not None:
            return await _answer(client, view.id, message, yes)
        code = 0
        while line := await anyio.to_thread.run_sync(_typed):
            code = await _answer(client, view.id, line, yes)
        return code

    return with_client(talked)


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
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Delta) and event.kind == "text":
                    screen.write(event.text)
                elif isinstance(event, Recorded) and isinstance(event.event, ApprovalRequested):
                    waiting = tuple(call.id for call in event.event.calls)
                    asked = ", ".join(str(call.ref or call.offered_name) for call in event.event.calls)
                    screen.remark(f"asks for: {asked}")
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
