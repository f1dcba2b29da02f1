"""`windowpane export`: a session as one JSON document."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import on_pane
from windowpane.cli.lookup import find_session
from windowpane.cli.options import SessionArgument, new_app
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.pane import Pane

app = new_app()


@app.command()
@on_pane
async def export(
    pane: "Pane",
    session: SessionArgument,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file. Default: print.")
    ] = None,
) -> None:
    """Export a complete session as JSON: every event, request and text.

    \b
    Example:
      windowpane export last -o session.json
    """
    import json

    from windowpane.api.export import EXPORT

    document = await pane.sessions.export((await find_session(pane, session)).id)
    text = json.dumps(EXPORT.adapter.dump_python(document, mode="json"), indent=1) + "\n"
    screen = Screen()
    if file is None:
        screen.write(text)
        return
    file.write_text(text)
    screen.remark(f"{counted(len(document.events), 'event')} and {counted(len(document.blobs), 'text')} in {file}")
