"""Pass a request on and its answer back, unchanged: bytes, headers, status, and the pace of both sides.

Nothing is decompressed, put together or waited for: each chunk is handed on as it arrives, and is read from one side
only when the other has taken the one before. What HTTP requires of a proxy is done: headers that concern a
connection stay with it, and `Host` names the upstream. When the client goes away, so does the call to the upstream;
when the upstream breaks off, so does the answer.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress

import anyio
import httpx2
from starlette.types import Receive, Scope, Send

from windowpane.calls.protocol import kind_of
from windowpane.calls.transport import Routes
from windowpane.context.calls import CallOutcome
from windowpane.remarks import get_logger
from windowpane.text.redact import redacted, redacted_header
from windowpane.xray.tape import Headers, Tape, TapeHead
from windowpane.xray.upstreams import Upstream

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Headers that concern one connection (RFC 9110, 7.6.1)."""

TOKEN_HEADER = b"x-windowpane-token"
"""By this a caller of a shared server shows who it is. It is meant for us and is not passed on."""

HIGHEST_STATUS = 599

LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0)
"""An upstream is given as many connections as the client would open itself."""

log = get_logger()

StartTape = Callable[[TapeHead], Tape]


class ClientGoneError(Exception):
    """The client went away before its request was whole."""


class HttpProxy:
    """Passes HTTP requests on."""

    def __init__(self, start_tape: StartTape) -> None:
        self._start_tape = start_tape
        self._routes = Routes(limits=LIMITS, timeout=None)

    async def aclose(self) -> None:
        """Close every connection to an upstream."""
        await self._routes.aclose()

    async def carry(
        self, upstream: Upstream, target: bytes, owner: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Carry one request. `target` is the path at the upstream, with its query."""
        tape = self._tape(upstream, target, owner, scope)
        exchange = _Exchange(tape, receive, send)
        request = httpx2.Request(
            scope["method"],
            upstream.url,
            headers=_to_upstream(scope["headers"], upstream),
            stream=_Body(exchange),
            extensions={"target": target, "timeout": {}},
        )
        # Two tasks, for a client that goes away while the upstream is silent.
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(exchange.watch, tasks.cancel_scope)
                await self._carry(exchange, upstream, request)
                tasks.cancel_scope.cancel()
        finally:
            # Whatever happened, the call is over; where that is known already, this says nothing.
            exchange.end("cut", "the answer could not be passed on")

    async def _carry(self, exchange: "_Exchange", upstream: Upstream, request: httpx2.Request) -> None:
        try:
            response = await self._routes.transport_for(upstream.url).handle_async_request(request)
        except ClientGoneError:
            exchange.end("cut", "the client went away")
        except httpx2.HTTPError as error:
            await exchange.read_on()
            exchange.end("error", said(error))
            await _unreachable(exchange.send, upstream, error)
        except anyio.get_cancelled_exc_class():
            exchange.end("cut", "the client went away")
            raise
        else:
            if response.status_code > HIGHEST_STATUS:
                error = httpx2.RemoteProtocolError(f"status {response.status_code} is none of HTTP")
                await response.aclose()
                exchange.end("error", said(error))
                await _unreachable(exchange.send, upstream, error)
            else:
                await _answer(exchange, response)

    def _tape(self, upstream: Upstream, target: bytes, owner: str, scope: Scope) -> Tape | None:
        path, _, query = target.decode("latin-1").partition("?")
        kind = kind_of(scope["method"], path)
        if kind is None:
            return None
        shown = f"{upstream.origin}{path}{without_keys(query)}"
        return self._start_tape(
            TapeHead(kind, owner, upstream.provider, scope["method"], shown, _to_upstream(scope["headers"], upstream))
        )


class _Exchange:
    """One request and its answer, on their way."""

    def __init__(self, tape: Tape | None, receive: Receive, send: Send) -> None:
        self.tape = tape
        self.send = send
        self._receive = receive
        self._whole = anyio.Event()

    async def body(self) -> AsyncGenerator[bytes]:
        """Yield the request's body as it arrives.

        Raises:
            ClientGoneError: the client went away in the middle.
        """
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            more = message.get("more_body", False)
            chunk = message.get("body", b"")
            if self.tape is not None:
                self.tape.ask(chunk)
            if chunk:
                yield chunk
        if self.tape is not None:
            self.tape.asked()
        self._whole.set()

    async def read_on(self) -> None:
        """Read what is left of a request that no upstream took, so that it is on record."""
        if not self._whole.is_set():
            with suppress(ClientGoneError):
                async for _ in self.body():
                    pass

    async def watch(self, exchange: anyio.CancelScope) -> None:
        """End the exchange when the client goes away."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        exchange.cancel()

    def end(self, outcome: CallOutcome, reason: str = "") -> None:
        """Note how the exchange ended."""
        if self.tape is not None:
            self.tape.end(outcome, reason)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._exchange.body()


async def _answer(exchange: _Exchange, response: httpx2.Response) -> None:
    tape, send = exchange.tape, exchange.send
    headers = _to_client(response.headers.raw)
    if response.status_code == 304:
        # It may tell the length of what it does not send; a server here would wait for that.
        headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    stream = response.stream
    if not isinstance(stream, httpx2.AsyncByteStream):
        raise TypeError(stream)
    if tape is not None:
        tape.begin(response.status_code, headers)
    try:
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for chunk in stream:
            if tape is not None:
                tape.answer(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except httpx2.HTTPError as error:
        # The answer is left incomplete, and the server breaks the connection off, as the upstream did.
        exchange.end("cut", said(error))
        return
    except anyio.get_cancelled_exc_class():
        exchange.end("cut", "the client went away")
        raise
    finally:
        with anyio.CancelScope(shield=True):
            await stream.aclose()
    exchange.end("complete")
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _unreachable(send: Send, upstream: Upstream, error: httpx2.HTTPError) -> None:
    log.warning("xray.upstream", provider=upstream.provider, why=said(error))
    detail = f"windowpane: no answer from {upstream.origin}: {said(error)}"
    body = json.dumps({"error": {"type": "upstream_error", "message": detail}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 502, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _to_upstream(headers: Headers, upstream: Upstream) -> list[tuple[bytes, bytes]]:
    dropped = HOP_BY_HOP | _connection_names(headers) | {TOKEN_HEADER, b"expect"}
    # Without its length a body is sent in chunks again, by the connection that carries it.
    chunked = any(name == b"transfer-encoding" for name, _ in headers)
    kept = [(name, upstream.host if name == b"host" else value) for name, value in headers if name not in dropped]
    return [*kept, (b"transfer-encoding", b"chunked")] if chunked else kept


def _to_client(headers: Headers) -> list[tuple[bytes, bytes]]:
    dropped = HOP_BY_HOP | _connection_names(headers)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def _connection_names(headers: Headers) -> frozenset[bytes]:
    return frozenset(
        part.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for part in value.split(b",")
        if part.strip()
    )


def without_keys(query: str) -> str:
    """Return a query as it can be kept, with its `?`; empty when there is none."""
    parts = (part.partition("=") for part in query.split("&")) if query else ()
    kept = "&".join(f"{name}{equals}{redacted_header(name, value)}" for name, equals, value in parts)
    return f"?{kept}" if kept else ""


def said(error: Exception) -> str:
    """Return what an error of a connection says, without keys."""
    return f"{type(error).__name__}: {redacted(str(error))}".removesuffix(": ")
