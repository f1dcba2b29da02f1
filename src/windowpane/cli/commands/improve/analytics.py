"""`windowpane analytics`: what turns cost, and what of it was used."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from windowpane.cli.connect import open_here, with_pane
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.progress import show
from windowpane.cli.settings import server_url
from windowpane.cli.terminal import Screen, counted
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.api.analytics import Dashboard, ItemRow, Listed, PurposeRow, Spent
    from windowpane.api.pane import Pane

app = new_app()

SHOWN = 15
"""How many lines of each list are printed."""


@app.command()
@where(*ANYWHERE)
def analytics(
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="From this day on, in UTC.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Up to this day, in UTC.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only turns with this agent.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only turns with this model.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Only turns of this owner. Default: all owners.")] = None,
    listed: Annotated[
        str | None,
        typer.Option(
            "--csv",
            metavar="LIST",
            help="Print one list as CSV: days, models, agents, purposes, parts, items, scores, latency, sources or "
            "rebases (what broke the beginning of prompts).",
        ),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="First forget all counts and count every session again. What deleted sessions cost is lost with that.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what turns cost and how much of it was used. Lists days, models, parts and items.

    \b
    Examples:
      windowpane analytics --since 2026-01-01
      windowpane analytics --csv items > items.csv
    """
    if owner is not None and server_url():
        raise InvalidInputError("a server shows the turns of the token's owner; remove --owner")
    if rebuild:
        _rebuild()
    csv = list_from(listed)
    first, last = _day(since, "--since"), _day(until, "--until")

    async def shown(pane: "Pane") -> None:
        screen = Screen()
        if csv is not None:
            screen.write(await pane.analytics.csv(csv, agent=agent, model=model, since=first, until=last))
            return
        found = await pane.analytics.dashboard(agent=agent, model=model, since=first, until=last)
        screen.json(found) if as_json else draw_dashboard(screen, found)

    with_pane(shown, owner=owner)


def _rebuild() -> None:
    import anyio

    if server_url():
        raise InvalidInputError("--rebuild works on the analytics store itself; run it on the server, without --url")

    async def counted_again() -> None:
        async with open_here() as pane:
            await pane.analytics.rebuild(partial(show, "counting", nouns="sessions"))

    anyio.run(counted_again)


def draw_dashboard(screen: Screen, found: "Dashboard") -> None:
    """Print the most important figures."""
    spent, quality = found.spent, found.quality
    days = f", {found.days[0].day} to {found.days[-1].day}" if found.days else ""
    screen.line(f"{counted(found.sessions, 'session')}, {counted(spent.turns, 'turn')}{days}", "bold")
    if not spent.turns:
        screen.line("No turns yet. `windowpane chat` starts a session.")
        return
    screen.line(
        f"Tokens: {spent.input_tokens:,} in, {spent.output_tokens:,} out; {spent.request_tokens:,} by local count"
    )
    screen.line(f"Cost: {spent.cost_usd:.4f} US dollars{_unknown(spent)}")
    for row in found.purposes if len(found.purposes) > 1 else ():
        screen.line(
            f"  {row.purpose}: {counted(row.calls, 'call')}, {row.input_tokens:,} in, {row.output_tokens:,} out, "
            f"{row.cost_usd:.4f} US dollars{_unknown(row)}"
        )
    screen.line(
        f"Selection: {quality.selected:,} selected, at least {_percent(quality.precision)} of them used; "
        f"{quality.missed:,} added by hand"
    )
    screen.line(f"Prompt cache stability: {_percent(found.prefix.kept_share)}")
    _draw_cache(screen, found)
    for stage in found.latency:
        screen.line(
            f"{stage.stage.capitalize()}: median {stage.p50_ms:,.0f} ms, 95th percentile {stage.p95_ms:,.0f} ms"
        )
    _draw_list(screen, "Models", [f"{row.model}: {counted(row.spent.turns, 'turn')}" for row in found.models])
    _draw_list(screen, "Parts", [f"{row.kind}: {row.tokens:,} tokens, {row.share:.0%}" for row in found.parts])
    _draw_list(screen, "Items", [_item_line(row) for row in found.items])
    if found.behind:
        screen.remark(f"{counted(found.behind, 'session')} not counted yet")


def _draw_cache(screen: Screen, found: "Dashboard") -> None:
    """Print what providers read from their caches, and what broke the beginning of prompts."""
    prefix = found.prefix
    if prefix.expected_tokens:
        lost = f"; the cache collapsed {prefix.collapses:,}×, {prefix.missing_tokens:,} tokens" * bool(prefix.collapses)
        screen.line(f"Read from caches: {prefix.read_tokens:,} of {prefix.expected_tokens:,} tokens expected{lost}")
    lines = [
        f"{f'{row.item} ({row.code})' if row.item else row.code}: {row.rebases:,}×, {row.rewritten_tokens:,} tokens "
        f"written again, {row.cost_usd:.4f} US dollars"
        for row in found.rebases
    ]
    _draw_list(screen, "What broke the beginning of prompts", lines)


def _unknown(spent: "Spent | PurposeRow") -> str:
    """Return of how many calls the cost is not known, and why."""
    lacks = ((spent.calls_without_usage, "without reported usage"), (spent.calls_without_price, "without a price"))
    said = [f"{counted(calls, 'call')} {what}" for calls, what in lacks if calls]
    return f" (not known: {', '.join(said)})" if said else ""


def _draw_list(screen: Screen, title: str, lines: Sequence[str]) -> None:
    if lines:
        screen.line(f"{title}:", "bold")
    for line in lines[:SHOWN]:
        screen.line(f"  {line}")
    if len(lines) > SHOWN:
        screen.line(f"  … and {len(lines) - SHOWN} more", "dim")


def _item_line(row: "ItemRow") -> str:
    by_hand = f", added by hand {row.added_by_hand:,}×" if row.added_by_hand else ""
    probably = f", probably {row.probably:,}× more" if row.probably else ""
    used = f"used {row.used:,}×{probably}{by_hand}"
    return f"{row.ref}: in {counted(row.included, 'request')}, {row.tokens:,} tokens, {used}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def list_from(text: str | None) -> "Listed | None":
    """Return the list of this name.

    Raises:
        InvalidInputError: there is no such list.
    """
    from windowpane.api.analytics import Listed

    names: tuple[Listed, ...] = get_args(Listed)
    if text is not None and text not in names:
        raise InvalidInputError(f"no list {text!r}; available: {', '.join(names)}")
    return next((name for name in names if name == text), None)


def _day(text: str | None, option: str) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(f"{option} takes a day such as 2026-01-31, not {text!r}") from None
