"""Finding: turns, messages, names and items, in all sessions at once."""

from typing import Annotated

from fastapi import Query

from windowpane.api.sessions import FindView
from windowpane.server.dependencies import Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.problems import problems

router = LazyRouter(prefix="/api/search", tags=["insight"])


@router.get("", summary="Find turns, messages, sessions and items", responses=problems(422))
async def find(
    pane: Reading,
    q: Annotated[
        str,
        Query(
            min_length=1,
            max_length=1000,
            description="Words, each from its beginning. A line may also say what a turn's request had: "
            "`left-out:NAME`, `sent:NAME`, `over:10k` or `under:500` (tokens), `is:degraded`, `agent:NAME`.",
        ),
    ],
    agent: Annotated[str | None, Query(description="Only sessions and items of this agent.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Query(description="The cursor of the page before.")] = None,
) -> FindView:
    """Return what has all that is asked, the latest first; items of agents with the first page."""
    return await pane.sessions.find(q, agent=agent, limit=limit, cursor=cursor)
