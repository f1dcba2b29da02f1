"""Pass a WebSocket on: what each side says goes to the other as it is, text or bytes, in order.

Codex speaks OpenAI's responses protocol over a socket: it sends a request as one message, and the events of the answer
come back as messages. Each such request is a call.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

import anyio
from starlette.types import Message, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.http11 import Response
from websockets.typing import Subprotocol

from windowpane.calls.protocol import CallKind
from windowpane.remarks import get_logger
from windowpane.xray.proxy import HOP_BY_HOP, TOKEN_HEADER, StartTape, said, without_keys
from windowpane.xray.tape import Headers, Tape, TapeHead
from windowpane.xray.upstreams import Upstream

CREATE = b'"response.create"'
ENDS = (b'"response.completed"', b'"response.incomplete"', b'"response.failed"', b'"type":"error"', b'"type": "error"')
LOOKED_AT = 200
"""How many bytes at the beginning of a message tell what it is."""

OPEN_TIMEOUT_S = 60.0
"""How long an upstream may take to open a socket."""

log = get_logger()


class SocketProxy:
    """Passes WebSockets on."""

    def __init__(self, start_tape: StartTape) -> None:
        self._start_tape = start_tape

    async def carry(
        self, upstream: Upstream, target: bytes, owner: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Carry one socket until either side closes it."""
        await receive()
        scheme = "wss" if upstream.url.scheme == "https" else "ws"
        path = target.decode("latin-1")
        url = f"{scheme}://{upstream.host.decode('ascii')}{path}"
        headers = _to_upstream(scope["headers"])
        try:
            there = await _Connect(
                url,
                additional_headers=headers,
                user_agent_header=None,
                subprotocols=[Subprotocol(name) for name in scope.get("subprotocols", ())] or None,
                max_size=None,
                open_timeout=OPEN_TIMEOUT_S,
                ping_interval=None,
            )
        except InvalidStatus as error:
            answer = error.response
            await _refused(send, answer.status_code, answer.headers.raw_items(), bytes(answer.body))
            return
        except (OSError, InvalidHandshake) as error:
            log.warning("xray.upstream", provider=upstream.provider, why=said(error))
            await _refused(send, 502, [], f"windowpane: no answer from {upstream.origin}: {said(error)}".encode())
            return
        plain, _, query = path.partition("?")
        head = TapeHead(
            CallKind("openai-responses"),
            owner,
            upstream.provider,
            "WEBSOCKET",
            f"{upstream.origin}{plain}{without_keys(query)}",
            [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        )
        async with there:
            await send(
                {"type": "websocket.accept", "subprotocol": there.subprotocol, "headers": _accepted(there.response)}
            )
            await _relay(there, _SocketCalls(head, self._start_tape), receive, send)


class _Connect(connect):
    """Opens a socket at the address that it is given and at no other: a redirect is the client's to follow."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def _relay(there: ClientConnection, calls: "_SocketCalls", receive: Receive, send: Send) -> None:
    left: Message | None = None
    async with anyio.create_task_group() as tasks:

        async def from_client() -> None:
            nonlocal left
            while (message := await receive())["type"] == "websocket.receive":
                text: str | None = message.get("text")
                content: str | bytes = message["bytes"] if text is None else text
                calls.asked(content)
                try:
                    await there.send(content)
                except ConnectionClosed:
                    # The other direction hands on what came before, and then says so.
                    return
            left = message
            tasks.cancel_scope.cancel()

        tasks.start_soon(from_client)
        # OSError: the client has gone.
        with suppress(ConnectionClosed, OSError):
            async for message in there:
                calls.answered(message)
                key = "text" if isinstance(message, str) else "bytes"
                await send({"type": "websocket.send", key: message})
        tasks.cancel_scope.cancel()
    calls.closed()
    if left is not None:
        await _end_upstream(there, left)
    else:
        await _end_client(there, send)


async def _end_upstream(there: ClientConnection, left: Message) -> None:
    """End the socket to the upstream as the client ended its own."""
    if "reason" in left:
        await there.close(_code(left["code"]), left["reason"] or "")
    else:
        # It went without a word.
        there.transport.abort()


async def _end_client(there: ClientConnection, send: Send) -> None:
    """End the client's socket as the upstream ended its own."""
    if there.close_code in (None, CloseCode.ABNORMAL_CLOSURE):
        there.transport.abort()
        return
    with suppress(OSError):
        code = _code(there.close_code)
        await send({"type": "websocket.close", "code": code, "reason": there.close_reason or ""})


def _code(code: int | None) -> int:
    """Return the code to close with: one side may give none, which the other is told as an ordinary end."""
    return CloseCode.NORMAL_CLOSURE if code in (None, CloseCode.NO_STATUS_RCVD) else code


class _SocketCalls:
    """The calls that are made through one socket, one after the other."""

    def __init__(self, head: TapeHead, start_tape: Callable[[TapeHead], Tape]) -> None:
        self._head = head
        self._start_tape = start_tape
        self._tape: Tape | None = None

    def asked(self, message: str | bytes) -> None:
        """Look at a message of the client."""
        content = message.encode() if isinstance(message, str) else message
        if CREATE not in content[:LOOKED_AT]:
            return
        self.closed()
        self._tape = self._start_tape(self._head)
        self._tape.ask(content)
        self._tape.asked()

    def answered(self, message: str | bytes) -> None:
        """Look at a message of the upstream."""
        if self._tape is None:
            return
        content = message.encode() if isinstance(message, str) else message
        if self._tape.status is None:
            self._tape.begin(200, ())
        self._tape.answer(content + b"\n")
        if any(end in content[:LOOKED_AT] for end in ENDS):
            self._tape.end("complete")
            self._tape = None

    def closed(self) -> None:
        """Note that the socket, or another call, ends the one that runs."""
        if self._tape is not None:
            self._tape.end("cut", "the socket was closed")
            self._tape = None


async def _refused(send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    await send({"type": "websocket.http.response.start", "status": status, "headers": _to_client(headers)})
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})


def _accepted(response: Response | None) -> list[tuple[bytes, bytes]]:
    """Return what the upstream said when it took the socket, without what concerns this connection to it."""
    headers = _to_client(response.headers.raw_items()) if response is not None else []
    return [(name, value) for name, value in headers if not name.startswith(b"sec-websocket-")]


def _to_client(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    named = ((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers)
    return [(name, value) for name, value in named if name not in HOP_BY_HOP]


def _to_upstream(headers: Headers) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name.lower() not in (*HOP_BY_HOP, b"host", TOKEN_HEADER) and not name.lower().startswith(b"sec-websocket-")
    ]
