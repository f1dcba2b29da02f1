"""`windowpane stats`: what a session holds and cost, or what all sessions hold."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import open_list, with_pane
from windowpane.cli.lookup import all_sessions, find_session, sessions_of
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.settings import server_url, settings
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.api.analytics import CostLimitView
    from windowpane.api.pane import Pane
    from windowpane.api.sessions import SessionView, Statistics

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
    """Show the size and cost of a session, or the size of all sessions and the cost limits.

    \b
    Examples:
      windowpane stats
      windowpane stats last --json
    """
    if session is not None:
        with_pane(partial(_of_session, text=session, as_json=as_json))
    elif server_url() or settings().limits_cost:
        with_pane(partial(_of_all, as_json=as_json))
    else:
        import anyio

        anyio.run(partial(_sizes, as_json=as_json))


async def _of_session(pane: "Pane", *, text: str, as_json: bool) -> None:
    session_id = (await find_session(pane, text)).id
    draw_statistics(session_id, await pane.sessions.statistics(session_id), as_json=as_json)


async def _of_all(pane: "Pane", *, as_json: bool) -> None:
    totals = _totals(await all_sessions(pane))
    draw_totals(totals, (await pane.analytics.cost_limits()).limits, as_json=as_json)


async def _sizes(*, as_json: bool) -> None:
    """Print what needs a store alone, which is there at once."""
    async with open_list() as pages:
        found = await sessions_of(pages)
    draw_totals(_totals(found), (), as_json=as_json)


def _totals(found: "Sequence[SessionView]") -> dict[str, int]:
    return {
        "sessions": len(found),
        "messages": sum(session.message_count for session in found),
        "turns": sum(session.turn_count for session in found),
        "tokens": sum(session.token_count for session in found),
        "fetched": sum(session.fetched.page + session.fetched.web_search for session in found),
    }


def draw_totals(totals: dict[str, int], limits: "Sequence[CostLimitView]", *, as_json: bool) -> None:
    """Print how much all sessions hold, and how much of the cost limits is used."""
    screen = Screen()
    if as_json:
        screen.json({**totals, "cost_limits": limits})
        return
    for name, number in totals.items():
        screen.line(f"{name:<10}{number:>12,}")
    for limit in limits:
        used = f"${limit.spent_usd:,.2f} of ${limit.limit_usd:,.2f} this {limit.period}"
        unpriced = f", and {limit.unpriced_calls:,} calls without a known price" if limit.unpriced_calls else ""
        screen.line(f"{'cost':<10}{used}{unpriced}; resets {limit.resets_at:%Y-%m-%d %H:%M} UTC")


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
        "usage": _usage(found),
        "fetched": f"{counts.page:,} pages, {counts.web_search:,} search results",
        "summary": "yes" if found.has_summary else "no",
        "calls": _calls(found),
        "cost": _cost(found),
    }
    for name, value in lines.items():
        screen.line(f"{name:<10}{value}")


def _usage(found: "Statistics") -> str:
    """Return what providers reported. A call of theirs is never without input."""
    if found.call_count and not found.usage.input_tokens and not found.calls_without_usage:
        return "none: every call was in this process"
    return f"{found.usage.input_tokens:,} in, {found.usage.output_tokens:,} out, reported by providers"


def _cost(found: "Statistics") -> str:
    if found.cost_usd is None:
        return "unknown"
    unknown = found.calls_without_usage + found.calls_without_price
    return f"{found.cost_usd:.4f} US dollars" if found.cost_usd or unknown else "free"


def _calls(found: "Statistics") -> str:
    """Return how many calls there were, and of how many the usage or the price is not known."""
    unknown = [
        f"{count:,} without {what}"
        for count, what in ((found.calls_without_usage, "reported usage"), (found.calls_without_price, "a price"))
        if count
    ]
    return ", ".join((f"{found.call_count:,}", *unknown))
