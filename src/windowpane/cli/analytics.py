"""`windowpane analytics`, `use` and `suggest`: what turns cost, what was used, and what could be better."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from datetime import date
from typing import TYPE_CHECKING, TypeVar, get_args

import anyio.to_thread
import typer
from pydantic import TypeAdapter

from windowpane.api.analytics import Dashboard, Filters, ItemRow, Listed
from windowpane.api.suggestions import Applied, Suggestion
from windowpane.api.turns import ItemUse
from windowpane.cli.door import Place, ask, with_engine
from windowpane.cli.naming import find_session, find_there
from windowpane.cli.screen import Screen, counted
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.insight.analytics.report import as_csv, counted_turns, dashboard, item_rows
from windowpane.insight.analytics.store import Ledger
from windowpane.insight.analytics.suggest import apply, suggestions
from windowpane.insight.analytics.update import Bookkeeper, Kept
from windowpane.insight.past import past_turn
from windowpane.insight.use import use
from windowpane.settings import Settings

if TYPE_CHECKING:
    from windowpane.client import Client

SHOWN = 15
"""How many lines of each list are printed for people."""

T = TypeVar("T")
_DASHBOARD: TypeAdapter[Dashboard] = TypeAdapter(Dashboard)
_SUGGESTIONS: TypeAdapter[Sequence[Suggestion]] = TypeAdapter(Sequence[Suggestion])
_USES: TypeAdapter[tuple[ItemUse, ...]] = TypeAdapter(tuple[ItemUse, ...])


def analytics(place: Place, filters: Filters, *, listed: Listed | None, as_json: bool) -> None:
    """Print what turns cost and whether it was used: for people, as JSON, or one of the lists as CSV.

    Raises:
        InvalidInputError: a server shows everybody their own turns, and another owner's were asked for.
    """

    async def here(engine: Engine, books: Bookkeeper, kept: Kept) -> Dashboard:
        return await anyio.to_thread.run_sync(dashboard, books.ledger, filters, kept)

    async def there(client: "Client") -> Dashboard:
        if filters.owner is not None:
            raise InvalidInputError("a server shows the turns of the token's owner; leave out --owner")
        return await client.analytics(
            since=str(filters.since) if filters.since else None,
            until=str(filters.until) if filters.until else None,
            agent=filters.agent,
            model=filters.model,
        )

    found = ask_books(place, here, there)
    screen = Screen()
    if listed is not None:
        screen.write(as_csv(found, listed))
    elif as_json:
        screen.write(_DASHBOARD.dump_json(found, indent=2).decode() + "\n")
    else:
        draw_dashboard(screen, found)


def turn_use(place: Place, session: str, turn: int, *, as_json: bool) -> None:
    """Print which items of a turn's request its answer made use of.

    Raises:
        SessionNotFoundError: no such session.
        TurnNotFoundError: the session has no such turn, or nothing is on record for it.
    """

    async def here(engine: Engine) -> tuple[ItemUse, ...]:
        return use(await past_turn(engine, await find_session(engine, session), turn, with_catalog=False))

    async def there(client: "Client") -> tuple[ItemUse, ...]:
        return await client.use((await find_there(client, session)).id, turn)

    found = ask(place, here, there)
    screen = Screen()
    if as_json:
        screen.write(_USES.dump_json(found, indent=2).decode() + "\n")
        return
    for item in found:
        verdict = f"{(item.how or '').replace('_', ' ')}: {item.trace}" if item.used else "no trace was found"
        screen.line(f"{'✓' if item.used else '·'} {item.ref} – {verdict}", "" if item.used else "dim")
    if not found:
        screen.line("No items were sent.")


def suggest(place: Place, agent: str | None, *, number: int | None, yes: bool, as_json: bool) -> None:
    """Print what could be better about an agent; with a number, apply that suggestion after asking.

    Raises:
        AgentNotFoundError: no such agent.
        InvalidInputError: there is no such suggestion, or nobody but a person can do it.
    """

    async def here(engine: Engine, books: Bookkeeper, kept: Kept) -> tuple[int, tuple[Suggestion, ...]]:
        name = engine.agents.current(_meant(agent, engine.agents.names())).name
        filters = Filters(agent=name)
        turns = counted_turns(books.ledger, filters)
        rows = item_rows(books.ledger, filters)
        return turns, suggestions(engine.agents.current(name), await engine.items(name), rows, turns)

    async def there(client: "Client") -> tuple[int, tuple[Suggestion, ...]]:
        listed = () if agent else (await client.agents()).agents
        found = await client.suggestions(_meant(agent, [one.name for one in listed]))
        return found.turns, found.suggestions

    turns, found = ask_books(place, here, there)
    screen = Screen()
    if number is not None:
        _apply(place, screen, found, number, yes=yes)
    elif as_json:
        screen.write(_SUGGESTIONS.dump_json(found, indent=2).decode() + "\n")
    else:
        draw_suggestions(screen, turns, found)


def _apply(place: Place, screen: Screen, found: Sequence[Suggestion], number: int, *, yes: bool) -> None:
    if not 1 <= number <= len(found):
        raise InvalidInputError(f"there is no suggestion {number}; there are {len(found)}")
    wanted = found[number - 1]
    edit, revision = wanted.edit, wanted.revision
    if edit is None or revision is None:
        raise InvalidInputError(f"{wanted.kind} {wanted.ref} is for you to do: edit the item")
    what = f"{wanted.kind} {wanted.ref}: {', '.join(f'{name}: {value}' for name, value in edit.settings.items())}"
    if not yes and not typer.confirm(f"{what}?"):
        screen.line("Nothing was changed.")
        raise typer.Exit(1)

    async def here(engine: Engine) -> Applied:
        return apply(engine.agents.current(wanted.agent), edit, revision=revision)

    async def there(client: "Client") -> Applied:
        return await client.apply_suggestion(wanted.agent, edit, revision=revision)

    done = ask(place, here, there)
    before = ", ".join(f"{name}: {value}" for name, value in done.undo.settings.items() if value is not None)
    screen.line(f"Changed {done.file} ({what}). To undo it, write there again: {before or 'nothing of that'}")


def _meant(agent: str | None, names: Sequence[str]) -> str:
    if agent is None and len(names) != 1:
        raise InvalidInputError(f"name an agent: {', '.join(names) or 'there is none'}")
    return agent or names[0]


def ask_books(
    place: Place,
    here: Callable[[Engine, Bookkeeper, Kept], Awaitable[T]],
    there: "Callable[[Client], Awaitable[T]]",
) -> T:
    """Return what one function makes of an open engine and its ledger, or the other of a server."""
    return with_books(place, here) if isinstance(place, Settings) else place.ask(there)


def with_books(settings: Settings, ask_both: Callable[[Engine, Bookkeeper, Kept], Awaitable[T]]) -> T:
    """Return what a function makes of an open engine and a ledger that is up to date."""

    async def opened(engine: Engine) -> T:
        with closing(Ledger(settings.ledger_file)) as ledger:
            books = Bookkeeper(engine.store, ledger)
            return await ask_both(engine, books, await books.update(within_s=None))

    return with_engine(settings, opened)


def draw_dashboard(screen: Screen, found: Dashboard) -> None:
    """Print the most important of everything."""
    spent, quality = found.spent, found.quality
    days = f", {found.days[0].day} to {found.days[-1].day}" if found.days else ""
    screen.line(f"{counted(found.sessions, 'session')}, {counted(spent.turns, 'turn')}{days}", "bold")
    if not spent.turns:
        screen.line("Nothing has been counted. `windowpane chat` begins a session.")
        return
    unpriced = (
        f" ({counted(spent.turns_without_price, 'turn')} without a known price)" if spent.turns_without_price else ""
    )
    screen.line(
        f"Tokens: {spent.input_tokens:,} in, {spent.output_tokens:,} out; {spent.request_tokens:,} by our count"
    )
    screen.line(f"Cost: {spent.cost_usd:.4f} US dollars{unpriced}")
    screen.line(
        f"Selection: {quality.selected:,} selected, {_percent(quality.precision)} of them used; "
        f"{quality.missed:,} added by hand"
    )
    screen.line(f"Prompt prefix kept from turn to turn: {_percent(found.prefix.kept_share)}")
    for stage in found.latency:
        screen.line(
            f"{stage.stage.capitalize()}: {stage.p50_ms:,.0f} ms, in one of twenty above {stage.p95_ms:,.0f} ms"
        )
    _draw_list(screen, "Models", [f"{row.model}: {counted(row.spent.turns, 'turn')}" for row in found.models])
    _draw_list(screen, "Parts", [f"{row.kind}: {row.tokens:,} tokens, {row.share:.0%}" for row in found.parts])
    _draw_list(screen, "Items", [_item_line(row) for row in found.items])
    if found.behind:
        screen.remark(f"{counted(found.behind, 'session')} not counted yet.")


def _draw_list(screen: Screen, title: str, lines: Sequence[str]) -> None:
    if lines:
        screen.line(f"{title}:", "bold")
    for line in lines[:SHOWN]:
        screen.line(f"  {line}")
    if len(lines) > SHOWN:
        screen.line(f"  … and {len(lines) - SHOWN} more", "dim")


def _item_line(row: ItemRow) -> str:
    by_hand = f", added by hand {row.added_by_hand:,}×" if row.added_by_hand else ""
    return f"{row.ref}: in {counted(row.included, 'request')}, {row.tokens:,} tokens, used {row.used:,}×{by_hand}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def draw_suggestions(screen: Screen, turns: int, found: Sequence[Suggestion]) -> None:
    """Print what could be better, numbered, so that one can be applied."""
    for number, one in enumerate(found, 1):
        saves = f"saves {one.saves_tokens:,} tokens" if one.saves_tokens >= 0 else f"costs {-one.saves_tokens:,} tokens"
        by_hand = "" if one.edit else "; by hand"
        screen.line(f"{number}. {one.kind} {one.ref} ({saves}{by_hand})", "bold")
        screen.line(f"   {one.why}")
    if not found:
        screen.line(f"Nothing to suggest from {counted(turns, 'turn')}.")


def filters_from(
    *, owner: str | None, agent: str | None, model: str | None, since: str | None, until: str | None
) -> Filters:
    """Return which turns count, from what was typed.

    Raises:
        InvalidInputError: a day is none.
    """
    first, last = _day(since, "--since"), _day(until, "--until")
    return Filters(owner=owner, agent=agent, model=model, since=first, until=last)


def list_from(text: str | None) -> Listed | None:
    """Return which list is meant.

    Raises:
        InvalidInputError: there is no such list.
    """
    names: tuple[Listed, ...] = get_args(Listed)
    if text is not None and text not in names:
        raise InvalidInputError(f"there is no list {text!r}; there is {', '.join(names)}")
    return next((name for name in names if name == text), None)


def _day(text: str | None, option: str) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(f"{option} takes a day such as 2026-01-31, not {text!r}") from None
