"""What is measured: turns, selections, model calls, tool calls, appends to a store.

Each is a span of OpenTelemetry with the names of its conventions for generative AI. Only the API is used here: as long
as no exporter collects spans they cost next to nothing. `listening` tells a listener in this process. What people and
models said is in no span, unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true` asks for it.
"""

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef
from windowpane.context.messages import Step
from windowpane.context.request import CallSettings, RequestMessage
from windowpane.errors import WindowpaneError

Operation = Literal["turn", "selection", "model_call", "tool_call", "append"]
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


_listeners: list[Callable[[Measured], None]] = []


@contextmanager
def listening(listener: Callable[[Measured], None]) -> Generator[None]:
    """Tell a listener about everything that is measured in this process while the block runs."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@dataclass(slots=True)
class Measurement:
    """Something that is going on, to be given more attributes as they become known."""

    span: Span
    attributes: dict[str, Value] = field(default_factory=dict[str, Value])
    error: str = ""

    def note(self, attributes: Mapping[str, Value]) -> None:
        """Add attributes."""
        self.attributes.update(attributes)
        self.span.set_attributes(attributes)

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


def describe_turn(measurement: Measurement, *, agent: str, model: str, outcome: str, error: str) -> None:
    """Note which agent answered, with which model, and how it ended. What did not come to be known is empty."""
    if agent:
        measurement.span.update_name(f"invoke_agent {agent}")
        measurement.note({"gen_ai.agent.name": agent, **_model(model)})
    measurement.note({"windowpane.outcome": outcome})
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
    session_id: SessionId, settings: CallSettings, messages: Sequence[RequestMessage]
) -> Generator[Measurement]:
    """Measure one model call."""
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
    }
    if keeps_content():
        attributes["gen_ai.input.messages"] = _as_json([(message.role, message.content) for message in messages])
    name = f"chat {attributes['gen_ai.request.model']}"
    with _measured("model_call", name, SpanKind.CLIENT, attributes) as measurement:
        yield measurement


def describe_step(measurement: Measurement, step: Step) -> None:
    """Note what a model call answered: how much, and why it ended."""
    measurement.note(
        {
            "gen_ai.response.model": step.model,
            "gen_ai.response.finish_reasons": (step.finish_reason,),
            "gen_ai.usage.input_tokens": step.usage.input_tokens,
            "gen_ai.usage.output_tokens": step.usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": step.usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": step.usage.cache_write_tokens,
        }
    )
    if keeps_content():
        measurement.note({"gen_ai.output.messages": _as_json([("assistant", step.text)])})


@contextmanager
def tool_call(session_id: SessionId, ref: ItemRef, call_id: str) -> Generator[Measurement]:
    """Measure one tool call."""
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": session_id,
        "gen_ai.tool.name": ref.name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.type": "extension",
        "windowpane.tool.server": ref.server or "",
    }
    with _measured("tool_call", f"execute_tool {ref.name}", SpanKind.INTERNAL, attributes) as measurement:
        yield measurement


@contextmanager
def append(session_id: SessionId, events: int) -> Generator[Measurement]:
    """Measure an append to a session's log."""
    attributes: dict[str, Value] = {
        "db.operation.name": "append",
        "gen_ai.conversation.id": session_id,
        "windowpane.events": events,
    }
    with _measured("append", "append events", SpanKind.CLIENT, attributes) as measurement:
        yield measurement


def keeps_content() -> bool:
    """Tell whether spans are to hold what was said."""
    return os.environ.get(CONTENT, "").lower() in ("1", "true", "span_only", "span_and_event")


def provider_of(model: str) -> str:
    """Return what the conventions call the provider of a model."""
    name = model.partition(":")[0]
    return PROVIDERS.get(name, name)


def _model(model: str) -> dict[str, Value]:
    return {"gen_ai.provider.name": provider_of(model), "gen_ai.request.model": model.partition(":")[2] or model}


def _as_json(messages: Sequence[tuple[str, str]]) -> str:
    shaped = [{"role": role, "parts": [{"type": "text", "content": content}]} for role, content in messages]
    return json.dumps(shaped, ensure_ascii=False)


@contextmanager
def _measured(operation: Operation, name: str, kind: SpanKind, attributes: dict[str, Value]) -> Generator[Measurement]:
    started = perf_counter()
    with _tracer.start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        measurement = Measurement(span, dict(attributes))
        try:
            yield measurement
        except Exception as error:
            measurement.fail(error.code if isinstance(error, WindowpaneError) else type(error).__name__)
            raise
        finally:
            ended = Measured(operation, perf_counter() - started, measurement.attributes, measurement.error)
            for listener in _listeners:
                listener(ended)
