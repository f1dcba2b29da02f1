"""A server for commands to talk to, in a thread of this process."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import structlog
from anyio.from_thread import start_blocking_portal

from cli.running import environment, logging_restored
from server.place import listening
from windowpane.server.process.configure import app_for
from windowpane.settings import Settings
from windowpane.wiring import open_engine


@contextmanager
def server(data: Path, *, token_needed: bool = False) -> Generator[str]:
    """Serve a data folder, and yield the address."""
    with mock.patch.dict(os.environ, environment(data), clear=True):
        settings = Settings()
    app = app_for(settings, open_engine(settings), token_needed=token_needed)
    with logging_restored():
        # What it logs would stand in what commands of the same process print.
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(listening(app)) as url:
            yield url
