"""The pane that a command uses: in this process, or of the server that `--url` names.

A command is one function of a pane, so it is the same in both cases. The engine and the client take a while to load, so
only the one that is needed is imported, when a command runs.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

from windowpane.cli.options import ANYWHERE, where
from windowpane.cli.settings import server_url, settings
from windowpane.loading import loading

if TYPE_CHECKING:
    from windowpane.api.pane import Pane
    from windowpane.cli.lookup import ListSessions
    from windowpane.local.pane import LocalPane
    from windowpane.stores.sessions import Sessions

P = ParamSpec("P")

NOT_STORED = "memory:"
"""The store of a command that leaves nothing behind."""

START_S = 20.0
"""How long the first message waits for tool servers and the search to start."""


def on_pane(command: "Callable[Concatenate[Pane, P], Awaitable[None]]") -> Callable[..., None]:
    """Make a command of a function of a pane: it gets `--data`, `--agents`, `--store-url` and `--url`."""
    return command_on(with_pane, command)


def command_on(opened: Callable[[Any], None], command: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a command of a function whose first parameter `opened` gives, when it runs it."""

    @wraps(command)
    def run(**given: Any) -> None:
        opened(partial(command, **given))

    own = signature(command)
    first, *options = own.parameters.values()
    # typer reads both to learn which options there are; what is opened is none.
    cast("Any", run).__signature__ = own.replace(parameters=options)
    run.__annotations__ = {name: kind for name, kind in command.__annotations__.items() if name != first.name}
    return where(*ANYWHERE)(run)


def with_pane(
    command: "Callable[[Pane], Awaitable[None]]", *, store_url: str | None = None, owner: str | None = None
) -> None:
    """Run a command with an open pane. On this machine it sees the sessions of all owners, or of one."""
    import anyio

    async def opened() -> None:
        async with open_pane(store_url=store_url, owner=owner) as pane:
            await command(pane)

    anyio.run(opened)


@asynccontextmanager
async def open_list() -> "AsyncGenerator[ListSessions]":
    """Open what can list sessions and no more: in this process it needs a store alone, which is there at once."""
    if server_url():
        async with open_pane() as pane:
            yield pane.sessions.list
        return
    async with open_states() as states:
        from windowpane.local.past.sessions import PastSessions

        yield PastSessions(states).list


@asynccontextmanager
async def open_states() -> "AsyncGenerator[Sessions]":
    """Open the store of this machine and no more."""
    with loading():
        from windowpane.stores.detect import refuse_sealed
        from windowpane.stores.sessions import Sessions
        from windowpane.wiring import open_sessions

        opening = open_sessions(settings())
    async with opening as store:
        await refuse_sealed(store)
        yield Sessions(store)


@asynccontextmanager
async def open_pane(
    *, store_url: str | None = None, owner: str | None = None, warm: bool = False
) -> "AsyncGenerator[Pane]":
    """Open a pane on the server that was named, or in this process; with `warm`, its search is loaded meanwhile."""
    if url := server_url():
        from windowpane.client import Client

        async with Client(url, token=os.environ.get("WINDOWPANE_TOKEN")) as client:
            yield client
        return
    async with open_here(store_url=store_url, owner=owner, warm=warm) as pane:
        yield pane


@asynccontextmanager
async def open_here(
    *, store_url: str | None = None, owner: str | None = None, warm: bool = False
) -> "AsyncGenerator[LocalPane]":
    """Open a pane in this process."""
    with loading():
        from windowpane.cli.progress import show_indexing
        from windowpane.insight.analytics.store import AnalyticsStore
        from windowpane.insight.analytics.update import AnalyticsUpdater
        from windowpane.local.pane import LocalPane
        from windowpane.wiring import open_engine

        given = settings(store_url=store_url)
    with closing(AnalyticsStore(given.analytics_place)) as analytics:
        async with open_engine(given, on_progress=show_indexing, warm=warm) as engine:
            updater = AnalyticsUpdater(engine.store, analytics, engine.nearness)
            yield LocalPane(engine, owner=owner, updater=updater, start_s=START_S)
