"""`windowpane compare`: what changed from one turn's request to another's."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.lookup import find_session
from windowpane.cli.options import Json, SessionArgument, TurnArgument, new_app
from windowpane.cli.past import PastView, on_past
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.comparison import Comparison, Prefix, Side

app = new_app()

_SIGNS = {"entered": "+", "left": "-", "changed": "~", "moved": ">"}
_STYLES = {"entered": "green", "left": "red", "changed": "yellow", "moved": "cyan"}


@app.command()
@on_past
async def compare(
    past: PastView,
    session: SessionArgument,
    turn: TurnArgument,
    other: Annotated[int, typer.Argument(metavar="OTHER", min=1, help="The turn to compare with, as the later one.")],
    other_session: Annotated[
        str | None, typer.Option("--session", help="The session of OTHER. Default: the same session.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what changed between the requests of two turns. Also shows where the prompts begin to differ.

    \b
    Examples:
      windowpane compare last 1 2
      windowpane compare ses_4k 3 1 --session ses_9x
    """
    first = (await find_session(past, session)).id
    second = first if other_session is None else (await find_session(past, other_session)).id
    found = await past.turns.compare(first, turn, other, other_session_id=second)
    screen = Screen()
    if as_json:
        screen.json(found)
    else:
        draw_comparison(screen, found)


def draw_comparison(screen: Screen, found: "Comparison") -> None:
    """Print a comparison: items, parts, tokens and cost, and where the prompts begin to differ."""
    screen.line(f"Turn {found.before.turn} → turn {found.after.turn}", "bold")
    screen.line("Items:", "bold")
    for item in found.items:
        line = f"  {_SIGNS[item.happened]} {item.ref} {item.happened} ({item.tokens:+,} tokens): {item.reason}"
        screen.line(line, _STYLES[item.happened])
        _draw_diff(screen, item.diff)
    if not found.items:
        screen.line("  the same", "dim")
    screen.line("Parts:", "bold")
    for part in found.parts:
        name = f"{part.kind.replace('_', ' ')} {part.name}".rstrip()
        line = f"  {_SIGNS[part.happened]} {name} {part.happened} ({part.tokens:+,} tokens)"
        screen.line(line, _STYLES[part.happened])
    if not found.parts:
        screen.line("  the same", "dim")
    cost = f", {found.cost_usd:+.6f} US dollars" if found.cost_usd is not None else ", cost not known"
    screen.line(f"Tokens: {found.before.used_tokens:,} → {found.after.used_tokens:,} ({found.tokens:+,}){cost}", "bold")
    screen.line(f"Calls: {_calls_text(found.before)} → {_calls_text(found.after)}")
    screen.line(f"Prompt prefix: {_prefix_text(found.prefix)}")


def _calls_text(side: "Side") -> str:
    """Return a turn's calls and what providers reported for them. A call of theirs is never without input."""
    if side.calls and not side.usage.input_tokens and not side.calls_without_usage:
        return f"{side.calls} (in this process)"
    unknown = side.calls_without_usage + side.calls_without_price
    rest = f", {unknown} of them without a known cost" if unknown else ""
    return f"{side.calls} ({side.usage.input_tokens:,} tokens in, {side.usage.output_tokens:,} out{rest})"


def _draw_diff(screen: Screen, diff: str) -> None:
    for line in diff.splitlines()[2:]:
        screen.line(f"      {line}", "green" if line.startswith("+") else "red" if line.startswith("-") else "dim")


def _prefix_text(prefix: "Prefix") -> str:
    same = f"{counted(prefix.same_bytes, 'byte')} the same (about {counted(prefix.same_tokens, 'token')})"
    if prefix.part is None:
        whole = prefix.same_bytes == prefix.bytes_before
        return f"{same}; {'the later prompt continues the earlier one' if whole else 'the later prompt ends there'}"
    what = str(prefix.item) if prefix.item else f"{prefix.part.replace('_', ' ')} {prefix.name}".rstrip()
    return f"{same}, then {what} {prefix.happened}"
