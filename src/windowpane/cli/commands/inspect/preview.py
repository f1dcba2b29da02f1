"""`windowpane preview`: the request that a message would make."""

from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import NOT_STORED, with_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import ANYWHERE, Json, new_app, where

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.context.request import Request

app = new_app()


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

    async def shown(pane: "Pane") -> None:
        from windowpane.cli.render_request import print_request

        if session is None:
            request = await _preview_new(pane, agent, message)
        else:
            request = await pane.preview((await find_session(pane, session)).id, message)
        print_request(request, None, messages=messages, as_json=as_json)

    with_pane(shown, store_url=NOT_STORED if session is None else None)


async def _preview_new(pane: "Pane", agent: str | None, message: str) -> "Request":
    """Return the request in a new session, which is deleted again."""
    session_id = (await pane.sessions.create(agent)).id
    try:
        return await pane.preview(session_id, message)
    finally:
        await pane.sessions.delete(session_id)
