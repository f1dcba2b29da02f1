"""Looking back at a session: statistics, and what a turn's model was told of the conversation."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path, Query

from windowpane.context.fetched import FetchedKind
from windowpane.context.messages import AssistantMessage
from windowpane.context.session import Mode
from windowpane.errors import AgentNotFoundError, TurnNotFoundError
from windowpane.insight.debug import ContextDebug, context_debug
from windowpane.insight.usage import Residual, price_of_steps, residuals
from windowpane.server.fetched import counts_of
from windowpane.server.opened import OpenEngine
from windowpane.server.problems import problems
from windowpane.server.sessions import Id

router = APIRouter(prefix="/api/sessions/{session_id}", tags=["insight"])

Number = Annotated[int, Path(ge=1, le=2**53, description="The turn, counted from 1.")]
BEFORE = 64
"""How many messages before a turn its sources and related documents are looked for in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts of a session, true after every clear and delete."""

    mode: Mode
    message_count: int
    turn_count: int
    token_count: int
    fetched_context_counts: dict[FetchedKind, int]
    total_fetched_items: int
    has_summary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """What a turn cost: our own count of each model call beside the provider's, and the price where it is known."""

    steps: tuple[Residual, ...]
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Observed:
    """Files that tools were seen to touch, the latest last."""

    paths: tuple[str, ...]


@router.get("/statistics", summary="Count what a session holds", responses=problems(404))
async def statistics(engine: OpenEngine, session_id: Id) -> Statistics:
    """Return counts of messages, turns, tokens and fetched context. Reading them changes nothing."""
    state = await engine.session(session_id)
    try:
        mode = state.settings.mode or engine.agents.current(state.agent).settings.mode
    except AgentNotFoundError:
        mode = state.settings.mode or "normal"
    counts = counts_of(state)
    return Statistics(
        mode=mode,
        message_count=state.message_count,
        turn_count=state.turn_count,
        token_count=state.token_count,
        fetched_context_counts=counts,
        total_fetched_items=sum(counts.values()),
        has_summary=state.summary is not None,
    )


@router.get("/turns/{turn}/debug", summary="See what a turn's model remembered", responses=problems(404))
async def debug_turn(
    engine: OpenEngine,
    session_id: Id,
    turn: Number,
    topic: Annotated[str | None, Query(max_length=1000, description="Tell whether the model could know this.")] = None,
) -> ContextDebug:
    """Return the conversation exactly as the turn's model was given it, with counts, sources and warnings."""
    request = await engine.request(session_id, turn)
    start = (await engine.session(session_id)).turn_starts.of(turn)
    if start is None:
        raise TurnNotFoundError(session_id, turn)
    before = await engine.messages(session_id, before=start, limit=BEFORE)
    return context_debug(request, before, topic=topic)


@router.get("/observed", summary="List files that tools touched", responses=problems(404))
async def list_observed(engine: OpenEngine, session_id: Id) -> Observed:
    """Return the files that tools were seen to touch, the latest last. They are not part of the working context."""
    return Observed((await engine.session(session_id)).observed)


@router.get("/turns/{turn}/usage", summary="See what a turn cost", responses=problems(404))
async def turn_usage(engine: OpenEngine, session_id: Id, turn: Number) -> TurnUsage:
    """Return tokens by our own count and by the provider's, and the price where it is known."""
    request = await engine.request(session_id, turn)
    state = await engine.session(session_id)
    end = state.turn_starts.of(turn + 1)
    messages = await engine.messages(session_id, before=end, limit=BEFORE)
    steps = [
        step
        for message in messages
        if isinstance(message, AssistantMessage) and message.turn == turn
        for step in message.model_reply.steps
    ]
    return TurnUsage(steps=residuals(request, steps), cost=price_of_steps(request.context.settings.model, steps))
