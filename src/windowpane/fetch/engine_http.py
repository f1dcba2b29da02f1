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
from windowpane.text.durations import in_units

Answer = TypeVar("Answer")

USED_UP = (402, 432, 433)


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """How one engine is spoken to. `refused_hint` is what to do when it refuses, with one of `refused_statuses`."""

    name: str
    refused_hint: str
    refused_statuses: tuple[int, ...] = (401, 403)
    timeout_s: float = 10.0


async def fetch_json(
    client: httpx2.AsyncClient,
    engine: EngineSpec,
    request: httpx2.Request,
    answer: TypeAdapter[Answer],
) -> Answer:
    """Return what the engine answers.

    Raises:
        SearchEngineError: it cannot be reached, refuses, or answers something else.
    """
    try:
        with anyio.fail_after(engine.timeout_s):
            response = await client.send(request)
    except (TimeoutError, httpx2.TimeoutException):
        why = f"no answer within {engine.timeout_s:g} s; try again, or choose another engine"
        raise SearchEngineError(engine.name, why) from None
    except httpx2.HTTPError as error:
        host = f"{request.url.host}:{request.url.port}" if request.url.port else request.url.host
        raise SearchEngineError(engine.name, f"{host} cannot be reached; check its address") from error
    if response.status_code != HTTPStatus.OK:
        raise SearchEngineError(engine.name, _why_status(engine, response.status_code, response.headers))
    try:
        return answer.validate_json(response.content)
    except ValidationError:
        why = "its answer is not what this engine sends; check that its address is right"
        raise SearchEngineError(engine.name, why) from None


def _why_status(engine: EngineSpec, status: int, headers: Mapping[str, str]) -> str:
    if status in engine.refused_statuses:
        return f"it refused (HTTP {status}); {engine.refused_hint}"
    if status in USED_UP:
        return f"the plan has no searches left (HTTP {status}); extend the plan, or choose another engine"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = headers.get("retry-after", "")
        when = f"in {in_units(int(wait))}" if wait.isascii() and wait.isdigit() and len(wait) < 6 else "later"
        return f"rate limit (HTTP 429); try again {when}, or choose another engine"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"server error (HTTP {status}); try again later, or choose another engine"
    return f"it answered HTTP {status}; check its address"
