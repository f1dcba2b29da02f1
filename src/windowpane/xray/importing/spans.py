"""Read model calls from spans by OpenTelemetry's conventions for generative AI.

What was said is in attributes of the span, if the program was told to capture it. Older conventions, OpenLLMetry and
OpenInference, which number their messages, are read too. A conversation is known by `gen_ai.conversation.id` or
`session.id`; without one, a trace is a session. An agent with a name has a session of its own in it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from windowpane.calls.documents import as_maps, as_text
from windowpane.context.calls import CallPurpose, FoldedReply
from windowpane.context.messages import Usage
from windowpane.telemetry import PROVIDERS
from windowpane.xray.importing.chat import chat_answer, chat_messages, chat_tools, unwrapped
from windowpane.xray.importing.otlp import Span
from windowpane.xray.importing.told import ToldCall, ToldSession, first_of, folded, number_of

OPERATIONS = ("chat", "generate_content", "text_completion", "completion")
CONVERSATIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
PURPOSES: Mapping[str, CallPurpose] = {"summary": "summary", "helper": "helper", "count": "count"}
"""What calls of our own spans are for, where it is not the answer."""

DETAILS = "gen_ai.client.inference.operation.details"
"""The event that carries what was said, where it is not in the span itself."""

_PROVIDERS = {
    **{theirs: ours for ours, theirs in reversed(PROVIDERS.items())},
    "az.ai.openai": "azure",
    "gemini": "google",
    "vertex_ai": "google-vertex",
    "gcp.gen_ai": "google",
    "mistral": "mistral",
}


def sessions_of_spans(spans: Iterable[Span]) -> list[ToldSession]:
    """Return the calls of some spans, by conversation. Spans of anything else are passed over."""
    groups: dict[tuple[str, str, str], list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start):
        if _is_call(span):
            key = (_program(span), _conversation(span), as_text(span.attributes.get("gen_ai.agent.name")))
            groups.setdefault(key, []).append(span)
    return [
        ToldSession(
            source="otel",
            program=program,
            version=as_text(found[0].resource.get("service.version"))[:60],
            conversation=f"{conversation} {agent}".strip(),
            calls=[_call(span) for span in found],
        )
        for (program, conversation, agent), found in groups.items()
    ]


def _is_call(span: Span) -> bool:
    told = span.attributes
    operation = as_text(told.get("gen_ai.operation.name")) or as_text(told.get("llm.request.type"))
    return operation in OPERATIONS or told.get("openinference.span.kind") == "LLM"


def _program(span: Span) -> str:
    name = as_text(span.resource.get("service.name"))
    if not name or name.startswith("unknown_service"):
        name = as_text(span.attributes.get("gen_ai.agent.name")) or "otel"
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "otel"


def _conversation(span: Span) -> str:
    named = first_of(span.attributes, CONVERSATIONS)
    return str(named)[:200] if isinstance(named, str | int) else span.trace_id


def _call(span: Span) -> ToldCall:
    told: dict[str, Any] = dict(span.attributes)
    for name, attributes in span.events:
        if name == DETAILS:
            told = {**attributes, **told}
    named = as_text(first_of(told, ("gen_ai.request.model", "llm.model_name", "gen_ai.response.model")))
    provider = as_text(first_of(told, ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"))).lower()
    ours = _PROVIDERS.get(provider, provider)
    answered = as_text(told.get("gen_ai.response.model")) or named
    reply = folded("openai", chat_answer(_output(told, span), finish=_finish(told), model=answered))
    failed = span.error is not None
    reason = (span.error or as_text(told.get("error.type")) or "the call failed")[:500] if failed else ""
    return ToldCall(
        id=f"{span.trace_id}:{span.span_id}",
        protocol="openai",
        model=f"{ours}:{named or 'unknown'}" if ours else named or "unknown",
        body=_body(named, told, span),
        reply=FoldedReply(error=reason) if failed else reply,
        usage=None if failed else _usage(told),
        at=min(span.start, span.end),
        ended_at=span.end,
        outcome="error" if failed else "complete",
        reason=reason,
        purpose=PURPOSES.get(as_text(told.get("windowpane.purpose")), "answer"),
    )


def _body(model: str, told: Mapping[str, Any], span: Span) -> dict[str, Any]:
    system = chat_messages([{"role": "system", "parts": unwrapped(told.get("gen_ai.system_instructions"))}])
    asked = {
        "model": model,
        "messages": [*(system if told.get("gen_ai.system_instructions") else ()), *_input(told, span)],
        "tools": chat_tools(told.get("gen_ai.tool.definitions")),
        **{name: told.get(f"gen_ai.request.{name}") for name in ("max_tokens", "temperature", "top_p")},
    }
    return {name: value for name, value in asked.items() if value not in (None, "", [])}


def _input(told: Mapping[str, Any], span: Span) -> Sequence[Mapping[str, Any]]:
    if told.get("gen_ai.input.messages"):
        return chat_messages(told["gen_ai.input.messages"])
    said = [
        _from_event(name, event)
        for name, event in span.events
        if name.startswith("gen_ai.") and name.endswith(".message")
    ]
    return chat_messages(said or _numbered(told, "llm.input_messages.") or _numbered(told, "gen_ai.prompt."))


def _output(told: Mapping[str, Any], span: Span) -> object:
    if told.get("gen_ai.output.messages"):
        return told["gen_ai.output.messages"]
    for name, event in span.events:
        if name == "gen_ai.choice":
            return {"role": "assistant", "content": "", **_from_event("gen_ai.assistant.message", event)}
    return _numbered(told, "llm.output_messages.") or _numbered(told, "gen_ai.completion.") or ""


def _from_event(name: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that is an event of the span, as older conventions have it."""
    inner = unwrapped(event.get("message"))
    fields: dict[str, Any] = {**event, **(cast("dict[str, Any]", inner) if isinstance(inner, dict) else {})}
    role = as_text(fields.get("role")) or name.removeprefix("gen_ai.").removesuffix(".message")
    message: dict[str, Any] = {"role": role, "content": fields.get("content", "")}
    if calls := as_maps(unwrapped(fields.get("tool_calls"))):
        message["tool_calls"] = calls
    if fields.get("id") and role == "tool":
        message["tool_call_id"] = fields["id"]
    return message


def _numbered(told: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return messages whose fields are attributes of their own, such as `gen_ai.prompt.0.role`."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in told.items():
        number, _, field = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and number.isdecimal() and len(number) < 6:
            found.setdefault(int(number), {})[field.removeprefix("message.")] = value
    return [_of_fields(found[number]) for number in sorted(found)]


def _of_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": fields.get("role", "assistant"), "content": fields.get("content", "")}
    calls: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        found = re.fullmatch(r"tool_calls\.(\d{1,5})\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)", name)
        if found:
            calls.setdefault(found[1], {})[found[2]] = value
    if calls:
        message["tool_calls"] = [
            {"id": call.get("id", ""), "function": {"name": call.get("name"), "arguments": call.get("arguments", "")}}
            for call in calls.values()
        ]
    if fields.get("tool_call_id"):
        message["tool_call_id"] = fields["tool_call_id"]
    return message


def _finish(told: Mapping[str, Any]) -> str:
    reasons: object = told.get("gen_ai.response.finish_reasons")
    listed = cast("list[object]", reasons) if isinstance(reasons, list) else [reasons]
    return as_text(listed[0]) if listed else ""


_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read",
)
_WRITTEN = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "llm.token_count.prompt_details.cache_write",
)


def _usage(told: Mapping[str, Any]) -> Usage | None:
    counts = [number_of(first_of(told, names)) for names in (_INPUT, _OUTPUT, _READ, _WRITTEN)]
    return Usage(*counts) if any(counts) else None
