"""An MCP server for a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from windowpane.mcp_server.run import run_mcp
from windowpane.settings import Settings


def serve(data: Path, say: Callable[[str], None]) -> None:
    """Serve over HTTP until somebody stops it, and say the address when it is ready."""
    run_mcp(Settings(data=data), "http", 0, on_ready=say)
