"""`windowpane replay`: a past request rebuilt, and its selection run again under other circumstances."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import TypeAdapter

from windowpane.api.replay import Rebuilt, Rerun, WhatIf
from windowpane.cli.door import Place, ask
from windowpane.cli.naming import find_item, find_session, find_there
from windowpane.cli.screen import Screen, counted
from windowpane.context.items import ItemRef
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.insight.past import past_turn
from windowpane.insight.replay import rebuilt, rerun

if TYPE_CHECKING:
    from windowpane.client import Client

SHOWN_LEFT_OUT = 10
_ANSWER: TypeAdapter[dict[str, Rebuilt | Rerun | None]] = TypeAdapter(dict[str, Rebuilt | Rerun | None])


def replay(
    place: Place,
    session: str,
    turn: int,
    *,
    search: Mapping[str, Any],
    query: str | None,
    items: Sequence[str],
    as_json: bool,
) -> None:
    """Rebuild a turn's request and say whether it is the recorded one; with anything else given, select again.

    Raises:
        SessionNotFoundError: no such session.
        TurnNotFoundError: the session has no such turn, or nothing is on record for it.
        InvalidInputError: what is given cannot be used. Exit code 1 too when the request cannot be rebuilt.
    """
    different = bool(search or query is not None or items)

    async def here(engine: Engine) -> tuple[Rebuilt, Rerun | None]:
        past = await past_turn(engine, await find_session(engine, session), turn)
        if not different:
            return rebuilt(past), None
        known = [entry.ref for entry in past.catalog.entries] if past.catalog else []
        what_if = WhatIf(search=search, query=query, texts=_texts(known, items))
        return rebuilt(past), await rerun(engine, past, what_if)

    async def there(client: "Client") -> tuple[Rebuilt, Rerun | None]:
        session_id = (await find_there(client, session)).id
        found = await client.rebuild(session_id, turn)
        if not different:
            return found, None
        known = [one.ref for one in await client.explain(session_id, turn)] if items else []
        what_if = WhatIf(search=search, query=query, texts=_texts(known, items))
        return found, await client.replay(session_id, turn, what_if)

    found, again = ask(place, here, there)
    screen = Screen()
    if as_json:
        screen.write(_ANSWER.dump_json({"rebuilt": found, "selection": again}, indent=2).decode() + "\n")
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
            raise InvalidInputError(f"{file} cannot be read: {error}") from None
    return texts


def _draw_rebuilt(screen: Screen, turn: int, found: Rebuilt) -> None:
    if found.identical:
        what = f"{counted(found.messages, 'message')}, {counted(found.tools, 'tool')}"
        screen.line(f"Turn {turn} rebuilt, byte for byte as recorded: {what} ({found.record[:12]})")
    for damage in found.damages:
        screen.line(f"Not as recorded: {damage}", "red")


def draw_rerun(screen: Screen, found: Rerun) -> None:
    """Print a selection that was run again, beside what the turn had selected."""
    chosen = [outcome for outcome in found.outcomes if outcome.selected]
    others = [outcome for outcome in found.outcomes if not outcome.selected]
    screen.line(f"Searched for: {' '.join(found.query.split())}")
    screen.line(f"Selected ({len(chosen)}):", "bold")
    for outcome in chosen:
        score = f" {outcome.evidence.score:.2f}" if outcome.evidence else ""
        full = "" if outcome.fits in (None, True) else "; there is no room for it"
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
