"""Ask a search engine over HTTP, and say in one sentence what to do when it fails.

Messages are made from the status alone: what an engine writes in its errors may repeat the key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

import anyio
import httpx2
from pydantic import TypeAdapter, ValidationError

from windowpane.errors import SearchEngineError

Answer = TypeVar("Answer")

USED_UP = (402, 432, 433)


@dataclass(frozen=True, slots=True)
class Asked:
    """How one engine is spoken to. `refused_hint` is what to do when it refuses, with one of `refused_statuses`."""

    engine: str
    refused_hint: str
    refused_statuses: tuple[int, ...] = (401, 403)
    timeout_s: float = 10.0


async def ask(
    client: httpx2.AsyncClient,
    asked: Asked,
    request: httpx2.Request,
    answer: TypeAdapter[Answer],
) -> Answer:
    """Return what the engine answers.

    Raises:
        SearchEngineError: it cannot be reached, refuses, or answers something else.
    """
    try:
        with anyio.fail_after(asked.timeout_s):
            response = await client.send(request)
    except (TimeoutError, httpx2.TimeoutException):
        why = f"no answer within {asked.timeout_s:g} s; try again, or choose another engine"
        raise SearchEngineError(asked.engine, why) from None
    except httpx2.HTTPError as error:
        host = f"{request.url.host}:{request.url.port}" if request.url.port else request.url.host
        raise SearchEngineError(asked.engine, f"{host} cannot be reached; check its address") from error
    if response.status_code != HTTPStatus.OK:
        raise SearchEngineError(asked.engine, _why_status(asked, response.status_code, response.headers))
    try:
        return answer.validate_json(response.content)
    except ValidationError:
        why = "its answer is not what this engine sends; check that its address is right"
        raise SearchEngineError(asked.engine, why) from None


def _why_status(asked: Asked, status: int, headers: Mapping[str, str]) -> str:
    if status in asked.refused_statuses:
        return f"it refused (HTTP {status}); {asked.refused_hint}"
    if status in USED_UP:
        return f"the plan has no searches left (HTTP {status}); enlarge it, or choose another engine"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = headers.get("retry-after", "")
        when = f"in {wait} s" if wait.isascii() and wait.isdigit() and len(wait) < 6 else "later"
        return f"it asks to slow down (HTTP 429); try again {when}, or choose another engine"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"it failed inside (HTTP {status}); try again later, or choose another engine"
    return f"it answered HTTP {status}; check its address"
