"""`windowpane explain`: why an item was in a turn's request or not."""

from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.lookup import find_item, find_session
from windowpane.cli.options import Json, SessionArgument, TurnArgument, new_app
from windowpane.cli.past import PastView, on_past
from windowpane.cli.render_request import draw_degraded
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.explanation import Explanation

app = new_app()


@app.command()
@on_past
async def explain(
    past: PastView,
    session: SessionArgument,
    turn: TurnArgument,
    item: Annotated[
        str | None,
        typer.Argument(
            metavar="ITEM", help="rule:NAME, reference:NAME, SERVER:TOOL, or only the name. Default: all items."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain why an item was in a turn's request or not. Shows the smallest change that would have changed that.

    \b
    Examples:
      windowpane explain last 3
      windowpane explain last 3 reference:billing
    """
    screen = Screen()
    session_id = (await find_session(past, session)).id
    every = await past.turns.explanations(session_id, turn)
    if item is None:
        screen.json(every) if as_json else _draw_all(screen, every)
    else:
        one = await past.turns.explain(session_id, turn, find_item(item, (known.ref for known in every)))
        screen.json(one) if as_json else draw_explanation(screen, one)


def draw_explanation(screen: Screen, found: "Explanation") -> None:
    """Print the explanation of one item."""
    screen.line(f"{found.ref}: {_verdict(found)}", "bold")
    screen.line(f"  why: {found.reason}")
    if found.evidence is not None:
        evidence = found.evidence
        rank = f", number {evidence.rank} of {found.compared}" if evidence.rank else ""
        cut = f", cut-off {evidence.cut_off:.4g}" if evidence.cut_off is not None else ""
        floor = f", floor {evidence.floor:.4g}" if evidence.floor is not None else ""
        screen.line(f"  score: {evidence.score:.4g}{rank}{cut}{floor}")
        if evidence.passage is not None and evidence.passage.text:
            screen.line(f"  nearest passage: {shorten(evidence.passage.text, 200, placeholder=' …')}", "dim")
    if found.tokens is not None:
        left = found.room.left_tokens
        room = f"; {left:,} were left for it" if left is not None else ""
        screen.line(f"  size: {counted(found.tokens, 'token')}{room}")
    for effect, words in (
        ("includes", "would have included it"),
        ("leaves_out", "would have left it out"),
        ("completes", "would have sent all of it"),
    ):
        changes = [change.text for change in found.changes if change.effect == effect]
        if changes:
            screen.line(f"  {words}: {'; or '.join(changes)}")
    draw_degraded(screen, found.degraded)


def _draw_all(screen: Screen, found: "tuple[Explanation, ...]") -> None:
    for title, included in (("Included", True), ("Not included", False)):
        rows = [one for one in found if one.included == included]
        screen.line(f"{title} ({len(rows)}):", "bold")
        for one in sorted(rows, key=lambda one: (-(one.evidence.score if one.evidence else 2), one.ref.sort_key)):
            score = f" {one.evidence.score:.2f}" if one.evidence else ""
            turned = f" – {one.smallest.text}" if one.smallest and not included else ""
            screen.line(f"  {one.ref}{score}: {one.reason}{turned}")
        if not rows:
            screen.line("  none", "dim")
    draw_degraded(screen, dict.fromkeys(note for one in found for note in one.degraded))


def _verdict(found: "Explanation") -> str:
    if found.included:
        return "included, shortened" if found.fate == "truncated" else "included"
    return f"not included ({found.fate.replace('_', ' ')})"
