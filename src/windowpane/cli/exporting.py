"""`windowpane export` and `windowpane stats`: a session as a document, and what sessions hold."""

import json
from pathlib import Path

from pydantic import TypeAdapter

from windowpane.cli.door import with_engine
from windowpane.cli.naming import find_session
from windowpane.cli.screen import Screen, counted
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.server.insight import Statistics, statistics_of
from windowpane.settings import Settings
from windowpane.turn.export import EXPORT, SessionExport

STATISTICS: TypeAdapter[Statistics] = TypeAdapter(Statistics)


def export_session(settings: Settings, session: str, file: Path | None) -> None:
    """Write a session as one JSON document, to a file or to stdout."""

    async def exported(engine: Engine) -> SessionExport:
        return await engine.export_session(await find_session(engine, session))

    write_export(with_engine(settings, exported), file)


def write_export(document: SessionExport, file: Path | None) -> None:
    """Write an export to a file, or to stdout."""
    text = json.dumps(EXPORT.dump_python(document, mode="json"), indent=1) + "\n"
    if file is None:
        Screen().write(text)
        return
    file.write_text(text)
    Screen().remark(f"{counted(len(document.events), 'event')} and {counted(len(document.blobs), 'text')} in {file}")


def stats(settings: Settings, session: str | None, *, as_json: bool) -> None:
    """Print what a session holds and cost, or how much all of them hold together."""

    async def of_one(engine: Engine) -> tuple[SessionState, Statistics]:
        state = await engine.session(await find_session(engine, session or ""))
        return state, await statistics_of(engine, state)

    async def of_all(engine: Engine) -> dict[str, int]:
        totals = {"sessions": 0, "messages": 0, "turns": 0, "tokens": 0, "fetched": 0}
        cursor: str | None = None
        while True:
            page = await engine.sessions(limit=200, cursor=cursor)
            for state in page.sessions:
                totals["sessions"] += 1
                totals["messages"] += state.message_count
                totals["turns"] += state.turn_count
                totals["tokens"] += state.token_count
                totals["fetched"] += len(state.fetched)
            cursor = page.cursor
            if cursor is None:
                return totals

    if session is None:
        totals = with_engine(settings, of_all)
        draw_numbers(totals, as_json=as_json)
        return
    state, statistics = with_engine(settings, of_one)
    draw_statistics(state.id, statistics, as_json=as_json)


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
