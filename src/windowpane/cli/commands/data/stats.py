"""`windowpane stats`: what a session holds and cost, or what all sessions hold."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import all_sessions, find_session
from windowpane.cli.options import Json, new_app
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.api.sessions import Statistics

app = new_app()


@app.command()
@on_pane
async def stats(
    pane: "Pane",
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Session id, the beginning of an id, or `last`. Default: all sessions."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the size and cost of a session, or the size of all sessions.

    \b
    Examples:
      windowpane stats
      windowpane stats last --json
    """
    if session is None:
        draw_numbers(await _totals(pane), as_json=as_json)
    else:
        session_id = (await find_session(pane, session)).id
        draw_statistics(session_id, await pane.sessions.statistics(session_id), as_json=as_json)


async def _totals(pane: "Pane") -> dict[str, int]:
    found = await all_sessions(pane)
    return {
        "sessions": len(found),
        "messages": sum(session.message_count for session in found),
        "turns": sum(session.turn_count for session in found),
        "tokens": sum(session.token_count for session in found),
        "fetched": sum(session.fetched.page + session.fetched.web_search for session in found),
    }


def draw_numbers(numbers: dict[str, int], *, as_json: bool) -> None:
    """Print numbers by name."""
    screen = Screen()
    if as_json:
        screen.json(numbers)
        return
    for name, number in numbers.items():
        screen.line(f"{name:<10}{number:>12,}")


def draw_statistics(session: str, found: "Statistics", *, as_json: bool) -> None:
    """Print the size and the cost of a session."""
    screen = Screen()
    if as_json:
        screen.json(found)
        return
    screen.line(session, "bold")
    counts = found.fetched_context_counts
    lines = {
        "mode": found.mode,
        "messages": f"{found.message_count:,}",
        "turns": f"{found.turn_count:,}",
        "tokens": f"{found.token_count:,} by local count",
        "usage": f"{found.usage.input_tokens:,} in, {found.usage.output_tokens:,} out, reported by providers",
        "fetched": f"{counts.page:,} pages, {counts.web_search:,} search results",
        "summary": "yes" if found.has_summary else "no",
        "cost": "unknown" if found.cost_usd is None else f"{found.cost_usd:.4f} US dollars",
    }
    for name, value in lines.items():
        screen.line(f"{name:<10}{value}")
