"""Load everything once and fork the workers from it: they share the memory, and start in a moment.

What was imported, the routes, the vocabulary of the tokenizer and the embedding model are the larger part of a worker.
None of it changes later, so all workers can use the same pages of memory. Nothing is opened before the fork: no store,
no connection, no event loop, no thread of our own.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from socket import socket
from typing import Any

import uvicorn
from uvicorn.supervisors import multiprocess

from windowpane.server.lazy_routes import build_all
from windowpane.server.process.parent import Lifeline
from windowpane.settings import Settings

CAN_FORK = sys.platform == "linux"
"""Elsewhere libraries of the system do not survive it, and each worker loads everything itself."""

ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""No thread may run when a process is forked, and numpy would start some when it is imported."""

_started_by_uvicorn: Any = multiprocess.get_subprocess  # pyright: ignore[reportPrivateImportUsage]


def fork_workers(settings: Settings) -> None:
    """Load what workers need and let uvicorn fork those that it starts from now on.

    Raises:
        InvalidSettingError: the settings cannot be used.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # Not at the top: the environment has to be set before.
    import_module("windowpane.wiring").load_shared(settings)
    # The app itself, as the environment asks for it; it is opened in each worker.
    build_all(import_module("windowpane.server.asgi").app.routes)
    gc.collect()
    # A collector that writes its marks into shared pages would make copies of them.
    gc.freeze()
    lifeline = Lifeline()

    def forked(config: uvicorn.Config, target: Callable[..., None], sockets: list[socket]) -> BaseProcess:
        return get_context("fork").Process(target=_work, args=(lifeline, config, target, sockets))

    _start_with(forked)


def load_again() -> None:
    """Let workers that are started from now on load everything themselves: the code may have changed."""
    _start_with(_started_by_uvicorn)


def _start_with(start: object) -> None:
    # Uvicorn has no setting for it, and its supervisor is otherwise what is needed.
    multiprocess.get_subprocess = start  # type: ignore[assignment] # pyright: ignore


def _work(lifeline: Lifeline, config: uvicorn.Config, target: Callable[..., None], sockets: list[socket]) -> None:
    # The handlers of the process that keeps workers are not this one's.
    for number in multiprocess.SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    lifeline.hold()
    config.configure_logging()
    target(sockets=sockets)
