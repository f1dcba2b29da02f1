"""`windowpane suggest`: changes that would improve an agent, and applying one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import AlsoIn, Json, new_app
from windowpane.cli.terminal import Screen, confirmed, counted
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.api.suggestions import Suggestion

app = new_app()


@app.command()
@on_pane
async def suggest(
    pane: "Pane",
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Agent name. Default: the only agent.")] = None,
    number: Annotated[int | None, typer.Option("--apply", metavar="NUMBER", help="Apply this suggestion.")] = None,
    also_in: AlsoIn = None,
    yes: Annotated[bool, typer.Option("--yes", help="Apply without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Suggest items to demote, promote, shorten or remove. Shows the evidence and the tokens saved.

    \b
    Examples:
      windowpane suggest
      windowpane suggest guide --apply 1
    """
    name = await _agent(pane, agent)
    found = await pane.agents.suggestions(name)
    screen = Screen()
    if number is not None:
        session_id = None if also_in is None else (await find_session(pane, also_in)).id
        await _apply(pane, screen, found.suggestions, number, yes=yes, also_in=session_id)
    elif as_json:
        screen.json(found.suggestions)
    else:
        draw_suggestions(screen, found.turns, found.suggestions)


async def _apply(
    pane: "Pane", screen: Screen, found: "Sequence[Suggestion]", number: int, *, yes: bool, also_in: str | None
) -> None:
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

    done = await pane.agents.apply_suggestion(wanted.agent, edit, revision=revision, also_in=also_in)
    before = ", ".join(f"{name}: {value}" for name, value in done.undo.settings.items() if value is not None)
    screen.line(f"Changed {done.file} ({what}). To undo, set there: {before or 'nothing'}")


async def _agent(pane: "Pane", agent: str | None) -> str:
    """Return the agent that was named, or the only one."""
    if agent is not None:
        return agent
    names = [known.name for known in await pane.agents.list()]
    if len(names) != 1:
        raise InvalidInputError(f"name an agent; available: {', '.join(names) or 'none'}")
    return names[0]


def draw_suggestions(screen: Screen, turns: int, found: "Sequence[Suggestion]") -> None:
    """Print suggestions with the number to apply them by."""
    for number, one in enumerate(found, 1):
        saves = f"saves {one.saves_tokens:,} tokens" if one.saves_tokens >= 0 else f"costs {-one.saves_tokens:,} tokens"
        by_hand = "" if one.edit else "; by hand"
        screen.line(f"{number}. {one.kind} {one.ref} ({saves}{by_hand})", "bold")
        screen.line(f"   {one.why}")
    if not found:
        screen.line(f"No suggestions after {counted(turns, 'turn')}.")
