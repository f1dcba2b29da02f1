"""`windowpane working`: the working context of a session, which says what it is working on."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import SessionArgument, new_app
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.api.sessions import ChangedSession

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
@on_pane
async def set_working(
    pane: "Pane",
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
    session_id = (await find_session(pane, session)).id
    _print(await pane.sessions.set_context(session_id, set_name, items, "merge" if merge else "replace"))


@app.command("get")
@on_pane
async def get_working(
    pane: "Pane",
    session: SessionArgument,
    set_name: Annotated[str | None, typer.Argument(metavar="SET", help="One set. Default: all sets.")] = None,
) -> None:
    """Print the working context as JSON.

    \b
    Example:
      windowpane working get last files
    """
    from windowpane.tools.context_tools import shown

    found = await find_session(pane, session)
    Screen().line(shown(found.context, set_name))


@app.command("clear")
@on_pane
async def clear_working(
    pane: "Pane",
    session: SessionArgument,
    set_name: Annotated[str, typer.Argument(metavar="SET", help="The set to clear.")],
) -> None:
    """Clear one set of the working context.

    \b
    Example:
      windowpane working clear last files
    """
    _print(await pane.sessions.set_context((await find_session(pane, session)).id, set_name, []))


@app.command("promote")
@on_pane
async def promote(
    pane: "Pane",
    session: SessionArgument,
    paths: Annotated[list[str], typer.Argument(metavar="FILE", help="Full paths of files that tools have used.")],
) -> None:
    """Add files that tools have used to the set `files` of the working context.

    \b
    Example:
      windowpane working promote last /srv/notes.md
    """
    _print(await pane.sessions.promote((await find_session(pane, session)).id, paths))


def _print(changed: "ChangedSession") -> None:
    Screen().line("\n".join((changed.reply, *changed.warnings)))
