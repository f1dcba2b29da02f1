"""`windowpane working`: the working context of a session, which says what it is working on."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import ask
from windowpane.cli.lookup import find_session, find_there
from windowpane.cli.options import ANYWHERE, SessionArgument, new_app, where
from windowpane.cli.terminal import Screen
from windowpane.context.sets import ChangeMode, ContextSets
from windowpane.errors import InvalidInputError

if TYPE_CHECKING:
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine

app = new_app(
    no_args_is_help=True,
    help="""Set, read and clear the working context: what a session is working on.

    \b
    Examples:
      windowpane working set last files /srv/spec.md
      windowpane working get last
    """,
)


@app.command("set")
@where(*ANYWHERE)
def set_working(
    session: SessionArgument,
    set_name: Annotated[
        str, typer.Argument(metavar="SET", help="files, applet, endpoints, ports, or a name of your own.")
    ],
    items: Annotated[list[str], typer.Argument(metavar="ITEM", help="The entries of the set; files as full paths.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Add to the set; beyond ten entries the oldest are removed.")
    ] = False,
) -> None:
    """Replace or extend one set of the working context. The model is reminded of it when the session is resumed.

    \b
    Examples:
      windowpane working set last files /srv/spec.md /srv/notes.md
      windowpane working set last ports 8080 --merge
    """
    _change(session, set_name, items, "merge" if merge else "replace")


@app.command("get")
@where(*ANYWHERE)
def get_working(
    session: SessionArgument,
    set_name: Annotated[str | None, typer.Argument(metavar="SET", help="One set. Default: all sets.")] = None,
) -> None:
    """Print the working context as JSON.

    \b
    Example:
      windowpane working get last files
    """

    async def here(engine: "Engine") -> ContextSets:
        return await engine.get_context(await find_session(engine, session))

    async def there(client: "Client") -> ContextSets:
        return (await find_there(client, session)).context

    from windowpane.tools.context_tools import shown

    Screen().line(shown(ask(here, there), set_name))


@app.command("clear")
@where(*ANYWHERE)
def clear_working(
    session: SessionArgument,
    set_name: Annotated[str, typer.Argument(metavar="SET", help="The set to clear.")],
) -> None:
    """Clear one set of the working context.

    \b
    Example:
      windowpane working clear last files
    """
    _change(session, set_name, [], "replace")


def _change(session: str, set_name: str, items: list[str], mode: ChangeMode) -> None:
    async def here(engine: "Engine") -> str:
        changed = await engine.set_context(await find_session(engine, session), set_name, items, mode)
        if changed.refused:
            raise InvalidInputError(changed.reply)
        return changed.text

    async def there(client: "Client") -> str:
        changed = await client.set_context((await find_there(client, session)).id, set_name, items, mode)
        return "\n".join((changed.reply, *changed.warnings))

    Screen().line(ask(here, there))
