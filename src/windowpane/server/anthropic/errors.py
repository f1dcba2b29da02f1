"""Errors as Anthropic's clients read them: `{"type": "error", "error": {"type", "message"}}`.

What went wrong is found out as for OpenAI's clients, in `server/openai/errors.py`; only the form is another.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from windowpane.errors import WindowpaneError
from windowpane.server.lazy_routes import LazyRoute
from windowpane.server.openai.errors import MEANINGS, Failure, UnsupportedError, failure_of, invalid
from windowpane.server.problems import headers_of

KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


@dataclass(frozen=True, slots=True)
class AnthropicError:
    """What went wrong: its kind for programs, its message for people."""

    type: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicErrorDocument:
    """An error."""

    type: Literal["error"] = "error"
    error: AnthropicError


def document_of(failure: Failure) -> dict[str, Any]:
    """Return a failure in Anthropic's form."""
    return _document(failure.status, failure.body.message)


def response_of(failure: Failure, headers: Mapping[str, str] | None = None) -> Response:
    """Return a failure as a whole answer, with the headers that say whether to try again."""
    return JSONResponse(document_of(failure), failure.status, headers=failure.headers(headers))


def anthropic_form(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem document in Anthropic's form: of what no route of ours has answered."""
    return _document(int(problem["status"]), str(problem["detail"]))


def _document(status: int, message: str) -> dict[str, Any]:
    kind = KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return asdict(AnthropicErrorDocument(error=AnthropicError(kind, message)))


class AnthropicRoute(LazyRoute):
    """A route whose failures have Anthropic's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with failures answered here rather than as problem documents."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except UnsupportedError as error:
                return response_of(error.failure)
            except WindowpaneError as error:
                return response_of(failure_of(error), headers_of(error))
            except RequestValidationError as error:
                return response_of(invalid(error))
            except HTTPException as error:
                return JSONResponse(_document(error.status_code, str(error.detail)), error.status_code)

        return answered


def anthropic_failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how an operation documents its failures."""
    every = sorted({400, 401, 403, 429, 500, 502, 503, 504, *statuses})
    return {status: {"model": AnthropicErrorDocument, "description": MEANINGS[status]} for status in every}
