"""Errors as OpenAI's clients read them.

`{"error": {"message", "type", "param", "code"}}`, with the status codes that the clients take for a reason to try again
or not; where the status alone would mislead them, `x-should-retry` says it.
"""

import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from windowpane.context.events import TurnError
from windowpane.errors import WindowpaneError
from windowpane.server.lazy_routes import LazyRoute
from windowpane.server.problems import headers_of, status_of

OPENAI_PATHS = r"/v1(/|$)|.*/(chat/completions|responses|embeddings)$"
"""Where OpenAI's clients send requests to, also those that were given a base URL that is not theirs."""

WORTH_ANOTHER_TRY = frozenset(
    {
        "session_busy",
        "model_rate_limited",
        "model_unavailable",
        "model_timeout",
        "model_stream_broken",
        "store_unavailable",
        "too_many_requests",
        "worker_full",
        "too_many_turns",
        "interrupted",
    }
)
_CODES = {
    "agent_not_found": "model_not_found",
    "context_too_large": "context_length_exceeded",
    "request_too_long": "context_length_exceeded",
    "token_needed": "invalid_api_key",
    "model_rate_limited": "rate_limit_exceeded",
    "too_many_requests": "rate_limit_exceeded",
    "worker_full": "rate_limit_exceeded",
    "too_many_turns": "rate_limit_exceeded",
    "cost_limit_reached": "insufficient_quota",
}
_OF_THE_MODEL = {"model_rate_limited": 429, "model_auth": 401, "model_rejected": 400, "request_too_long": 400}
PASSED_ON = frozenset({400, 402, 403, 404, 413, 429})
"""What a provider may answer with that says the same about the request here."""

_FORM = re.compile(r"str|[A-Z]\w*|list\[.*\]|constrained-.*|function-.*")
"""How pydantic writes that a value was tried in one of several forms."""

SAID = "messages"
"""The parameter that holds the conversation, in most requests."""

_PARAMS = {"agent_not_found": "model", "session_not_found": "metadata.session", "context_too_large": SAID}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """What went wrong, for people and for programs. `param` is the part of the request that is to be changed."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorDocument:
    """An error."""

    error: ErrorBody


@dataclass(frozen=True, slots=True)
class Failure:
    """An error with its status."""

    status: int
    body: ErrorBody
    retry: bool = False
    retry_after_s: float | None = None

    def naming(self, said: str) -> "Failure":
        """Return it with the name that the conversation has at this door, where that is what is to be changed."""
        # A parameter that is not known at this door keeps the name that the client gave it.
        if self.body.param != SAID or self.body.code == "unknown_parameter":
            return self
        return replace(self, body=replace(self.body, param=said))

    def document(self) -> dict[str, Any]:
        """Return what the client is sent."""
        return asdict(ErrorDocument(self.body))

    def headers(self, headers: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return headers, with those that say whether and when to try again."""
        misleading = not self.retry and (self.status >= 500 or self.status in (408, 409, 429))
        told = {"x-should-retry": "false"} if misleading else {}
        if self.retry_after_s is not None:
            told["Retry-After"] = f"{self.retry_after_s:.0f}"
        return {**(headers or {}), **told}

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        """Return the whole answer."""
        return JSONResponse(self.document(), self.status, headers=self.headers(headers))


class UnsupportedError(Exception):
    """The request asks for something that cannot be done here."""

    def __init__(self, param: str, why: str, code: str = "unsupported_value") -> None:
        super().__init__(why)
        self.failure = refusal(why, param=param, code=code)


def refusal(message: str, *, param: str | None = None, code: str | None = None) -> Failure:
    """Return what is said about a request that has to be changed."""
    return Failure(400, ErrorBody(message=message, type="invalid_request_error", param=param, code=code))


def failure_of(error: TurnError | WindowpaneError) -> Failure:
    """Return one of our errors, or what a turn failed of, in OpenAI's words."""
    message = error.message if isinstance(error, TurnError) else str(error)
    status = _status(error)
    kind = "invalid_request_error" if status < 500 else "server_error"
    code = "insufficient_quota" if _is_quota(error) else _CODES.get(error.code, error.code)
    if status == 429:
        # A quota is named twice by OpenAI: its clients look at either.
        kind = code if code == "insufficient_quota" else "requests"
    body = ErrorBody(message=message, type=kind, param=_PARAMS.get(error.code), code=code)
    wait_s = getattr(error, "retry_after_s", None)
    return Failure(status, body, retry=error.code in WORTH_ANOTHER_TRY, retry_after_s=wait_s)


def openai_form(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem document in OpenAI's form: of what no route of ours has answered."""
    status, code = int(problem["status"]), str(problem["code"])
    kind = "invalid_request_error" if status < 500 else "server_error"
    body = ErrorBody(
        message=str(problem["detail"]),
        type="requests" if status == 429 else kind,
        param=_PARAMS.get(code),
        code=_CODES.get(code, code),
    )
    return asdict(ErrorDocument(body))


def _is_quota(error: TurnError | WindowpaneError) -> bool:
    return error.code == "model_rejected" and getattr(error, "status", None) == 429


def _status(error: TurnError | WindowpaneError) -> int:
    """Return the status: of a model that refused, the one that its provider answered with."""
    code, said = error.code, getattr(error, "status", None)
    if code in _OF_THE_MODEL:
        return said if code == "model_rejected" and said in PASSED_ON else _OF_THE_MODEL[code]
    known = next((error for error in _family(WindowpaneError) if error.code == code), None)
    status = 503 if code == "interrupted" else 500 if known is None else status_of(known)
    return 400 if status == 422 else status


def _family(error: type[WindowpaneError]) -> list[type[WindowpaneError]]:
    return [error, *(member for child in error.__subclasses__() for member in _family(child))]


class OpenAIRoute(LazyRoute):
    """A route whose failures have OpenAI's form."""

    said: ClassVar[str] = SAID
    """The parameter that holds the conversation."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with failures answered here rather than as problem documents."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except UnsupportedError as error:
                return error.failure.naming(self.said).response()
            except WindowpaneError as error:
                return failure_of(error).naming(self.said).response(headers_of(error))
            except RequestValidationError as error:
                return invalid(error).response()
            except HTTPException as error:
                body = ErrorBody(message=str(error.detail), type="invalid_request_error")
                return Failure(error.status_code, body).response(error.headers)

        return answered


def invalid(error: RequestValidationError) -> Failure:
    """Return what is wrong with a request that cannot be parsed."""
    found: Sequence[Mapping[str, Any]] = error.errors()
    # Where a text would have done as well, what was sent instead is what was meant, and what went furthest; and what is
    # wrong says more about it than what is missing.
    first = max(
        [entry for entry in found if entry["loc"][-1] != "str"] or found,
        key=lambda entry: (len(entry["loc"]), entry["type"] != "missing"),
    )
    place = _place(first["loc"])
    match first["type"]:
        case "json_invalid":
            return refusal("The body is not JSON: " + str(first["ctx"]["error"]))
        case _ if isinstance(error.body, bytes):
            wanted = "Send the body as JSON, with `Content-Type: application/json`."
            return Failure(415, ErrorBody(message=wanted, type="invalid_request_error"))
        case "missing" | "model_attributes_type" if not place:
            return refusal("The body must be a JSON object.", code="invalid_value")
        case "missing":
            return refusal(f"Missing required parameter: '{place}'.", param=place, code="missing_required_parameter")
        case "extra_forbidden":
            return refusal(f"Unknown parameter: '{place}'.", param=place, code="unknown_parameter")
        case _:
            why = str(first["msg"]).removeprefix("Value error, ")
            return refusal(f"Invalid value for '{place}': {why}.", param=place or None, code="invalid_value")


def _place(loc: Sequence[str | int]) -> str:
    """Return a place as OpenAI writes it, such as `messages[0].content`."""
    named = [part for part in loc[1:] if isinstance(part, int) or not _FORM.fullmatch(part)]
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in named]
    return "".join(parts).removeprefix(".")


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how an operation documents its failures; 400, 401, 403, 429, 500 and 503 are documented for every one."""
    every = sorted({400, 401, 403, 429, 500, 502, 503, 504, *statuses})
    return {status: {"model": ErrorDocument, "description": MEANINGS[status]} for status in every}


MEANINGS: Mapping[int, str] = {
    400: "The request has to be changed; `param` says where.",
    401: "The key is no token of this server.",
    403: "The token allows less than this.",
    404: "There is no such model, session or response.",
    409: "The session is busy, or waits for something else.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    429: "Too many requests, here or at the model's provider.",
    500: "Unexpected error; see the server log.",
    502: "The model's provider did not answer as needed.",
    503: "The store, or the model's provider, cannot be reached now.",
    504: "The model's provider took too long.",
}


def as_answered(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI description without the answer to invalid requests that is never given here."""
    for path, operations in schema.get("paths", {}).items():
        for operation in operations.values():
            if path.startswith(("/v1/", "/anthropic/")):
                operation["responses"].pop("422", None)
    return schema
