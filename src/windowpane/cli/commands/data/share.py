"""`windowpane share`: a session as a file that the page opens."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import SessionArgument, new_app
from windowpane.cli.terminal import Screen

if TYPE_CHECKING:
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def share(
    pane: "Pane",
    session: SessionArgument,
    file: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")] = Path(
        "session.windowpane.json"
    ),
    redacted: Annotated[bool, typer.Option("--redacted", help="Replace every text by its length and a hash.")] = False,
) -> None:
    """Share a session as a file: what was said, and every call taken apart. The page opens it without storing it.

    Anything that looks like a key is left out. With --redacted only sizes, names of tools, tokens and cost are in it.

    \b
    Examples:
      windowpane share last
      windowpane share last --redacted -o report.windowpane.json
    """
    import json

    found = await find_session(pane, session)
    document = await pane.sessions.share(found.id, redacted=redacted)
    text = json.dumps(document)
    file.write_text(text + "\n")
    Screen().remark(f"{len(text):,} bytes in {file}. To look at it: windowpane serve, then open /shared on the page.")
