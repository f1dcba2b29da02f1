"""Requests that are too long or too slow, on raw sockets against a real server."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from forked import forked
from patience import PATIENCE_S
from server.serving import serve_with_token
from windowpane.server.process.workers import SERVER
from windowpane.serving.logs import REPEATS, REPEATS_WITHIN_S, Throttle
from windowpane.serving.protocol import MAX_HEAD_BYTES, LimitedProtocol
from windowpane.serving.sockets import listening


class Impatient(LimitedProtocol):
    head_s = 0.4
    body_idle_s = 0.4
    body_s = 1.2


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


async def listen(socket: WebSocket) -> None:
    await socket.accept()
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


@contextmanager
def served(protocol: type[LimitedProtocol]) -> Generator[tuple[str, int]]:
    sockets = [WebSocketRoute(path, listen) for path in ("/events", "/xray/live")]
    app = Starlette(routes=[Route("/", echo, methods=["GET", "POST"]), *sockets])
    with listening("127.0.0.1", 0) as listener:
        options: dict[str, Any] = {**SERVER, "http": protocol}
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[:2]
        finally:
            server.should_exit = True
            thread.join()


def told(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send these parts, and return all that the server says until it hangs up."""
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        heard = b""
        try:
            while chunk := connection.recv(65536):
                heard += chunk
        except ConnectionResetError:
            pass
        return heard


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"


LONG: dict[str, list[bytes]] = {
    "one header": [HEAD + b"X: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n"],
    "a header without an end": [HEAD + b"X: ", *[b"x" * 16384] * 300],
    "many headers": [HEAD, *[b"X-%d: 1\r\n" % n for n in range(10_000)], b"\r\n"],
    "the address": [b"GET /" + b"x" * MAX_HEAD_BYTES + b" HTTP/1.1\r\nHost: a\r\n\r\n"],
}


@pytest.mark.parametrize("what", LONG)
def test_a_head_that_is_too_long_is_refused(what: str) -> None:
    with served(LimitedProtocol) as address:
        heard = told(address, *LONG[what])
        fine = told(address, HEAD + b"X: " + b"x" * 8000 + b"\r\nContent-Length: 3\r\n\r\nabc")

    # Where the server hangs up while the client still sends, the client may not see why.
    assert heard[:12] in (b"HTTP/1.1 431", b"")
    assert fine.endswith(b"\r\n\r\n3")


def test_a_request_to_two_hosts_is_refused() -> None:
    with served(LimitedProtocol) as address:
        heard = told(address, HEAD + b"host: b\r\nContent-Length: 3\r\n\r\nabc")

    assert heard.startswith(b"HTTP/1.1 400")
    assert heard.endswith(b"the request has more than one Host header")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b"HTTP/1.1 408"),
        (b"POST / HT", b"HTTP/1.1 408"),
        (HEAD, b"HTTP/1.1 408"),
        (HEAD + b"Content-Length: 10\r\n\r\nabc", b"HTTP/1.1 408"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", b"HTTP/1.1 408"),
    ],
    ids=["nothing", "half a line", "half a head", "half a body", "half a chunk"],
)
def test_a_request_that_stops_half_way_is_not_held_for_ever(sent: bytes, status: bytes) -> None:
    with served(Impatient) as address:
        heard = told(address, sent)

    assert heard[:12] == status


def test_a_slow_body_that_goes_on_arrives_and_one_that_never_ends_does_not() -> None:
    with served(Impatient) as address, socket.create_connection(address, timeout=PATIENCE_S) as connection:
        connection.sendall(HEAD + b"Content-Length: 3\r\n\r\n")
        for byte in (b"a", b"b", b"c"):
            connection.sendall(byte)
        whole = connection.recv(65536)
        with socket.create_connection(address, timeout=PATIENCE_S) as endless:
            endless.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            endless.settimeout(0.1)
            heard = b""
            while not heard:
                try:
                    endless.sendall(b"1\r\na\r\n")
                    heard = endless.recv(65536)
                except TimeoutError:
                    continue

    assert whole.startswith(b"HTTP/1.1 200")
    assert heard.startswith(b"HTTP/1.1 408")


UPGRADE = (
    "GET {} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n"
)
PING, CLOSE = b"\x89\xfd" + bytes(129), b"\x88\x80" + bytes(4)
TINY, NOTHING = b"\x81\x81" + bytes(5), b"\x00\x80" + bytes(4)


@pytest.mark.parametrize("frame", [TINY, PING, NOTHING], ids=["messages", "pings", "parts of a message"])
def test_a_client_that_floods_a_socket_is_cut_off(frame: bytes) -> None:
    with served(LimitedProtocol) as address, socket.create_connection(address, timeout=PATIENCE_S) as connection:
        connection.sendall(UPGRADE.format("/events").encode())
        greeted = connection.recv(65536)[:12]
        connection.sendall(b"\x01\x80" + bytes(4) if frame is NOTHING else b"")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            connection.sendall(frame * (2**24 // len(frame)))
        others = told(address, HEAD + b"Content-Length: 3\r\n\r\nabc")

    assert greeted == b"HTTP/1.1 101"
    assert others.endswith(b"\r\n\r\n3")


def test_pings_of_a_client_that_does_not_read_are_not_all_kept() -> None:
    pings = 200_000
    with served(LimitedProtocol) as address, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect(address)
        connection.sendall(UPGRADE.format("/xray/live").encode())
        connection.recv(65536)
        for _ in range(pings // 1000):
            connection.sendall(PING * 1000)
        connection.sendall(CLOSE)
        answered = heard_out(connection).count(b"\x8a\x7d")

    assert 0 < answered < pings // 2


def heard_out(connection: socket.socket) -> bytes:
    heard = bytearray()
    while chunk := connection.recv(2**20):
        heard += chunk
    return bytes(heard)


def test_a_socket_shows_its_token_and_no_log_has_it_at_any_level(tmp_path: Path) -> None:
    with forked(serve_with_token, tmp_path, log=tmp_path / "log") as running:
        address, token = running.said.split()
        url = f"{address.replace('http', 'ws')}/api/sessions"
        connect(f"{url}/ses_none/events", additional_headers={"Authorization": f"Bearer {token}"}).close()
        head = f"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        answered = told(_place(address), head.encode())

    assert answered.startswith(b"HTTP/1.1 200")
    log = (tmp_path / "log").read_text()
    assert "http.request" in log
    assert token not in log
    assert token.split("_", 2)[2] not in log


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("http://").partition(":")
    return host, int(port)


def test_what_a_library_repeats_is_logged_a_few_times_and_then_counted() -> None:
    now = 0.0
    throttle = Throttle(lambda: now)

    def log(message: str) -> str | None:
        record = logging.LogRecord("asyncio", logging.ERROR, "", 0, message, (), None)
        return record.getMessage() if throttle.filter(record) else None

    first = [log("socket.accept() out of system resource") for _ in range(2048)]
    other = log("something else")
    now = REPEATS_WITHIN_S
    later = log("socket.accept() out of system resource")

    assert [line for line in first if line] == ["socket.accept() out of system resource"] * REPEATS
    assert other == "something else"
    assert later == f"socket.accept() out of system resource ({2048 - REPEATS:,} more like this before)"
