"""The example agent's tool server, spoken to as a real client does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from windowpane.agents.folder import FolderAgents
from windowpane.agents.init import init_agent


async def test_the_notes_server_offers_its_tools(tmp_path: Path) -> None:
    async with _connected(tmp_path) as client:
        tools = (await client.list_tools()).tools

    assert {tool.name: tool.annotations.read_only_hint if tool.annotations else None for tool in tools} == {
        "list_notes": True,
        "read_note": True,
        "write_note": False,
        "search_notes": True,
    }
    assert all(tool.description for tool in tools)


async def test_notes_are_written_read_extended_found_and_listed(tmp_path: Path) -> None:
    async with _connected(tmp_path) as client:
        answers = [
            await _call(client, "write_note", name="model-choice", text="# Model choice\n\nWe use Größe 7."),
            await _call(client, "write_note", name="model-choice", text="Changed to 8.", append=True),
            await _call(client, "read_note", name="model-choice"),
            await _call(client, "search_notes", words="GRÖSSE choice"),
            await _call(client, "search_notes", words="nothing-like-it"),
            await _call(client, "list_notes"),
        ]

    assert answers == [
        (False, "Wrote model-choice: 32 characters."),
        (False, "Wrote model-choice: 47 characters."),
        (False, "# Model choice\n\nWe use Größe 7.\n\nChanged to 8.\n"),
        (False, "model-choice:\n  # Model choice\n  We use Größe 7."),
        (False, "No note holds 'nothing-like-it'."),
        (False, "model-choice: Model choice\nwelcome: Welcome"),
    ]
    assert sorted(path.name for path in (tmp_path / "guide" / "notes").iterdir()) == ["model-choice.md", "welcome.md"]


async def test_nothing_outside_the_notes_folder_can_be_named(tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    names = ("../agent", "/etc/passwd", "..", "", "a/b", "a.b", "a\0", "linked", "x" * 81)

    async with _connected(tmp_path) as client:
        (tmp_path / "guide" / "notes" / "linked.md").symlink_to(secret)
        read = [await _call(client, "read_note", name=name) for name in names]
        written = [await _call(client, "write_note", name=name, text="overwritten") for name in names]
        found = await _call(client, "search_notes", words="secret")

    assert {failed for failed, _ in (*read, *written)} == {True}
    assert found == (False, "No note holds 'secret'.")
    assert secret.read_text() == "secret"


async def test_mistakes_are_answered_with_what_to_do(tmp_path: Path) -> None:
    async with _connected(tmp_path) as client:
        answers = [
            await _call(client, "read_note", name="gone"),
            await _call(client, "search_notes", words="  "),
            await _call(client, "write_note", name="long", text="x" * 100_001),
        ]

    assert answers == [
        (True, "Error executing tool read_note: there is no note 'gone'; available: welcome"),
        (True, "Error executing tool search_notes: give at least one word to look for"),
        (
            True,
            "Error executing tool write_note: the note would have 100002 characters, and no more than 100000 are kept",
        ),
    ]


@asynccontextmanager
async def _connected(root: Path) -> AsyncGenerator[Client]:
    """Start the server as the agent's folder says it."""
    init_agent(root / "guide")
    (server,) = FolderAgents(root).current("guide").servers
    parameters = StdioServerParameters(command=server.body["command"], args=list(server.body["args"]))
    async with Client(parameters) as client:
        yield client


async def _call(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    result = await client.call_tool(tool, arguments)
    text = "".join(block.text for block in result.content if isinstance(block, TextContent))
    return bool(result.is_error), text
