"""`windowpane context`: what the model got in a turn, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.lookup import find_request, find_session
from windowpane.cli.options import Json, SessionArgument, new_app
from windowpane.cli.past import PastView, on_past
from windowpane.errors import AgentNotFoundError, TurnNotFoundError

if TYPE_CHECKING:
    from windowpane.api.sessions import SessionView

app = new_app()


@app.command()
@on_past
async def context(
    past: PastView,
    session: SessionArgument,
    turn: Annotated[
        int | None, typer.Argument(metavar="TURN", min=1, help="Turn number, from 1. Default: the last turn.")
    ] = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print the messages and tools exactly as they were built.")
    ] = False,
    call: Annotated[
        int | None, typer.Option("--call", metavar="K", min=1, help="Show call K of the turn, from 1, as built.")
    ] = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="Show a call as it was sent, byte for byte, with the owner of each byte.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what the model got in a turn, what was left out, and why.

    \b
    Examples:
      windowpane context last
      windowpane context ses_4k 3 --messages
      windowpane context ses_4k 3 --call 2
      windowpane context last --wire
    """
    from windowpane.cli.render_calls import draw_calls
    from windowpane.cli.render_request import print_request
    from windowpane.cli.terminal import Screen

    found = await find_session(past, session)
    if call is not None or wire:
        await _print_call(past, found, turn, call or 1, wire=wire, as_json=as_json)
        return
    request = await find_request(past, found, turn)
    try:
        # Tools are not compared: that would start every tool server.
        now = await past.hashes_now(request.context.agent) if request else {}
        now |= {own.ref: own.blob for own in found.own_references}
    except AgentNotFoundError:
        now = None
    print_request(request, now, messages=messages, as_json=as_json)
    if request is not None and not messages and not as_json:
        screen = Screen()
        screen.line()
        draw_calls(screen, await past.turns.calls(found.id, turn or found.last_turn))


async def _print_call(
    past: PastView, session: "SessionView", turn: int | None, number: int, *, wire: bool, as_json: bool
) -> None:
    from windowpane.cli.render_calls import draw_call, draw_wire
    from windowpane.cli.terminal import Screen

    if not session.turn_count:
        raise TurnNotFoundError(session.id, turn or 1)
    record = await past.turns.call(session.id, turn or session.last_turn, number)
    screen = Screen()
    if as_json:
        screen.json(record)
    elif wire:
        draw_wire(screen, record)
    else:
        draw_call(screen, record)
