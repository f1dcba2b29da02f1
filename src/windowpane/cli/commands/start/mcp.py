"""`windowpane mcp`: the context tools for any MCP host."""

import sys
from typing import Annotated

import typer

from windowpane.cli.options import HERE, new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen

app = new_app()

PORT = 8471
IN_A_TERMINAL = (
    "Waiting for an MCP host on stdin. A host starts this command itself: docs/mcp.md says how. "
    "--http serves over HTTP. Ctrl-C stops it."
)


@app.command()
@where(*HERE)
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over streamable HTTP on 127.0.0.1 instead of stdin and stdout.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", help="With --http: the address to listen on. An address that others can reach needs a token."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            max=65535,
            help="With --http: the port to listen on; 0: any free port. Default: 8471.",
        ),
    ] = None,
) -> None:
    """Run as an MCP server. It offers working context, search and explanations of sessions to any MCP host.

    \b
    Examples:
      windowpane mcp
      windowpane mcp --http --port 8471
    """
    from windowpane.mcp_server.run import run_mcp

    settings = local_settings("it starts the MCP server on this machine", host=host or "127.0.0.1")
    screen = Screen(remarks_aside=True)
    if http:
        at = PORT if port is None else port
        run_mcp(settings, "http", at, on_ready=lambda url: screen.remark(f"MCP server on {url}"))
        return
    if host is not None or port is not None:
        raise typer.BadParameter("--host and --port are for --http; without it the server talks over stdin and stdout")
    if sys.stdin.isatty():
        screen.remark(IN_A_TERMINAL)
    run_mcp(settings)
