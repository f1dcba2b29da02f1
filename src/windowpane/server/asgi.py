"""The app for a server of your own: `uvicorn windowpane.server.asgi:app`, or the same name for gunicorn.

Settings come from the environment (`WINDOWPANE_…`). The app cannot know at which address such a server listens, so
every caller needs a token, unless `WINDOWPANE_REQUIRE_TOKEN=false` says otherwise.
"""

import signal
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import FrameType

from fastapi import FastAPI

from windowpane.server.app import begin_to_stop
from windowpane.server.process.configure import app_for
from windowpane.server.process.parent import stop_with_parent
from windowpane.server.process.tracing import configure_tracing
from windowpane.serving.logs import configure_logging
from windowpane.settings import Settings
from windowpane.wiring import load_everything, open_engine


def create() -> FastAPI:
    """Return the app that the environment asks for."""
    settings = Settings()
    configure_logging(settings.log_level)
    load_everything()
    made = app_for(settings, open_engine(settings, warm=True), token_needed=settings.require_token is not False)
    opened = made.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        # Here, and not when the app is made: workers may be forked in between, and sending needs a thread.
        configure_tracing()
        async with opened(app):
            _heed_signals(app)
            stop_with_parent()
            yield

    made.router.lifespan_context = lifespan
    return made


def _heed_signals(app: FastAPI) -> None:
    """Begin to stop as soon as the process is asked to, and not only when the last connection has closed.

    Who watches a session would stay for ever, and the server wait for them.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            _chain(number, app)


def _chain(number: signal.Signals, app: FastAPI) -> None:
    before = signal.getsignal(number)

    def stop(received: int, frame: FrameType | None) -> None:
        begin_to_stop(app)
        if callable(before):
            before(received, frame)

    if callable(before):
        signal.signal(number, stop)


app = create()
