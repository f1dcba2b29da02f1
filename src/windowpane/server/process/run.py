"""Run the server in this process until it is stopped.

Everything is opened before the first connection is taken and closed after the last one has ended, so what cannot be
opened is an error of ours, not a traceback of the server's. `workers.py` runs several processes.
"""

import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import anyio
import anyio.to_thread
import uvicorn
from fastapi import FastAPI

from windowpane.callers import TokenFile, token_needed_at
from windowpane.engine import Engine
from windowpane.server.app import begin_to_stop
from windowpane.server.process.configure import app_for
from windowpane.server.process.tracing import configure_tracing
from windowpane.serving.logs import configure_logging
from windowpane.serving.protocol import SERVER
from windowpane.serving.sockets import address_of, listening
from windowpane.settings import Settings
from windowpane.wiring import load_everything, open_engine


def run(
    settings: Settings,
    *,
    engine: Engine | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` is given the address once the server answers there.

    Raises:
        InvalidSettingError: the address cannot be used.
        WindowpaneError: the store or something else cannot be opened.
    """
    configure_logging(settings.log_level)
    configure_tracing()
    anyio.run(serve, settings, engine or open_engine(settings, warm=True), on_ready)


async def serve(settings: Settings, engine: Engine, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve an engine until the process is asked to stop; see `run`."""
    needed = token_needed_at(settings.host, TokenFile(settings.tokens_file), settings.require_token)
    app = app_for(settings, engine, token_needed=needed, started_in=Path.cwd())
    with listening(settings.host, settings.port) as listener:
        async with app.router.lifespan_context(app):
            # After the store was opened: a server that cannot start says so sooner. In a thread: tool servers, which
            # are processes that take a second to start, and the embedding model get ready meanwhile.
            await anyio.to_thread.run_sync(load_everything)
            await _Server(app, listener, on_ready, settings.grace_s).serve(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(
        self, app: FastAPI, listener: socket.socket, on_ready: Callable[[str], None] | None, grace_s: float
    ) -> None:
        # One second more than turns have, so that what they say last still arrives.
        super().__init__(uvicorn.Config(app, lifespan="off", timeout_graceful_shutdown=int(grace_s) + 1, **SERVER))
        self._app = app
        self._address = address_of(listener)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready(self._address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        begin_to_stop(self._app)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        # The original raises the signal again as soon as connections are closed, before the engine could close.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.handle_exit(number, frame)
