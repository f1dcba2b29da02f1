"""Sessions for one request each: how long they are kept.

A request without a session is recorded all the same, so that its turn can be looked at. Its session is forgotten an
hour after its last use, or when there are five hundred newer ones of the same owner.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from windowpane.context.ids import unlisted
from windowpane.engine import Engine
from windowpane.sessions.calls.outside import SERVER
from windowpane.stores.base import SessionRow

KEPT = 500
KEPT_S = 3600.0
EVERY = 32
"""After how many new sessions this process looks for old ones."""

_PAGE = 200


class Once:
    """Forgets sessions that were made for one request, while others are being made."""

    def __init__(self, *, kept: int = KEPT, kept_s: float = KEPT_S, every: int = EVERY) -> None:
        self._kept = kept
        self._kept_s = kept_s
        self._every = every
        self._made = 0

    async def made(self, engine: Engine, owner: str) -> None:
        """Note that a session was made; now and then, forget the owner's old ones."""
        self._made += 1
        if self._made % self._every == 0:
            await self._forget(engine, owner)

    async def _forget(self, engine: Engine, owner: str) -> None:
        oldest = datetime.now(UTC) - timedelta(seconds=self._kept_s)
        for row in (await _rows(engine, owner))[::-1]:
            if row.touched_at < oldest:
                await engine.store.delete_idle(row)
        for row in (await _rows(engine, owner))[self._kept :]:
            await engine.store.delete_idle(row)


async def _rows(engine: Engine, owner: str) -> list[SessionRow]:
    """Return the owner's sessions of this kind, last used first."""
    rows: list[SessionRow] = []
    cursor: str | None = None
    while True:
        page = await engine.store.sessions(unlisted(owner), limit=_PAGE, cursor=cursor)
        rows += [row for row in page.rows if row.agent != SERVER.agent]
        cursor = page.cursor
        if cursor is None:
            return rows


async def once_of(connection: HTTPConnection) -> Once:
    """Return what the app remembers about such sessions."""
    return cast("Once", connection.app.state.once)


OnceSessions = Annotated[Once, Depends(once_of)]
