"""HTTP on one connection, with limits: how long a head may be, and how long a client may take to send a request.

uvicorn has neither limit on this parser: a head of 20 MB is taken, and a body that stops half-way is held for ever.
"""

import asyncio
import math
from typing import Any, Literal

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

MAX_HEAD_BYTES = 64 * 1024
"""How long the request line and all headers may be together."""

HEAD_S = 30.0
"""How long a client may take to send a head, from the first byte or from when it connected."""

BODY_IDLE_S = 30.0
"""How long a body may pause."""

BODY_S = 600.0
"""How long a whole body may take."""

_TOO_LONG = (431, "Request Header Fields Too Large", f"the request line and headers exceed {MAX_HEAD_BYTES:,} bytes")
_TWO_HOSTS = (400, "Bad Request", "the request has more than one Host header")
_TOO_SLOW = (408, "Request Timeout", "the request was not sent in time")


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which ends a connection whose request is too long or too slow."""

    head_s = HEAD_S
    body_idle_s = BODY_IDLE_S
    body_s = BODY_S

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_bytes = 0
        self._receiving: Literal["nothing", "head", "body"] = "nothing"
        self._timer: asyncio.TimerHandle | None = None
        self._body_ends_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn types it
        """Give the client time for its first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer with the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrived, unless it makes the head too long."""
        if self.transport.is_closing():
            return
        before = self._receiving
        super().data_received(data)
        if before == self._receiving == "head":
            # A header that is not complete yet is known to the parser alone, so all that arrived is counted.
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(*_TOO_LONG)
        elif before == self._receiving == "body":
            self._await_body()

    def on_message_begin(self) -> None:
        """Begin to count a head."""
        self._receiving, self._head_bytes = "head", 0
        self._await_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin the request, or refuse it before anything of the app sees it."""
        self._receiving = "body"
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refuse(*_TOO_LONG)
            return
        if sum(name == b"host" for name, _ in self.headers) > 1:
            # A proxy may have checked another one than this server would.
            self._refuse(*_TWO_HOSTS)
            return
        self._body_ends_at = self.loop.time() + self.body_s
        super().on_headers_complete()
        self._await_body()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body, unless its request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop waiting: the request is here."""
        self._stop_timer()
        self._receiving = "nothing"
        if not self.transport.is_closing():
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection on. Sockets have limits of their own."""
        self._stop_timer()
        if not self.transport.is_closing():
            super().handle_websocket_upgrade()

    def _await_head(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self.head_s, self._too_slow)

    def _await_body(self) -> None:
        self._stop_timer()
        left = max(0.0, self._body_ends_at - self.loop.time())
        self._timer = self.loop.call_later(min(self.body_idle_s, left), self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._receiving == "body" and self.flow.read_paused:
            # While the app does not read, the client cannot send.
            self._await_body()
        elif self._receiving == "body" and self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(*_TOO_SLOW)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: int, title: str, detail: str) -> None:
        self._stop_timer()
        body = detail.encode()
        head = (
            f"HTTP/1.1 {status} {title}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()


MAX_SOCKET_MESSAGE_BYTES = 4096
PASSED_ON = "/xray/"
MAX_PASSED_MESSAGE_BYTES = 64 * 1024 * 1024
"""Sockets below this path are passed on to a provider, and their messages are whole requests."""


SOCKET_BYTES = 16 * 1024
SOCKET_BYTES_PER_S = 1024
"""What a client may send on a socket at once, and steadily. Clients of ours send pings and nothing else there."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol for sockets, for clients that mean no good.

    uvicorn takes a refusal for the end of a handshake, and logs it as an error. It also answers every ping of a client
    that reads nothing, and keeps all those answers.
    """

    _owed = b""

    async def send(self, message: ASGISendEvent) -> None:
        """Send what the app says."""
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def handle_ping(self) -> None:
        """Answer a ping, or, while the client does not read, only the last one, once it does."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            *_, self._owed = (self._owed, *self.conn.data_to_send())

    def resume_writing(self) -> None:
        """Answer the last ping first."""
        super().resume_writing()
        owed, self._owed = self._owed, b""
        if owed:
            self.transport.write(owed)


class LimitedSocketProtocol(SocketProtocol):
    """A protocol for sockets with limits by path: how long a message may be, and how much may be sent."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._most = self._left = float(SOCKET_BYTES)
        self._counted_at = self.loop.time()

    def handle_connect(self, event: Request) -> None:
        """Begin a socket."""
        if event.path.startswith(PASSED_ON):
            self.conn.max_message_size = MAX_PASSED_MESSAGE_BYTES
            self._most = self._left = math.inf
        super().handle_connect(event)

    def data_received(self, data: bytes) -> None:
        """Take what arrived, or end the connection: to read a hundred thousand frames holds up everything else."""
        if self.handshake_initiated and self._spend(len(data)) < 0:
            self.transport.abort()
        else:
            super().data_received(data)

    def _spend(self, size: int) -> float:
        now = self.loop.time()
        refilled = self._left + (now - self._counted_at) * SOCKET_BYTES_PER_S
        self._left, self._counted_at = min(self._most, refilled) - size, now
        return self._left


SERVER: dict[str, Any] = {
    "http": LimitedProtocol,
    "ws": LimitedSocketProtocol,
    # Clients send nothing on a socket, and to compress for each listener costs more than it saves.
    "ws_max_size": MAX_SOCKET_MESSAGE_BYTES,
    "ws_per_message_deflate": False,
    "log_config": None,
    "access_log": False,
    "server_header": False,
    # The app sets it, because what is passed on from another server has one.
    "date_header": False,
}
"""How every server process is set up."""
