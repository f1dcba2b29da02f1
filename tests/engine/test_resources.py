"""Resources that results of tools name, and that the model reads: `read_resource`, with a real server over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import pytest
from tests.tools.running import http_process, listening

from patience import PATIENCE_S
from ports import free_port
from windowpane.agents.folder import FolderAgents
from windowpane.context.events import Live, RequestBuilt, ToolReturned
from windowpane.context.items import tool_ref
from windowpane.context.messages import ToolResult
from windowpane.engine import Engine
from windowpane.local.pane import LocalPane
from windowpane.models.provider import PydanticModels
from windowpane.testing import Call, Reply, World, drain, stored
from windowpane.tools.mcp import McpToolbox

READER = "windowpane__read_resource"
NAMED = ("memo://notes.txt", "memo://pixel.png", "memo://long.txt", "memo://gone.txt")


@asynccontextmanager
async def opened(world: World) -> AsyncGenerator[LocalPane]:
    """Open a pane whose agent has the server made with the library, and finders."""
    async with Engine(
        store=world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(scripts=[world.model], environ=world.environ),
        toolbox=McpToolbox,
        settle_s=PATIENCE_S,
    ) as engine:
        yield LocalPane(engine)


@pytest.fixture(scope="module")
def port() -> Generator[int]:
    port = free_port()
    with http_process(port):
        yield port


@pytest.fixture
async def drive(world: World, port: int) -> World:
    await listening(port)
    server = {"url": f"http://127.0.0.1:{port}/mcp", "permission": "not_required", "timeout_s": 20}
    world.write("mcp.json", json.dumps({"mcpServers": {"drive": server}}))
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\n")
    return world


def search(query: str = "code") -> Reply:
    return Reply(calls=(Call("drive__search_files", json.dumps({"query": query}), id="s1"),))


def read(*uris: str) -> Reply:
    return Reply(calls=tuple(Call(READER, json.dumps({"uri": uri}), id=uri) for uri in uris))


def results(events: list[Live]) -> dict[str, ToolResult]:
    return {e.result.call_id: e.result for e in stored(events) if isinstance(e, ToolReturned)}


def offered(world: World) -> list[bool]:
    """Tell for each model call whether the reader was offered."""
    return [any(tool.offered_name == READER for tool in call.tools) for call in world.model.calls]


async def test_a_resource_that_a_result_named_is_read_in_the_same_turn_and_in_the_next(drive: World) -> None:
    drive.says(search(), read(NAMED[0]), "4711.", read(NAMED[0]), "Still 4711.")
    async with opened(drive) as pane:
        session = (await pane.sessions.create()).id
        first = await drain(pane.turn(session, "What is the door code?"))
        again = await drain(pane.turn(session, "Look again"))
        context = await pane.turns.context(session, 1)
        later = await pane.turns.context(session, 2)
        rebuilt = await pane.turns.rebuild(session, 1)
        why = await pane.explain(session, 1, "windowpane:read_resource")

    assert results(first)["s1"].links == NAMED
    assert "[resource memo://notes.txt notes.txt]" in results(first)["s1"].content
    assert [results(events)[NAMED[0]].content for events in (first, again)] == ["The door code is 4711."] * 2
    assert offered(drive) == [False, True, True, True, True]
    reader = context.item(tool_ref("windowpane", "read_resource"))
    assert reader is not None
    assert (reader.status, reader.include_mode, reader.reason) == (
        "used",
        "always",
        "built in: drive:search_files named memo://notes.txt in step 1",
    )
    held = later.item(tool_ref("windowpane", "read_resource"))
    assert held is not None
    assert (held.status, held.reason) == ("used", "built in: a result of a tool named resources")
    assert rebuilt.identical
    assert [e.step for e in stored(first) if isinstance(e, RequestBuilt)] == [1, 2]
    assert [need.text for change in why.changes for need in change.needs] == ["`finders: false` in agent.yaml"]


async def test_an_image_that_is_read_reaches_a_model_that_takes_images(drive: World) -> None:
    drive.says(search(), read(NAMED[1]), "Red.")
    drive.model.inputs = ("image",)
    async with opened(drive) as pane:
        session = (await pane.sessions.create()).id
        events = await drain(pane.turn(session, "Which colour?"))
        [image] = results(events)[NAMED[1]].attachments
        data = await pane.sessions.attachment(session, image.blob)

    assert (image.media_type, image.width, image.height, data[:4]) == ("image/png", 1, 1, b"\x89PNG")
    last = drive.model.calls[-1]
    assert [(m.role, [f.blob for f in m.files]) for m in last.messages if m.files] == [("tool", [image.blob])]


async def test_only_what_a_result_named_is_read_and_what_fails_or_is_too_long_is_told(drive: World) -> None:
    drive.says(search(), read("memo://secret.txt", "file:///etc/passwd", NAMED[3], NAMED[2]), "Hm.")
    async with opened(drive) as pane:
        session = (await pane.sessions.create()).id
        events = await drain(pane.turn(session, "What is the secret?"))

    told = results(events)
    refused = "Only a resource that the result of a tool named can be read."
    for uri in ("memo://secret.txt", "file:///etc/passwd"):
        assert (told[uri].content, told[uri].is_error) == (refused, True)
    assert told[NAMED[3]].is_error
    assert "gone.txt" in told[NAMED[3]].content
    assert told[NAMED[2]].content.startswith("xxx")
    assert len(told[NAMED[2]].content) < 110_000


async def test_another_session_cannot_read_what_this_one_was_told_of(drive: World) -> None:
    drive.says(search(), "Found.", read(NAMED[0]), "Cannot.")
    async with opened(drive) as pane:
        first = (await pane.sessions.create()).id
        await drain(pane.turn(first, "Search"))
        other = (await pane.sessions.create()).id
        events = await drain(pane.turn(other, "What is the door code?"))

    assert offered(drive) == [False, True, False, False]
    assert results(events)[NAMED[0]].content.startswith("There is no tool named")


async def test_an_imported_session_brings_no_links_along(drive: World) -> None:
    drive.says(search(), "Found.", read(NAMED[0]), "Cannot.")
    async with opened(drive) as pane:
        first = (await pane.sessions.create()).id
        await drain(pane.turn(first, "Search"))
        copy = await pane.sessions.import_(await pane.sessions.export(first))
        events = await drain(pane.turn(copy.id, "What is the door code?"))

    assert offered(drive) == [False, True, False, False]
    assert results(events)[NAMED[0]].content.startswith("There is no tool named")


@pytest.mark.parametrize(("query", "finders"), [("", "true"), ("code", "false")], ids=["no links", "switched off"])
async def test_the_reader_is_not_offered_without_links_or_where_finders_are_off(
    drive: World, query: str, finders: str
) -> None:
    drive.write("agent.yaml", f"model: scripted:test\nworking_context: false\nfinders: {finders}\n")
    drive.says(search(query), "Nothing.")
    async with opened(drive) as pane:
        session = (await pane.sessions.create()).id
        await drain(pane.turn(session, "Search"))

    assert offered(drive) == [False, False]
