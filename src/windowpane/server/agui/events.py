"""A turn as AG-UI's events: told in pydantic-ai's words, which its adapter writes as AG-UI's."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from ag_ui.core import BaseEvent, RunAgentInput, RunErrorEvent
from pydantic_ai.messages import (
    CustomEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.run import AgentRunResult, AgentRunResultEvent
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.ui import NativeEvent
from pydantic_ai.ui.ag_ui import AGUIEventStream

from windowpane.context.events import (
    Delta,
    Live,
    ModelReplied,
    Recorded,
    RequestBuilt,
    SessionContext,
    ToolProgress,
    ToolReturned,
    TurnError,
    TurnFinished,
)
from windowpane.context.messages import Step, ToolCall
from windowpane.context.session import OpenTurn, is_for_client
from windowpane.engine import Engine
from windowpane.server.openai.conversation import Answering


async def written(engine: Engine, telling: "Telling", given: RunAgentInput) -> AsyncGenerator[bytes]:
    """Yield a turn as AG-UI's server-sent events."""
    stream = _Stream(run_input=given)
    async for event in stream.transform_stream(_told(engine, telling)):
        yield stream.encode_event(event).encode("utf-8", "replace")


class _FailedError(Exception):
    """A turn that failed, on its way to the adapter."""

    def __init__(self, error: TurnError) -> None:
        super().__init__(error.message)
        self.code = error.code


class _Stream(AGUIEventStream[None, Any]):
    """The adapter, which also tells the code of an error."""

    async def on_error(self, error: Exception) -> AsyncGenerator[BaseEvent]:
        async for event in super().on_error(error):
            if isinstance(event, RunErrorEvent) and isinstance(error, _FailedError):
                event.code = error.code
            yield event


@dataclass(kw_only=True)
class TurnNamedEvent(CustomEvent, name="windowpane.turn"):
    """Where the run is recorded."""

    session: str
    turn: int


@dataclass(kw_only=True)
class ContextShownEvent(CustomEvent, name="windowpane.context"):
    """The working context after a change."""

    context: dict[str, list[str]]


async def _told(engine: Engine, telling: "Telling") -> AsyncGenerator[NativeEvent]:
    """Yield a turn in pydantic-ai's words."""
    turn = telling.turn
    failed: TurnError | None = None
    async with aclosing(turn.live) as live:
        async for event in live:
            happened = event.event if isinstance(event, Recorded) else None
            if isinstance(happened, TurnFinished) and happened.turn == turn.turn:
                failed = happened.error
            for told in telling.tell(event):
                yield told
    for told in telling.close():
        yield told
    if failed is not None:
        raise _FailedError(failed)
    waiting = (await engine.sessions.get(turn.session_id)).open_turn
    yield AgentRunResultEvent(AgentRunResult(_output(waiting) if waiting and waiting.turn == turn.turn else None))


def _output(waiting: OpenTurn) -> DeferredToolRequests:
    return DeferredToolRequests(
        calls=[_part(call) for call in waiting.for_client], approvals=[_part(call) for call in waiting.undecided]
    )


class Telling:
    """What has been told of a turn so far: at most one part is open. `left` are calls that runs before told of."""

    def __init__(self, turn: Answering, left: Sequence[ToolCall]) -> None:
        self.turn = turn
        self._open: TextPart | ThinkingPart | None = None
        self._index = 0
        self._step = ""
        self._names = {call.id: _name(call) for call in left if not is_for_client(call)}

    def tell(self, event: Live) -> list[NativeEvent]:
        """Return what an event is in pydantic-ai's words."""
        if isinstance(event, Delta):
            if event.kind == "text":
                self._step += event.text
            return self._say(event.text, TextPart if event.kind == "text" else ThinkingPart)
        if isinstance(event, ToolProgress):
            return []
        match event.event:
            case RequestBuilt():
                return [TurnNamedEvent(session=self.turn.session_id, turn=self.turn.turn)]
            case ModelReplied(turn=self.turn.turn, step=step):
                return self._replied(step)
            case ToolReturned(turn=self.turn.turn, result=result) if result.call_id in self._names:
                name, outcome = self._names.pop(result.call_id), "failed" if result.is_error else "success"
                return [FunctionToolResultEvent(ToolReturnPart(name, result.content, result.call_id, outcome=outcome))]
            case SessionContext(reason="changed", context=context):
                return [ContextShownEvent(context={name: list(items) for name, items in context.items()})]
            case _:
                return []

    def close(self) -> list[NativeEvent]:
        """Return what ends the part that is open."""
        part, self._open = self._open, None
        return [PartEndEvent(index=self._index, part=part)] if part is not None else []

    def _say(self, text: str, kind: type[TextPart] | type[ThinkingPart]) -> list[NativeEvent]:
        if not text:
            return []
        if isinstance(self._open, kind):
            self._open.content += text
            delta = TextPartDelta(content_delta=text) if kind is TextPart else ThinkingPartDelta(content_delta=text)
            return [PartDeltaEvent(index=self._index, delta=delta)]
        closing = self.close()
        self._index += 1
        self._open = kind(text)
        return [*closing, PartStartEvent(index=self._index, part=kind(text))]

    def _replied(self, step: Step) -> list[NativeEvent]:
        rest = step.text[len(self._step) :] if step.text.startswith(self._step) else ""
        events = [*self._say(rest, TextPart), *self.close()]
        self._step = ""
        for call in step.tool_calls:
            self._index += 1
            events += [
                PartStartEvent(index=self._index, part=_part(call)),
                PartEndEvent(index=self._index, part=_part(call)),
            ]
        for call in step.tool_calls:
            if not is_for_client(call):
                self._names[call.id] = _name(call)
                events.append(FunctionToolCallEvent(_part(call)))
        self._index = 0
        return events


def _part(call: ToolCall) -> ToolCallPart:
    return ToolCallPart(_name(call), call.arguments, call.id)


def _name(call: ToolCall) -> str:
    if call.ref is None:
        return call.offered_name
    return call.ref.name if is_for_client(call) else str(call.ref)
