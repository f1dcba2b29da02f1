"""Processes that are ready at once: forked from one that has loaded all modules already.

Each is a process of its own, with its own id, signals, environment and exit code. Only the seconds are saved that it
takes to load what every one of them needs.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from patience import PATIENCE_S

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    [
        "windowpane.server.process.run",
        "windowpane.mcp_server.run",
        "windowpane.cli.commands.start.chat",
        "windowpane.cli.commands.start.serve",
        "windowpane.stores.encrypted.store",
        "windowpane.stores.postgres.store",
        "windowpane.stores.redis.store",
        "windowpane.models.provider",
        "pydantic_ai.models.openai",
        "windowpane.tools.mcp",
        "windowpane.text.vocabulary",
    ]
)


class Forked:
    """A running process. `said` is what it has said first, such as its address."""

    def __init__(self, run: Callable[..., None], arguments: tuple[Any, ...], log: Path) -> None:
        heard, saying = _forks.Pipe(duplex=False)
        self._process = _forks.Process(target=_run, args=(run, arguments, saying, log, dict(os.environ)))
        self._process.start()
        saying.close()
        self.said = str(heard.recv())
        heard.close()

    @property
    def pid(self) -> int:
        """Return its number."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def exitcode(self) -> int | None:
        """Return how it ended; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for its end and return the exit code; a negative one is the signal that ended it."""
        self._process.join(PATIENCE_S)
        assert self._process.exitcode is not None, "the process goes on and on"
        return self._process.exitcode

    def kill(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()
        self._process.join(PATIENCE_S)


@contextmanager
def forked(run: Callable[..., None], *arguments: Any, log: Path) -> Generator[Forked]:
    """Run a function in a process until the block ends; what it prints goes to a file.

    Its last argument is a function that it calls with what it has to say when it is ready.
    """
    process = Forked(run, arguments, log)
    try:
        yield process
    finally:
        process.kill()


def obey_permissions() -> None:
    """Let this process write only where the permissions of files allow it, also when it is root's."""
    # Linux's <linux/capability.h>, version 3: what is effective, permitted and inheritable, in two words each.
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.capget(header, data) == 0, os.strerror(ctypes.get_errno())
    overrides = 1 << 1 | 1 << 2
    data[0] &= ~overrides
    assert libc.capset(header, data) == 0, os.strerror(ctypes.get_errno())


class Talking:
    """A running process whose standard input and output are connected to this one."""

    def __init__(self, process: BaseProcess, stdin: anyio.abc.ByteStream, stdout: anyio.abc.ByteStream) -> None:
        self._process = process
        self.stdin = stdin
        self.stdout = stdout

    @property
    def returncode(self) -> int | None:
        """Return how it ended; None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        self._process.kill()

    async def wait(self) -> int:
        """Wait for its end and return the exit code; a negative one is the signal that ended it."""
        if self._process.exitcode is None:
            await anyio.wait_readable(self._process.sentinel)
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


@asynccontextmanager
async def talking(run: Callable[..., None], *arguments: str) -> AsyncGenerator[Talking]:
    """Run a function in a process until the block ends."""
    # One for each direction: a process that ends before it has read everything would cut off what it said, too.
    (asks, asked), (hears, heard) = socket.socketpair(), socket.socketpair()
    with asked, heard:
        process = _forks.Process(target=_talk, args=(run, arguments, asked, heard, dict(os.environ)))
        process.start()
    connect = anyio.abc.SocketStream.from_socket
    async with await connect(asks) as stdin, await connect(hears) as stdout:
        one = Talking(process, stdin, stdout)
        try:
            yield one
        finally:
            one.kill()
            with anyio.CancelScope(shield=True):
                await one.wait()


def _talk(
    run: Callable[..., None],
    arguments: tuple[str, ...],
    stdin: socket.socket,
    stdout: socket.socket,
    environ: dict[str, str],
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.dup2(stdin.detach(), 0)
    os.dup2(stdout.detach(), 1)
    # A child of the fork server reads from nowhere.
    sys.stdin = os.fdopen(0)
    run(*arguments)


def _run(
    run: Callable[..., None], arguments: tuple[Any, ...], saying: Connection, log: Path, environ: dict[str, str]
) -> None:
    # Whoever runs the tests in the background has it ignored, and so would all that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environ)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    run(*arguments, saying.send)
