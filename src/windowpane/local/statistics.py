"""What a session holds, what its turns cost, and what a turn's model was told of the conversation."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from weakref import WeakKeyDictionary

from windowpane.api.sessions import Statistics
from windowpane.api.turns import CallList, CallUsage, ContextDebug, TurnUsage
from windowpane.calls.ledger import calls_of
from windowpane.context.events import Recorded
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, Message, Step, Usage
from windowpane.context.session import Mode, SessionState
from windowpane.engine import Engine
from windowpane.errors import AgentNotFoundError, TurnNotFoundError
from windowpane.insight.debug import context_debug
from windowpane.insight.past import steps_of
from windowpane.insight.usage import analyse_usage, residuals
from windowpane.local.calls import calls_of_turn, priced
from windowpane.local.views import fetched_counts
from windowpane.request.record import last_built

NOTHING = Usage()
LOOK_BACK_MESSAGES = 40
"""How far back sources and related documents are looked for."""

KEPT_SPENDINGS = 1000


async def statistics_of(engine: Engine, state: SessionState) -> Statistics:
    """Return what a session holds."""
    counts = fetched_counts(state)
    spent = await _spent(engine, state)
    return Statistics(
        mode=_mode(engine, state),
        message_count=state.message_count,
        turn_count=state.turn_count,
        token_count=state.token_count,
        fetched_context_counts=counts,
        total_fetched_items=counts.web_search + counts.page,
        has_summary=state.summary is not None,
        usage=spent.usage,
        cost_usd=spent.cost_usd,
        call_count=spent.call_count,
        calls_without_usage=spent.without_usage,
        calls_without_price=spent.without_price,
    )


async def debug_of(
    engine: Engine, state: SessionState, turn: int, *, events: Sequence[Recorded] = (), topic: str | None = None
) -> ContextDebug:
    """Return what a turn's model was told of the conversation. `events` are those of the turn, if they are known.

    Raises:
        TurnNotFoundError: no such turn, or no request was recorded for it.
    """
    events = events or await engine.past.events(state.id, turn)
    built = last_built(events, turn)
    if built is None:
        raise TurnNotFoundError(state.id, turn)
    request = await engine.past.read(state.id, built.request)
    calls = [call.step for call in calls_of(events) if call.turn == turn and call.purpose == "answer"]
    given = steps_of(events, turn)[: max(calls, default=1) - 1]
    before = await _before(engine, state, events[0].seq)
    return context_debug(request, before, steps=given, topic=topic)


async def _before(engine: Engine, state: SessionState, seq: int) -> Sequence[Message]:
    """Return the messages before a place in the log. Those of the latest turns are in the state already."""
    recent = [message for message in state.recent if message.seq < seq]
    if len(recent) >= LOOK_BACK_MESSAGES or len(state.recent) == state.message_count:
        return recent[-LOOK_BACK_MESSAGES:]
    return await engine.conversations.messages(state.id, before=seq, limit=LOOK_BACK_MESSAGES)


async def usage_of(engine: Engine, session_id: SessionId, turn: int) -> TurnUsage:
    """Return what a turn cost.

    Raises:
        TurnNotFoundError: no such turn, or no request was recorded for it.
    """
    debug = await debug_of(engine, await engine.sessions.get(session_id), turn)
    request = await engine.past.request(session_id, turn)
    model, at = request.context.settings.model, request.context.timestamp
    steps = await _steps(engine, session_id, turn)
    listed = await calls_of_turn(engine, session_id, turn)
    answered = {call.step: call for call in listed.calls if call.outcome == "complete"}
    return TurnUsage(
        turn=turn,
        model=model,
        calls=tuple(
            CallUsage(
                model=step.model,
                counted_tokens=residual.counted_tokens,
                reported_tokens=residual.reported_tokens,
                residual_tokens=residual.residual_tokens,
                usage=step.usage,
                latency_ms=step.latency_ms,
                cost_usd=answered[number].cost_usd if number in answered else None,
            )
            for number, (step, residual) in enumerate(zip(steps, residuals(request, steps), strict=True), 1)
        ),
        usage=listed.usage,
        cost_usd=listed.cost_usd,
        conversation=analyse_usage(
            debug.conversation_context,
            messages_stored=debug.message_count,
            has_summary=debug.has_summary,
            model=model,
            at=at,
        ),
    )


def _mode(engine: Engine, state: SessionState) -> Mode:
    try:
        return state.settings.mode or engine.agents.current(state.agent).settings.mode
    except AgentNotFoundError:
        return state.settings.mode or "normal"


@dataclass(frozen=True, slots=True)
class _Spent:
    """What the calls after the erased turns, up to and including `through_turn`, cost."""

    erased: int
    through_turn: int
    usage: Usage = NOTHING
    cost_usd: Decimal | None = None
    call_count: int = 0
    without_usage: int = 0
    without_price: int = 0

    def plus(self, listed: CallList, through_turn: int) -> "_Spent":
        """Return this and what further calls cost."""
        costs = [cost for cost in (self.cost_usd, listed.cost_usd) if cost is not None]
        return _Spent(
            self.erased,
            through_turn,
            self.usage + listed.usage,
            sum(costs, Decimal(0)) if costs else None,
            self.call_count + len(listed.calls),
            self.without_usage + listed.without_usage,
            self.without_price + listed.without_price,
        )


_spendings: WeakKeyDictionary[Engine, OrderedDict[SessionId, _Spent]] = WeakKeyDictionary()
"""What is known already, so that a long session is read once and from then on only where it goes on."""


async def _spent(engine: Engine, state: SessionState) -> _Spent:
    """Return what a session's calls cost. The last turn is not kept: a summary may still be made after it."""
    kept = _spendings.setdefault(engine, OrderedDict())
    erased = state.turn_starts.erased
    known = kept.pop(state.id, None)
    if known is None or known.erased != erased or known.through_turn >= state.last_turn:
        known = _Spent(erased, erased)
    # What was looked at before the first turn is read as well.
    start = state.turn_starts.of(known.through_turn + 1) if known.through_turn > erased else None
    calls = calls_of(await engine.store.read(state.id, after=start - 1 if start else 0))
    last = state.turn_starts.of(state.last_turn) or 0
    before = priced([call for call in calls if call.seq < last])
    known = kept[state.id] = known.plus(before, state.last_turn - 1)
    while len(kept) > KEPT_SPENDINGS:
        kept.popitem(last=False)
    return known.plus(priced([call for call in calls if call.seq >= last]), state.last_turn)


def _answers(messages: Sequence[Message]) -> list[AssistantMessage]:
    return [message for message in messages if isinstance(message, AssistantMessage)]


async def _steps(engine: Engine, session_id: SessionId, turn: int) -> tuple[Step, ...]:
    """Return a turn's model calls, also while it is still open."""
    state = await engine.sessions.get(session_id)
    if state.open_turn is not None and state.open_turn.turn == turn:
        return state.open_turn.steps
    after = state.turn_starts.of(turn + 1)
    # At most an error comes after the answer, and notes from outside.
    found = _answers(await engine.conversations.messages(session_id, before=after, limit=200))
    return next((answer.model_reply.steps for answer in reversed(found) if answer.turn == turn), ())
