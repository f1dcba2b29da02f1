"""Turns in brief: what each model was given and what that cost, read for many turns at once."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import anyio.to_thread

from windowpane.api.turns import PartTokens, ReceiptItem, TurnReceipt, TurnReceipts
from windowpane.calls.ledger import RecordedCall, calls_of
from windowpane.context.events import Recorded, TurnFinished
from windowpane.context.ids import SessionId
from windowpane.context.messages import Outcome
from windowpane.context.request import PartKind, RequestContext
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.local.calls import priced
from windowpane.models.prices import cost_of
from windowpane.request.record import context_of, last_built


async def receipts_of(engine: Engine, session_id: SessionId, first: int, limit: int) -> TurnReceipts:
    """Return turns of a session from `first` on, at most `limit` of them.

    Raises:
        SessionNotFoundError: no such session.
    """
    state = await engine.sessions.get(session_id)
    after = first + limit
    turns = [turn for turn in range(first, min(after, state.last_turn + 1)) if state.turn_starts.of(turn) is not None]
    following = after if after <= state.last_turn else None
    if not turns:
        return TurnReceipts((), following)
    start, end = state.turn_starts.of(turns[0]) or 1, state.turn_starts.of(turns[-1] + 1)
    log = await engine.store.read(session_id, after=start - 1, limit=None if end is None else end - start)
    built = {turn: found.request for turn in turns if (found := last_built(log, turn)) is not None}
    bodies = await engine.store.blobs(session_id, list(built.values()))
    found = {turn: bodies[name] for turn, name in built.items() if name in bodies}
    contexts = dict(zip(found, await anyio.to_thread.run_sync(_read, list(found.values())), strict=True))
    calls = calls_of(log)
    return TurnReceipts(
        tuple(
            [
                _receipt(
                    context,
                    _outcome(state, log, turn),
                    [call for call in calls if call.turn == turn],
                )
                for turn, context in contexts.items()
            ]
        ),
        following,
    )


def _read(bodies: Sequence[str]) -> list[RequestContext]:
    # What was searched for is not told.
    return [context_of(body, {}) for body in bodies]


def _outcome(state: SessionState, log: Sequence[Recorded], turn: int) -> Outcome | Literal["waiting", "running"]:
    for entry in log:
        if isinstance(entry.event, TurnFinished) and entry.event.turn == turn:
            return entry.event.outcome
    return "waiting" if state.open_turn and state.open_turn.turn == turn and state.open_turn.waits else "running"


def _receipt(
    context: RequestContext, outcome: Outcome | Literal["waiting", "running"], made: Sequence[RecordedCall]
) -> TurnReceipt:
    calls = priced(made)
    tokens: dict[PartKind, int] = {}
    for part in context.parts:
        if part.status != "left_out":
            tokens[part.kind] = tokens.get(part.kind, 0) + part.tokens
    standing = context.standing
    given = {item.ref for item in (*context.items, *standing) if item.sent}
    return TurnReceipt(
        turn=context.turn,
        at=context.timestamp,
        outcome=outcome,
        model=context.settings.model,
        context_tokens=context.budget.used_tokens,
        window_tokens=context.budget.window_tokens,
        reply_tokens=context.budget.reply_tokens,
        parts=tuple(PartTokens(kind, count) for kind, count in tokens.items()),
        items=tuple(
            ReceiptItem(
                type=item.type,
                name=item.name,
                server=item.server,
                include_mode=item.include_mode,
                score=item.similarity_score,
                tokens=item.tokens,
                sent=item.sent,
                carried=item in standing,
            )
            for item in (*context.items, *standing)
        ),
        left_out=sum(candidate.ref not in given for candidate in context.candidates),
        summarised="summary" in tokens,
        degraded=bool(context.degraded),
        calls=len(calls.calls),
        usage=calls.usage,
        cost_usd=calls.cost_usd,
        input_cost_usd=_input_cost(made),
        without_usage=calls.without_usage,
        without_price=calls.without_price,
        built_in=sum(call.built_in for call in calls.calls),
        duration_ms=sum(call.duration_ms or 0 for call in calls.calls),
    )


def _input_cost(calls: Sequence[RecordedCall]) -> Decimal | None:
    """Return what calls would have cost without an answer; None when the cost of none is known."""
    asked = [replace(call, usage=replace(call.usage, output_tokens=0)) for call in calls if call.usage is not None]
    costs = [cost for call in asked if (cost := cost_of(call)) is not None]
    return sum(costs, Decimal(0)) if costs else None
