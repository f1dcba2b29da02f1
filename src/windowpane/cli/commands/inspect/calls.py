"""`windowpane calls`: every call that was made for a session, also those for summaries."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import Json, SessionArgument, new_app
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def calls(
    pane: "Pane",
    session: SessionArgument,
    number: Annotated[
        int | None, typer.Argument(metavar="N", min=1, help="Show call N of the list as it was sent.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the model calls of a session, also those for summaries, or show one.

    \b
    Examples:
      windowpane calls last
      windowpane calls ses_4k 12
    """
    from windowpane.cli.render_calls import draw_calls, draw_wire

    found = await find_session(pane, session)
    screen = Screen()
    if number is not None:
        record = await pane.sessions.call(found.id, number)
        screen.json(record) if as_json else draw_wire(screen, record)
        return
    listed = await pane.sessions.calls(found.id)
    screen.json(listed) if as_json else draw_calls(screen, listed, turns=True)
