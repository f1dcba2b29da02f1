"""`windowpane chat`: a conversation in the terminal, or one answer for a script."""

from pathlib import Path
from typing import Annotated

import typer

from windowpane.cli.options import ANYWHERE, new_app, where

app = new_app()


@app.command()
@where(*ANYWHERE)
def chat(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="Continue this session: its id, the beginning of an id, or `last`."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Agent of the new session. Default: the first agent.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="PROVIDER:MODEL", help="Use this model from now on.")
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option("--cache", metavar="auto|stable|fresh", help="How requests are put together from now on."),
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="Send this message, print the answer, and exit.")
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", "-a", metavar="FILE", help="Send this file with the first message. Repeat for more."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --message or piped input: allow tool calls that need approval.")
    ] = False,
) -> None:
    """Chat with an agent in the terminal. /help lists the commands you can type there.

    With --message or piped input, it answers once: the answer goes to stdout and everything else to stderr. Tool calls
    that need approval are denied unless --yes is given.

    \b
    Examples:
      windowpane chat
      windowpane chat last --model anthropic:claude-sonnet-4-5
      windowpane chat --agent guide --message "What is an include mode?"
      windowpane chat --attach plan.pdf --attach photo.jpg -m "What is missing?"
      git diff | windowpane chat last
    """
    from windowpane.cli.chat import talk

    chosen = {name: value for name, value in (("model", model), ("cache", cache)) if value is not None}
    raise typer.Exit(
        talk.chat(session=session, agent=agent, chosen=chosen, message=message, attach=attach or (), yes=yes)
    )
