"""What HTTP/1.1 allows passes the proxy: probes, pipelined requests, bodies in chunks or after a question, prefixes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from patience import PATIENCE_S
from windowpane.testing import World
from xray.place import xray

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
LENGTH = b"content-length: %d\r\n\r\n" % len(BODY)
ANSWER = b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\nok"
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
                writer.write({b"HEAD": PROBE, b"OPTI": ALLOWED}.get(head[:4], ANSWER))
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
    ],
    ids=["a probe", "options", "a body after a question", "a body in chunks", "pipelined requests"],
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
