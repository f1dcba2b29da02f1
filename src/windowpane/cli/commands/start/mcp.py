"""`windowpane mcp`: the context tools for any MCP host."""

from typing import Annotated

import typer

from windowpane.cli.options import HERE, new_app, where
from windowpane.cli.settings import local_settings
from windowpane.cli.terminal import Screen

app = new_app()


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
        int,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            max=65535,
            help="With --http: the port to listen on; 0: any free port.",
        ),
    ] = 8471,
) -> None:
    """Run as an MCP server. It offers working context, search and explanations of sessions to any MCP host.

    \b
    Examples:
      windowpane mcp
      windowpane mcp --http --port 8471
    """
    from windowpane.mcp_server.run import run_mcp

    settings = local_settings("it starts the MCP server on this machine", host=host or "127.0.0.1")
    if http:
        screen = Screen(remarks_aside=True)
        run_mcp(settings, "http", port, on_ready=lambda url: screen.remark(f"MCP server on {url}"))
    else:
        run_mcp(settings)
