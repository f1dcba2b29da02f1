"""What is measured: turns, selections, model calls, tool calls, appends to a store.

Each but the last is a span of OpenTelemetry with the names of its conventions for generative AI; a model call that is
made again is one span for each try. Only the API is used here: as long as no exporter collects spans they cost next to
nothing. `listening` tells a listener in this process. What people, models and tools said is in no span, unless
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true` asks for it.
"""

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from windowpane.context.calls import CallPurpose
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef
from windowpane.context.messages import Step, ToolCall, ToolResult, Usage
from windowpane.errors import WindowpaneError

if TYPE_CHECKING:
    # For the types alone: a command that lists sessions loads no requests.
    from windowpane.context.request import CallSettings, OfferedTool, RequestMessage

Operation = Literal["turn", "refusal", "selection", "model_call", "tool_call", "append", "bus_cut"]
Value = str | int | float | bool | Sequence[str]

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
PROVIDERS = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "openai-responses": "openai",
}
"""What the conventions call the provider that a model's name begins with; others keep their name."""

_tracer = trace.get_tracer("windowpane")


@dataclass(frozen=True, slots=True)
class Measured:
    """Something that has ended. `error` is the code of what ended it, or empty."""

    operation: Operation
    duration_s: float
    attributes: Mapping[str, Value]
    error: str


@contextmanager
def continued(headers: Mapping[str, str]) -> Generator[None]:
    """Let spans belong to the trace that a caller's headers name."""
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


Began = Callable[[Operation], None]
Ended = Callable[[Measured], None]

_listeners: list[tuple[Began, Ended]] = []


@contextmanager
def listening(began: Began, ended: Ended) -> Generator[None]:
    """Tell a listener about everything that begins and ends in this process while the block runs. Appends only end."""
    listener = (began, ended)
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@dataclass(slots=True)
class Measurement:
    """Something that is going on, to be given more attributes as they become known."""

    operation: Operation
    name: str
    kind: SpanKind
    asked: Mapping[str, Value]
    span: Span = trace.INVALID_SPAN
    attributes: dict[str, Value] = field(default_factory=dict[str, Value])
    error: str = ""
    started: float = 0.0
    parent: context.Context | None = None
    reported: Usage = field(default_factory=Usage)
    output_told: bool = False

    def begin(self) -> None:
        """Begin to measure, or to measure the next try."""
        self.attributes, self.error, self.started = dict(self.asked), "", perf_counter()
        self.reported, self.output_told = Usage(), False
        self.span = _tracer.start_span(self.name, self.parent, kind=self.kind, attributes=dict(self.asked))
        for began, _ in _listeners:
            began(self.operation)

    def end(self) -> None:
        """End the span and tell who listens."""
        self.span.end()
        ended = Measured(self.operation, perf_counter() - self.started, self.attributes, self.error)
        for _, tell in _listeners:
            tell(ended)

    def note(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""
        self.attributes.update(attributes)
        self.span.set_attributes(attributes)

    def note_usage(self, reported: Usage, *, output_told: bool) -> None:
        """Add what a provider reported, also in an answer that broke off. `output_told`: how much was written, too."""
        self.reported += reported
        self.output_told = self.output_told or output_told
        self.note(_usage(self.reported, output_told=self.output_told))

    def fail(self, code: str) -> None:
        """Say what went wrong. Only the code: messages may quote what was said."""
        self.error = code
        self.span.set_attribute("error.type", code)
        self.span.set_status(StatusCode.ERROR)


@contextmanager
def turn(session_id: SessionId, number: int) -> Generator[Measurement]:
    """Measure a turn, or as much of one as runs before it waits for a person."""
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": session_id,
        "windowpane.turn": number,
    }
    with _measured("turn", "invoke_agent", SpanKind.INTERNAL, attributes) as measurement:
        yield measurement


def refused_turn(code: str) -> None:
    """Tell listeners that a turn was refused before anything of it was stored."""
    refused = Measured("refusal", 0.0, {}, code)
    for _, tell in _listeners:
        tell(refused)


def cut_off_bus() -> None:
    """Tell listeners that the connection to the bus broke or could not be made."""
    cut = Measured("bus_cut", 0.0, {}, "")
    for _, tell in _listeners:
        tell(cut)


def describe_turn(
    measurement: Measurement, *, agent: str, model: str, outcome: str, error: str, usage: Usage | None = None
) -> None:
    """Note which agent answered, with which model, how it ended, and what its calls used. Empty: not known."""
    if agent:
        measurement.span.update_name(f"invoke_agent {agent}")
        measurement.note({"gen_ai.agent.name": agent, **_model(model)})
    measurement.note({"windowpane.outcome": outcome, **(_usage(usage) if usage is not None else {})})
    if error:
        measurement.fail(error)


@contextmanager
def selection(candidates: int) -> Generator[Measurement]:
    """Measure a selection among this many candidates."""
    attributes: dict[str, Value] = {"windowpane.selection.candidates": candidates}
    with _measured("selection", "select context", SpanKind.INTERNAL, attributes) as measurement:
        yield measurement


@contextmanager
def model_call(
    session_id: SessionId,
    settings: "CallSettings",
    messages: "Sequence[RequestMessage]",
    tools: "Sequence[OfferedTool]" = (),
    purpose: CallPurpose = "answer",
) -> Generator[Measurement]:
    """Measure one model call; `tried` begins another span for the next try."""
    asked = {
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.top_p": settings.top_p,
        "gen_ai.request.max_tokens": settings.max_output_tokens,
    }
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": session_id,
        **_model(settings.model),
        **{name: value for name, value in asked.items() if value is not None},
        "windowpane.purpose": purpose,
    }
    if keeps_content():
        attributes["gen_ai.input.messages"] = _as_json([_input_message(message) for message in messages])
        if tools:
            attributes["gen_ai.tool.definitions"] = _as_json([_definition(tool) for tool in tools])
    name = f"chat {attributes['gen_ai.request.model']}"
    with _measured("model_call", name, SpanKind.CLIENT, attributes) as measurement:
        token = _model_call.set(measurement)
        try:
            yield measurement
        finally:
            _model_call.reset(token)


_model_call: ContextVar[Measurement | None] = ContextVar("model_call", default=None)


def tried(code: str) -> None:
    """Tell that the model call that is going on failed and is made again: the next try is a span of its own."""
    measurement = _model_call.get()
    if measurement is not None:
        measurement.fail(code)
        measurement.end()
        measurement.begin()


def trace_headers() -> dict[str, str]:
    """Return the headers by which a provider's spans belong to the model call that is going on."""
    measurement = _model_call.get()
    found: dict[str, str] = {}
    if measurement is not None:
        propagate.inject(found, trace.set_span_in_context(measurement.span))
    return found


def current_model_call() -> Measurement | None:
    """Return the model call that is going on."""
    return _model_call.get()


def describe_step(measurement: Measurement, step: Step) -> None:
    """Note what a model call answered, and why it ended. What the wire reported of its usage goes before."""
    measurement.note(
        {
            "gen_ai.response.model": step.model,
            "gen_ai.response.finish_reasons": (step.finish_reason,),
            **(_usage(step.usage) if measurement.reported == Usage() else {}),
        }
    )
    if keeps_content():
        parts = [*_text(step.text), *map(_call, step.tool_calls)]
        said = {"role": "assistant", "parts": parts, "finish_reason": step.finish_reason}
        measurement.note({"gen_ai.output.messages": _as_json([said])})


@contextmanager
def tool_call(session_id: SessionId, ref: ItemRef, call: ToolCall) -> Generator[Measurement]:
    """Measure one tool call."""
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": session_id,
        "gen_ai.tool.name": ref.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "extension",
        "windowpane.tool.server": ref.server or "",
    }
    if keeps_content():
        attributes["gen_ai.tool.call.arguments"] = call.arguments
    with _measured("tool_call", f"execute_tool {ref.name}", SpanKind.INTERNAL, attributes) as measurement:
        yield measurement


def describe_result(measurement: Measurement, result: ToolResult) -> None:
    """Note what a tool gave."""
    if result.is_error:
        measurement.fail("tool_error")
    if keeps_content():
        measurement.note({"gen_ai.tool.call.result": result.content})


@contextmanager
def append(session_id: SessionId, events: int) -> Generator[None]:
    """Measure an append to a session's log, for listeners alone: a turn has more of them than of all else."""
    attributes: dict[str, Value] = {"gen_ai.conversation.id": session_id, "windowpane.events": events}
    measurement = Measurement("append", "append events", SpanKind.CLIENT, attributes, attributes=attributes)
    measurement.started = perf_counter()
    try:
        yield
    except Exception as error:
        measurement.fail(_code(error))
        raise
    finally:
        measurement.end()


def keeps_content() -> bool:
    """Tell whether spans are to hold what was said."""
    return os.environ.get(CONTENT, "").lower() in ("1", "true", "span_only", "span_and_event")


def provider_of(model: str) -> str:
    """Return what the conventions call the provider of a model."""
    name = model.partition(":")[0]
    return PROVIDERS.get(name, name)


def _model(model: str) -> dict[str, Value]:
    return {"gen_ai.provider.name": provider_of(model), "gen_ai.request.model": model.partition(":")[2] or model}


def _usage(usage: Usage, *, output_told: bool = False) -> dict[str, Value]:
    """Return the attributes of a usage; none for what is not known. `output_told`: also that nothing was written."""
    given: dict[str, Value] = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }
    written: dict[str, Value] = {"gen_ai.usage.output_tokens": usage.output_tokens}
    # No call is without input.
    return {**(given if usage.input_tokens else {}), **(written if usage.output_tokens or output_told else {})}


def _input_message(message: "RequestMessage") -> dict[str, Any]:
    if message.role == "tool":
        answered = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        return {"role": "tool", "parts": [answered]}
    return {"role": message.role, "parts": [*_text(message.content), *map(_call, message.tool_calls)]}


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}] if text else []


def _call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments: Any = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = call.arguments
    return {"type": "tool_call", "id": call.id, "name": call.offered_name, "arguments": arguments}


def _definition(tool: "OfferedTool") -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.offered_name,
        "description": tool.description,
        "parameters": tool.parameters,
    }


def _as_json(shaped: object) -> str:
    return json.dumps(shaped, ensure_ascii=False, default=str)


@contextmanager
def _measured(operation: Operation, name: str, kind: SpanKind, attributes: dict[str, Value]) -> Generator[Measurement]:
    measurement = Measurement(operation, name, kind, attributes, parent=context.get_current())
    measurement.begin()
    token = context.attach(trace.set_span_in_context(measurement.span))
    try:
        yield measurement
    except Exception as error:
        measurement.fail(_code(error))
        raise
    finally:
        context.detach(token)
        measurement.end()


def _code(error: Exception) -> str:
    return error.code if isinstance(error, WindowpaneError) else type(error).__name__
