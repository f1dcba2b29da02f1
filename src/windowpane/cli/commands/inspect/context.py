"""`windowpane context`: what the model got in a turn, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_request, find_session, hashes_now
from windowpane.cli.options import Json, SessionArgument, new_app
from windowpane.errors import AgentNotFoundError

if TYPE_CHECKING:
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def context(
    pane: "Pane",
    session: SessionArgument,
    turn: Annotated[
        int | None, typer.Argument(metavar="TURN", min=1, help="Turn number, from 1. Default: the last turn.")
    ] = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print the messages and tools exactly as the model got them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what the model got in a turn, what was left out, and why.

    \b
    Examples:
      windowpane context last
      windowpane context ses_4k 3 --messages
    """
    from windowpane.cli.render_request import print_request

    request = await find_request(pane, await find_session(pane, session), turn)
    try:
        # Tools are not compared: that would start every tool server.
        now = await hashes_now(pane, request.context.agent, ("rule", "reference")) if request else None
    except AgentNotFoundError:
        now = None
    print_request(request, now, messages=messages, as_json=as_json)
