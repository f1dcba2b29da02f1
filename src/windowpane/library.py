"""Windowpane as a library: open a pane in this process, from asynchronous code or from a script."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from inspect import isasyncgenfunction, iscoroutinefunction
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from windowpane.errors import InvalidSettingError
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.local.bound import LOCAL_OWNER
from windowpane.local.pane import LocalPane
from windowpane.settings import Settings
from windowpane.wiring import open_engine

START_S = 20.0
"""How long the first message of a session waits for tool servers and the search to start."""

NAMESPACES = ("sessions", "turns", "agents", "models", "analytics")


@asynccontextmanager
async def open(  # noqa: A001 – `windowpane.open` is how it is written
    *,
    agents: str | Path | None = None,
    store: str | None = None,
    data: str | Path | None = None,
    owner: str | None = LOCAL_OWNER,
    settings: Settings | None = None,
    warm: bool = False,
    **more: Any,
) -> AsyncGenerator[LocalPane]:
    """Open a pane in this process; it is closed at the end of `async with`.

    `agents` is the folder with the agents, `store` is where sessions are kept (`memory:`, `sqlite:///file`,
    `postgresql://…`, `redis://…`), `data` is the folder for everything else. Any other setting can be given by its
    name; what is not given comes from `settings` or the environment. With `warm`, the embedding model is loaded in the
    background at once instead of by the first search. An `owner` of None sees the sessions of every
    owner.

    Raises:
        InvalidSettingError: there is no such setting.
    """
    chosen = _settings(settings, {"agents": agents, "store_url": store, "data": data, **more})
    analytics = AnalyticsStore(chosen.analytics_place)
    try:
        async with open_engine(chosen, warm=warm) as engine:
            updater = AnalyticsUpdater(engine.store, analytics, engine.nearness)
            yield LocalPane(engine, owner=owner, updater=updater, start_s=START_S)
    finally:
        analytics.close()


@contextmanager
def open_sync(
    *,
    agents: str | Path | None = None,
    store: str | None = None,
    data: str | Path | None = None,
    owner: str | None = LOCAL_OWNER,
    settings: Settings | None = None,
    warm: bool = False,
    **more: Any,
) -> "Generator[SyncPane]":
    """Open a pane for a script or a notebook: the same namespaces and methods as `open()`, as plain calls.

    `pane.turn()` and the other streams are iterated with `for`. The pane runs in a thread of its own.
    """
    opening = open(agents=agents, store=store, data=data, owner=owner, settings=settings, warm=warm, **more)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as pane:
        yield SyncPane(portal, pane)


class SyncPane:
    """A pane whose methods are plain calls. See `Pane` for what they are."""

    def __init__(self, portal: BlockingPortal, pane: object) -> None:
        self._portal = portal
        self._pane = pane

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._pane, name)
        if name in NAMESPACES:
            return SyncPane(self._portal, found)
        if isasyncgenfunction(found):
            return partial(_iterated, self._portal, found)
        return partial(_called, self._portal, found) if iscoroutinefunction(found) else found


def _called(portal: BlockingPortal, method: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
    return portal.call(partial(method, *args, **options))


def _iterated(
    portal: BlockingPortal, method: Callable[..., AsyncIterator[Any]], *args: Any, **options: Any
) -> Generator[Any]:
    """Yield what an asynchronous method yields. One task runs it from beginning to end."""
    queue: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    async def pump() -> None:
        try:
            async for event in method(*args, **options):
                queue.put(("event", event))
        except BaseException as error:
            queue.put(("error", error))
            raise
        queue.put(("end", None))

    task = portal.start_task_soon(pump)
    try:
        while True:
            kind, value = queue.get()
            if kind == "error":
                raise value
            if kind == "end":
                return
            yield value
    finally:
        task.cancel()


def _settings(base: Settings | None, given: dict[str, Any]) -> Settings:
    named = {name: value for name, value in given.items() if value is not None}
    if unknown := sorted(set(named) - set(Settings.model_fields)):
        raise InvalidSettingError(unknown[0], "unknown setting")
    if base is not None:
        named = {**{name: getattr(base, name) for name in base.model_fields_set}, **named}
    chosen = Settings(**named)
    # A program decides itself how many turns it begins.
    bounds = {"max_turns", "max_turns_per_owner"}
    return chosen.model_copy(update=dict.fromkeys(bounds - chosen.model_fields_set, 0))
