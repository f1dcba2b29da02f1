"""Read spans as OpenTelemetry's protocol (OTLP) carries them: protobuf or JSON, over HTTP or in a file."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pydantic_core import from_json

from windowpane.calls.documents import as_map, as_maps, as_text
from windowpane.errors import InvalidInputError

FAILED = (2, "2", "STATUS_CODE_ERROR")
"""How a span says that what it measured failed."""


@dataclass(frozen=True, slots=True)
class Span:
    """One span. `resource` has the attributes of the program that made it."""

    trace_id: str
    span_id: str
    start: datetime
    end: datetime
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    resource: Mapping[str, Any]
    error: str | None


def spans_from_protobuf(body: bytes) -> list[Span]:
    """Return the spans of a request in protobuf.

    Raises:
        InvalidInputError: it is not one, or the package that reads protobuf is not installed.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        raise InvalidInputError(
            "spans in protobuf need `pip install windowpane[otel]` here; or let the exporter send JSON"
        ) from error
    try:
        request = ExportTraceServiceRequest.FromString(body)
        document = MessageToDict(request)
    except (DecodeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the body is no ExportTraceServiceRequest: {error}") from None
    return list(spans_of(document, ids_in_base64=True))


def spans_from_json(body: bytes) -> list[Span]:
    """Return the spans of a request in JSON.

    Raises:
        InvalidInputError: it is not one.
    """
    try:
        document = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInputError(f"the body is no JSON: {error}") from None
    if not isinstance(as_map(document).get("resourceSpans"), list):
        raise InvalidInputError("the body is no ExportTraceServiceRequest: `resourceSpans` is missing")
    return list(spans_of(as_map(document)))


def spans_of(document: Mapping[str, Any], *, ids_in_base64: bool = False) -> Iterator[Span]:
    """Yield the spans of a document. One without an id or a time is passed over."""
    for group in as_maps(document.get("resourceSpans")):
        resource = _attributes(as_map(group.get("resource")).get("attributes"))
        for scope in as_maps(group.get("scopeSpans")):
            for span in as_maps(scope.get("spans")):
                trace_id, span_id = (_id(span.get(name), ids_in_base64) for name in ("traceId", "spanId"))
                start, end = (_time(span.get(name)) for name in ("startTimeUnixNano", "endTimeUnixNano"))
                if not trace_id or not span_id or start is None or end is None:
                    continue
                status = as_map(span.get("status"))
                failed = status.get("code") in FAILED
                events = (
                    (as_text(e.get("name")), _attributes(e.get("attributes"))) for e in as_maps(span.get("events"))
                )
                yield Span(
                    trace_id,
                    span_id,
                    start,
                    end,
                    _attributes(span.get("attributes")),
                    tuple(events),
                    resource,
                    as_text(status.get("message")) if failed else None,
                )


def _attributes(listed: object) -> dict[str, Any]:
    return {as_text(each.get("key")): _value(as_map(each.get("value"))) for each in as_maps(listed)}


def _value(value: Mapping[str, Any]) -> Any:
    if "intValue" in value:
        written = str(value["intValue"])
        return int(written) if written.lstrip("-").isdecimal() and len(written) < 20 else None
    if "arrayValue" in value:
        return [_value(each) for each in as_maps(as_map(value["arrayValue"]).get("values"))]
    if "kvlistValue" in value:
        return _attributes(as_map(value["kvlistValue"]).get("values"))
    return next((value[name] for name in ("stringValue", "boolValue", "doubleValue") if name in value), None)


def _id(value: object, in_base64: bool) -> str:
    written = as_text(value)
    if not in_base64:
        return written.lower()[:64]
    try:
        return base64.b64decode(written).hex()
    except (binascii.Error, ValueError):
        return ""


def _time(value: object) -> datetime | None:
    written = str(cast("Any", value))
    if not written.isdecimal() or len(written) > 20:
        return None
    try:
        return datetime.fromtimestamp(int(written) / 1e9, UTC)
    except (OverflowError, OSError, ValueError):
        return None
