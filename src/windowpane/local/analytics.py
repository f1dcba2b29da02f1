"""Many turns of one owner together, in this process."""

from collections.abc import Callable
from datetime import UTC, date, datetime

import anyio.to_thread

from windowpane.api.analytics import CostLimitsView, Dashboard, Filters, Listed
from windowpane.api.suggestions import Similar
from windowpane.api.turns import OutsideCallList
from windowpane.errors import SessionNotFoundError
from windowpane.insight.analytics.report import dashboard
from windowpane.insight.analytics.sharing import similar
from windowpane.insight.analytics.spreadsheet import as_csv
from windowpane.local.bound import Bound
from windowpane.local.calls import calls_of_session, priced


class LocalAnalytics:
    """Many turns together: what they cost, and whether it was used."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    async def dashboard(
        self,
        *,
        agent: str | None = None,
        model: str | None = None,
        since: date | None = None,
        until: date | None = None,
        everyone: bool = False,
    ) -> Dashboard:
        """Return turns, tokens and cost by day, model, agent, part and item; use, selection quality and latency."""
        owner = None if everyone else self._bound.owner
        filters = Filters(owner=owner, agent=agent, model=model, since=since, until=until)
        updater = self._bound.updater
        kept = await updater.update()
        return await anyio.to_thread.run_sync(dashboard, updater.analytics, filters, kept)

    async def rebuild(self, on_progress: Callable[[int, int], None] | None = None) -> None:
        """Count every session again. What deleted sessions cost is lost with that."""
        await self._bound.updater.rebuild(on_progress)

    async def csv(
        self,
        listed: Listed,
        *,
        agent: str | None = None,
        model: str | None = None,
        since: date | None = None,
        until: date | None = None,
        everyone: bool = False,
    ) -> str:
        """Return one of the dashboard's lists as CSV."""
        found = await self.dashboard(agent=agent, model=model, since=since, until=until, everyone=everyone)
        return as_csv(found, listed)

    async def similar(self, session_id: str, message: str) -> Similar:
        """Return items that were of use together in past turns of the same owner that asked for about the same."""
        own = await self._bound.own(session_id)
        await self._bound.updater.update()
        return await similar(self._bound.engine, self._bound.updater.analytics, own, message)

    async def cost_limits(self) -> CostLimitsView:
        """Return what the owner's model calls may cost a day and a month, and what they cost so far."""
        return CostLimitsView(await self._bound.engine.costs.limits(self._bound.creator))

    async def outside_calls(self, day: date | None = None) -> OutsideCallList:
        """Return the owner's calls of a day that belong to no session, such as those of a search. None: of today."""
        day = day or datetime.now(UTC).date()
        session = self._bound.engine.outside.session_of(self._bound.creator, day)
        try:
            return OutsideCallList(day=day, session=session, calls=await calls_of_session(self._bound.engine, session))
        except SessionNotFoundError:
            return OutsideCallList(day=day, session=None, calls=priced(()))
