import asyncio
import zlib
from collections.abc import Generator
from contextlib import ExitStack, suppress

import anyio
import pytest
from tests.tools.running import (
    NEVER_AGAIN,
    QUICK,
    connected,
    http_process,
    listening,
    status,
    tool_names,
    until,
)

from ports import free_port
from windowpane.errors import ToolServerDownError, ToolTimeoutError
from windowpane.tools import transports
from windowpane.tools.base import ServerConfig, ToolOutput
from windowpane.tools.mcp import McpToolbox

pytestmark = pytest.mark.anyio

ERAS = {"new": (), "old": ("legacy",)}


@pytest.fixture
def ports() -> dict[str, int]:
    return {era: free_port() for era in ERAS}


@pytest.fixture
def running(ports: dict[str, int]) -> Generator[None]:
    with ExitStack() as stack:
        for era, options in ERAS.items():
            stack.enter_context(http_process(ports[era], *options))
        yield


def reached(ports: dict[str, int], *, timeout_s: float = 60) -> list[ServerConfig]:
    return [
        ServerConfig(name=era, url=f"http://127.0.0.1:{port}/mcp", timeout_s=timeout_s) for era, port in ports.items()
    ]


def refused(ports: dict[str, int]) -> set[tuple[str, str]]:
    return {("failed", f"http://127.0.0.1:{port}/mcp: Connection refused") for port in ports.values()}


async def ready(ports: dict[str, int]) -> None:
    for port in ports.values():
        await listening(port)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
async def test_an_answer_that_never_ends_is_broken_off(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_ANSWER_BYTES", 1024 * 1024)
    port = free_port()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        packer = zlib.compressobj()
        encoding = "content-encoding: deflate\r\n" if packed else ""
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{encoding}\r\n".encode())
        with suppress(ConnectionError):
            while True:
                blanks = b" " * 65536
                writer.write(packer.compress(blanks) + packer.flush(zlib.Z_SYNC_FLUSH) if packed else blanks)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port), McpToolbox(NEVER_AGAIN) as tools:
        await connected(tools, ServerConfig(name="endless", url=f"http://127.0.0.1:{port}/mcp"))
        found = status(tools, "endless")

    assert (found.state, found.error) == (
        "failed",
        f"it does not answer like an MCP server: http://127.0.0.1:{port}/mcp: the answer is longer than 1 MB",
    )


@pytest.mark.usefixtures("running")
async def test_servers_of_both_protocols_are_used_over_http(ports: dict[str, int]) -> None:
    await ready(ports)

    async with McpToolbox(QUICK) as tools:
        await connected(tools, *reached(ports))

        assert [(server.name, server.state, server.version) for server in tools.servers()] == [
            ("new", "ready", "by-sdk 1.2"),
            ("old", "ready", "by-sdk 1.2"),
        ]
        for era in ERAS:
            assert await tools.call(era, "add", {"a": 1, "b": 2}) == ToolOutput("3")
            assert (await tools.call(era, "shapes", {"kind": "huge"})).content.endswith(
                "[cut: 2,900,000 of 3,000,000 characters left out]"
            )
            assert await tools.call(era, "order", {"drink": "tea"}) == ToolOutput("decline")
            await tools.call(era, "grow", {"name": "fresh"})
        await until(lambda: all("fresh" in tool_names(tools, era) for era in ERAS))


@pytest.mark.usefixtures("running")
async def test_a_slow_tool_over_http_times_out_and_the_connection_survives(ports: dict[str, int]) -> None:
    await ready(ports)

    async with McpToolbox(NEVER_AGAIN) as tools:
        await connected(tools, *reached(ports))
        await connected(tools, *reached(ports, timeout_s=0.3))
        for era in ERAS:
            with pytest.raises(ToolTimeoutError, match=f"{era}:sleep gave no answer"):
                await tools.call(era, "sleep", {"seconds": 1000})
        await connected(tools, *reached(ports))

        assert [await tools.call(era, "add", {"a": 1, "b": 1}) for era in ERAS] == [ToolOutput("2")] * 2


@pytest.mark.usefixtures("running")
async def test_a_server_that_crashes_in_a_call_is_noticed_and_found_again_on_its_port(ports: dict[str, int]) -> None:
    await ready(ports)

    async with McpToolbox(QUICK) as tools:
        await connected(tools, *reached(ports))
        listed = {era: tool_names(tools, era) for era in ERAS}
        for era in ERAS:
            with pytest.raises(ToolServerDownError, match="may or may not have run"):
                await tools.call(era, "crash", {})
        await until(lambda: {(server.state, server.error) for server in tools.servers()} == refused(ports))

        for era in ERAS:
            assert tool_names(tools, era) == listed[era]
            with pytest.raises(ToolServerDownError, match="Connection refused"):
                await tools.call(era, "pid", {})
        with ExitStack() as stack:
            again = {era: stack.enter_context(http_process(ports[era], *ERAS[era])) for era in ERAS}
            await until(lambda: {server.state for server in tools.servers()} == {"ready"})

            assert {era: await tools.call(era, "pid", {}) for era in ERAS} == {
                era: ToolOutput(str(process.pid)) for era, process in again.items()
            }


async def test_a_call_reaches_a_server_that_was_restarted_unseen(ports: dict[str, int]) -> None:
    async with McpToolbox(NEVER_AGAIN) as tools:
        with ExitStack() as stack:
            for era in ERAS:
                stack.enter_context(http_process(ports[era], *ERAS[era]))
            await ready(ports)
            await connected(tools, *reached(ports))
        with ExitStack() as stack:
            again = {era: stack.enter_context(http_process(ports[era], *ERAS[era])) for era in ERAS}
            await ready(ports)

            assert {era: await tools.call(era, "pid", {}) for era in ERAS} == {
                era: ToolOutput(str(process.pid)) for era, process in again.items()
            }


async def test_a_server_that_went_away_while_nobody_called_is_told_as_failed(ports: dict[str, int]) -> None:
    async with McpToolbox(QUICK) as tools:
        with ExitStack() as stack:
            for era in ERAS:
                stack.enter_context(http_process(ports[era], *ERAS[era]))
            await ready(ports)
            await connected(tools, *reached(ports))
        await until(lambda: {(server.state, server.error) for server in tools.servers()} == refused(ports))


async def test_a_server_that_wants_a_token_gets_it_from_the_headers() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"

    with http_process(port, "token=abc"):
        await listening(port)
        async with McpToolbox(NEVER_AGAIN) as tools:
            await connected(
                tools,
                ServerConfig(name="known", url=url, headers={"Authorization": "Bearer abc"}),
                ServerConfig(name="stranger", url=url),
                ServerConfig(
                    name="wrong path", url=f"http://127.0.0.1:{port}/other", headers={"Authorization": "Bearer abc"}
                ),
            )

            assert [(server.name, server.state, server.error) for server in tools.servers()] == [
                ("known", "ready", ""),
                ("stranger", "failed", f"{url} answered HTTP 401 Unauthorized"),
                ("wrong path", "failed", f"http://127.0.0.1:{port}/other answered HTTP 404 Not Found"),
            ]


async def test_a_web_page_is_not_taken_for_a_tool_server() -> None:
    async def page(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, page)
        async with McpToolbox(NEVER_AGAIN) as tools:
            await connected(tools, ServerConfig(name="page", url=f"http://127.0.0.1:{port}/"))

            assert (status(tools, "page").state, status(tools, "page").error) == (
                "failed",
                "it does not answer like an MCP server: Unexpected content type: text/html",
            )
        tasks.cancel_scope.cancel()
