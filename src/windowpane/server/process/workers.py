"""Several workers: processes that share one socket and one store.

The process that was started listens and keeps the workers running. Each worker runs `windowpane.server.asgi:app` and is
told its settings by the environment. Where it can be done, workers are forked from what was loaded once (`forking.py`).
"""

import json
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import uvicorn
from pydantic import SecretStr
from uvicorn.supervisors import Multiprocess

from windowpane.callers import TokenFile, token_needed_at
from windowpane.errors import InvalidSettingError, StoreUnavailableError
from windowpane.remarks import get_logger
from windowpane.server.process.forking import CAN_FORK, fork_workers, load_again
from windowpane.serving.logs import configure_logging
from windowpane.serving.protocol import SERVER
from windowpane.serving.sockets import address_of, listening
from windowpane.settings import Settings

log = get_logger()

STILL_S = 120
"""How long a worker that starts may make no progress, and how long one may not answer before it is replaced."""

REMARK_EVERY_S = 15
"""How often a start that takes long is remarked upon."""


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
        if CAN_FORK:
            fork_workers(settings)
        _Workers(settings, listener, on_ready).run()


def environment(settings: Settings, token_needed: bool, counters: Path) -> dict[str, str]:
    """Return how workers, which read their settings from the environment, are told these."""
    given = settings.model_dump(mode="json", exclude_unset=True) | {"require_token": token_needed}
    values = {name: getattr(settings, name) for name in given}
    given |= {name: value.get_secret_value() for name, value in values.items() if isinstance(value, SecretStr)}
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
            timeout_worker_healthcheck=STILL_S,
            **SERVER,
        )
        super().__init__(config, sockets=[listener])
        self._address = address_of(listener)
        self._on_ready = on_ready

    def init_processes(self) -> None:
        super().init_processes()
        try:
            ready = self._wait_until_ready()
        except StoreUnavailableError:
            self.terminate_all()
            self.join_all()
            raise
        if ready and self._on_ready is not None:
            self._on_ready(self._address)

    def handle_hup(self) -> None:
        load_again()
        super().handle_hup()

    def _wait_until_ready(self) -> bool:
        """Wait for all workers, however long they take, as long as they get on; False when asked to stop meanwhile.

        Raises:
            StoreUnavailableError: a worker ended, or does nothing any more.
        """
        waiting = list(self.processes)
        began = moved = remarked = monotonic()
        before: list[float | None] = []
        while waiting := [process for process in waiting if not process.is_ready(timeout=1)]:
            if self.signal_queue:
                return False
            for process in waiting:
                if process.exitcode is not None:
                    raise StoreUnavailableError(
                        f"worker {process.pid} ended with code {process.exitcode} before it was ready; "
                        "the log above says why"
                    )
            now, used = monotonic(), [processor_s(process.pid or 0) for process in waiting]
            if used != before or None in used:
                moved, before = now, used
            if now - moved > STILL_S:
                raise StoreUnavailableError(f"the workers have done nothing for {STILL_S} s; the log above may say why")
            if now - remarked > REMARK_EVERY_S:
                remarked = now
                log.warning(
                    "workers.starting",
                    why="the workers still load; on a busy machine they get little processor time",
                    ready=len(self.processes) - len(waiting),
                    of=len(self.processes),
                    seconds=round(now - began),
                    processor_s=sum(each or 0 for each in used),
                )
            sleep(0.1)
        return True


def processor_s(pid: int) -> float | None:
    """Return how much processor time a process has had; None where the system does not tell."""
    try:
        # The name of the program, in brackets, may hold spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
