"""`windowpane compare`: what changed from one turn's request to another's."""

from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from windowpane.api.comparison import Comparison, Prefix
from windowpane.cli.door import Place, ask
from windowpane.cli.naming import find_session, find_there
from windowpane.cli.screen import Screen, counted
from windowpane.engine import Engine
from windowpane.insight.compare import compare
from windowpane.insight.past import past_turn

if TYPE_CHECKING:
    from windowpane.client import Client

_COMPARISON: TypeAdapter[Comparison] = TypeAdapter(Comparison)
_SIGNS = {"entered": "+", "left": "-", "changed": "~", "moved": ">"}
_STYLES = {"entered": "green", "left": "red", "changed": "yellow", "moved": "cyan"}


def compare_turns(
    place: Place, session: str, turn: int, other: int, *, other_session: str | None, as_json: bool
) -> None:
    """Print what is different in the second turn's request.

    Raises:
        SessionNotFoundError: no such session.
        TurnNotFoundError: one of the turns is not there, or nothing is on record for it.
    """

    async def here(engine: Engine) -> Comparison:
        first = await find_session(engine, session)
        second = first if other_session is None else await find_session(engine, other_session)
        before = await past_turn(engine, first, turn, with_catalog=False)
        return compare(before, await past_turn(engine, second, other, with_catalog=False))

    async def there(client: "Client") -> Comparison:
        second = None if other_session is None else (await find_there(client, other_session)).id
        first = (await find_there(client, session)).id
        return await client.compare(first, turn, other, other_session=second)

    found = ask(place, here, there)
    screen = Screen()
    if as_json:
        screen.write(_COMPARISON.dump_json(found, indent=2).decode() + "\n")
    else:
        draw_comparison(screen, found)


def draw_comparison(screen: Screen, found: Comparison) -> None:
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
    screen.line(f"Prompt prefix: {_prefix_text(found.prefix)}")


def _draw_diff(screen: Screen, diff: str) -> None:
    for line in diff.splitlines()[2:]:
        screen.line(f"      {line}", "green" if line.startswith("+") else "red" if line.startswith("-") else "dim")


def _prefix_text(prefix: Prefix) -> str:
    same = f"{counted(prefix.same_bytes, 'byte')} the same (about {counted(prefix.same_tokens, 'token')})"
    if prefix.part is None:
        whole = prefix.same_bytes == prefix.bytes_before
        return f"{same}; {'the later prompt goes on where the earlier ended' if whole else 'the later ends there'}"
    what = str(prefix.item) if prefix.item else f"{prefix.part.replace('_', ' ')} {prefix.name}".rstrip()
    return f"{same}, then {what} {prefix.happened}"
