"""A WebSocket passes the proxy as if there were none: its handshake, its messages, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from patience import PATIENCE_S
from windowpane.testing import World
from wire import openai_responses
from wire.reply import WireReply
from wire.server import Answer, running
from xray.place import Xray, xray

EVENTS = [frame.decode().partition("data: ")[2].strip() for frame in openai_responses.frames(WireReply(text=("Hi.",)))]
ASKED = json.dumps(
    {"type": "response.create", "model": "gpt-5", "tools": [{"type": "function", "name": "f"}], "input": "Hello?"}
)

Handler = Callable[[ServerConnection], Awaitable[None]]


@pytest.fixture(autouse=True)
def _no_crash(caplog: pytest.LogCaptureFixture) -> object:
    """Make sure that the proxy itself did not fail: the server would log that and hide it."""
    yield
    assert [record.message for record in caplog.get_records("call") if record.levelno >= logging.ERROR] == []


@asynccontextmanager
async def proxied(world: World, upstream: Handler) -> AsyncGenerator[tuple[Xray, str, str]]:
    """Run a server of sockets and a proxy before it; yield the proxy and both addresses of the same thing."""

    def told(socket: ServerConnection, request: Request, response: Response) -> None:
        response.headers["X-Codex-Turn-State"] = "state-7"
        response.headers["Set-Cookie"] = "a=1"
        response.headers["Set-Cookie"] = "b=2"

    def chosen(socket: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        return offered[-1] if offered else None

    async with serve(
        upstream, "127.0.0.1", 0, max_size=None, select_subprotocol=chosen, process_response=told
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with xray(world, f"http://127.0.0.1:{port}") as proxy:
            yield proxy, f"ws://127.0.0.1:{port}/v1/responses", f"{proxy.url.replace('http', 'ws')}/openai/v1/responses"


async def test_a_socket_passes_both_ways_and_each_request_on_it_is_a_call(world: World) -> None:
    heard: list[str | bytes] = []
    shown: dict[str, str] = {}

    async def upstream(socket: ServerConnection) -> None:
        shown.update({} if socket.request is None else dict(socket.request.headers.raw_items()))
        async for message in socket:
            heard.append(message)
            for event in EVENTS if isinstance(message, str) else [b"\x00\x01"]:
                await socket.send(event)

    asked = {
        "type": "response.create",
        "model": "gpt-5",
        "tools": [{"type": "function", "name": "f"}],
        "input": "Hello?" * 2000,
    }
    async with proxied(world, upstream) as (proxy, _, through):
        headers = {"session-id": "s1", "authorization": "Bearer sk-planted-key-0123456789"}
        async with connect(
            f"{through}?a=1", additional_headers=headers, user_agent_header="codex_cli/0.166.0"
        ) as socket:
            await socket.send(json.dumps(asked))
            got = [await socket.recv() for _ in EVENTS]
            await socket.send(b"\x02")
            echoed = await socket.recv()
        (session,) = await proxy.sessions()
        view = await proxy.pane.sessions.get(session)
        record = await proxy.pane.turns.call(session, 1, 1)

    assert (got, echoed, heard) == (EVENTS, b"\x00\x01", [json.dumps(asked), b"\x02"])
    assert (shown["session-id"], shown["authorization"]) == ("s1", "Bearer sk-planted-key-0123456789")
    assert view.origin is not None
    assert (view.origin.program, view.origin.conversation) == ("codex", "s1")
    assert record.answer is not None
    assert (record.body, record.answer.text, record.call.outcome) == (json.dumps(asked), "Hi.", "complete")
    assert "planted" not in str(record)


async def _handshake(url: str) -> tuple[object, ...]:
    names = [Subprotocol("first"), Subprotocol("second")]
    async with connect(url, subprotocols=names, compression=None) as socket:
        assert socket.response is not None
        fresh = ("date", "server", "sec-websocket-accept")
        answered = sorted((name.lower(), value) for name, value in socket.response.headers.raw_items())
        return socket.subprotocol, [line for line in answered if line[0] not in fresh]


async def test_the_answer_to_a_handshake_passes_with_its_headers_and_its_subprotocol(world: World) -> None:
    async def upstream(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with proxied(world, upstream) as (_, direct, through):
        without = await _handshake(direct)
        shown = await _handshake(through)

    assert shown == without
    assert without[0] == "second"


async def test_messages_in_pieces_arrive_whole_and_in_order(world: World) -> None:
    pieces = [ASKED[:20], ASKED[20:50], ASKED[50:]]
    large = b"\x00\xff" * 2_000_000

    async def upstream(socket: ServerConnection) -> None:
        async for message in socket:
            await socket.send([message[:7], message[7:]])

    async with proxied(world, upstream) as (proxy, _, through), connect(through, max_size=None) as socket:
        await socket.send(pieces)
        await socket.send([large[:1000], large[1000:]])
        await socket.send("")
        with anyio.fail_after(PATIENCE_S):
            got = [await socket.recv() for _ in range(3)]
        await socket.close()
        (session,) = await proxy.sessions()
        (call,) = await proxy.engine.calls.of_session(session)
        wire = await proxy.engine.calls.wire(session, call)

    assert got == [ASKED, large, ""]
    assert wire is not None
    assert wire.body == ASKED.encode()


async def _vanish(socket: ServerConnection | ClientConnection) -> None:
    socket.transport.abort()


async def _leave(socket: ServerConnection | ClientConnection) -> None:
    await socket.close(4001, "enough “ä”")


async def _bye(socket: ServerConnection | ClientConnection) -> None:
    await socket.close()


ENDS = {"with a code of its own": _leave, "as usual": _bye, "without a word": _vanish}


@pytest.mark.parametrize("end", ENDS)
async def test_an_end_of_the_client_reaches_the_upstream_as_it_is(world: World, end: str) -> None:
    ended: list[tuple[int | None, str | None]] = []
    over = asyncio.Event()

    async def upstream(socket: ServerConnection) -> None:
        await socket.send("ready")
        await socket.wait_closed()
        ended.append((socket.close_code, socket.close_reason))
        over.set()

    async with proxied(world, upstream) as (_, direct, through):
        for url in (direct, through):
            over.clear()
            async with connect(url) as socket:
                await socket.recv()
                await ENDS[end](socket)
                with anyio.fail_after(PATIENCE_S):
                    await over.wait()

    assert ended[1] == ended[0]


@pytest.mark.parametrize("end", ENDS)
async def test_an_end_of_the_upstream_reaches_the_client_as_it_is(world: World, end: str) -> None:
    async def upstream(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(EVENTS[0])
        await ENDS[end](socket)

    ended: list[tuple[object, ...]] = []
    async with proxied(world, upstream) as (proxy, direct, through):
        for url in (direct, through):
            async with connect(url) as socket:
                await socket.send(ASKED)
                with anyio.fail_after(PATIENCE_S), suppress(ConnectionClosed):
                    ended.append((await socket.recv(),))
                    while True:
                        # What is said to a side that has gone is lost, and harms nothing.
                        await socket.send("more")
                        await asyncio.sleep(0)
                await socket.wait_closed()
                ended.append((socket.close_code, socket.close_reason))
        (session,) = await proxy.sessions()
        (call,) = (await proxy.pane.sessions.calls(session)).calls

    assert ended[2:] == ended[:2]
    assert (call.outcome, call.reason) == ("cut", "the socket was closed")


@pytest.mark.parametrize(
    "answer",
    [
        Answer((b'{"error": "no key"}',), 401, {"content-type": "application/json", "x-request-id": "r1"}),
        Answer((b"slow down",), 429, {"retry-after": "7"}),
        Answer((b"",), 307, {"location": "ws://127.0.0.1:9/elsewhere"}),
    ],
    ids=["401", "429", "a redirect"],
)
async def test_a_handshake_that_is_refused_is_refused_in_the_same_way(world: World, answer: Answer) -> None:
    class Direct(connect):
        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc

    async def refused(url: str) -> tuple[object, ...]:
        with pytest.raises(InvalidStatus) as error:
            await Direct(url)
        response = error.value.response
        own = ("date", "connection", "transfer-encoding", "content-length", "content-type")
        headers = sorted((name.lower(), value) for name, value in response.headers.raw_items())
        return response.status_code, [line for line in headers if line[0] not in own], bytes(response.body)

    async with running(answer, answer) as server, xray(world, server.url) as proxy:
        without = await refused(f"{server.url.replace('http', 'ws')}/v1/responses")
        through = await refused(f"{proxy.url.replace('http', 'ws')}/openai/v1/responses")

    assert through == without
    assert len(server.asked) == 2
