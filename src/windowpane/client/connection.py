"""A connection to a server: questions and answers as JSON, events as server-sent events.

What the server refuses is raised as the error that it was there, and also as a `RemoteError` with the HTTP status.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote

import httpx2

from windowpane.api.wire import unwire
from windowpane.certificates import trusted
from windowpane.context.events import WatchEvent
from windowpane.context.items import ItemRef
from windowpane.errors import InvalidSettingError, RemoteError, ServerError, UnreachableError, WindowpaneError
from windowpane.json_codec import adapter_of

T = TypeVar("T")

TIMEOUT_S = 600.0


class Connection:
    """A connection to one server, with one token.

    Raises:
        InvalidSettingError: the address has no `http://` or `https://`.
    """

    def __init__(self, url: str, token: str | None, transport: httpx2.AsyncBaseTransport | None) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidSettingError("url", f"{url!r} is not the address of a server; write http://127.0.0.1:8470")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.AsyncClient(
            base_url=url, headers=headers, timeout=TIMEOUT_S, transport=transport, verify=trusted()
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def get(self, kind: type[T], path: str, params: Mapping[str, Any] | None = None) -> T:
        """Return what a GET request answers."""
        return read(kind, await self.request("GET", path, params=given(params or {})))

    async def send(
        self,
        kind: type[T],
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> T:
        """Return what a request with a body answers."""
        content = None if body is None else json.dumps(body)
        told = {**(headers or {}), **({} if content is None else {"Content-Type": "application/json"})}
        options: dict[str, Any] = {"content": content, "headers": told, "params": given(params or {})}
        return read(kind, await self.request(method, path, **options))

    async def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Return the response to a request.

        Raises:
            UnreachableError: the server does not answer.
            RemoteError: it refused.
        """
        try:
            response = await self._http.request(method, path, **options)
        except httpx2.TransportError as error:
            raise UnreachableError(str(self._http.base_url), str(error) or type(error).__name__) from None
        if not response.is_success:
            raise refused(response.status_code, response.content)
        return response

    async def events(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield the events that a request answers with."""
        told = {**(headers or {}), "Accept": "text/event-stream"}
        options: dict[str, Any] = {"params": given(params or {})}
        if body is not None:
            told["Content-Type"] = "application/json"
            options["content"] = json.dumps(body)
        async with self._streamed(method, path, headers=told, **options) as response:
            async for event in _events_in(response):
                yield event

    @asynccontextmanager
    async def _streamed(self, method: str, path: str, **options: Any) -> AsyncGenerator[httpx2.Response]:
        try:
            async with self._http.stream(method, path, **options) as response:
                if not response.is_success:
                    raise refused(response.status_code, await response.aread())
                yield response
        except httpx2.TransportError as error:
            raise UnreachableError(str(self._http.base_url), str(error) or type(error).__name__) from None


async def _events_in(response: httpx2.Response) -> AsyncGenerator[WatchEvent]:
    kind = ""
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data" and kind == "problem":
            raise refused(0, value.encode())
        elif name == "data":
            yield unwire(json.loads(value))


def refused(status: int, content: bytes) -> RemoteError:
    """Return the error that a problem document describes."""
    try:
        problem = cast("dict[str, Any]", json.loads(content))
        kind = _remote_class(str(problem["code"]))
        error = kind.__new__(kind)
        kind.__init__(error, int(problem["status"]), str(problem["code"]), str(problem["detail"]))
    except (ValueError, KeyError, TypeError):
        return RemoteError(status, "unknown", f"the server answered {status} and gave no reason")
    for name, fact in problem.get("facts", {}).items():
        setattr(error, name, fact)
    return error


@cache
def _remote_class(code: str) -> type[RemoteError]:
    """Return a class that is a `RemoteError` and the error of this code, if there is one."""
    known = _by_code(WindowpaneError).get(code)
    if known is None or issubclass(known, ServerError) or known is WindowpaneError:
        return RemoteError
    return type(f"Remote{known.__name__}", (_KnownError, known), {"code": code})


class _KnownError(RemoteError):
    def __init__(self, status: int, remote_code: str, detail: str) -> None:
        Exception.__init__(self, detail)
        self.status = status
        self.remote_code = remote_code


def _by_code(kind: type[WindowpaneError]) -> dict[str, type[WindowpaneError]]:
    found = {kind.code: kind}
    for each in kind.__subclasses__():
        found = {**_by_code(each), **found}
    return found


def read(kind: type[T], response: httpx2.Response) -> T:
    """Return the value that a response holds."""
    return cast("T", adapter_of(kind).validate_json(response.content))


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are not left out."""
    return {name: value for name, value in params.items() if value is not None}


def part(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="")


def session_path(session_id: str) -> str:
    """Return where a session is."""
    return f"/api/sessions/{part(session_id)}"


def agent_path(agent: str) -> str:
    """Return where an agent is."""
    return f"/api/agents/{part(agent)}"


def item_path(ref: ItemRef) -> str:
    """Return where an item is, after `items` or `explain`; its server goes into the query."""
    return f"{ref.type}/{part(ref.name)}"


def keyed(key: str | None) -> dict[str, str]:
    """Return the header by which the same request again is known."""
    return {"Idempotency-Key": key} if key else {}


def matching(revision: str) -> dict[str, str]:
    """Return the header that says which revision a change is meant for."""
    return {"If-Match": revision if revision == "*" else f'"{revision}"'}
