"""Take spans of other programs (OTLP over HTTP) and keep their model calls as sessions of the caller's.

An exporter adds `/v1/traces` to its endpoint, so that endpoint is `/api/otlp`. Spans of anything but model calls are
taken and dropped: exporters send all they have.
"""

from typing import Any

import anyio.to_thread
from fastapi import HTTPException, Request, Response

from windowpane.calls.encodings import decoded
from windowpane.errors import InvalidInputError
from windowpane.server.dependencies import Asking, Chatting
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.middleware.limits import MORE_VALUES, values_of
from windowpane.server.problems import BODY, problems
from windowpane.xray.importing.otlp import spans_from_json, spans_from_protobuf
from windowpane.xray.importing.spans import sessions_of_spans
from windowpane.xray.importing.told import ToldSession
from windowpane.xray.importing.writer import Importer

router = LazyRouter(prefix="/api/otlp", tags=["x-ray"])

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
MOST_BYTES = 64 * 1024 * 1024
"""How long a body may be when it is not compressed."""

EXAMPLE = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "my-agent"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "5b8efff798038103d269b633813fc60c",
                            "spanId": "eee19b7ec3c1b174",
                            "name": "chat gpt-4o",
                            "startTimeUnixNano": "1767225600000000000",
                            "endTimeUnixNano": "1767225601000000000",
                            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
                        }
                    ]
                }
            ],
        }
    ]
}
TAKEN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "All spans were taken. The answer is an empty message in the form of the request.",
        "content": {JSON: {"schema": {"type": "object"}, "example": {}}, PROTOBUF: {"schema": {"type": "string"}}},
    }
}


@router.post(
    "/v1/traces",
    summary="Take spans of model calls (OTLP)",
    response_class=Response,
    responses={**problems(*BODY), **TAKEN},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"type": "object"}, "example": EXAMPLE},
                PROTOBUF: {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def take_spans(pane: Chatting, caller: Asking, request: Request) -> Response:
    """Keep the model calls of an `ExportTraceServiceRequest`, by OpenTelemetry's conventions for generative AI.

    Each becomes a call of a session of the caller's: of the conversation that its span names, or of its trace. A span
    that was taken before is not taken twice.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (PROTOBUF, JSON):
        raise HTTPException(415, f"spans come as {PROTOBUF} or {JSON}")
    encoding = request.headers.get("content-encoding", "")
    sessions = await anyio.to_thread.run_sync(_read, kind, encoding, await request.body())
    importer = Importer(pane.engine.store, caller.owner)
    for told in sessions:
        await importer.write(told)
    return Response(b"" if kind == PROTOBUF else b"{}", media_type=kind)


def _read(kind: str, encoding: str, body: bytes) -> list[ToldSession]:
    plain = decoded(encoding, body, MOST_BYTES)
    if plain is None:
        raise InvalidInputError(f"the body cannot be decompressed, or is longer than {MOST_BYTES:,} bytes")
    if kind == JSON and values_of(plain) > MORE_VALUES:
        raise HTTPException(413, f"the body holds more than {MORE_VALUES:,} values")
    return sessions_of_spans(spans_from_protobuf(plain) if kind == PROTOBUF else spans_from_json(plain))
