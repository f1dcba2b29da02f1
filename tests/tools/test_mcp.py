import json
import signal
from collections.abc import Mapping
from os import kill
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.tools.running import (
    NEVER_AGAIN,
    QUICK,
    by_hand,
    by_sdk,
    connected,
    exists,
    status,
    tool_names,
    until,
)

from ports import free_port
from windowpane.context.items import Tool
from windowpane.errors import InvalidSettingError, ToolError, ToolServerDownError, ToolTimeoutError
from windowpane.tools.base import Pace, ServerConfig, ServerStatus, Toolbox, ToolOutput
from windowpane.tools.mcp import McpToolbox

pytestmark = pytest.mark.anyio

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def test_the_mcp_toolbox_is_a_toolbox() -> None:
    toolbox: Toolbox = McpToolbox()

    assert toolbox.servers() == ()


@pytest.mark.spec("S0.7", "S0.8", "S0.9", "S0.44", "S1.4")
async def test_a_tool_has_its_own_include_mode_and_permission_or_its_servers_or_the_default() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(
            tools,
            by_hand("bare"),
            by_hand("set", include="agent", permission="not_required"),
            by_hand(
                "mixed",
                include="manual",
                tool_include={"pid": "always"},
                tool_permission={"pid": "forbidden"},
            ),
        )

        assert {
            server.name: {(tool.include, tool.permission) for tool in server.tools if tool.name in ("pid", "echo")}
            for server in tools.servers()
        } == {
            "bare": {("always", "required")},
            "set": {("agent", "not_required")},
            "mixed": {("always", "forbidden"), ("manual", "required")},
        }


@pytest.mark.spec("S0.41", "S0.42")
async def test_servers_of_both_protocols_list_their_tools_and_answer_calls() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_sdk("new"), by_hand("old"))

        assert [(server.name, server.state, server.version) for server in tools.servers()] == [
            ("new", "ready", "by-sdk 1.2"),
            ("old", "ready", "by-hand 0.9"),
        ]
        assert status(tools, "old").tools[0] == Tool("old", "echo", "Do echo.", NO_ARGUMENTS, version="by-hand 0.9")
        assert "pid" in tool_names(tools, "new")
        assert "pid" in tool_names(tools, "old")
        assert await tools.call("new", "add", {"a": 1, "b": 2}) == ToolOutput("3")
        assert await tools.call("old", "echo", {"größe": "✓"}) == ToolOutput('{"gr\\u00f6\\u00dfe": "\\u2713"}')
        assert await tools.call("new", "pid", {}) != await tools.call("old", "pid", {})


async def test_results_that_are_not_text_are_described_and_errors_are_told() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_sdk("new"))

        async def shape(kind: str) -> str:
            return (await tools.call("new", "shapes", {"kind": kind})).content

        assert await shape("image") == "Look:\n[image image/png, 5 bytes]"
        assert await shape("audio") == "[audio audio/wav, 5 bytes]"
        assert await shape("text resource") == "in a file"
        assert await shape("blob resource") == "[resource memo://a.bin application/octet-stream, 5 bytes]"
        assert await shape("link") == "[resource memo://b.txt b]"
        assert await shape("nothing") == "(no output)"
        assert await shape("structured") == '{"größe":[1,2]}'
        assert (await shape("huge"))[99_999:] == "x\n[cut: 2,900,000 of 3,000,000 characters left out]"
        assert await tools.call("new", "fail", {}) == ToolOutput("Error executing tool fail", is_error=True)
        assert (await tools.call("new", "add", {"a": "one"})).is_error


async def test_calls_from_many_tasks_run_at_once_and_get_their_own_answers() -> None:
    answers: dict[int, ToolOutput] = {}

    async with McpToolbox(QUICK) as tools, anyio.create_task_group() as tasks:
        await connected(tools, by_hand("old"))

        async def call(number: int) -> None:
            answers[number] = await tools.call("old", "echo", {"n": number})

        for number in range(50):
            tasks.start_soon(call, number)

    assert answers == {number: ToolOutput(f'{{"n": {number}}}') for number in range(50)}


async def test_one_bad_entry_does_not_cost_the_other_tools_and_is_told() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_hand("odd", "odd"))

        version = "by-hand 0.9"
        anything = NO_ARGUMENTS
        assert status(tools, "odd") == ServerStatus(
            name="odd",
            state="ready",
            version=version,
            error="; ".join(
                (
                    "tool 'no_schema' is offered without its input schema, which is not valid: it is not an object",
                    "tool 'text_schema' is offered without its input schema, which is not valid: it is not an object",
                    "tool 'list_schema' is offered without its input schema, which is not valid: "
                    "its type is 'array', not 'object'",
                    "tool 'bad_schema' is offered without its input schema, which is not valid: "
                    "'nonsense' is not valid under any of the given schemas",
                    "tool 'header' was left out: its x-mcp-header is not valid: "
                    "property 'a': x-mcp-header '' is not an RFC 9110 token",
                    "a tool without a name was left out",
                    "a tool without a name was left out",
                    "there is more than one tool 'good'; the first is used",
                )
            ),
            tools=(
                Tool("odd", "good", "Works.", {"type": "object"}, version=version),
                Tool("odd", "no_schema", "", anything, version=version),
                Tool("odd", "text_schema", "", anything, version=version),
                Tool("odd", "list_schema", "", anything, version=version),
                Tool("odd", "bad_schema", "", anything, version=version),
                Tool(
                    "odd",
                    "typeless",
                    "Has a title",
                    {"type": "object", "properties": {"a": {"type": "string"}}},
                    version=version,
                ),
                Tool("odd", "größe: 日本 / tool", "", {"type": "object"}, version=version),
            ),
        )
        assert await tools.call("odd", "größe: 日本 / tool", {"a": 1}) == ToolOutput('{"a": 1}')


async def test_all_pages_of_a_long_list_are_read_and_an_endless_one_is_given_up() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_hand("many", "many"), by_hand("endless", "endless"))

        assert tool_names(tools, "many") == [f"tool_{number}" for number in range(3000)]
        assert tool_names(tools, "endless") == ["echo"]
        assert status(tools, "endless").error.startswith("its list of tools does not end; 2 were read")


async def test_a_server_that_prints_other_things_between_its_messages_works() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_hand("chatter", "chatter"))

        assert await tools.call("chatter", "echo", {}) == ToolOutput("{}")


async def test_a_server_that_cannot_be_reached_says_why_in_words_that_help(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("not executable")
    port = free_port()

    async with McpToolbox(NEVER_AGAIN) as tools:
        await connected(
            tools,
            by_hand("broken", "broken"),
            by_hand("dies", "dies"),
            by_hand("future", "future"),
            by_hand("homeless", cwd=str(tmp_path / "nowhere")),
            ServerConfig(name="absent", command="no-such-command"),
            ServerConfig(name="both", command="a", url="http://b"),
            ServerConfig(name="cat", command="cat"),
            ServerConfig(name="disabled", command="a", enabled=False),
            ServerConfig(name="down", url=f"http://user:secret@127.0.0.1:{port}/mcp?key=secret"),
            ServerConfig(name="empty"),
            ServerConfig(name="locked", command=str(script)),
        )

        assert {server.name: (server.state, server.error) for server in tools.servers()} == {
            "absent": ("failed", "command 'no-such-command' not found"),
            "both": ("failed", "it has both a command and a url; keep one"),
            "broken": ("failed", "bad handshake: 3 faults in InitializeResult"),
            "cat": ("failed", "it does not answer like an MCP server: Method not found"),
            "dies": ("failed", "it exited; its last output:\n  config file missing\n  set WEATHER_KEY first"),
            "disabled": ("disabled", ""),
            "down": ("failed", f"http://127.0.0.1:{port}/mcp: Connection refused"),
            "empty": ("failed", "it has neither a command nor a url"),
            "future": ("failed", "bad handshake: Unsupported protocol version from the server: 1999-01-01"),
            "homeless": ("failed", f"the folder {str(tmp_path / 'nowhere')!r} does not exist"),
            "locked": ("failed", f"command {str(script)!r} may not be run"),
        }
        with pytest.raises(ToolServerDownError, match="'dies' is not available: it exited; its last output"):
            await tools.call("dies", "echo", {})
        with pytest.raises(ToolServerDownError, match="'disabled' is not available: it is disabled"):
            await tools.call("disabled", "echo", {})
        with pytest.raises(ToolServerDownError, match="'unheard' is not available: it is not configured"):
            await tools.call("unheard", "echo", {})


async def test_a_server_that_hangs_while_connecting_holds_nobody_up_and_fails_at_the_deadline() -> None:
    async with McpToolbox(Pace(connect_timeout_s=5, first_pause_s=1000)) as tools:
        await tools.configure([by_hand("babble", "babble"), by_hand("mute", "mute")])
        await tools.settled(0)
        before = tools.servers()
        await tools.settled(60)

        assert before == tuple(ServerStatus(name=name, state="connecting") for name in ("babble", "mute"))
        assert tools.servers() == (
            ServerStatus(
                name="babble",
                state="failed",
                error="no answer within 5 s; it wrote 'Welcome! Type help.', which is not MCP, to its standard output",
            ),
            ServerStatus(
                name="mute", state="failed", error="no answer within 5 s; its last output:\n  waiting for a licence"
            ),
        )


async def test_a_server_that_crashes_in_a_call_is_told_as_failed_keeps_its_tools_and_comes_back(
    tmp_path: Path,
) -> None:
    notes = tmp_path / "notes"

    async with McpToolbox(NEVER_AGAIN) as tools:
        await connected(tools, by_hand("old", notes=notes))
        listed = tool_names(tools, "old")
        with pytest.raises(ToolServerDownError, match="which may or may not have run"):
            await tools.call("old", "crash", {})
        await until(lambda: "last output" in status(tools, "old").error)

        assert status(tools, "old").state == "failed"
        assert status(tools, "old").error == "it exited; its last output:\n  out of memory"
        assert tool_names(tools, "old") == listed
        assert await tools.call("old", "echo", {}) == ToolOutput("{}")
        assert status(tools, "old").state == "ready"
        assert notes.read_text() == "crash\necho\n"


async def test_a_server_that_dies_while_nobody_calls_is_noticed_and_tried_again() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_hand("old"))
        first = int((await tools.call("old", "pid", {})).content)
        states: list[str] = []
        kill(first, signal.SIGKILL)

        def back() -> bool:
            states.append(status(tools, "old").state)
            return "failed" in states and states[-1] == "ready"

        await until(back)

        assert int((await tools.call("old", "pid", {})).content) != first
        assert not exists(first)


async def test_a_call_made_the_moment_after_the_server_died_reaches_its_successor(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async with McpToolbox(NEVER_AGAIN) as tools:
        await connected(tools, by_hand("old", notes=notes))
        first = int((await tools.call("old", "pid", {})).content)
        kill(first, signal.SIGKILL)
        await until(lambda: status(tools, "old").state == "failed")

        assert int((await tools.call("old", "pid", {})).content) != first
        assert notes.read_text() == "pid\npid\n"


async def test_a_slow_tool_times_out_once_and_the_connection_survives(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_sdk("new"), by_hand("old", notes=notes))
        pids = [await tools.call(name, "pid", {}) for name in ("new", "old")]
        await connected(tools, by_sdk("new", timeout_s=0.2), by_hand("old", notes=notes, timeout_s=0.2))
        with pytest.raises(ToolTimeoutError, match=r"new:sleep gave no answer within 0\.2 s"):
            await tools.call("new", "sleep", {"seconds": 1000})
        with pytest.raises(ToolTimeoutError, match=r"old:sleep gave no answer within 0\.2 s"):
            await tools.call("old", "sleep", {"seconds": 1})
        await connected(tools, by_sdk("new"), by_hand("old", notes=notes))

        assert [await tools.call(name, "pid", {}) for name in ("new", "old")] == pids
        assert notes.read_text() == "pid\nsleep\npid\n"


async def test_a_tool_that_reports_progress_has_its_time_again_with_each_report() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_sdk("new", timeout_s=2))

        assert await tools.call("new", "sleep", {"seconds": 3, "reports": 12}) == ToolOutput("awake")


async def test_a_caller_that_gives_up_leaves_the_connection_as_it_was() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_sdk("new"))
        with anyio.move_on_after(0.3):
            await tools.call("new", "sleep", {"seconds": 1000})

        assert await tools.call("new", "add", {"a": 1, "b": 1}) == ToolOutput("2")


async def test_tools_that_change_at_run_time_are_listed_again_in_either_protocol() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_sdk("new"), by_hand("old"))
        for name in ("new", "old"):
            await tools.call(name, "grow", {"name": "fresh"})
        await until(lambda: all("fresh" in tool_names(tools, name) for name in ("new", "old")))

        assert [(server.state, server.unlocked) for server in tools.servers()] == [("ready", {"fresh"})] * 2


async def test_a_server_that_brings_many_tools_has_them_selected_unless_it_says_otherwise() -> None:
    async with McpToolbox(QUICK) as tools:
        kept = by_sdk("kept", always_up_to=2, tool_include={"add": "always"})
        await connected(tools, kept, by_sdk("many", always_up_to=2), by_sdk("few", always_up_to=100))

        modes = {server.name: {tool.name: tool.include for tool in server.tools} for server in tools.servers()}

    assert {name: set(found.values()) for name, found in modes.items() if name != "kept"} == {
        "many": {"agent"},
        "few": {"always"},
    }
    assert (modes["kept"]["add"], modes["kept"]["grow"]) == ("always", "agent")


async def test_a_server_is_told_which_folders_it_may_work_in(tmp_path: Path) -> None:
    async with McpToolbox(QUICK, roots=[tmp_path]) as tools:
        await connected(tools, by_hand("old"))
        told = await tools.call("old", "ask", {"method": "roots/list"})

    assert json.loads(told.content) == {"roots": [{"uri": tmp_path.resolve().as_uri(), "name": tmp_path.name}]}


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (
            "sampling/createMessage",
            {
                "code": -1,
                "message": "the model is not asked: it cannot be told which call this belongs to, or no user can be "
                "asked",
            },
        ),
        ("elicitation/create", {"action": "decline"}),
        ("roots/list", {"code": -32600, "message": "List roots not supported"}),
    ],
)
async def test_a_server_that_asks_in_a_call_without_a_user_is_told_no(method: str, answer: dict[str, Any]) -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_hand("old"))

        told = await tools.call("old", "ask", {"method": method})

    assert (json.loads(told.content), told.is_error) == (answer, False)


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("unheard", {}, "old:unheard: Unknown tool: unheard"),
        ("nonsense", {}, "old:nonsense answered with something that is not a result: 1 validation error"),
        ("echo", {"half": "\ud83d"}, "old:echo was not called: its arguments are not JSON: 'utf-8' codec can't encode"),
    ],
)
async def test_what_is_not_a_result_is_a_tool_error(tool: str, arguments: Mapping[str, Any], error: str) -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_hand("old"))

        with pytest.raises(ToolError, match=error):
            await tools.call("old", tool, arguments)
        assert await tools.call("old", "echo", {}) == ToolOutput("{}")


async def test_configuring_keeps_the_same_reconnects_the_changed_and_closes_the_removed() -> None:
    async with McpToolbox(QUICK) as tools:
        names = ("changed", "kept", "relabelled", "removed")
        await connected(tools, *(by_hand(name) for name in names))
        pids = {name: int((await tools.call(name, "pid", {})).content) for name in names}
        await connected(
            tools,
            by_hand("changed", env={"LANGUAGE": "de"}),
            by_hand("kept"),
            by_hand("relabelled", include="manual", timeout_s=5),
            by_hand("added"),
        )
        now = {server.name: int((await tools.call(server.name, "pid", {})).content) for server in tools.servers()}
        await until(lambda: not exists(pids["removed"]) and not exists(pids["changed"]))

        assert list(now) == ["added", "changed", "kept", "relabelled"]
        assert (now["kept"], now["relabelled"]) == (pids["kept"], pids["relabelled"])
        assert now["changed"] != pids["changed"]
        assert {tool.include for tool in status(tools, "relabelled").tools} == {"manual"}


async def test_a_changed_server_shows_its_last_known_tools_until_it_is_there_again() -> None:
    async with McpToolbox(QUICK) as tools:
        await connected(tools, by_hand("old"))
        listed = tool_names(tools, "old")
        await tools.configure([by_hand("old", env={"LANGUAGE": "de"})])
        between = status(tools, "old").state, tool_names(tools, "old")
        await tools.configure([by_hand("old", enabled=False)])
        await tools.settled(60)

        assert between == ("connecting", listed)
        assert status(tools, "old") == ServerStatus(name="old", state="disabled")


async def test_two_servers_with_one_name_are_refused() -> None:
    async with McpToolbox(QUICK) as tools:
        with pytest.raises(InvalidSettingError, match="mcpServers: two servers have the same name"):
            await tools.configure([by_hand("old"), by_hand("old", "odd")])


async def test_an_error_of_the_caller_passes_through_the_toolbox_as_it_is() -> None:
    async def fail() -> None:
        async with McpToolbox(QUICK) as tools:
            await connected(tools, by_hand("old"))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()


async def test_no_process_is_left_when_the_toolbox_closes_however_it_closes() -> None:
    pids: list[int] = []

    async def open_and_note() -> None:
        async with McpToolbox(QUICK) as tools:
            await connected(tools, by_hand("old"), by_hand("stubborn", "stubborn"))
            pids.extend([int((await tools.call(name, "pid", {})).content) for name in ("old", "stubborn")])
            pids.append(int((await tools.call("old", "spawn", {})).content))
            if len(pids) > 3:
                await anyio.sleep_forever()

    await open_and_note()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_and_note)
        await until(lambda: len(pids) == 6)
        tasks.cancel_scope.cancel()

    assert [exists(pid) for pid in pids if pid not in pids[2::3]] == [False] * 4
    await until(lambda: not any(exists(pid) for pid in pids[2::3]))
