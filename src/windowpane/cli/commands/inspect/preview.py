"""`windowpane preview`: the request that a message would make."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import NOT_STORED, ask
from windowpane.cli.lookup import find_session, find_there
from windowpane.cli.options import ANYWHERE, Json, new_app, where
from windowpane.cli.render_request import print_request
from windowpane.context.request import Request
from windowpane.context.session import SessionState

if TYPE_CHECKING:
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine

app = new_app()

START_S = 20.0
"""How long tool servers and the search may take to start; their results are part of the request."""


@app.command()
@where(*ANYWHERE)
def preview(
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The message that would be sent.")],
    session: Annotated[
        str | None, typer.Option("--session", help="In this session: its id, the beginning of an id, or `last`.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="In a new session of this agent. Default: the first agent.")
    ] = None,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print the messages and tools exactly as the model would get them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what the model would get for a message. No model is called, and nothing is stored.

    \b
    Examples:
      windowpane preview "How do I add a rule?"
      windowpane preview "and then?" --session last --json
    """
    if session is not None and agent is not None:
        raise typer.BadParameter("use --session or --agent, not both: a session already has an agent")

    async def here(engine: "Engine") -> Request:
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

    request = ask(here, there, store_url=NOT_STORED if session is None else None)
    print_request(request, None, messages=messages, as_json=as_json)


async def _preview(engine: "Engine", state: SessionState, message: str) -> Request:
    await engine.get_ready(state.id, message, within_s=START_S)
    return await engine.preview(state.id, message)
