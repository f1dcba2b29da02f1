"""`windowpane context`: what the model was given in a turn, and why."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from windowpane.cli.door import Place, ask
from windowpane.cli.draw import draw_context, draw_request
from windowpane.cli.naming import find_session, find_there
from windowpane.cli.screen import Screen
from windowpane.context.ids import SessionId
from windowpane.context.items import Item
from windowpane.context.request import Request
from windowpane.engine import Engine
from windowpane.errors import AgentNotFoundError, RemoteError, TurnNotFoundError
from windowpane.insight.view import NO_CONTEXT, changes_since

if TYPE_CHECKING:
    from windowpane.api.sessions import SessionView
    from windowpane.client import Client

REQUEST: TypeAdapter[Request] = TypeAdapter(Request)


def context(place: Place, session: str, turn: int | None, *, messages: bool, as_json: bool) -> None:
    """Print the record of a turn's request; here also what has changed since.

    Raises:
        SessionNotFoundError: no such session.
        TurnNotFoundError: the session has no such turn.
    """

    async def here(engine: Engine) -> tuple[Request | None, tuple[Item, ...] | None]:
        request = await recorded_request(engine, await find_session(engine, session), turn)
        return request, _items_now(engine, request)

    async def there(client: "Client") -> tuple[Request | None, tuple[Item, ...] | None]:
        return await _request_there(client, await find_there(client, session), turn), None

    request, now = ask(place, here, there)
    draw(request, now, messages=messages, as_json=as_json)


async def _request_there(client: "Client", view: "SessionView", turn: int | None) -> Request | None:
    if turn is not None and turn > view.turn_count:
        raise TurnNotFoundError(view.id, turn)
    try:
        return await client.request(view.id, turn or view.turn_count)
    except RemoteError as error:
        if error.remote_code != TurnNotFoundError.code:
            raise
        return None


async def recorded_request(engine: Engine, session_id: SessionId, turn: int | None) -> Request | None:
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


def draw(request: Request | None, now: Iterable[Item] | None, *, messages: bool, as_json: bool) -> None:
    """Print a request in the form that was asked for. `now` is what the agent has today, when that is known."""
    screen = Screen()
    if as_json:
        # Messages are long and often private: they are in the JSON when they are asked for.
        left_out = None if messages else {"messages", "tools"}
        body = REQUEST.dump_json(request, indent=2, exclude=left_out).decode() if request else "null"
        screen.write(body + "\n")
    elif request is None:
        screen.line(NO_CONTEXT)
    elif messages:
        draw_request(screen, request)
    else:
        draw_context(screen, request.context, changes_since(request.context, now) if now is not None else None)


def _items_now(engine: Engine, request: Request | None) -> tuple[Item, ...] | None:
    """Return the agent's rules and references. Tools are not compared: that would start every tool server."""
    if request is None:
        return None
    try:
        agent = engine.agents.current(request.context.agent)
    except AgentNotFoundError:
        return None
    return (*agent.rules, *agent.references)
