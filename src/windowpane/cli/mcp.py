"""`windowpane mcp`: the context tools for any MCP host."""

from windowpane.cli.screen import Screen
from windowpane.mcp_server.run import run_mcp
from windowpane.settings import Settings


def mcp(settings: Settings, *, http: bool, port: int) -> None:
    """Serve MCP hosts over the pipes of this process, or over HTTP on this machine."""
    if http:
        screen = Screen(remarks_aside=True)
        run_mcp(settings, "http", port, on_ready=lambda url: screen.remark(f"MCP server on {url}"))
    else:
        run_mcp(settings)
