"""The turns of a recorded session: which events a call and its answer add to the log.

A request that asks something new begins a turn; one that brings the results of tools goes on with it; one that says
the same again after a failure is another attempt. An answer without tool calls ends the turn.
"""

from collections.abc import Sequence
from dataclasses import replace

from windowpane.calls.conversation import SentConversation
from windowpane.calls.reply import unnamed_call_id
from windowpane.context.calls import CallOutcome, FoldedReply
from windowpane.context.events import Event, ModelReplied, ToolReturned, TurnError, TurnFinished, TurnStarted
from windowpane.context.messages import Outcome, Step, ToolResult, Usage
from windowpane.context.session import OpenTurn, SessionState
from windowpane.text.tokens import count

NO_WORDS = "(no text)"
"""The message of a turn whose request asks without words: a picture, or a conversation that only goes on."""


def opening_events(
    state: SessionState, conversation: SentConversation, ending: Sequence[Event], *, again: bool
) -> list[Event]:
    """Return what a request adds before its call: the results that it brings, or the beginning of a turn.

    `again` tells that it repeats one that failed; `ending` ends the open turn where a new one begins.
    """
    turn = state.open_turn
    if turn is not None:
        brought = _brought(turn, conversation.results)
        if brought:
            return [ToolReturned(turn=turn.turn, result=result) for result in brought]
        if again:
            return []
    message = conversation.question or NO_WORDS
    begins = TurnStarted(turn=state.last_turn + 1, message=message, tokens=count(message))
    return [*(ending if turn is not None else ()), begins]


def _brought(turn: OpenTurn, results: Sequence[ToolResult]) -> list[ToolResult]:
    """Return the results of the calls that the turn waits for.

    Google's models and Ollama's may give their calls no ids, and a program then makes up its own: those are told by
    their order.
    """
    waiting = turn.unanswered
    if all(call.id == unnamed_call_id(place) for place, call in enumerate(waiting, 1)):
        return [replace(result, call_id=call.id) for call, result in zip(waiting, results, strict=False)]
    ids = {call.id for call in waiting}
    return [result for result in results if result.call_id in ids]


def reply_events(turn: int, reply: FoldedReply, usage: Usage | None, latency_ms: int) -> list[Event]:
    """Return what a whole answer adds."""
    step = step_of(reply, usage, latency_ms)
    events: list[Event] = [ModelReplied(turn=turn, step=step, tokens=count(reply.text))]
    return events if reply.tool_calls else [*events, TurnFinished(turn=turn, outcome="completed")]


def ending_events(
    turn: OpenTurn, outcome: CallOutcome | None, reply: FoldedReply | None, usage: Usage | None
) -> list[Event]:
    """Return what ends a turn that nothing followed: its last call failed or broke off, or its program went away."""
    if outcome == "error":
        said = (reply.error if reply else "") or "the provider answered with an error"
        return [TurnFinished(turn=turn.turn, outcome="failed", error=TurnError(code="upstream_error", message=said))]
    finished: Outcome = "interrupted"
    if outcome == "cut" and reply is not None and (reply.text or reply.tool_calls):
        step = step_of(reply, usage, 0, finish="interrupted")
        return [
            ModelReplied(turn=turn.turn, step=step, tokens=count(reply.text)),
            TurnFinished(turn=turn.turn, outcome=finished),
        ]
    return [TurnFinished(turn=turn.turn, outcome=finished)]


def step_of(reply: FoldedReply, usage: Usage | None, latency_ms: int, *, finish: str = "") -> Step:
    """Return an answer as a step of a turn."""
    return Step(
        text=reply.text,
        thinking=reply.thinking,
        tool_calls=reply.tool_calls,
        usage=usage or Usage(),
        model=reply.model,
        finish_reason=finish or reply.finish_reason,
        latency_ms=latency_ms,
    )
