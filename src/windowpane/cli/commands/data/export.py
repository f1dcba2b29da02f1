"""`windowpane export`: a session as one JSON document."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windowpane.cli.connect import ask
from windowpane.cli.lookup import find_session, find_there
from windowpane.cli.options import ANYWHERE, SessionArgument, new_app, where
from windowpane.cli.terminal import Screen, counted

if TYPE_CHECKING:
    from windowpane.api.export import SessionExport
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine

app = new_app()


@app.command()
@where(*ANYWHERE)
def export(
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

    async def here(engine: "Engine") -> "SessionExport":
        return await engine.export_session(await find_session(engine, session))

    async def there(client: "Client") -> "SessionExport":
        return await client.export_session((await find_there(client, session)).id)

    document = ask(here, there)
    text = json.dumps(EXPORT.dump_python(document, mode="json"), indent=1) + "\n"
    screen = Screen()
    if file is None:
        screen.write(text)
        return
    file.write_text(text)
    screen.remark(f"{counted(len(document.events), 'event')} and {counted(len(document.blobs), 'text')} in {file}")
