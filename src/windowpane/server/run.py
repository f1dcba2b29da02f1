"""Run the server until somebody stops it.

Everything is opened before the first connection is taken and closed after the last one has ended, so what cannot be
opened is an error of ours, not a traceback of the server's.
"""

import ipaddress
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import anyio
import uvicorn
from fastapi import FastAPI

from windowpane.engine import Engine
from windowpane.errors import InvalidSettingError
from windowpane.server.app import create_app
from windowpane.server.guard import LOOPBACK_NAMES
from windowpane.server.logs import configure_logging
from windowpane.settings import Settings
from windowpane.wiring import open_engine

MAX_SOCKET_MESSAGE_BYTES = 4096
GRACE_S = 10
"""How long requests may go on after the server was asked to stop; a turn that takes longer is interrupted."""


def run(
    settings: Settings,
    *,
    engine: Engine | None = None,
    on_ready: Callable[[str], None] | None = None,
    grace_s: int = GRACE_S,
) -> None:
    """Serve until SIGINT or SIGTERM. `on_ready` is given the address once the server answers there.

    Raises:
        InvalidSettingError: the address cannot be used.
        WindowpaneError: the store or something else cannot be opened.
    """
    configure_logging(settings.log_level)
    check_host(settings.host)
    anyio.run(serve, settings.host, settings.port, engine or open_engine(settings), on_ready, grace_s)


async def serve(
    host: str, port: int, engine: Engine, on_ready: Callable[[str], None] | None = None, grace_s: int = GRACE_S
) -> None:
    """Serve an engine until the process is asked to stop; see `run`."""
    check_host(host)
    app = create_app(engine, hosts=(*LOOPBACK_NAMES, host))
    with listening(host, port) as listener:
        async with app.router.lifespan_context(app):
            await _Server(app, engine, listener, on_ready, grace_s).serve(sockets=[listener])


def check_host(host: str) -> None:
    """Refuse an address that other machines can reach.

    Raises:
        InvalidSettingError: it is not a loopback address.
    """
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise InvalidSettingError(
            "host",
            f"{host!r} can be reached by others, and that needs a token, which this version does not have yet; "
            "use 127.0.0.1, or put a proxy in front",
        )


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Listen until the block ends.

    Raises:
        InvalidSettingError: there is no such address, or it is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InvalidSettingError("port", f"cannot listen on {host} port {port}: {why}; choose another") from None
    with listener:
        # Connections inherit it. The event loop would set it too, but not on a socket that was made like this one, and
        # without it the second half of every answer waits 40 ms for the client to confirm the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


class _Server(uvicorn.Server):
    def __init__(
        self,
        app: FastAPI,
        engine: Engine,
        listener: socket.socket,
        on_ready: Callable[[str], None] | None,
        grace_s: int,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="websockets-sansio",
                # Nobody has anything to say on a socket, and to compress for each listener costs more than it saves.
                ws_max_size=MAX_SOCKET_MESSAGE_BYTES,
                ws_per_message_deflate=False,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=grace_s,
            )
        )
        host, port = listener.getsockname()[:2]
        self._address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._on_ready = on_ready
        self._engine = engine

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready(self._address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Who watches a session would stay for ever.
        self._engine.end_watching()
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
