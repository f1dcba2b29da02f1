"""What a client hears of a turn: text as it comes, calls of its own tools, and how it ended.

A turn may take several model calls, and the agent's tools run in between; the client sees one answer. Text of one step
is set apart from that of the next by an empty line, as everywhere. An answer that must have a form is one document: it
comes whole, and what was said before the agent's own tool calls is left out.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

from windowpane.context.events import Delta, Live, ModelReplied, Recorded, ToolProgress, TurnError, TurnFinished
from windowpane.context.messages import Decision, ToolCall, Usage
from windowpane.context.session import OpenTurn, is_for_client
from windowpane.engine import Engine
from windowpane.errors import ApprovalPendingError, TurnNotFoundError
from windowpane.models.stops import STOPPED
from windowpane.server.openai.conversation import Answering
from windowpane.server.openai.errors import Failure, failure_of
from windowpane.text.tokens import count

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Text:
    """A little more of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """The end of an answer: `calls` are those that the client is to run. `stopped`: a stop sequence ended it."""

    reason: FinishReason
    usage: Usage
    calls: tuple[ToolCall, ...] = ()
    stopped: bool = False


Heard = Text | End | Failure


async def hear(engine: Engine, answering: Answering) -> AsyncGenerator[Heard]:
    """Yield a turn's answer, and at last exactly one `End` or one `Failure`."""
    hearing = _Hearing(formed=answering.formed)
    live = answering.live
    while True:
        async with aclosing(live):
            async for event in live:
                if text := hearing.take(event, answering.turn):
                    yield Text(text)
        waiting = await _waiting(engine, answering)
        if not (answering.once and waiting and waiting.undecided):
            break
        # No user can approve calls in a session that no list shows.
        decisions: dict[str, Decision] = {call.id: "deny" for call in waiting.undecided}
        live = engine.approve(answering.session_id, decisions, actor="system")
    yield await _end(engine, answering, hearing, waiting)


def reply_in(events: Iterable[Recorded], turn: int, *, formed: bool) -> tuple[str, End | Failure | None]:
    """Return an answer as the log has it, from where it begins: its text, and how it ended if it did."""
    hearing, text = _Hearing(formed=formed), ""
    for entry in events:
        text += hearing.take(entry, turn)
        happened = entry.event
        calls = happened.step.tool_calls if isinstance(happened, ModelReplied) else ()
        if mine := tuple(call for call in calls if is_for_client(call)):
            return text, End("tool_calls", hearing.usage, mine)
        if isinstance(happened, TurnFinished) and happened.turn == turn:
            failed = hearing.failed
            return text, failure_of(failed) if failed else End(hearing.reason, hearing.usage)
    return text, None


async def _waiting(engine: Engine, answering: Answering) -> OpenTurn | None:
    turn = (await engine.sessions.get(answering.session_id)).open_turn
    return turn if turn is not None and turn.turn == answering.turn else None


async def _end(engine: Engine, answering: Answering, hearing: "_Hearing", waiting: OpenTurn | None) -> End | Failure:
    if hearing.failed is not None:
        return failure_of(hearing.failed)
    if waiting is not None and waiting.undecided:
        names = tuple(str(call.ref or call.offered_name) for call in waiting.undecided)
        return failure_of(ApprovalPendingError(answering.turn, names))
    calls = waiting.for_client if waiting is not None else ()
    usage = hearing.usage
    if not usage.input_tokens or not usage.output_tokens:
        ours = await _counted(engine, answering, hearing.everything)
        usage = replace(
            usage,
            input_tokens=usage.input_tokens or ours.input_tokens,
            output_tokens=usage.output_tokens or ours.output_tokens,
        )
    return End("tool_calls" if calls else hearing.reason, usage, calls, hearing.stopped)


async def _counted(engine: Engine, answering: Answering, text: str) -> Usage:
    """Return our own count, for what a provider does not report."""
    try:
        context = await engine.past.context(answering.session_id, answering.turn)
    except TurnNotFoundError:
        return Usage()
    return Usage(context.budget.used_tokens, count(text))


class _Hearing:
    """What has been heard so far."""

    def __init__(self, *, formed: bool) -> None:
        self._formed = formed
        self.everything = ""
        self.usage = Usage()
        self.reason: FinishReason = "stop"
        self.stopped = False
        self.failed: TurnError | None = None
        self._step = ""

    def take(self, event: Live, turn: int) -> str:
        """Take in one event and return the text that it adds to the answer."""
        if isinstance(event, Delta):
            return self._say(event.text) if event.kind == "text" and not self._formed else ""
        if isinstance(event, ToolProgress):
            return ""
        happened = event.event
        if isinstance(happened, ModelReplied) and happened.turn == turn:
            # A client that joins a turn that another worker runs hears no deltas.
            whole, heard = happened.step.text, self._step
            counts = not self._formed or all(map(is_for_client, happened.step.tool_calls))
            rest = self._say(whole[len(heard) :]) if counts and whole.startswith(heard) else ""
            self._step = ""
            self.usage += happened.step.usage
            self.reason = _reason(happened.step.finish_reason)
            self.stopped = happened.step.finish_reason == STOPPED
            return rest
        if (
            isinstance(happened, TurnFinished)
            and happened.turn == turn
            and happened.outcome in ("failed", "interrupted")
        ):
            self.failed = happened.error or TurnError(code="interrupted", message="the turn was interrupted")
        return ""

    def _say(self, text: str) -> str:
        if not text:
            return ""
        gap = "\n\n" if self.everything and not self._step else ""
        self._step += text
        self.everything += gap + text
        return gap + text


def _reason(finish_reason: str) -> FinishReason:
    return "length" if finish_reason == "length" else "content_filter" if finish_reason == "content_filter" else "stop"
