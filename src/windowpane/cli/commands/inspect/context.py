"""`windowpane context`: what the model got in a turn, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import ask
from windowpane.cli.lookup import find_session, find_there
from windowpane.cli.options import ANYWHERE, Json, SessionArgument, new_app, where
from windowpane.cli.render_request import print_request
from windowpane.context.ids import SessionId
from windowpane.context.items import Item
from windowpane.context.request import Request
from windowpane.errors import AgentNotFoundError, RemoteError, TurnNotFoundError

if TYPE_CHECKING:
    from windowpane.api.sessions import SessionView
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine

app = new_app()


@app.command()
@where(*ANYWHERE)
def context(
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

    async def here(engine: "Engine") -> tuple[Request | None, tuple[Item, ...] | None]:
        request = await recorded_request(engine, await find_session(engine, session), turn)
        return request, _items_now(engine, request)

    async def there(client: "Client") -> tuple[Request | None, tuple[Item, ...] | None]:
        return await _request_there(client, await find_there(client, session), turn), None

    request, now = ask(here, there)
    print_request(request, now, messages=messages, as_json=as_json)


async def _request_there(client: "Client", view: "SessionView", turn: int | None) -> Request | None:
    if turn is not None and turn > view.turn_count:
        raise TurnNotFoundError(view.id, turn)
    try:
        return await client.request(view.id, turn or view.turn_count)
    except RemoteError as error:
        if error.remote_code != TurnNotFoundError.code:
            raise
        return None


async def recorded_request(engine: "Engine", session_id: SessionId, turn: int | None) -> Request | None:
    """Return a turn's request, by default the last one's; None when there is nothing on record for it.

    Raises:
        TurnNotFoundError: the session has no such turn.
    """
    count = (await engine.session(session_id)).turn_count
    number = count if turn is None else turn
    if turn is not None and turn > count:
        raise TurnNotFoundError(session_id, turn)
    try:
        return await engine.request(session_id, number)
    except TurnNotFoundError:
        return None


def _items_now(engine: "Engine", request: Request | None) -> tuple[Item, ...] | None:
    """Return the agent's rules and references. Tools are not compared: that would start every tool server."""
    if request is None:
        return None
    try:
        agent = engine.agents.current(request.context.agent)
    except AgentNotFoundError:
        return None
    return (*agent.rules, *agent.references)
