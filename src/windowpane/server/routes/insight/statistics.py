"""Looking into a session: what it holds, what its turns cost, and what a turn's model was told of the conversation."""

from dataclasses import replace
from typing import Annotated

from fastapi import Query

from windowpane.api.sessions import Observed, Statistics, SummaryView
from windowpane.api.turns import ContextDebug, TurnUsage
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import Id, TurnNumber
from windowpane.server.problems import problems

router = LazyRouter(prefix="/api/sessions/{session_id}", tags=["insight"])


@router.get("/statistics", summary="Count what a session holds", responses=problems(404))
async def read_statistics(pane: Reading, session_id: Id) -> Statistics:
    """Return counts of messages, turns, tokens and fetched context, and what the turns cost. Nothing is changed."""
    return await pane.sessions.statistics(session_id)


@router.get("/summary", summary="Read the summary", responses=problems(404))
async def read_summary(pane: Reading, session_id: Id) -> SummaryView:
    """Return what the session's model is told about messages that are not sent whole any more."""
    return SummaryView(await pane.sessions.summary(session_id))


@router.post("/summary", summary="Make the summary that is due", responses=problems(404))
async def refresh_summary(pane: Chatting, session_id: Id) -> SummaryView:
    """Sum up what came before the recent messages now, if it is long enough. It is done after each turn anyway.

    Asking twice makes one summary. One that fails leaves the one before in place.
    """
    return SummaryView(await pane.sessions.sum_up(session_id))


@router.get("/observed", summary="List files that tools touched", responses=problems(404))
async def list_observed(pane: Reading, session_id: Id) -> Observed:
    """Return the files that tools were seen to touch. They are not part of the working context until promoted."""
    return Observed((await pane.sessions.get(session_id)).observed)


@router.get("/turns/{turn}/debug", summary="See what a turn's model remembered", responses=problems(404))
async def debug_turn(
    pane: Reading,
    session_id: Id,
    turn: TurnNumber,
    topic: Annotated[str | None, Query(max_length=1000, description="Tell whether the model could know this.")] = None,
    text: Annotated[bool, Query(description="With `false`, leave the conversation itself out.")] = True,
) -> ContextDebug:
    """Return the conversation exactly as the turn's model was given it, with counts, sources and warnings."""
    debug = await pane.turns.debug(session_id, turn, topic=topic)
    return debug if text else replace(debug, conversation_context="")


@router.get("/turns/{turn}/usage", summary="See what a turn cost", responses=problems(404))
async def read_turn_usage(pane: Reading, session_id: Id, turn: TurnNumber) -> TurnUsage:
    """Return tokens by our own count and by the provider's, the difference, and the price where it is known."""
    return await pane.turns.usage(session_id, turn)
