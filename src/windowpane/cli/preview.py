"""`windowpane preview`: what a message would give the model, without a model and without a trace."""

from windowpane.cli.context import draw
from windowpane.cli.door import with_engine
from windowpane.cli.naming import find_session
from windowpane.context.request import Request
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.settings import Settings

NOWHERE = "memory:"
CONNECT_S = 10.0
"""How long tool servers may take to connect; what they offer is part of the request."""


def preview(
    settings: Settings, message: str, *, session: str | None, agent: str | None, messages: bool, as_json: bool
) -> None:
    """Print the request that a message would make in a session, or in a new one."""

    async def in_session(engine: Engine) -> Request:
        return await _preview(engine, await engine.session(await find_session(engine, session or "")), message)

    async def in_new_session(engine: Engine) -> Request:
        return await _preview(engine, await engine.create_session(agent), message)

    if session is not None:
        request = with_engine(settings, in_session)
    else:
        request = with_engine(settings.model_copy(update={"store_url": NOWHERE}), in_new_session)
    draw(request, None, messages=messages, as_json=as_json)


async def _preview(engine: Engine, state: SessionState, message: str) -> Request:
    await engine.servers(state.agent, settle_s=CONNECT_S)
    return await engine.preview(state.id, message)
