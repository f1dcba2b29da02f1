"""Run the proxy by itself: for one program, which runs in this terminal, or for any number of them."""

import os
import shutil
import signal
import socket
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import anyio
import anyio.abc
import uvicorn
from starlette.types import ASGIApp

from windowpane.errors import InvalidInputError
from windowpane.serving.protocol import SocketProtocol

KEEP_ALIVE_S = 120
"""How long an idle connection of a program stays open: not shorter than providers keep theirs."""

FORWARDED = (signal.SIGTERM, signal.SIGHUP)
"""Signals to this process that are meant for the program."""


@asynccontextmanager
async def serving(app: ASGIApp, listener: socket.socket) -> AsyncGenerator[None]:
    """Serve on a socket until the block ends. Answers that are on their way then are broken off."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws=SocketProtocol,
        ws_max_size=2**30,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server.serve, sockets=[listener]))
        try:
            yield
        finally:
            server.should_exit = True


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        # Signals are for the program.
        yield


def check_command(command: Sequence[str]) -> None:
    """Make sure that a program can be run.

    Raises:
        InvalidInputError: there is no such program, or it may not be run.
    """
    if shutil.which(command[0]) is None:
        raise InvalidInputError(f"{command[0]} cannot be run: there is no such program on the PATH")


async def run_child(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a program in this terminal, untouched, and return its exit code as a shell would."""
    environ = {**os.environ, **variables}
    process = await anyio.open_process(list(command), stdin=None, stdout=None, stderr=None, env=environ)
    # The terminal sends Ctrl-C to both; the program decides what it means.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = 0
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_forward, process)
            code = await process.wait()
            tasks.cancel_scope.cancel()
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


async def _forward(process: anyio.abc.Process) -> None:
    with anyio.open_signal_receiver(*FORWARDED) as signals:
        async for number in signals:
            process.send_signal(number)


async def until_stopped() -> None:
    """Wait for Ctrl-C or for a signal to end."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return
