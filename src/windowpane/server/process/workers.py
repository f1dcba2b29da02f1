"""Several workers: processes that share one socket and one store.

The process that was started only listens and keeps the workers running, so it loads nothing of what they need. Each
worker runs `windowpane.server.asgi:app` and is told its settings by the environment.
"""

import json
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from windowpane.callers import TokenFile, token_needed_at
from windowpane.errors import InvalidSettingError, StoreUnavailableError
from windowpane.server.process.logs import configure_logging
from windowpane.server.process.protocol import LimitedProtocol
from windowpane.server.process.sockets import address_of, listening
from windowpane.settings import Settings

STARTING_S = 120
"""How long workers may take to open everything, and how long one may not answer before it is replaced."""

MAX_SOCKET_MESSAGE_BYTES = 4096
SERVER: dict[str, Any] = {
    "http": LimitedProtocol,
    "ws": "websockets-sansio",
    # Clients send nothing on a socket, and to compress for each listener costs more than it saves.
    "ws_max_size": MAX_SOCKET_MESSAGE_BYTES,
    "ws_per_message_deflate": False,
    "log_config": None,
    "access_log": False,
    "server_header": False,
}
"""How every server process is set up."""


def run_workers(settings: Settings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve with several processes until SIGINT or SIGTERM; see `run`.

    Raises:
        InvalidSettingError: the address cannot be used, or the store cannot be shared.
        StoreUnavailableError: the workers could not start.
    """
    configure_logging(settings.log_level)
    needed = token_needed_at(settings.host, TokenFile(settings.tokens_file), settings.require_token)
    if settings.database_url.startswith("memory:"):
        raise InvalidSettingError("workers", "sessions in memory cannot be shared; use one worker, or another store")
    with listening(settings.host, settings.port) as listener, tempfile.TemporaryDirectory() as counters:
        os.environ |= environment(settings, needed, Path(counters))
        _Workers(settings, listener, on_ready).run()


def environment(settings: Settings, token_needed: bool, counters: Path) -> dict[str, str]:
    """Return how workers, which read their settings from the environment, are told these."""
    given = settings.model_dump(mode="json", exclude_unset=True) | {"require_token": token_needed}
    if settings.embeddings_key is not None:
        given["embeddings_key"] = settings.embeddings_key.get_secret_value()
    told = {f"WINDOWPANE_{name.upper()}": _written(value) for name, value in given.items() if value is not None}
    # All workers count together.
    return {"PROMETHEUS_MULTIPROC_DIR": os.environ.get("PROMETHEUS_MULTIPROC_DIR", str(counters))} | told


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class _Workers(Multiprocess):
    """Keeps workers running: one that dies is replaced, and SIGHUP replaces all, one after the other."""

    def __init__(self, settings: Settings, listener: socket.socket, on_ready: Callable[[str], None] | None) -> None:
        config = uvicorn.Config(
            "windowpane.server.asgi:app",
            workers=settings.workers,
            # One second more than turns have, so that what they say last still arrives.
            timeout_graceful_shutdown=int(settings.grace_s) + 1,
            timeout_worker_healthcheck=STARTING_S,
            **SERVER,
        )
        super().__init__(config, sockets=[listener])
        self._address = address_of(listener)
        self._on_ready = on_ready

    def init_processes(self) -> None:
        super().init_processes()
        if all(process.wait_until_ready(STARTING_S, self.should_exit) for process in self.processes):
            if self._on_ready is not None:
                self._on_ready(self._address)
        elif not self.signal_queue:
            self.terminate_all()
            self.join_all()
            raise StoreUnavailableError("the workers could not start; the log above says why")
