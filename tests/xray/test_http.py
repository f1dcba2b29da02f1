"""What HTTP/1.1 allows passes the proxy: probes, pipelined requests, bodies in chunks or after a question, prefixes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest

from patience import PATIENCE_S
from windowpane.testing import World
from xray.place import xray

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
LENGTH = b"content-length: %d\r\n\r\n" % len(BODY)
ANSWER = b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\nok"
UNCHANGED = b'HTTP/1.1 304 Not Modified\r\netag: "a"\r\n\r\n'
MOVED = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/other?x=1\r\ncontent-length: 2\r\n\r\nab"
PROBE = b"HTTP/1.1 200 OK\r\ncontent-length: 77\r\nx-a: 1\r\n\r\n"
ALLOWED = b"HTTP/1.1 204 No Content\r\nallow: GET, POST\r\n\r\n"
POST = b"POST /azure/chat/completions?api-version=1 HTTP/1.1\r\nhost: x\r\n"
ASKED = (b"POST /openai/deployments/x/chat/completions?api-version=1 HTTP/1.1", BODY)


@asynccontextmanager
async def upstream(asked: list[tuple[bytes, bytes]]) -> AsyncGenerator[str]:
    """Run a server that notes requests and answers by their method."""

    async def body(reader: asyncio.StreamReader, head: bytes) -> bytes:
        if b"content-length: " in head:
            return await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
        whole, chunk = b"", b"" if b"chunked" not in head else b"-"
        while chunk:
            size = int(await reader.readline(), 16)
            chunk = (await reader.readexactly(size + 2))[:-2]
            whole += chunk
        return whole

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                assert b"expect" not in head.lower()
                asked.append((head.split(b"\r\n")[0], await body(reader, head.lower())))
                by_method = {b"HEAD": PROBE, b"OPTI": ALLOWED, b"PUT ": MOVED}
                # It tells how long that is which it does not send; the proxy leaves that out.
                by_method[b"GET "] = UNCHANGED.replace(b"\r\n\r\n", b"\r\ncontent-length: 77\r\n\r\n")
                writer.write(by_method.get(head[:4], ANSWER))
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/openai/deployments/x"


@pytest.mark.parametrize(
    ("sent", "answered", "asked"),
    [
        (
            b"HEAD /azure/models HTTP/1.1\r\nhost: x\r\n\r\n",
            PROBE,
            [(b"HEAD /openai/deployments/x/models HTTP/1.1", b"")],
        ),
        (
            b"OPTIONS /azure/a HTTP/1.1\r\nhost: x\r\n\r\n",
            ALLOWED,
            [(b"OPTIONS /openai/deployments/x/a HTTP/1.1", b"")],
        ),
        (POST + b"expect: 100-continue\r\n" + LENGTH + BODY, b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER, [ASKED]),
        (POST + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY), ANSWER, [ASKED]),
        ((POST + LENGTH + BODY) * 3, ANSWER * 3, [ASKED] * 3),
        (
            b"GET /azure/models HTTP/1.1\r\nhost: x\r\n\r\n" * 2,
            UNCHANGED * 2,
            [(b"GET /openai/deployments/x/models HTTP/1.1", b"")] * 2,
        ),
        (
            b"PUT /azure/a%2Fb?c=%20&c=+ HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
            MOVED,
            [(b"PUT /openai/deployments/x/a%2Fb?c=%20&c=+ HTTP/1.1", b"")],
        ),
    ],
    ids=[
        "a probe",
        "options",
        "a body after a question",
        "a body in chunks",
        "pipelined requests",
        "what has not changed",
        "a redirect",
    ],
)
async def test_requests_pass_in_every_form_below_the_path_of_the_settings(
    world: World, sent: bytes, answered: bytes, asked: list[tuple[bytes, bytes]]
) -> None:
    noted: list[tuple[bytes, bytes]] = []
    async with upstream(noted) as url, xray(world, {"azure": url}) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        writer.write(sent)
        with anyio.fail_after(PATIENCE_S):
            got = await reader.readexactly(len(answered))
        writer.close()

    assert (got, noted) == (answered, asked)


async def test_a_status_that_is_none_of_http_is_a_bad_gateway_and_the_call_has_ended(world: World) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(BODY)
        writer.write(b"HTTP/1.1 999 Odd\r\ncontent-length: 2\r\n\r\nok")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, xray(world, url) as proxy, httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        answer = await client.post(f"{proxy.url}/openai/v1/chat/completions", content=BODY)
        (session,) = await proxy.sessions()
        (call,) = (await proxy.pane.sessions.calls(session)).calls

    assert answer.status_code == 502
    assert (call.outcome, call.reason) == ("error", "RemoteProtocolError: status 999 is none of HTTP")


async def test_an_answer_of_200_mb_waits_for_a_slow_client_and_takes_no_more_room_than_is_allowed(
    world: World,
) -> None:
    block, count = b"x" * 1_000_000, 200
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(BODY)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(block) * count))
        for _ in range(count):
            writer.write(block)
            await writer.drain()
            sent += 1
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, xray(world, url) as proxy:
        room = proxy.app.recorder.room
        room.most_bytes = 10_000_000
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
        writer.write(b"POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\n" + LENGTH + BODY)
        with anyio.fail_after(PATIENCE_S):
            head = await reader.readuntil(b"\r\n\r\n")
            before = -1
            while before < sent:
                # The client reads nothing: after a while neither does the proxy.
                before = sent
                await asyncio.sleep(0.2)
            held, got = sent, 0
            while got < len(block) * count:
                got += len(await reader.read(1_000_000))
        writer.close()
        (session,) = await proxy.sessions()
        (call,) = (await proxy.pane.sessions.calls(session)).calls

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (held < 50, got, sent) == (True, len(block) * count, count)
    assert (call.outcome, dict(room.lost), room.held_bytes) == ("complete", {"full": 1}, 0)
