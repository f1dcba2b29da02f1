"""Many turns of a server together."""

from datetime import date
from typing import Any

from windowpane.api.analytics import CostLimitsView, Dashboard, Listed
from windowpane.api.suggestions import Similar
from windowpane.api.turns import OutsideCallList
from windowpane.client.connection import Connection, given, session_path


class RemoteAnalytics:
    """Many turns together: what they cost, and whether it was used."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

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
        return await self._server.get(Dashboard, "/api/analytics", _filters(agent, model, since, until, everyone))

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
        params = given(_filters(agent, model, since, until, everyone))
        return (await self._server.request("GET", f"/api/analytics/{listed}.csv", params=params)).text

    async def similar(self, session_id: str, message: str) -> Similar:
        """Return items that were of use together in past turns of the same owner that asked for about the same."""
        return await self._server.get(Similar, f"{session_path(session_id)}/similar", {"message": message})

    async def cost_limits(self) -> CostLimitsView:
        """Return what the owner's model calls may cost a day and a month, and what they cost so far."""
        return await self._server.get(CostLimitsView, "/api/costs")

    async def outside_calls(self, day: date | None = None) -> OutsideCallList:
        """Return the owner's calls of a day that belong to no session, such as those of a search. None: of today."""
        return await self._server.get(OutsideCallList, "/api/calls", {"day": day and day.isoformat()})


def _filters(
    agent: str | None, model: str | None, since: date | None, until: date | None, everyone: bool
) -> dict[str, Any]:
    return {
        "agent": agent,
        "model": model,
        "since": since and since.isoformat(),
        "until": until and until.isoformat(),
        "everyone": everyone,
    }
