"""Errors as problem documents (RFC 9457), all of them and in one form.

`STATUSES` is the only place where an error gets a status code. A problem says what happened in words and carries the
error's `code` and facts for programs. An unexpected error says nothing about the inside; the log has it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from windowpane.errors import (
    AccessError,
    AgentError,
    ConflictError,
    CostLimitError,
    EmbedderError,
    FetchError,
    FetchRefusedError,
    InvalidInputError,
    ModelError,
    ModelRateLimitedError,
    ModelTimeoutError,
    ModelUnavailableError,
    NotFoundError,
    RevisionMissingError,
    ScopeNeededError,
    StaleRevisionError,
    StoreError,
    StoreUnavailableError,
    TokenNeededError,
    TokensUnreadableError,
    ToolError,
    ToolServerDownError,
    ToolTimeoutError,
    TooManyModelCallsError,
    TooManyRequestsError,
    TooManyTurnsError,
    UnknownItemError,
    UnknownModelError,
    WindowpaneError,
    WorkerFullError,
)
from windowpane.server.middleware.root_path import root_of

MEDIA_TYPE = "application/problem+json"

STATUSES: Mapping[type[WindowpaneError], HTTPStatus] = {
    InvalidInputError: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnknownItemError: HTTPStatus.NOT_FOUND,
    NotFoundError: HTTPStatus.NOT_FOUND,
    AccessError: HTTPStatus.FORBIDDEN,
    TokenNeededError: HTTPStatus.UNAUTHORIZED,
    ScopeNeededError: HTTPStatus.FORBIDDEN,
    TooManyRequestsError: HTTPStatus.TOO_MANY_REQUESTS,
    WorkerFullError: HTTPStatus.TOO_MANY_REQUESTS,
    TooManyTurnsError: HTTPStatus.TOO_MANY_REQUESTS,
    CostLimitError: HTTPStatus.TOO_MANY_REQUESTS,
    TokensUnreadableError: HTTPStatus.SERVICE_UNAVAILABLE,
    RevisionMissingError: HTTPStatus.PRECONDITION_REQUIRED,
    StaleRevisionError: HTTPStatus.PRECONDITION_FAILED,
    ConflictError: HTTPStatus.CONFLICT,
    AgentError: HTTPStatus.UNPROCESSABLE_ENTITY,
    ModelError: HTTPStatus.BAD_GATEWAY,
    UnknownModelError: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooManyModelCallsError: HTTPStatus.UNPROCESSABLE_ENTITY,
    ModelRateLimitedError: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    ModelTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    ToolError: HTTPStatus.BAD_GATEWAY,
    ToolServerDownError: HTTPStatus.SERVICE_UNAVAILABLE,
    ToolTimeoutError: HTTPStatus.GATEWAY_TIMEOUT,
    FetchError: HTTPStatus.BAD_GATEWAY,
    EmbedderError: HTTPStatus.SERVICE_UNAVAILABLE,
    FetchRefusedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    StoreError: HTTPStatus.INTERNAL_SERVER_ERROR,
    StoreUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    WindowpaneError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""The status of each error; a class that is not here has that of its nearest ancestor."""

TITLES: Mapping[int, str] = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Names of status codes that Python still calls by older ones."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
STORE_RETRY_S = 5
"""When a client may ask again for what the store could not do, in seconds."""

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="windowpane"'}
"""What tells a client how to show who it is."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One part of a request that cannot be used. `where` is its place, such as `body.content`."""

    where: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDocument:
    """Why a request failed: `detail` for people, `code` and `facts` for programs."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    errors: tuple[FieldProblem, ...] = ()


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    facts: Mapping[str, Any] | None = None,
    errors: Sequence[FieldProblem] = (),
) -> ProblemDocument:
    """Return a problem of this code."""
    return ProblemDocument(
        type=f"urn:windowpane:problem:{code}",
        title=TITLES.get(status) or HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        facts=facts or {},
        errors=tuple(errors),
    )


def problem_of(error: WindowpaneError) -> ProblemDocument:
    """Return an error of ours as a problem."""
    return problem(status_of(type(error)), error.code, str(error), facts=vars(error))


def status_of(error: type[WindowpaneError]) -> int:
    """Return the status code of a class of errors."""
    return next(int(STATUSES[ancestor]) for ancestor in error.__mro__ if ancestor in STATUSES)


def unexpected(request_id: str) -> ProblemDocument:
    """Return what is said about an unexpected error: nothing but where to look."""
    return problem(500, "internal", f"unexpected error; see the server log (request id {request_id})")


def response_of(document: ProblemDocument, headers: Mapping[str, str] | None = None) -> Response:
    """Return a problem as a response."""
    return Response(render(document), document.status, headers=headers, media_type=MEDIA_TYPE)


def render(document: ProblemDocument) -> bytes:
    """Return a problem as JSON. Half a character, which a request may hold, becomes a question mark."""
    return json.dumps(asdict(document), ensure_ascii=False, default=str).encode("utf-8", "replace")


async def answer_windowpane_error(request: Request, error: Exception) -> Response:
    """Answer a request that one of our errors ended."""
    if not isinstance(error, WindowpaneError):
        raise TypeError(error)
    return response_of(problem_of(error), headers_of(error))


def headers_of(error: WindowpaneError) -> dict[str, str]:
    """Return what tells a client when to try again, or how to show who it is."""
    if isinstance(error, TokenNeededError):
        return CHALLENGE
    if isinstance(error, ModelRateLimitedError) and error.retry_after_s is not None:
        return {"Retry-After": f"{error.retry_after_s:.0f}"}
    if isinstance(error, CostLimitError | WorkerFullError | TooManyTurnsError):
        return {"Retry-After": str(error.retry_after_s)}
    if isinstance(error, StoreUnavailableError):
        return {"Retry-After": f"{STORE_RETRY_S}"}
    return {}


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Answer a request that has no route, a wrong method, or a body that cannot be read."""
    if not isinstance(error, HTTPException):
        raise TypeError(error)
    code, detail = str(HTTPStatus(error.status_code).name).lower(), error.detail
    headers: Mapping[str, str] | None = error.headers
    match error.status_code:
        case 400:
            code, detail = "malformed_body", "the body cannot be read as JSON"
        case 404:
            detail = f"there is nothing at {request.url.path}; {_where(request)}"
        case 405:
            methods = ", ".join(sorted(_methods(request)))
            instead = _instead(request.url.path) or f"{methods} {'are' if ',' in methods else 'is'}"
            detail = f"{request.method} is not possible at {request.url.path}; {instead}"
            headers = {"Allow": methods}
        case 413:
            code = "body_too_large"
        case _:
            pass
    return response_of(problem(error.status_code, code, detail), headers)


def _where(request: Request) -> str:
    """Return where to go instead: a client of another maker may have been given a base URL that is not its door's."""
    path, root = request.url.path, f"{request.url.scheme}://{request.url.netloc}{root_of(request.scope)}"
    if path.endswith(("/v1/messages", "/v1/messages/count_tokens")):
        return f"the base URL for Anthropic's clients is {root}/anthropic"
    if path.endswith(("/chat/completions", "/responses", "/embeddings")):
        return f"the base URL for OpenAI's clients is {root}/v1"
    if instead := _instead(path):
        return instead
    return next((has for door, has in DOORS.items() if path.startswith(door)), "/openapi.json lists what there is")


def _instead(path: str) -> str | None:
    return next((found for known, found in INSTEAD.items() if path.startswith(known)), None)


INSTEAD: Mapping[str, str] = {
    "/v1/completions": "legacy completions have no conversation; use /v1/chat/completions",
    "/v1/files": "files are sent as bytes with their message, not uploaded",
    "/v1/audio": "audio is not offered here",
    "/v1/images": "images are not made here",
    "/v1/assistants": "assistants are agents here; use /v1/responses",
    "/v1/threads": "threads are sessions here; use /v1/responses with `conversation`",
    "/v1/batches": "send the requests one by one",
    "/v1/uploads": "files are sent as bytes with their message, not uploaded",
    "/v1/vector_stores": "documents are references of an agent or of a session, which are searched for every message",
    "/v1/moderations": "what is said is not judged here",
    "/v1/realtime": "there is no realtime door; stream /v1/responses",
    "/v1/responses/compact": "a session is kept within the window by itself; name one with `conversation`",
    "/v1/chat/completions": "an answer is a turn of a session; /api/sessions lists, changes and deletes sessions",
    "/anthropic/v1/files": "files are sent as bytes with their message, not uploaded",
    "/anthropic/v1/messages/batches": "send the requests one by one",
    "/anthropic/v1/complete": "use /anthropic/v1/messages",
    "/anthropic/v1/skills": "skills are references of the agent",
}
"""What to do instead of what other servers offer and this one does not."""

DOORS: Mapping[str, str] = {
    "/v1/": "here there are /v1/chat/completions, /v1/responses, /v1/conversations, /v1/embeddings and /v1/models",
    "/anthropic/": "here there are /anthropic/v1/messages, its count_tokens, and /anthropic/v1/models",
}
"""What other makers' clients find here."""


def _methods(request: Request) -> set[str]:
    """Return every method that is possible at a request's path; a router knows only those of one route."""
    described: Mapping[str, Any] = request.app.openapi()["paths"]
    if request.url.path in described:
        return {method.upper() for method in described[request.url.path]}
    return {
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in request.app.routes)
    }


async def answer_invalid_request(request: Request, error: Exception) -> Response:
    """Answer a request with parts that are missing or of the wrong kind."""
    if not isinstance(error, RequestValidationError):
        raise TypeError(error)
    found: Sequence[Mapping[str, Any]] = error.errors()
    if any(entry["type"] == "json_invalid" for entry in found):
        why, place = found[0]["ctx"]["error"], found[0]["loc"][-1]
        return response_of(problem(400, "malformed_body", f"the body is not JSON: {why} at character {place}"))
    if isinstance(error.body, bytes):
        return response_of(
            problem(415, "unsupported_media_type", "send the body as JSON, with `Content-Type: application/json`")
        )
    errors = [FieldProblem(".".join(map(str, entry["loc"])), _plain(entry["msg"])) for entry in found]
    detail = "; ".join(f"{entry.where}: {entry.message}" for entry in errors[:3])
    return response_of(problem(422, "invalid_input", detail, errors=errors))


def _plain(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how an operation documents its problems; those that every one can have are added.

    They are described here and not by their class: FastAPI would make something to check each of them with, which for
    all operations takes most of a second.
    """
    content = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"}}}
    return {status: {"description": MEANINGS[status], "content": content} for status in sorted({*statuses, *ALWAYS})}


MEANINGS: Mapping[int, str] = {
    400: "The body is not JSON.",
    401: "A token is needed, and none came that can be used.",
    403: "The token does not allow this.",
    404: "There is no such thing.",
    409: "The session is busy, something is there already, or not in the state that this needs.",
    412: "It has changed since it was read; `facts.current` is the revision that is there now.",
    428: "The change does not say which revision it is meant for; send `If-Match`.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    422: "Something in the request, or in the agent's folder, cannot be used; `detail` says what.",
    429: "Too many requests, the server is full, or a cost limit is reached; `Retry-After` says how long to wait.",
    500: "Unexpected error; see the server log.",
    502: "A service that this server uses did not answer as needed; `detail` names it.",
    503: "The store, or something else that is needed, cannot be reached now.",
}
ALWAYS = (401, 403, 422, 429, 500, 503)
"""What can go wrong with any request."""

BODY = (400, 413, 415)
"""What can be wrong with any body."""


def with_problems(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI description with the form of problems, which its operations name."""
    form = TypeAdapter(ProblemDocument).json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
    schemas: dict[str, Any] = schema["components"]["schemas"] | form.pop("$defs") | {ProblemDocument.__name__: form}
    schema["components"]["schemas"] = {name: schemas[name] for name in sorted(schemas)}
    return schema
