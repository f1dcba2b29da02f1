"""Open the pipes or the HTTP connection to a tool server, and watch what passes.

The protocol library hides three things that a person needs when a server fails, and that the caller of a tool needs
to know whether the call can have run: the end of the stream, what the process wrote to its standard error, and what
HTTP answered. A `TransportState` collects them.
"""

import json
import os
import socket
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast

import anyio
import anyio.to_thread
import httpx2
from mcp.client import Transport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, JSONRPCRequest, JSONRPCResponse
from pydantic import ValidationError

from windowpane.certificates import trusted
from windowpane.tools.base import ServerConfig
from windowpane.tools.listing import clean

NOT_SENT = -39001
"""Error code, made here and never by a server: the request did not reach the server, so it cannot have run."""

HTTP_REFUSED = -39002
"""Error code, made here and never by a server: HTTP answered with an error and the protocol did not."""

STDERR_LINES = 8
LINE_CHARACTERS = 400
MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""How long an event of a server over HTTP may be, and an answer that is no stream of events, unpacked."""

_LAST_WORDS_S = 1.0
_CLEAN_IN_THREAD = 20

_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


class TransportState:
    """What was seen of one connection so far."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.reason = ""
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self.garbage = ""
        self.list_notes: list[str] = []

    def end(self, reason: str = "") -> None:
        """Declare the connection lost. The first reason counts."""
        self.reason = self.reason or reason
        self.ended.set()

    @property
    def last_output(self) -> str:
        """Return what the server said that was not the protocol, in a form to put behind a message."""
        said = "".join(f"\n  {line}" for line in self.stderr if line.strip())
        odd = f"; it wrote {self.garbage!r}, which is not MCP, to its standard output" if self.garbage else ""
        return f"{odd}{'; its last output:' if said else ''}{said}"


class Receipt:
    """Tells whether a tool call was handed over to the connection."""

    def __init__(self) -> None:
        self.handed_over = False

    @contextmanager
    def kept(self) -> Generator[None]:
        """Let the calls of this task be noted here."""
        token = _receipt.set(self)
        try:
            yield
        finally:
            _receipt.reset(token)


_receipt: ContextVar[Receipt | None] = ContextVar("_receipt", default=None)


def open_transport(config: ServerConfig, watch: TransportState) -> Transport:
    """Return the way to a server, to be entered by the client."""
    return _watched(config, watch)


@asynccontextmanager
async def _watched(config: ServerConfig, watch: TransportState) -> AsyncGenerator[Streams, None]:
    opened = _http(config) if config.url is not None else _stdio(config, watch)
    async with opened as (read, write):
        yield _WatchedRead(read, watch), _WatchedWrite(write)


@asynccontextmanager
async def _stdio(config: ServerConfig, watch: TransportState) -> AsyncGenerator[Streams, None]:
    parameters = StdioServerParameters(
        command=config.command or "",
        args=list(config.args),
        env=dict(config.env),
        cwd=config.cwd,
        # A byte that is not UTF-8 is garbage like any other and must not end the connection.
        encoding_error_handler="replace",
    )
    read_end, write_end = os.pipe()
    silent = anyio.Event()
    try:
        with os.fdopen(write_end, "w") as errlog:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_follow, read_end, watch, silent)
                try:
                    async with stdio_client(parameters, errlog) as streams:
                        errlog.close()
                        yield streams
                finally:
                    errlog.close()
                    with anyio.move_on_after(_LAST_WORDS_S, shield=True):
                        await silent.wait()
                    tasks.cancel_scope.cancel()
    finally:
        os.close(read_end)


async def _follow(read_end: int, watch: TransportState, silent: anyio.Event) -> None:
    """Keep the last lines of a pipe, reading on so that the writer is never held up."""
    os.set_blocking(read_end, False)
    line = b""
    while True:
        await anyio.wait_readable(read_end)
        data = os.read(read_end, 65536)
        *lines, line = (line + data).split(b"\n")
        line = line[-LINE_CHARACTERS:]
        watch.stderr.extend(_printable(done) for done in lines)
        if not data:
            break
    if line:
        watch.stderr.append(_printable(line))
    silent.set()


def _printable(line: bytes) -> str:
    return line[:LINE_CHARACTERS].decode("utf-8", "replace").rstrip()


@asynccontextmanager
async def _http(config: ServerConfig) -> AsyncGenerator[Streams, None]:
    # A caller that waits for an answer has its own deadline, and a subscription waits for as long as it takes.
    timeout = httpx2.Timeout(30.0, read=None)
    async with (
        _PlainSpokenClient(headers=dict(config.headers), timeout=timeout, verify=trusted()) as client,
        streamable_http_client(config.url or "", http_client=client, max_sse_event_size=MAX_ANSWER_BYTES) as streams,
    ):
        yield streams


class _PlainSpokenClient(httpx2.AsyncClient):
    """Says in the words of the protocol what went wrong below it, to the one request that it concerns.

    Left alone, a refused connection would tear down every call under way, and a 401 would read like any other error.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            if request.method != "POST":
                raise
            code = NOT_SENT if isinstance(error, _NEVER_SENT) else CONNECTION_CLOSED
            return _spoken(request, HTTPStatus.BAD_GATEWAY, code, f"{_place(request.url)}: {_cause(error)}")
        streamed = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if request.method != "POST" or response.is_redirect or (streamed and response.is_success):
            return response
        try:
            response = await _whole(response)
        except (httpx2.TransportError, httpx2.DecodingError, _AnswerTooLongError) as error:
            await response.aclose()
            return _spoken(
                request, HTTPStatus.BAD_GATEWAY, CONNECTION_CLOSED, f"{_place(request.url)}: {_cause(error)}"
            )
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return response
        status = f"HTTP {response.status_code} {response.reason_phrase}".strip()
        if response.status_code == HTTPStatus.NOT_FOUND and "mcp-session-id" in request.headers:
            return _spoken(request, response.status_code, NOT_SENT, f"{status}: the server has forgotten this session")
        if _speaks_protocol(response.content):
            return response
        return _spoken(request, response.status_code, HTTP_REFUSED, f"{_place(request.url)} answered {status}")


class _AnswerTooLongError(Exception):
    def __init__(self) -> None:
        super().__init__(f"the answer is longer than {MAX_ANSWER_BYTES // 1024**2} MB")


async def _whole(response: httpx2.Response) -> httpx2.Response:
    """Return an answer with its body, as far as it may be long. A server that never ends it fills no memory."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise _AnswerTooLongError
    await response.aclose()
    headers = [pair for pair in response.headers.multi_items() if pair[0] not in _OF_THE_WIRE]
    return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=response.request)


_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")


def _spoken(request: httpx2.Request, status: int, code: int, message: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=body, request=request)


def _speaks_protocol(body: bytes) -> bool:
    try:
        answer: object = json.loads(body)
    except ValueError:
        return False
    return isinstance(answer, dict) and "jsonrpc" in answer


def _place(url: httpx2.URL) -> str:
    """Return a URL without what may be secret in it."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


def _cause(error: BaseException) -> str:
    """Return the reason that the operating system gave, or else the library's."""
    deepest: BaseException | None = error
    found = ""
    while deepest is not None:
        if isinstance(deepest, OSError) and deepest.errno:
            found = deepest.strerror if isinstance(deepest, socket.gaierror) else os.strerror(deepest.errno)
        nested = cast("BaseExceptionGroup[BaseException]", deepest).exceptions if _is_group(deepest) else ()
        deepest = nested[0] if nested else deepest.__cause__ or deepest.__context__
    return found or str(error) or type(error).__name__


def _is_group(error: BaseException) -> bool:
    return isinstance(error, BaseExceptionGroup)


class _WatchedRead:
    """A stream of incoming messages that tells the watch about its end, garbage, and lists of tools."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], watch: TransportState) -> None:
        self._inner = inner
        self._watch = watch

    @property
    def last_context(self) -> object:
        """Return the sender's context, for which the library looks by this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._watch.end()
            raise
        if isinstance(item, Exception):
            self._watch.garbage = self._watch.garbage or _garbage(item)
        elif isinstance(item.message, JSONRPCResponse):
            await self._clean_listing(item.message)
        return item

    async def _clean_listing(self, message: JSONRPCResponse) -> None:
        entries: object = message.result.get("tools")
        if not isinstance(entries, list):
            return
        tools = cast("list[object]", entries)
        if len(tools) < _CLEAN_IN_THREAD:
            message.result["tools"], notes = clean(tools)
        else:
            message.result["tools"], notes = await anyio.to_thread.run_sync(clean, tools)
        self._watch.list_notes.extend(notes)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class _WatchedWrite:
    """A stream of outgoing messages that notes on its receipt when a tool call was handed over."""

    def __init__(self, inner: WriteStream[SessionMessage]) -> None:
        self._inner = inner

    async def send(self, item: SessionMessage, /) -> None:
        await self._inner.send(item)
        receipt = _receipt.get()
        if receipt is not None and isinstance(item.message, JSONRPCRequest) and item.message.method == "tools/call":
            receipt.handed_over = True

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


def _garbage(error: Exception) -> str:
    """Return the line that could not be read, from the validation error that holds it."""
    line: object = error.errors()[0]["input"] if isinstance(error, ValidationError) else error
    return str(line)[:LINE_CHARACTERS]
