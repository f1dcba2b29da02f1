"""`windowpane suggest`: changes that would improve an agent, and applying one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.ask_analytics import ask_analytics
from windowpane.cli.connect import ask
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.terminal import Screen, confirmed, counted
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.api.suggestions import Applied, Suggestion
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine
    from windowpane.insight.analytics.update import AnalyticsUpdater, Kept

app = new_app()


@app.command()
@where(*ANYWHERE)
def suggest(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Agent name. Default: the only agent.")] = None,
    number: Annotated[int | None, typer.Option("--apply", metavar="NUMBER", help="Apply this suggestion.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Apply without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Suggest items to demote, promote, shorten or remove. Shows the evidence and the tokens saved.

    \b
    Examples:
      windowpane suggest
      windowpane suggest guide --apply 1
    """

    async def here(engine: "Engine", updater: "AnalyticsUpdater", kept: "Kept") -> "tuple[int, tuple[Suggestion, ...]]":
        from windowpane.api.analytics import Filters
        from windowpane.insight.analytics.report import counted_turns, item_rows
        from windowpane.insight.analytics.suggest import suggestions

        name = engine.agents.current(_meant(agent, engine.agents.names())).name
        filters = Filters(agent=name)
        turns = counted_turns(updater.analytics, filters)
        rows = item_rows(updater.analytics, filters)
        return turns, suggestions(engine.agents.current(name), await engine.items(name), rows, turns)

    async def there(client: "Client") -> "tuple[int, tuple[Suggestion, ...]]":
        listed = () if agent else (await client.agents()).agents
        found = await client.suggestions(_meant(agent, [one.name for one in listed]))
        return found.turns, found.suggestions

    turns, found = ask_analytics(here, there)
    screen = Screen()
    if number is not None:
        _apply(screen, found, number, yes=yes)
    elif as_json:
        screen.json(found)
    else:
        draw_suggestions(screen, turns, found)


def _apply(screen: Screen, found: "Sequence[Suggestion]", number: int, *, yes: bool) -> None:
    if not 1 <= number <= len(found):
        raise InvalidInputError(f"no suggestion {number}; there are {len(found)}")
    wanted = found[number - 1]
    edit, revision = wanted.edit, wanted.revision
    if edit is None or revision is None:
        raise InvalidInputError(f"{wanted.kind} {wanted.ref} cannot be applied automatically; edit the item yourself")
    what = f"{wanted.kind} {wanted.ref}: {', '.join(f'{name}: {value}' for name, value in edit.settings.items())}"
    if not yes and not confirmed(f"{what}?"):
        screen.line("Nothing was changed.")
        raise typer.Exit(1)

    async def here(engine: "Engine") -> "Applied":
        from windowpane.insight.analytics.suggest import apply

        return apply(engine.agents.current(wanted.agent), edit, revision=revision)

    async def there(client: "Client") -> "Applied":
        return await client.apply_suggestion(wanted.agent, edit, revision=revision)

    done = ask(here, there)
    before = ", ".join(f"{name}: {value}" for name, value in done.undo.settings.items() if value is not None)
    screen.line(f"Changed {done.file} ({what}). To undo, set there: {before or 'nothing'}")


def _meant(agent: str | None, names: Sequence[str]) -> str:
    if agent is None and len(names) != 1:
        raise InvalidInputError(f"name an agent; available: {', '.join(names) or 'none'}")
    return agent or names[0]


def draw_suggestions(screen: Screen, turns: int, found: "Sequence[Suggestion]") -> None:
    """Print suggestions with the number to apply them by."""
    for number, one in enumerate(found, 1):
        saves = f"saves {one.saves_tokens:,} tokens" if one.saves_tokens >= 0 else f"costs {-one.saves_tokens:,} tokens"
        by_hand = "" if one.edit else "; by hand"
        screen.line(f"{number}. {one.kind} {one.ref} ({saves}{by_hand})", "bold")
        screen.line(f"   {one.why}")
    if not found:
        screen.line(f"No suggestions after {counted(turns, 'turn')}.")
