"""`windowpane serve`: run the server."""

from typing import Annotated

import typer

from windowpane.cli.example import ensure_agent
from windowpane.cli.options import HERE, new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen
from windowpane.loading import loading

app = new_app()


@app.command()
@where(*HERE)
def serve(
    host: Annotated[
        str | None,
        typer.Option("--host", envvar="WINDOWPANE_HOST", help="Address to listen on. Default: 127.0.0.1."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            envvar="WINDOWPANE_PORT",
            metavar="PORT",
            min=0,
            max=65535,
            help="Port to listen on; 0: any free port. Default: 8470.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            envvar="WINDOWPANE_WORKERS",
            metavar="N",
            min=1,
            max=256,
            help="Number of worker processes. Default: 1.",
        ),
    ] = None,
) -> None:
    """Run the server. If there is no agent, an example agent is written first.

    An address that others can reach needs a token: see `windowpane token`.

    \b
    Examples:
      windowpane serve
      windowpane serve --port 9000 --agents ./agents
      windowpane serve --host 0.0.0.0 --workers 4
    """
    settings = local_settings("it starts the server on this machine", host=host, port=port, workers=workers)
    screen = Screen()
    ensure_agent(settings, screen)
    screen.remark(f"Agents: {settings.agents_folder}, sessions: {settings.shown_database_url}")
    with loading():
        if settings.workers > 1:
            from windowpane.server.process.workers import run_workers as run
        else:
            from windowpane.server.process.run import run
    run(settings, on_ready=lambda url: screen.line(f"Windowpane is at {url} (Ctrl-C stops it)"))
