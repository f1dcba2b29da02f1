"""Where a command is done: by an engine that is opened on this machine, or by the server that `--url` names.

The engine and the client each take a second to load, so only the one that is needed is imported, when it is needed.
"""

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from windowpane.cli.settings import server_url, settings

if TYPE_CHECKING:
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine
    from windowpane.settings import Settings

T = TypeVar("T")

NOT_STORED = "memory:"
"""The store of a command that leaves nothing behind."""


def ask(
    here: "Callable[[Engine], Awaitable[T]]",
    there: "Callable[[Client], Awaitable[T]]",
    *,
    store_url: str | None = None,
) -> T:
    """Return what one function makes of an open engine, or the other of a client of the server."""
    if server_url():
        return with_client(there)
    return with_engine(settings(store_url=store_url), here)


def with_engine(given: "Settings", answer: "Callable[[Engine], Awaitable[T]]") -> T:
    """Return what a function makes of an open engine."""
    import anyio

    from windowpane.cli.progress import show_indexing
    from windowpane.wiring import open_engine

    async def opened() -> T:
        async with open_engine(given, on_progress=show_indexing) as engine:
            return await answer(engine)

    return anyio.run(opened)


def with_client(answer: "Callable[[Client], Awaitable[T]]") -> T:
    """Return what a function makes of a client of the server."""
    import anyio

    from windowpane.cli.old_client import Client

    async def opened() -> T:
        async with Client(server_url() or "", token=os.environ.get("WINDOWPANE_TOKEN")) as client:
            return await answer(client)

    return anyio.run(opened)
