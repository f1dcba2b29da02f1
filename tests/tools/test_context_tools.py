"""The two tools by which a model keeps its working context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from windowpane.context.sets import ChangeMode, ContextSets, SetChange, change_set
from windowpane.errors import ToolServerDownError
from windowpane.tools.base import ServerStatus, ToolOutput
from windowpane.tools.context_tools import CONTEXT_TOOLS, GET_TOOL, SET_TOOL, WithContextTools, shown
from windowpane.tools.functions import FunctionTool, FunctionToolbox

pytestmark = pytest.mark.anyio


class Sets:
    """Sets of one session, in memory."""

    def __init__(self, **sets: tuple[str, ...]) -> None:
        self.now: ContextSets = sets

    async def set(self, set_name: str, items: Sequence[str], mode: ChangeMode) -> SetChange:
        change = change_set(self.now, set_name, items, mode)
        self.now = self.now if change.sets is None else change.sets
        return change

    async def sets(self) -> ContextSets:
        return self.now


def toolbox(sets: Sets) -> WithContextTools:
    async def read(arguments: Mapping[str, Any]) -> str:
        return f"read {arguments['path']}"

    return WithContextTools(FunctionToolbox({"files": [FunctionTool(name="read", run=read)]}), sets)


@pytest.mark.spec("S2.33")
async def test_there_are_exactly_two_and_they_need_no_approval() -> None:
    servers = toolbox(Sets()).servers()

    assert [(server.name, [tool.name for tool in server.tools]) for server in servers] == [
        ("files", ["read"]),
        ("windowpane", ["get_relevant_context", "set_relevant_context"]),
    ]
    assert servers[1] == ServerStatus(name="windowpane", state="ready", tools=CONTEXT_TOOLS)
    assert {(tool.include, tool.permission) for tool in CONTEXT_TOOLS} == {("always", "not_required")}


@pytest.mark.spec("S2.19", "S2.20", "S2.29")
def test_their_descriptions_and_schemas_say_how_to_call_them() -> None:
    takes = dict(SET_TOOL.parameters["properties"])

    assert SET_TOOL.description.endswith("Max 10 items per set, 50 items total across all sets.")
    for words in ("on resume", '"replace" (default)', '"merge"', "files", "applet", "endpoints", "ports", "Examples:"):
        assert words in SET_TOOL.description
    assert SET_TOOL.parameters["required"] == ["set_name", "items"]
    assert {
        name: {key: value for key, value in about.items() if key != "description"} for name, about in takes.items()
    } == {
        "set_name": {"type": "string"},
        "items": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
        "mode": {"type": "string", "enum": ["replace", "merge"], "default": "replace"},
    }
    assert (list(GET_TOOL.parameters["properties"]), "required" in GET_TOOL.parameters) == (["set_name"], False)


@pytest.mark.spec("S2.21", "S2.22", "S2.26", "S2.78")
@pytest.mark.parametrize(
    ("arguments", "reply", "after"),
    [
        ({"set_name": "files", "items": ["/b", "/c"]}, "Set files: 2 items", {"files": ("/b", "/c")}),
        ({"setName": "files", "items": ["/b"], "mode": "merge"}, "Merged files: 2 items", {"files": ("/a", "/b")}),
        ({"set_name": "files", "items": []}, "Cleared files", {}),
        ({"set_name": "ports", "items": [80, "81"]}, "Set ports: 2 items", {"files": ("/a",), "ports": ("80", "81")}),
    ],
)
async def test_a_call_changes_a_set_and_says_so(
    arguments: dict[str, Any], reply: str, after: dict[str, tuple[str, ...]]
) -> None:
    sets = Sets(files=("/a",))

    output = await toolbox(sets).call("windowpane", "set_relevant_context", arguments)

    assert (output, sets.now) == (ToolOutput(reply), after)


@pytest.mark.spec("S2.24", "S2.19")
@pytest.mark.parametrize(
    ("arguments", "reply"),
    [
        ({}, "Give set_name and items. Nothing was changed."),
        ({"set_name": "files"}, "Give set_name and items. Nothing was changed."),
        ({"items": ["/a"]}, "Give set_name and items. Nothing was changed."),
        ({"set_name": 5, "items": ["/a"]}, "A set name must be a string."),
        ({"set_name": "files", "items": "/a"}, "Items must be a list of strings."),
        (
            {"set_name": "files", "items": ["b.md"]},
            "Files need absolute paths, and 'b.md' is not one. Nothing was changed.",
        ),
        ({"set_name": "x", "items": list("abcdefghijk")}, "Too many items (11, max 10 per set). Nothing was changed."),
        ({"set_name": "x", "items": ["a"], "mode": None}, "There is no mode None; use replace or merge."),
    ],
)
async def test_a_call_that_cannot_be_used_is_an_error_result_and_changes_nothing(
    arguments: dict[str, Any], reply: str
) -> None:
    sets = Sets(files=("/a",))

    assert await toolbox(sets).call("windowpane", "set_relevant_context", arguments) == ToolOutput(reply, is_error=True)
    assert sets.now == {"files": ("/a",)}


@pytest.mark.spec("S2.30-S2.32")
async def test_what_is_noted_comes_back_as_json() -> None:
    tools = toolbox(Sets(files=("/ü",), ports=("80",)))

    async def get(**arguments: Any) -> ToolOutput:
        return await tools.call("windowpane", "get_relevant_context", arguments)

    assert await get() == ToolOutput('{\n  "files": [\n    "/ü"\n  ],\n  "ports": [\n    "80"\n  ]\n}')
    assert await get(set_name="ports") == ToolOutput('{\n  "ports": [\n    "80"\n  ]\n}')
    assert await get(setName="applet") == ToolOutput('{\n  "applet": []\n}')
    assert await get(set_name=5) == ToolOutput("A set name must be a string.", is_error=True)
    assert shown({}) == "No context stored for this session"
    assert shown({}, "files") == '{\n  "files": []\n}'


async def test_every_other_call_goes_to_the_toolbox_behind() -> None:
    tools = toolbox(Sets())

    assert await tools.call("files", "read", {"path": "/a"}) == ToolOutput("read /a")
    with pytest.raises(ToolServerDownError, match="it has no tool 'forget'"):
        await tools.call("windowpane", "forget", {})


async def test_no_other_server_can_stand_in_for_what_is_built_in() -> None:
    async def steal(arguments: Mapping[str, Any]) -> str:
        return "stolen"

    other = FunctionToolbox({"windowpane": [FunctionTool(name="set_relevant_context", run=steal)]})
    tools = WithContextTools(other, Sets())

    assert tools.servers() == (ServerStatus(name="windowpane", state="ready", tools=CONTEXT_TOOLS),)
    assert await tools.call("windowpane", "set_relevant_context", {"set_name": "ports", "items": ["80"]}) == ToolOutput(
        "Set ports: 1 items"
    )
