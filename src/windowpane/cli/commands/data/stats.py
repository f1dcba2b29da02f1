"""`windowpane stats`: what a session holds and cost, or what all sessions hold."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import ask
from windowpane.cli.lookup import LATEST, find_session, find_there
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.sessions import SessionView, Statistics
    from windowpane.cli.old_client import Client
    from windowpane.context.session import SessionState
    from windowpane.engine import Engine

app = new_app()


@app.command()
@where(*ANYWHERE)
def stats(
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
        draw_numbers(_totals(), as_json=as_json)
        return

    async def here(engine: "Engine") -> "tuple[str, Statistics]":
        from windowpane.local.statistics import statistics_of

        state = await engine.session(await find_session(engine, session))
        return state.id, await statistics_of(engine, state)

    async def there(client: "Client") -> "tuple[str, Statistics]":
        view = await find_there(client, session)
        return view.id, await client.statistics(view.id)

    session_id, statistics = ask(here, there)
    draw_statistics(session_id, statistics, as_json=as_json)


def _totals() -> dict[str, int]:
    totals = {"sessions": 0, "messages": 0, "turns": 0, "tokens": 0, "fetched": 0}

    def add(found: "SessionState | SessionView", fetched: int) -> None:
        totals["sessions"] += 1
        totals["messages"] += found.message_count
        totals["turns"] += found.turn_count
        totals["tokens"] += found.token_count
        totals["fetched"] += fetched

    async def here(engine: "Engine") -> None:
        cursor: str | None = ""
        while cursor is not None:
            page = await engine.sessions(limit=LATEST, cursor=cursor or None)
            for state in page.sessions:
                add(state, len(state.fetched))
            cursor = page.cursor

    async def there(client: "Client") -> None:
        cursor: str | None = ""
        while cursor is not None:
            page = await client.sessions(limit=LATEST, cursor=cursor or None)
            for view in page.sessions:
                add(view, view.fetched.page + view.fetched.web_search)
            cursor = page.cursor

    ask(here, there)
    return totals


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
