"""A real HTTP server that answers as it is told, byte by byte, and keeps what it was asked.

It speaks HTTP/1.1 over a real socket. An answer is a status, headers and a list of steps: bytes to send, a wait, or
the end of the connection in the middle. What a provider's answer looks like is said in the modules beside this one.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
JSON = {"content-type": "application/json"}

Step = bytes | asyncio.Event | Literal["cut", "until_gone"]
"""Send these bytes; wait for this; break the connection off; stay silent until the client has gone."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to answer to one request. Without a status there is no answer, not even its head."""

    steps: tuple[Step, ...]
    status: int | None = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(EVENT_STREAM))


@dataclass(slots=True)
class Asked:
    """One request as it came in; `head` has the lines of its headers in order.

    `gone` is set when the client hangs up before the answer is complete.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes = b""
    head: tuple[str, ...] = ()
    gone: asyncio.Event = field(default_factory=asyncio.Event)


_NO_MORE = Answer((b'{"error": {"message": "the script has no more answers"}}',), status=500, headers=dict(JSON))


class WireServer:
    """Answers in the order given. A request beyond the last answer gets a 500 that says so."""

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self.asked: list[Asked] = []
        self.url = ""
        self._answers = list(answers)
        self._next = 0
        self.refuses: Callable[[Asked], bool] = lambda _: False
        """Tells which requests are refused without an answer of the script being spent on them."""
        self._waiting: set[asyncio.Event] = set()
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def add(self, *answers: Answer) -> None:
        """Add answers after those that are there."""
        self._answers += answers

    def forget(self) -> None:
        """Drop the answers that nobody has asked for."""
        del self._answers[self._next :]

    async def wait_for_requests(self, count: int) -> Asked:
        """Return the request with this number, counted from 1, once it is there."""
        while len(self.asked) < count:
            came = asyncio.Event()
            self._waiting.add(came)
            await came.wait()
        return self.asked[count - 1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            while (asked := await _read_request(reader)) is not None:
                self.asked.append(asked)
                for came in self._waiting:
                    came.set()
                self._waiting.clear()
                answer = _NO_MORE if self.refuses(asked) else self._take()
                if not await _give(answer, asked, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            del self._connections[task]
            writer.close()

    async def hang_up(self) -> None:
        """End every connection and wait until it has ended."""
        for writer in self._connections.values():
            writer.transport.abort()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _take(self) -> Answer:
        if self._next >= len(self._answers):
            return _NO_MORE
        self._next += 1
        return self._answers[self._next - 1]


@asynccontextmanager
async def running(*answers: Answer, port: int = 0) -> AsyncGenerator[WireServer]:
    """Run a server on the loopback address until the block ends."""
    wire = WireServer(answers)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", port)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        await wire.hang_up()


def json_answer(status: int, body: object, headers: dict[str, str] | None = None) -> Answer:
    """Return an answer with one JSON document."""
    return Answer((json.dumps(body).encode(),), status=status, headers=JSON | (headers or {}))


def sse(data: object, event: str = "") -> bytes:
    """Return one server-sent event. Text that is not JSON is sent as it is."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {text}\n\n".encode()


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        raw = b"".join([chunk async for chunk in _chunks(reader)])
    else:
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, _document(raw), raw, head=tuple(lines))


async def _chunks(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()


def _document(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        # Nothing, a compressed body, or one that is nested too deeply.
        return None


async def _give(answer: Answer, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Play an answer and tell whether the connection can go on."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
    measured = "content-length" in answer.headers
    framing = "" if measured else "transfer-encoding: chunked\r\n"
    if answer.status is not None:
        writer.write(f"HTTP/1.1 {answer.status} Played\r\n{headers}{framing}\r\n".encode())
    gone = asyncio.create_task(_until_gone(reader, asked))
    try:
        for step in answer.steps:
            if isinstance(step, bytes):
                writer.write(step if measured else b"%x\r\n%s\r\n" % (len(step), step))
                await writer.drain()
            elif isinstance(step, asyncio.Event):
                await _either(step, asked.gone)
            elif step == "until_gone":
                await asked.gone.wait()
            else:
                writer.transport.abort()
            if asked.gone.is_set() or step == "cut":
                return False
    finally:
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
    if not measured:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _until_gone(reader: asyncio.StreamReader, asked: Asked) -> None:
    """Notice that the client hung up: it sends nothing while it waits for an answer, so any read is the end."""
    with suppress(ConnectionError):
        await reader.read(1)
    asked.gone.set()


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    tasks = [asyncio.create_task(event.wait()) for event in (first, second)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
