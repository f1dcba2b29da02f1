"""Start real tool servers and wait for what they do."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from patience import PATIENCE_S
from windowpane.tools.base import Pace, ServerConfig, ServerStatus
from windowpane.tools.mcp import McpToolbox

SERVERS = Path(__file__).parent / "servers"
QUICK = Pace(connect_timeout_s=PATIENCE_S, first_pause_s=0.05, longest_pause_s=0.2, check_every_s=0.2)
NEVER_AGAIN = Pace(connect_timeout_s=PATIENCE_S, first_pause_s=1000, longest_pause_s=1000)
"""Makes no second attempt by itself, so that a test sees what a call brings about."""


def by_hand(name: str, mode: str = "plain", notes: Path | None = None, **settings: Any) -> ServerConfig:
    """Return the configuration of the server that is written by hand."""
    args = (str(SERVERS / "by_hand.py"), mode, *((str(notes),) if notes else ()))
    return ServerConfig(name=name, command=sys.executable, args=args, **settings)


def by_sdk(name: str, **settings: Any) -> ServerConfig:
    """Return the configuration of the server made with the library, over its pipes."""
    return ServerConfig(name=name, command=sys.executable, args=(str(SERVERS / "by_sdk.py"), "stdio"), **settings)


@contextmanager
def http_process(port: int, *options: str) -> Generator[subprocess.Popen[bytes]]:
    """Run the server made with the library over HTTP."""
    command = [sys.executable, str(SERVERS / "by_sdk.py"), "http", str(port), *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


async def listening(port: int) -> None:
    """Wait until somebody listens on the port."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
            except OSError:
                await anyio.sleep(0.05)
            else:
                return


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""
    with anyio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - other processes set no events
            await anyio.sleep(0.02)


async def connected(tools: McpToolbox, *servers: ServerConfig) -> None:
    """Configure the servers and wait until each is there or not."""
    await tools.configure(servers)
    await tools.settled(PATIENCE_S)


def status(tools: McpToolbox, name: str) -> ServerStatus:
    """Return one server's status."""
    return next(server for server in tools.servers() if server.name == name)


def tool_names(tools: McpToolbox, name: str) -> list[str]:
    """Return the names of a server's tools."""
    return [tool.name for tool in status(tools, name).tools]


def exists(pid: int) -> bool:
    """Tell whether a process exists, also as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
