"""`windowpane export` and `windowpane stats`: a session as a document, and what sessions hold."""

import json
from pathlib import Path

from pydantic import TypeAdapter

from windowpane.api.export import EXPORT, SessionExport
from windowpane.api.sessions import SessionView, Statistics
from windowpane.cli.door import Place, ask
from windowpane.cli.naming import LATEST, find_session, find_there
from windowpane.cli.screen import Screen, counted
from windowpane.client import Client
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.server.routes.statistics import statistics_of

STATISTICS: TypeAdapter[Statistics] = TypeAdapter(Statistics)


def export_session(place: Place, session: str, file: Path | None) -> None:
    """Write a session as one JSON document, to a file or to stdout."""

    async def here(engine: Engine) -> SessionExport:
        return await engine.export_session(await find_session(engine, session))

    async def there(client: Client) -> SessionExport:
        return await client.export_session((await find_there(client, session)).id)

    write_export(ask(place, here, there), file)


def write_export(document: SessionExport, file: Path | None) -> None:
    """Write an export to a file, or to stdout."""
    text = json.dumps(EXPORT.dump_python(document, mode="json"), indent=1) + "\n"
    if file is None:
        Screen().write(text)
        return
    file.write_text(text)
    Screen().remark(f"{counted(len(document.events), 'event')} and {counted(len(document.blobs), 'text')} in {file}")


def stats(place: Place, session: str | None, *, as_json: bool) -> None:
    """Print what a session holds and cost, or how much all of them hold together."""
    if session is None:
        draw_numbers(_totals(place), as_json=as_json)
        return

    async def here(engine: Engine) -> tuple[str, Statistics]:
        state = await engine.session(await find_session(engine, session))
        return state.id, await statistics_of(engine, state)

    async def there(client: Client) -> tuple[str, Statistics]:
        view = await find_there(client, session)
        return view.id, await client.statistics(view.id)

    session_id, statistics = ask(place, here, there)
    draw_statistics(session_id, statistics, as_json=as_json)


def _totals(place: Place) -> dict[str, int]:
    totals = {"sessions": 0, "messages": 0, "turns": 0, "tokens": 0, "fetched": 0}

    def add(found: SessionState | SessionView, fetched: int) -> None:
        totals["sessions"] += 1
        totals["messages"] += found.message_count
        totals["turns"] += found.turn_count
        totals["tokens"] += found.token_count
        totals["fetched"] += fetched

    async def here(engine: Engine) -> None:
        cursor: str | None = ""
        while cursor is not None:
            page = await engine.sessions(limit=LATEST, cursor=cursor or None)
            for state in page.sessions:
                add(state, len(state.fetched))
            cursor = page.cursor

    async def there(client: Client) -> None:
        cursor: str | None = ""
        while cursor is not None:
            page = await client.sessions(limit=LATEST, cursor=cursor or None)
            for view in page.sessions:
                add(view, view.fetched.page + view.fetched.web_search)
            cursor = page.cursor

    ask(place, here, there)
    return totals


def draw_numbers(numbers: dict[str, int], *, as_json: bool) -> None:
    """Print numbers by name."""
    screen = Screen()
    if as_json:
        screen.write(json.dumps(numbers, indent=2) + "\n")
        return
    for name, number in numbers.items():
        screen.line(f"{name:<10}{number:>12,}")


def draw_statistics(session: str, found: Statistics, *, as_json: bool) -> None:
    """Print what a session holds."""
    screen = Screen()
    if as_json:
        screen.write(STATISTICS.dump_json(found, indent=2).decode() + "\n")
        return
    screen.line(session, "bold")
    counts = found.fetched_context_counts
    lines = {
        "mode": found.mode,
        "messages": f"{found.message_count:,}",
        "turns": f"{found.turn_count:,}",
        "tokens": f"{found.token_count:,} by our count",
        "usage": f"{found.usage.input_tokens:,} in, {found.usage.output_tokens:,} out, as providers report it",
        "fetched": f"{counts.page:,} pages, {counts.web_search:,} search results",
        "summary": "yes" if found.has_summary else "no",
        "cost": "no known price" if found.cost_usd is None else f"{found.cost_usd:.4f} US dollars",
    }
    for name, value in lines.items():
        screen.line(f"{name:<10}{value}")
