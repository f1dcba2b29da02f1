"""Limits: how large a body may be, kept while it is read, and how many requests one caller may send.

A caller is a token, or, without one, an address. Each may send a minute's worth of requests at once and is refilled
steadily. Every worker counts for itself.
"""

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

import anyio
from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane.errors import TooManyRequestsError
from windowpane.server.dependencies import known_caller_of
from windowpane.server.problems import problem_of, response_of

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_VALUES = 125_000
"""How many values the JSON of a body may hold: numbers, texts, lists and objects. Each takes memory and time.

To read a body as a class cannot be interrupted, in a thread either, and of all values objects take longest."""

OF_AN_OBJECT = 3
"""How many values an object counts for."""

MORE_VALUES = 1_500_000
LARGER = {"/api/sessions/import": 16, "/api/otlp/v1/traces": 8}
"""How many times larger than others a body may be that is sent to these paths. It may hold more values, too."""

MOST_TOKENS = {"/v1/embeddings": 300_000}
"""The paths whose bodies may be long lists of numbers, and how long, as OpenAI has it."""

UNPACKED = frozenset({"/api/otlp/v1/traces"})
"""The paths whose routes unpack compressed bodies, and count their values then. No other route heeds the encoding."""

WITHOUT_TOKEN = {"/api/login": 4096}
"""The paths that take a body from callers without a token, and how many bytes of it."""

WITH_FILES = re.compile(
    r"/api/sessions/[^/]+/(messages|preview|references)|/api/agents/[^/]+/ag-ui"
    r"|/v1/(chat/completions|responses)|/anthropic/v1/messages(/count_tokens)?"
)
"""The paths that files may be sent to, in base64: they may take that much more."""

READ_ON_BYTES = 64 * 1024 * 1024
READ_ON_S = 5.0
MAX_CALLERS = 10_000
"""How many callers are remembered; who was longest not heard of is forgotten first, with a full allowance."""


class BodyLimit:
    """Ends a request whose body is too large, or holds too many values. A stranger's body is not read at all."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES, files_bytes: int = 0) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._files_bytes = files_bytes * 4 // 3

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with a body that cannot grow beyond the limit."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        stranger = known_caller_of(HTTPConnection(scope)) is None and scope["path"] not in WITHOUT_TOKEN
        return await self._app(scope, _nothing_of(receive) if stranger else self._limited(scope, receive), send)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        headers, path = Headers(scope=scope), scope["path"]
        declared = headers.get("content-length", "")
        max_bytes = min(self._max_bytes, WITHOUT_TOKEN.get(path, self._max_bytes)) * LARGER.get(path, 1)
        with_files = bool(self._files_bytes) and WITH_FILES.fullmatch(path) is not None
        max_bytes += self._files_bytes if with_files else 0
        more = "; WINDOWPANE_ATTACHMENT_BYTES sets how much files may take" if with_files else ""
        max_values = MORE_VALUES if path in LARGER else MOST_TOKENS.get(path, MAX_VALUES)
        # Without a type it is read as JSON.
        written = "json" in headers.get("content-type", "json").lower()
        packed = path in UNPACKED and "content-encoding" in headers
        values = JsonValues() if written and not packed else None
        read = 0

        async def limited() -> Message:
            nonlocal read
            message = await receive()
            chunk: bytes = message.get("body", b"")
            read += len(chunk)
            if read > max_bytes or (declared.isdecimal() and int(declared) > max_bytes):
                await _read_on(receive, message)
                raise HTTPException(413, f"the body is larger than {max_bytes:,} bytes{more}")
            if values is not None and values.add(chunk) > max_values:
                await _read_on(receive, message)
                raise HTTPException(413, f"the body holds more than {max_values:,} values")
            return message

        return limited


def values_of(body: bytes) -> float:
    """Return how many values a JSON text holds, give or take a few."""
    return JsonValues().add(body)


class JsonValues:
    """Counts the values of a JSON text while it arrives, without reading it: a tenth of a second for 100 MB.

    What stands between quotes is passed over. A text that is not UTF-8 cannot be looked at this way. It has a byte that
    JSON never has, and counts as having any number of values.
    """

    def __init__(self) -> None:
        self._count = 0
        self._quoted = False
        self._rest = b""

    def add(self, chunk: bytes) -> float:
        """Return how many values there are so far, give or take a few."""
        if b"\0" in chunk:
            return math.inf
        text = self._rest + chunk
        # A backslash at the end belongs to what comes next.
        loose = (len(text) - len(text.rstrip(b"\\"))) % 2
        self._rest = text[len(text) - loose :]
        parts = text[: len(text) - loose].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        plain = b"".join(parts[int(self._quoted) :: 2])
        self._quoted ^= len(parts) % 2 == 0
        self._count += plain.count(b",") + plain.count(b"[") + OF_AN_OBJECT * plain.count(b"{")
        return self._count


def _nothing_of(receive: Receive) -> Receive:
    """Return what gives an empty body: it is thrown away as it arrives."""

    async def nothing() -> Message:
        message = await receive()
        if message["type"] != "http.request":
            return message
        await _read_on(receive, message)
        return {"type": "http.request", "body": b"", "more_body": False}

    return nothing


async def _read_on(receive: Receive, message: Message) -> None:
    """Throw the rest of a body away, up to a point: a client that is still sending would not see the answer."""
    seen = 0
    with anyio.move_on_after(READ_ON_S):
        while message.get("more_body") and seen < READ_ON_BYTES:
            message = await receive()
            seen += len(message.get("body", b""))


class Allowance:
    """How many more requests each caller may send now."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Use one request up and return 0, or return how many seconds there is to wait for one."""
        now = self._clock()
        left, at = self._left.pop(caller, (float(self._per_minute), now))
        left = min(float(self._per_minute), left + (now - at) * self._per_minute / 60)
        wait_s = 0.0 if left >= 1 else (1 - left) * 60 / self._per_minute
        self._left[caller] = (left if wait_s else left - 1, now)
        if len(self._left) > MAX_CALLERS:
            self._left.popitem(last=False)
        return wait_s


class RateLimit:
    """Refuses requests of a caller that sends too many."""

    def __init__(self, app: ASGIApp, per_minute: int) -> None:
        self._app = app
        self._allowance = Allowance(per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say how long to wait."""
        wait_s = self._allowance.take(_sender(scope)) if scope["type"] in ("http", "websocket") else 0
        if not wait_s:
            return await self._app(scope, receive, send)
        refusal = TooManyRequestsError(math.ceil(wait_s))
        headers = {"Retry-After": str(refusal.retry_after_s)}
        return await response_of(problem_of(refusal), headers)(scope, receive, send)


def _sender(scope: Scope) -> str:
    connection = HTTPConnection(scope)
    caller = known_caller_of(connection)
    if caller is not None and caller.token is not None:
        return f"token {caller.token}"
    return f"address {connection.client.host if connection.client else ''}"
