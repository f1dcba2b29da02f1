"""`windowpane explain`: why items were in a turn's request or not, and what would have changed that."""

from textwrap import shorten
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from windowpane.api.explanation import Explanation
from windowpane.cli.door import Place, ask
from windowpane.cli.naming import find_item, find_session, find_there
from windowpane.cli.screen import Screen, counted
from windowpane.engine import Engine
from windowpane.insight.explain import explain, explain_all
from windowpane.insight.past import past_turn

if TYPE_CHECKING:
    from windowpane.client import Client

_EXPLANATIONS: TypeAdapter[tuple[Explanation, ...]] = TypeAdapter(tuple[Explanation, ...])
_EXPLANATION: TypeAdapter[Explanation] = TypeAdapter(Explanation)


def explain_turn(place: Place, session: str, turn: int, item: str | None, *, as_json: bool) -> None:
    """Print why an item was in a turn's request or not, or every item that the agent had.

    Raises:
        SessionNotFoundError: no such session.
        TurnNotFoundError: the session has no such turn, or nothing is on record for it.
        UnknownItemError: the agent had no such item.
    """
    screen = Screen()
    if item is None:
        found = _explain_all(place, session, turn)
        if as_json:
            screen.write(_EXPLANATIONS.dump_json(found, indent=2).decode() + "\n")
        else:
            _draw_all(screen, found)
        return
    one = _explain(place, session, turn, item)
    if as_json:
        screen.write(_EXPLANATION.dump_json(one, indent=2).decode() + "\n")
    else:
        draw_explanation(screen, one)


def _explain_all(place: Place, session: str, turn: int) -> tuple[Explanation, ...]:
    async def here(engine: Engine) -> tuple[Explanation, ...]:
        return explain_all(await past_turn(engine, await find_session(engine, session), turn))

    async def there(client: "Client") -> tuple[Explanation, ...]:
        return await client.explain((await find_there(client, session)).id, turn)

    return ask(place, here, there)


def _explain(place: Place, session: str, turn: int, item: str) -> Explanation:
    async def here(engine: Engine) -> Explanation:
        past = await past_turn(engine, await find_session(engine, session), turn)
        known = [entry.ref for entry in past.catalog.entries] if past.catalog else []
        known += [held.ref for held in past.context.items]
        return explain(past, find_item(item, dict.fromkeys(known)))

    async def there(client: "Client") -> Explanation:
        session_id = (await find_there(client, session)).id
        known = [found.ref for found in await client.explain(session_id, turn)]
        return await client.explain_item(session_id, turn, find_item(item, known))

    return ask(place, here, there)


def draw_explanation(screen: Screen, found: Explanation) -> None:
    """Print all there is to say about one item."""
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
        room = f"; {left:,} were left when its turn came" if left is not None else ""
        screen.line(f"  size: {counted(found.tokens, 'token')}{room}")
    for effect, words in (
        ("includes", "would have included it"),
        ("leaves_out", "would have left it out"),
        ("completes", "would have sent all of it"),
    ):
        changes = [change.text for change in found.changes if change.effect == effect]
        if changes:
            screen.line(f"  {words}: {'; or '.join(changes)}")


def _draw_all(screen: Screen, found: tuple[Explanation, ...]) -> None:
    for title, included in (("Included", True), ("Not included", False)):
        rows = [one for one in found if one.included == included]
        screen.line(f"{title} ({len(rows)}):", "bold")
        for one in sorted(rows, key=lambda one: (-(one.evidence.score if one.evidence else 2), one.ref.sort_key)):
            score = f" {one.evidence.score:.2f}" if one.evidence else ""
            turned = f" – {one.smallest.text}" if one.smallest and not included else ""
            screen.line(f"  {one.ref}{score}: {one.reason}{turned}")
        if not rows:
            screen.line("  none", "dim")


def _verdict(found: Explanation) -> str:
    if found.included:
        return "included, shortened" if found.fate == "truncated" else "included"
    return f"not included ({found.fate.replace('_', ' ')})"
