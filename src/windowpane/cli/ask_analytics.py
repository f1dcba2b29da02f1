"""Ask an engine together with its analytics, which is brought up to date first."""

from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from windowpane.cli.connect import with_client, with_engine
from windowpane.cli.settings import server_url, settings

if TYPE_CHECKING:
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine
    from windowpane.insight.analytics.update import AnalyticsUpdater, Kept

T = TypeVar("T")


def ask_analytics(
    here: "Callable[[Engine, AnalyticsUpdater, Kept], Awaitable[T]]", there: "Callable[[Client], Awaitable[T]]"
) -> T:
    """Return what one function makes of an open engine and its analytics, or the other of a client of the server."""
    if server_url():
        return with_client(there)
    given = settings()

    async def opened(engine: "Engine") -> T:
        from windowpane.insight.analytics.store import AnalyticsStore
        from windowpane.insight.analytics.update import AnalyticsUpdater

        with closing(AnalyticsStore(given.analytics_file)) as analytics:
            updater = AnalyticsUpdater(engine.store, analytics)
            return await here(engine, updater, await updater.update(within_s=None))

    return with_engine(given, opened)
