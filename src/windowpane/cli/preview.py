"""`windowpane preview`: what a message would give the model, without a model and without a trace."""

from typing import TYPE_CHECKING

from windowpane.cli.context import draw
from windowpane.cli.door import Place, ask
from windowpane.cli.naming import find_session, find_there
from windowpane.context.request import Request
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.settings import Settings

if TYPE_CHECKING:
    from windowpane.client import Client

NOWHERE = "memory:"
START_S = 20.0
"""How long tool servers and the search may take to start; what they bring is part of the request."""


def preview(
    place: Place, message: str, *, session: str | None, agent: str | None, messages: bool, as_json: bool
) -> None:
    """Print the request that a message would make in a session, or in a new one, which is not kept."""

    async def here(engine: Engine) -> Request:
        if session is not None:
            return await _preview(engine, await engine.session(await find_session(engine, session)), message)
        return await _preview(engine, await engine.create_session(agent), message)

    async def there(client: "Client") -> Request:
        if session is not None:
            return await client.preview((await find_there(client, session)).id, message)
        view = await client.create_session(agent)
        try:
            return await client.preview(view.id, message)
        finally:
            await client.delete_session(view.id)

    if session is None and isinstance(place, Settings):
        place = place.model_copy(update={"store_url": NOWHERE})
    draw(ask(place, here, there), None, messages=messages, as_json=as_json)


async def _preview(engine: Engine, state: SessionState, message: str) -> Request:
    await engine.get_ready(state.id, message, within_s=START_S)
    return await engine.preview(state.id, message)
