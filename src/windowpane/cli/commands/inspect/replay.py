"""`windowpane replay`: a past request rebuilt, and its selection run again with something changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_item, find_session
from windowpane.cli.options import Json, SessionArgument, TurnArgument, new_app
from windowpane.cli.terminal import Screen, counted
from windowpane.context.items import ItemRef
from windowpane.errors import InvalidInputError
from windowpane.errors.base import why_unreadable

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.api.replay import Rebuilt, Rerun

app = new_app()

SHOWN_LEFT_OUT = 10


@app.command()
@on_pane
async def replay(
    pane: "Pane",
    session: SessionArgument,
    turn: TurnArgument,
    query: Annotated[str | None, typer.Option("--query", help="Select for this message instead.")] = None,
    item: Annotated[
        list[str] | None,
        typer.Option("--item", metavar="NAME=FILE", help="Use the text of FILE for this rule or reference."),
    ] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="aggressive, normal or conservative.")] = None,
    floor: Annotated[float | None, typer.Option("--floor", help="Minimum score.")] = None,
    top_n: Annotated[int | None, typer.Option("--top-n", help="Maximum number of selected items.")] = None,
    include_score: Annotated[
        float | None, typer.Option("--include-score", help="Always select from this score on, also beyond --top-n.")
    ] = None,
    share_of_best: Annotated[
        float | None, typer.Option("--share-of-best", help="Minimum score as a share of the best score.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rebuild a turn's request, or select again with changes. No model is called.

    The selection runs again if settings, texts or a query are given. Exit code 1: the rebuilt request differs from the
    recorded one.

    \b
    Examples:
      windowpane replay last 2
      windowpane replay last 2 --floor 0.1 --top-n 8
      windowpane replay last 2 --query "How do I pay?" --item billing=new-billing.md
    """
    given = {
        "preset": preset,
        "floor": floor,
        "top_n": top_n,
        "include_score": include_score,
        "share_of_best": share_of_best,
    }
    search: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    session_id = (await find_session(pane, session)).id
    found = await pane.turns.rebuild(session_id, turn)
    again: Rerun | None = None
    if search or query is not None or item:
        from windowpane.api.replay import WhatIf

        known = [one.ref for one in await pane.turns.explanations(session_id, turn)] if item else []
        what_if = WhatIf(search=search, query=query, texts=_texts(known, item or []))
        again = await pane.turns.replay(session_id, turn, what_if)
    screen = Screen()
    if as_json:
        screen.json({"rebuilt": found, "selection": again})
    else:
        _draw_rebuilt(screen, turn, found)
        if again is not None:
            draw_rerun(screen, again)
    if not found.identical:
        raise typer.Exit(1)


def _texts(known: Sequence[ItemRef], items: Sequence[str]) -> dict[ItemRef, str]:
    texts: dict[ItemRef, str] = {}
    for given in items:
        name, equals, file = given.partition("=")
        if not equals:
            raise InvalidInputError(f"{given!r} names no file; write --item NAME=FILE")
        try:
            texts[find_item(name, known)] = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{file} cannot be read: {why_unreadable(error)}") from None
    return texts


def _draw_rebuilt(screen: Screen, turn: int, found: "Rebuilt") -> None:
    if found.identical:
        what = f"{counted(found.messages, 'message')}, {counted(found.tools, 'tool')}"
        screen.line(f"Turn {turn} rebuilt, identical to the recorded request: {what} ({found.record[:12]})")
    for damage in found.damages:
        screen.line(f"Different from the recorded request: {damage}", "red")


def draw_rerun(screen: Screen, found: "Rerun") -> None:
    """Print a selection that was run again, beside what the turn had selected."""
    chosen = [outcome for outcome in found.outcomes if outcome.selected]
    others = [outcome for outcome in found.outcomes if not outcome.selected]
    screen.line(f"Searched for: {' '.join(found.query.split())}")
    screen.line(f"Selected ({len(chosen)}):", "bold")
    for outcome in chosen:
        score = f" {outcome.evidence.score:.2f}" if outcome.evidence else ""
        full = "" if outcome.fits in (None, True) else "; it does not fit"
        new = not outcome.was_selected
        screen.line(f"  {'+' if new else ' '} {outcome.ref}{score} – {outcome.reason}{full}", "green" if new else "")
    if not chosen:
        screen.line("  none", "dim")
    screen.line(f"Not selected ({len(others)}):", "bold")
    for outcome in sorted(others, key=lambda outcome: not outcome.was_selected)[:SHOWN_LEFT_OUT]:
        score = f" {outcome.evidence.score:.2f}" if outcome.evidence else ""
        gone = outcome.was_selected
        screen.line(f"  {'-' if gone else ' '} {outcome.ref}{score} – {outcome.reason}", "red" if gone else "")
    if len(others) > SHOWN_LEFT_OUT:
        screen.line(f"  … and {len(others) - SHOWN_LEFT_OUT} more", "dim")
    for note in found.degraded:
        screen.line(f"Degraded: {note}", "yellow")
