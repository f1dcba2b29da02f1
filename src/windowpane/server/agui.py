"""AG-UI: a turn as the events that AG-UI frontends read.

A thread is a session, under the thread's id as a name. The turn's events are told in pydantic-ai's words, and its
adapter writes them as AG-UI's. Tools of the frontend are offered beside the agent's own; the run ends when one is
called, and the next run brings the result. A call that needs a person ends the run with an interrupt, and the next run
resumes it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, cast

from ag_ui.core import BaseEvent, ResumeEntry, RunAgentInput, RunErrorEvent, ToolMessage, UserMessage
from ag_ui.core import TextPart as InputText
from fastapi import APIRouter, Path
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
    ToolReturned,
    TurnError,
    TurnFinished,
)
from windowpane.context.messages import Decision, Step, ToolCall, ToolResult
from windowpane.context.session import OpenTurn, SessionState, is_for_client
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, NothingToApproveError
from windowpane.server.events import EVENT_SCHEMA, MEDIA_TYPE, ByteStream
from windowpane.server.named import session_named
from windowpane.server.openai.asking import Storable, tool_of
from windowpane.server.openai.conversation import Answering, begun
from windowpane.server.opened import Asking, Chatting
from windowpane.server.problems import BODY, problems

router = APIRouter(prefix="/api/agents/{agent}", tags=["ag-ui"])

EXAMPLE = {
    "threadId": "thread-1",
    "runId": "run-1",
    "messages": [{"id": "1", "role": "user", "content": "How do I add a rule?"}],
}
FORM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The run, as AG-UI's server-sent events.",
        "content": {MEDIA_TYPE: {"itemSchema": EVENT_SCHEMA, "example": 'data: {"type":"RUN_STARTED",…}\n\n'}},
    }
}


@router.post(
    "/ag-ui",
    summary="Run an agent for an AG-UI frontend",
    response_model=None,
    responses={**problems(*BODY, 404, 409), **FORM},
    openapi_extra={"requestBody": {"content": {"application/json": {"example": EXAMPLE}}}},
)
async def run_agent(
    engine: Chatting,
    caller: Asking,
    agent: Annotated[str, Path(description="The agent's name.")],
    given: Annotated[RunAgentInput, Storable],
) -> ByteStream:
    """Answer the last message of a thread, or go on with the results and decisions that its last run waits for.

    The session knows the messages before. Beside AG-UI's own events there are `windowpane.turn`, which names the
    session and the turn, and `windowpane.context`, which shows the working context when it changes.
    """
    state = await session_named(engine, caller, agent, given.thread_id)
    turn = await begun(state.id, _live(engine, state, given), once=False)
    left = state.open_turn.unanswered if state.open_turn else ()
    return ByteStream(_written(engine, _Telling(turn, left), given), headers=turn.headers)


def _live(engine: Engine, state: SessionState, given: RunAgentInput) -> AsyncGenerator[Live]:
    if given.resume:
        return engine.approve(state.id, _decisions(state.open_turn, given.resume))
    told = [message for message in given.messages if message.role in ("user", "assistant", "tool")]
    last = told[-1] if told else None
    if isinstance(last, ToolMessage):
        return engine.answer_calls(state.id, _results(told))
    if isinstance(last, UserMessage):
        brought = [tool_of(tool.name, tool.description, _schema(tool.parameters)) for tool in given.tools or ()]
        return engine.turn(state.id, _text(last.content), key=f"ag-ui {given.run_id}"[:200], brought=brought)
    raise InvalidInputError("the last message must be the user's or a tool's result")


def _decisions(turn: OpenTurn | None, entries: Sequence[ResumeEntry]) -> dict[str, Decision]:
    undecided = turn.undecided if turn else ()
    decisions: dict[str, Decision] = {}
    for entry in entries:
        call = next((call for call in undecided if entry.interrupt_id in (call.id, f"int-{call.id}")), None)
        if call is None:
            raise NothingToApproveError(f"nothing waits under the name {entry.interrupt_id!r}")
        decisions[call.id] = _decision(entry)
    return decisions


def _decision(entry: ResumeEntry) -> Decision:
    if entry.status == "cancelled":
        return "deny"
    match entry.payload:
        case {"editedArgs": dict()}:
            raise InvalidInputError("a call is allowed or denied as it is; its arguments cannot be edited")
        case {"approved": bool(approved)}:
            return "allow_once" if approved else "deny"
        case _:
            raise InvalidInputError('a decision is written as {"approved": true} or {"approved": false}')


def _results(told: Sequence[Any]) -> list[ToolResult]:
    results: list[ToolResult] = []
    for message in reversed(told):
        if not isinstance(message, ToolMessage):
            break
        text = message.error or _text(message.content)
        results.insert(0, ToolResult(message.tool_call_id, text, is_error=bool(message.error)))
    return results


def _schema(parameters: Any) -> Mapping[str, Any] | None:
    if not isinstance(parameters, dict | None):
        raise InvalidInputError("the parameters of a tool are a JSON schema")
    return cast("dict[str, Any] | None", parameters)


def _text(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    if not all(isinstance(part, InputText) for part in content):
        raise InvalidInputError("only text can be sent here")
    return "".join(part.text for part in content)


async def _written(engine: Engine, telling: "_Telling", given: RunAgentInput) -> AsyncGenerator[bytes]:
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


async def _told(engine: Engine, telling: "_Telling") -> AsyncGenerator[NativeEvent]:
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
    waiting = (await engine.session(turn.session_id)).open_turn
    yield AgentRunResultEvent(AgentRunResult(_output(waiting) if waiting and waiting.turn == turn.turn else None))


def _output(waiting: OpenTurn) -> DeferredToolRequests:
    return DeferredToolRequests(
        calls=[_part(call) for call in waiting.for_client], approvals=[_part(call) for call in waiting.undecided]
    )


class _Telling:
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
