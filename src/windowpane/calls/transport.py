"""The place where the bytes are: a transport that keeps each request and looks at each answer as it passes.

What is sent is not touched, and what comes back is recorded as it came. A request is stored while the provider works;
its answer is handed on once that is done. An answer that takes more memory than any model's is broken off. A redirect
is followed on the same server alone, with the same body, as a call of its own.
"""

import time
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import httpx2

from windowpane.calls.answer import AnswerFacts, WireAnswer
from windowpane.calls.recorder import CallRecorder, current_recorder
from windowpane.calls.unreported import WithUsage, may_lack_usage
from windowpane.certificates import trusted
from windowpane.context.calls import CallOutcome, WireHead
from windowpane.context.events import CallEnded
from windowpane.telemetry import current_model_call, trace_headers
from windowpane.text.redact import redacted, redacted_header, without_password

LEFT_OUT = frozenset(("content-length", "traceparent", "tracestate"))
"""Headers that change with every call. The length of the body is kept beside it."""

MOST_ANSWER_BYTES = 64 * 1024 * 1024
MOST_LINE_BYTES = 16 * 1024 * 1024
"""How long an answer can be, and a line of it. Clients keep a line until it ends."""


MOST_REDIRECTS = 3
"""How often a server may send a request on."""


class AnswerNotTakenError(httpx2.RequestError):
    """An answer that is not passed on to the provider's client."""


class AnswerTooLongError(AnswerNotTakenError):
    """A provider's answer, or a line of it, is longer than it may be."""

    def __init__(self, what: str, most_bytes: int) -> None:
        super().__init__(f"{what} is longer than {most_bytes // 1024**2} MB")


class RedirectedError(AnswerNotTakenError):
    """A server sends the caller to another address. A key goes to the address that was set, and to no other."""

    def __init__(self, response: httpx2.Response) -> None:
        location = redacted(without_password(response.headers["location"]))
        super().__init__(f"it redirects to {location} (status {response.status_code})")


class Routes(httpx2.AsyncClient):
    """A client that is used only for its choice of transport, which follows the environment's proxies."""

    def __init__(self, **options: Any) -> None:
        super().__init__(verify=trusted(), **options)

    def transport_for(self, url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        """Return what carries a request to this address."""
        return self._transport_for_url(url)


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Carries requests and lets the current recorder keep them."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, and again where its server sends it on."""
        for _ in range(MOST_REDIRECTS):
            response = await self._carried(request)
            onward = await _onward(request, response)
            if onward is None:
                break
            await response.aclose()
            request = onward
        else:
            response = await self._carried(request)
        if response.has_redirect_location:
            await response.aclose()
            raise RedirectedError(response)
        return response

    async def _carried(self, request: httpx2.Request) -> httpx2.Response:
        transport = self._routes.transport_for(request.url)
        recorder = current_recorder()
        call = _Call(recorder) if recorder else None
        response = await (call.send(transport, request) if call else transport.handle_async_request(request))
        if isinstance(response.stream, httpx2.AsyncByteStream):
            bounded = _Bounded(response.stream)
            response.stream = _Watched(bounded, call) if call else bounded
            response = _unpacked(response, call)
            if isinstance(response.stream, httpx2.AsyncByteStream) and may_lack_usage(request):
                response.stream = WithUsage(response.stream)
        if response.has_redirect_location and call:
            call.end("error")
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        await self._routes.aclose()


async def _onward(request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | None:
    """Return the request that a server sends on to another of its paths; None when there is nothing to follow."""
    if response.status_code not in (307, 308) or not response.has_redirect_location:
        return None
    try:
        url = request.url.join(response.headers["location"])
    except httpx2.InvalidURL:
        return None
    if _server(url) != _server(request.url):
        return None
    body = await request.aread()
    return httpx2.Request(request.method, url, headers=request.headers, content=body, extensions=request.extensions)


def _server(url: httpx2.URL) -> tuple[str, str, int | None, bytes]:
    return url.scheme, url.host, url.port, url.userinfo


class _Call:
    """One call on its way."""

    def __init__(self, recorder: CallRecorder) -> None:
        self._recorder = recorder
        self._measured = current_model_call()
        self._id = ""
        self._address = ""
        self._started = time.monotonic()
        self._status: int | None = None
        self._first_byte_ms: int | None = None
        self._answer: WireAnswer | None = None
        self._over = False
        # A client that meets an error may let go of an answer without closing it.
        recorder.watch(self.stop_reading)

    async def send(self, transport: httpx2.AsyncBaseTransport, request: httpx2.Request) -> httpx2.Response:
        """Send the request and store it meanwhile; return when both are done."""
        body = await request.aread()
        for name, value in trace_headers().items():
            request.headers.setdefault(name, value)
        head = _head(request)
        self._address = head.url
        came: list[httpx2.Response | httpx2.HTTPError] = []

        async def carry() -> None:
            try:
                came.append(await transport.handle_async_request(request))
            except httpx2.HTTPError as error:
                came.append(error)

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(carry)
                # It is on its way: its record is kept also when it is given up at this moment.
                with anyio.CancelScope(shield=True):
                    self._id = await self._recorder.sent(head, body)
            # A group whose last task was given up ends as if nothing had happened.
            await anyio.lowlevel.checkpoint_if_cancelled()
        except anyio.get_cancelled_exc_class():
            self.end("cut", "given up before the answer came")
            with anyio.CancelScope(shield=True):
                for answer in came:
                    if isinstance(answer, httpx2.Response):
                        await answer.aclose()
            raise
        response = came[0]
        if isinstance(response, httpx2.HTTPError):
            self.end("error", _said(response))
            raise response
        self._status = response.status_code
        self._first_byte_ms = self._since()
        self._answer = WireAnswer(response.headers)
        return response

    def take(self, chunk: bytes) -> None:
        """Look at a few more bytes of the answer."""
        if self._answer is not None:
            self._answer.take(chunk)

    def stop_reading(self) -> None:
        """Note that nothing more is read of the answer, if it has not ended."""
        self.end("cut", "the client stopped reading")

    def end(self, outcome: CallOutcome, reason: str = "") -> None:
        """Note the end of the call, once."""
        if self._over:
            return
        self._over = True
        facts = self._answer.read() if self._answer is not None else AnswerFacts()
        if self._status is not None and self._status >= 300:
            outcome, reason = "error", reason or f"status {self._status}"
        else:
            outcome, reason = facts.outcome(outcome, reason)
        if facts.usage is not None and self._measured is not None:
            self._measured.note_usage(facts.usage, output_told=facts.output_told)
        self._recorder.ended(
            CallEnded(
                id=self._id,
                address=self._address,
                outcome=outcome,
                status=self._status,
                first_byte_ms=self._first_byte_ms,
                duration_ms=self._since(),
                usage=facts.usage,
                output_unknown=outcome == "complete" and facts.usage is not None and not facts.output_told,
                reason=reason,
            )
        )

    def _since(self) -> int:
        return round((time.monotonic() - self._started) * 1000)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, as many as it may have."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _bounded(self._stream)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bounded(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    answer = line = 0
    async for chunk in chunks:
        answer += len(chunk)
        newline = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        line = line + len(chunk) if newline < 0 else len(chunk) - newline - 1
        if line > MOST_LINE_BYTES:
            raise AnswerTooLongError("a line of the answer", MOST_LINE_BYTES)
        if answer > MOST_ANSWER_BYTES:
            raise AnswerTooLongError("the answer", MOST_ANSWER_BYTES)
        yield chunk


def _unpacked(response: httpx2.Response, call: _Call | None) -> httpx2.Response:
    """Return an answer that is not compressed any more, so that what it unpacks to is bounded as well."""
    if response.headers.get("content-encoding", "identity") == "identity":
        return response
    kept = [pair for pair in response.headers.multi_items() if pair[0] not in ("content-encoding", "content-length")]
    stream = _Unpacked(response, call)
    return httpx2.Response(response.status_code, headers=kept, stream=stream, extensions=response.extensions)


class _Unpacked(httpx2.AsyncByteStream):
    """The bytes of a compressed answer as they were, as many as it may have."""

    def __init__(self, packed: httpx2.Response, call: _Call | None) -> None:
        self._packed = packed
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in _bounded(self._packed.aiter_bytes()):
                yield chunk
        except AnswerTooLongError as error:
            if self._call:
                self._call.end("cut", _said(error))
            raise

    async def aclose(self) -> None:
        await self._packed.aclose()


class _Watched(httpx2.AsyncByteStream):
    """The bytes of an answer on their way through."""

    def __init__(self, stream: httpx2.AsyncByteStream, call: _Call) -> None:
        self._stream = stream
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._call.take(chunk)
                yield chunk
        except httpx2.HTTPError as error:
            self._call.end("cut", _said(error))
            raise
        self._call.end("complete")

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._call.stop_reading()


def _head(request: httpx2.Request) -> WireHead:
    headers = tuple(
        (name, redacted_header(name, value)) for name, value in request.headers.multi_items() if name not in LEFT_OUT
    )
    return WireHead(method=request.method, url=redacted(without_password(str(request.url))), headers=headers)


def _said(error: httpx2.HTTPError) -> str:
    return f"{type(error).__name__}: {redacted(str(error))}".removesuffix(": ")
