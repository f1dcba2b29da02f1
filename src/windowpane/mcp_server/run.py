"""Run the server: over the pipes of this process, or over HTTP."""

import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import anyio
import uvicorn
from starlette.types import ASGIApp

from windowpane.callers import TokenFile, token_needed_at
from windowpane.mcp_server.callers import Gate
from windowpane.mcp_server.server import create_server
from windowpane.serving.protocol import SERVER
from windowpane.serving.sockets import address_of, listening
from windowpane.settings import Settings
from windowpane.wiring import open_engine

PORT = 8471
GRACE_S = 5
"""How long requests may go on after the server was asked to stop."""

Transport = Literal["stdio", "http"]


def run_mcp(
    settings: Settings,
    transport: Transport = "stdio",
    port: int = PORT,
    *,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve MCP hosts: over the pipes of this process until they close, or over HTTP until the process is stopped.

    Over HTTP it listens on the host of the settings; `on_ready` is given the address once it answers there.

    Raises:
        InvalidSettingError: it cannot listen on the port, or others can reach the host and there is no token.
        WindowpaneError: the store or something else cannot be opened.
    """

    tokens = TokenFile(settings.tokens_file)
    needed = transport == "http" and token_needed_at(settings.host, tokens, settings.require_token)

    async def serve() -> None:
        async with open_engine(settings) as engine:
            server = create_server(engine, str(Path.cwd()) if transport == "stdio" else "")
            if transport == "stdio":
                await server.run_stdio_async()
            else:
                app = server.streamable_http_app(host=settings.host)
                guarded = Gate(app, tokens, token_needed=needed, hosts=settings.hosts, origins=settings.allow_origins)
                await _serve_http(guarded, settings.host, port, on_ready)

    anyio.run(serve)


async def _serve_http(app: ASGIApp, host: str, port: int, on_ready: Callable[[str], None] | None) -> None:
    config = uvicorn.Config(app, timeout_graceful_shutdown=GRACE_S, **SERVER)
    with listening(host, port) as listener:
        address = f"{address_of(listener)}/mcp"
        async with anyio.create_task_group() as tasks:
            web = _Web(config, lambda: on_ready(address) if on_ready else None)
            tasks.start_soon(_stop_on_signal, web)
            await web.serve(sockets=[listener])
            tasks.cancel_scope.cancel()


class _Web(uvicorn.Server):
    """A web server that leaves signals to us: what is open is closed before the process ends."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _stop_on_signal(web: uvicorn.Server) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            web.force_exit = web.should_exit
            web.should_exit = True
