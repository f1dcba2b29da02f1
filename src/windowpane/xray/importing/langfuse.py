"""Read what Langfuse exports: observations, alone or within their traces, from the API or from a file.

A generation is a call. Its trace names the session; without one, a trace is a session. Files name their fields as the
API does, or with underscores.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.calls.documents import as_map, as_maps, as_text
from windowpane.context.calls import FoldedReply
from windowpane.context.messages import Usage
from windowpane.xray.importing.chat import chat_answer, chat_messages, chat_tools, unwrapped
from windowpane.xray.importing.told import ToldCall, ToldSession, first_of, folded, number_of, time_of

Fields = Mapping[str, Any]
KINDS = ("GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
TRACE = ("traceId", "trace_id")
SESSION = ("sessionId", "session_id")


def is_langfuse(document: Fields) -> bool:
    """Tell whether a document is an observation, a trace with its observations, or a page of either."""
    if isinstance(document.get("observations"), list):
        return True
    if first_of(document, TRACE) is not None and document.get("type") in KINDS:
        return True
    data = as_maps(document.get("data"))
    return bool(data) and is_langfuse(data[0])


@dataclass(frozen=True, slots=True)
class _Observation:
    fields: Fields
    trace: str
    session: str


def read_langfuse(documents: Iterable[Fields]) -> list[ToldSession]:
    """Return the generations, by session."""
    groups: dict[str, list[ToldCall]] = {}
    version = ""
    for document in documents:
        for found in _observations(document, "", ""):
            if found.fields.get("type") == "GENERATION" and (call := _call(found)) is not None:
                groups.setdefault(found.session or found.trace, []).append(call)
                version = as_text(found.fields.get("version")) or version
    return [
        ToldSession(
            source="langfuse",
            program="langfuse",
            version=version[:60],
            conversation=session[:200],
            calls=sorted(calls, key=lambda call: call.at),
        )
        for session, calls in groups.items()
    ]


def _observations(document: Fields, trace: str, session: str) -> Iterator[_Observation]:
    session = as_text(first_of(document, SESSION)) or session
    if isinstance(document.get("observations"), list):
        trace = as_text(document.get("id")) or trace
        for each in as_maps(document["observations"]):
            yield from _observations(each, trace, session)
    elif isinstance(document.get("data"), list):
        for each in as_maps(document["data"]):
            yield from _observations(each, trace, session)
    else:
        yield _Observation(document, as_text(first_of(document, TRACE)) or trace, session)


def _call(found: _Observation) -> ToldCall | None:
    fields = found.fields
    at = time_of(first_of(fields, ("startTime", "start_time")))
    ended_at = time_of(first_of(fields, ("endTime", "end_time"))) or at
    name = as_text(fields.get("id"))
    if at is None or ended_at is None or not name or not found.trace:
        return None
    model = as_text(first_of(fields, ("model", "providedModelName", "provided_model_name", "internalModelId")))
    failed = fields.get("level") == "ERROR"
    said = as_text(first_of(fields, ("statusMessage", "status_message")))[:500] or "the call failed"
    return ToldCall(
        id=f"{found.trace}:{name}",
        protocol="openai",
        model=model or "unknown",
        body=_body(fields, model),
        reply=FoldedReply(error=said) if failed else folded("openai", chat_answer(fields.get("output"), model=model)),
        usage=None if failed else _usage(fields),
        at=min(at, ended_at),
        ended_at=ended_at,
        outcome="error" if failed else "complete",
        reason=said if failed else "",
    )


def _body(fields: Fields, model: str) -> dict[str, Any]:
    given = unwrapped(fields.get("input"))
    parameters = as_map(unwrapped(first_of(fields, ("modelParameters", "model_parameters"))))
    known = {name: parameters[name] for name in ("max_tokens", "temperature", "top_p") if name in parameters}
    tools = chat_tools(as_map(given).get("tools") or parameters.get("tools"))
    asked = {"model": model, "messages": chat_messages(given), "tools": tools, **known}
    return {name: value for name, value in asked.items() if value not in (None, "", [])}


def _usage(fields: Fields) -> Usage | None:
    """Return what was used. Kinds of input are counted apart, and each name says whether it is input or output."""
    details = as_map(unwrapped(first_of(fields, ("usageDetails", "usage_details"))))
    if details:
        counts = {name.lower(): number_of(value) for name, value in details.items()}
        given = sum(count for name, count in counts.items() if "input" in name or "prompt" in name)
        written = sum(count for name, count in counts.items() if "output" in name or "completion" in name)
        created = sum(count for name, count in counts.items() if "cache_creation" in name or "cache_write" in name)
        cached = sum(count for name, count in counts.items() if "input" in name and "cache" in name) - created
        return Usage(given, written, max(cached, 0), created) if given or written else None
    usage = as_map(unwrapped(fields.get("usage")))
    given, written = number_of(usage.get("input")), number_of(usage.get("output"))
    return Usage(given, written) if given or written else None
