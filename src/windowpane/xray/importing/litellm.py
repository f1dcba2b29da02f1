"""Read what LiteLLM writes: the payloads of its logging callbacks, and the rows of its spend logs.

Both have a call in each document. `session_id` or `trace_id` tells which conversation it belongs to; without one, the
calls of a key are told apart by nothing, so each call is a session.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from windowpane.calls.documents import as_map, as_text
from windowpane.context.calls import FoldedReply
from windowpane.context.messages import Usage
from windowpane.xray.importing.chat import chat_answer, chat_messages, chat_tools, unwrapped
from windowpane.xray.importing.told import ToldCall, ToldSession, first_of, folded, number_of, time_of

Fields = Mapping[str, Any]
CALLS = (
    "completion",
    "acompletion",
    "text_completion",
    "atext_completion",
    "responses",
    "aresponses",
    "anthropic_messages",
)
"""The kinds of call that ask a model to write."""

PROVIDERS = {"gemini": "google", "vertex_ai": "google-vertex", "bedrock_converse": "bedrock", "xai": "grok"}


def is_litellm(document: Fields) -> bool:
    """Tell whether a document is one of these."""
    return isinstance(document.get("call_type"), str) and "startTime" in document


def read_litellm(documents: Iterable[Fields]) -> list[ToldSession]:
    """Return the calls, by session."""
    groups: dict[str, list[ToldCall]] = {}
    for fields in documents:
        kind = as_text(fields.get("call_type"))
        if (kind in CALLS or not kind) and (call := _call(fields)) is not None:
            groups.setdefault(_session(fields) or call.id, []).append(call)
    return [
        ToldSession(
            source="litellm",
            program="litellm",
            conversation=session[:200],
            calls=sorted(calls, key=lambda call: call.at),
        )
        for session, calls in groups.items()
    ]


def _session(fields: Fields) -> str:
    metadata = as_map(unwrapped(fields.get("metadata")))
    own = as_map(metadata.get("requester_metadata"))
    named = (fields.get("session_id"), own.get("session_id"), metadata.get("session_id"), fields.get("trace_id"))
    return next((name for name in named if isinstance(name, str) and name), "")


def _call(fields: Fields) -> ToldCall | None:
    at = time_of(fields.get("startTime"))
    ended_at = time_of(fields.get("endTime")) or at
    name = as_text(first_of(fields, ("id", "request_id", "litellm_call_id")))
    if at is None or ended_at is None or not name:
        return None
    model, called = _model(fields)
    failed = fields.get("status") == "failure"
    said = as_text(first_of(fields, ("error_str", "error_message")))[:500] or "the call failed"
    answer = chat_answer(_response(fields), model=called)
    return ToldCall(
        id=name,
        protocol="openai",
        model=model,
        body=_body(fields, called),
        reply=FoldedReply(error=said) if failed else folded("openai", answer),
        usage=None if failed else _usage(fields),
        at=min(at, ended_at),
        ended_at=ended_at,
        outcome="error" if failed else "complete",
        reason=said if failed else "",
    )


def _model(fields: Fields) -> tuple[str, str]:
    """Return the model with its provider, and without."""
    named = as_text(fields.get("model"))
    provider = as_text(fields.get("custom_llm_provider"))
    before, slash, rest = named.partition("/")
    if slash and (not provider or provider == before):
        provider, named = before, rest
    ours = PROVIDERS.get(provider, provider)
    return (f"{ours}:{named}" if ours else named) or "unknown", named


def _body(fields: Fields, model: str) -> dict[str, Any]:
    sent = as_map(unwrapped(fields.get("proxy_server_request")))
    parameters = as_map(unwrapped(fields.get("model_parameters")))
    tools = first_of(parameters, ("tools",)) or first_of(sent, ("tools",))
    known = {name: parameters[name] for name in ("max_tokens", "temperature", "top_p") if name in parameters}
    messages = chat_messages(fields.get("messages") or None) or chat_messages(sent.get("messages"))
    asked = {"model": model, "messages": messages, "tools": chat_tools(tools), **known}
    return {name: value for name, value in asked.items() if value not in (None, "", [], {})}


def _response(fields: Fields) -> object:
    response = unwrapped(fields.get("response"))
    return response if response not in (None, {}) else ""


def _usage(fields: Fields) -> Usage | None:
    told = as_map(as_map(unwrapped(fields.get("response"))).get("usage"))
    details = as_map(told.get("prompt_tokens_details"))
    given = number_of(fields.get("prompt_tokens")) or number_of(told.get("prompt_tokens"))
    written = number_of(fields.get("completion_tokens")) or number_of(told.get("completion_tokens"))
    read = number_of(told.get("cache_read_input_tokens")) or number_of(details.get("cached_tokens"))
    made = number_of(told.get("cache_creation_input_tokens")) or number_of(details.get("cache_creation_tokens"))
    return Usage(given, written, read, made) if given or written else None
