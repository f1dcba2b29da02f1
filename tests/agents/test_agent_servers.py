"""The entries of `mcpServers`, from `agent.yaml` and from `mcp.json`."""

import sys
from pathlib import Path
from typing import Any

import pytest

from windowpane.agents.base import ServerEntry
from windowpane.agents.folder import AgentFolder
from windowpane.context.agents import Problem
from windowpane.tools.base import ServerConfig

ENVIRON = {"TOKEN": "t0k", "EMPTY": "", "HOME": "/home/someone"}
BARE: dict[str, Any] = {
    "command": None,
    "args": (),
    "env": {},
    "cwd": None,
    "url": None,
    "headers": {},
    "include": None,
    "always_up_to": None,
    "permission": None,
    "tool_include": {},
    "tool_permission": {},
    "enabled": True,
    "timeout_s": 60.0,
}


def test_a_process_and_an_address_are_read_in_the_shape_people_have(tmp_path: Path) -> None:
    text = """
mcpServers:
  files:
    type: stdio
    command: npx
    args: [-y, server-files, "${HOME}/docs", 8080]
    env: {TOKEN: "${TOKEN}", PORT: 80, DEBUG: true}
    cwd: work
  search:
    type: http
    url: https://example.org/mcp?k=${TOKEN}
    headers: {Authorization: "Bearer ${env:TOKEN}"}
    timeout_s: 5
    disabled: true
"""

    servers, problems = _read(tmp_path, text)

    assert problems == ()
    assert servers == (
        ServerEntry(
            name="files",
            body=BARE
            | {
                "command": "npx",
                "args": ("-y", "server-files", "/home/someone/docs", "8080"),
                "env": {"TOKEN": "t0k", "PORT": "80", "DEBUG": "true"},
                "cwd": str(tmp_path / "work"),
            },
        ),
        ServerEntry(
            name="search",
            body=BARE
            | {
                "url": "https://example.org/mcp?k=${TOKEN}",
                "headers": {"Authorization": "Bearer ${env:TOKEN}"},
                "timeout_s": 5.0,
                "enabled": False,
            },
        ),
    )


@pytest.mark.spec("S0.7", "S0.8", "S0.9", "S1.4")
def test_a_tool_is_included_as_it_says_or_as_its_server_says_or_always(tmp_path: Path) -> None:
    text = """
mcpServers:
  quiet:
    command: a
    include: agent
    permission: not_required
    tools:
      loud_one: {include: always, permission: required}
  plain: {command: b, tools: {by_hand: {include: manual}}}
"""

    servers, problems = _read(tmp_path, text)
    plain, quiet = (ServerConfig(name=server.name, **server.body) for server in servers)

    assert problems == ()
    assert [quiet.effective_include(tool) for tool in ("loud_one", "other")] == ["always", "agent"]
    assert [quiet.effective_permission(tool) for tool in ("loud_one", "other")] == ["required", "not_required"]
    assert [plain.effective_include(tool) for tool in ("by_hand", "other")] == ["manual", "always"]
    assert [plain.effective_permission(tool) for tool in ("by_hand", "other")] == ["required", "required"]


def test_variables_are_filled_from_the_environment_defaults_and_the_agent_itself(tmp_path: Path) -> None:
    text = """
mcpServers:
  a:
    command: ${WINDOWPANE_PYTHON}
    args: ["${AGENT_DIR}/x", "${NONE:-fallback}", "${EMPTY:-filled}", "${EMPTY}", "$TOKEN $", "${env:NONE:-}"]
"""

    servers, problems = _read(tmp_path, text)

    assert problems == ()
    assert [(server.body["command"], server.body["args"]) for server in servers] == [
        (sys.executable, (f"{tmp_path}/x", "fallback", "filled", "", "$TOKEN $", ""))
    ]


def test_a_variable_that_is_not_set_leaves_its_server_out_and_no_other(tmp_path: Path) -> None:
    text = """mcpServers:
  broken:
    command: run
    env:
      KEY: ${MY_KEY}
  good: {command: run}
  unused: {command: "${MY_KEY}", enabled: false}
"""

    servers, problems = _read(tmp_path, text)

    assert [server.name for server in servers] == ["good", "unused"]
    assert problems == (
        Problem(
            file="agent.yaml",
            line=5,
            reason="mcpServers.broken: the variable MY_KEY is not set; set it, or write ${MY_KEY:-default}",
        ),
    )


@pytest.mark.parametrize(
    ("entry", "line", "reason"),
    [
        ("{}", 2, "server 's' needs a command or a url, and has neither"),
        ("{command: a, url: 'http://b'}", 2, "server 's' needs a command or a url, and has both"),
        ("run", 2, "a server is written as a name and a table with its command or url"),
        ("{command: a, type: http}", 2, "server 's' is not of type http"),
        ("{url: 'http://b', transport: stdio}", 2, "server 's' is not of type stdio"),
        ("{command: ''}", 2, "server 's' has an empty command"),
        (
            "{url: 'http://b', type: sse}",
            2,
            "mcpServers.s.type must be stdio, http, streamable-http, streamable_http or streamableHttp, not sse",
        ),
        ("{url: 'ftp://b'}", 2, "url must begin with http:// or https:// and name a host, not ftp://b"),
        ("{url: 'http://[b'}", 2, "url must begin with http:// or https:// and name a host, not http://[b"),
        ("{command: a, include: never}", 2, "mcpServers.s.include must be always, manual or agent, not never"),
        (
            "\n    command: a\n    permission: ask",
            4,
            "mcpServers.s.permission must be required, not_required or forbidden, not ask",
        ),
        (
            "{command: a, tools: {t: {permission: forbiden}}}",
            2,
            "mcpServers.s.tools.t.permission must be required, not_required or forbidden, not forbiden",
        ),
        (
            "{command: a, tools: {t: always}}",
            2,
            "mcpServers.s.tools.t must be a table with include or permission",
        ),
        ("{command: a, args: -y}", 2, "mcpServers.s.args must be a list, not a text"),
        ("{command: [a]}", 2, "mcpServers.s.command must be a text, not a list"),
        ("\n    command: a\n    env:\n      K: [1]", 5, "mcpServers.s.env.K must be a text, not a list"),
        ("{command: a, timeout_s: soon}", 2, "mcpServers.s.timeout_s must be a number from 0.1 to 86400, not soon"),
        (
            "{command: a, enabled: true, disabled: true}",
            2,
            "enabled and disabled contradict one another; keep one of them",
        ),
        ("{command: '${input:key}'}", 2, "mcpServers.s: ${input:key} is not a variable; write ${NAME}"),
        ("{url: 'http://b', headers: {A: \"x\\ny\"}}", 2, "a header may hold only printing characters"),
    ],
)
def test_a_server_that_cannot_be_used_as_written_is_left_out_and_reported(
    tmp_path: Path, entry: str, line: int, reason: str
) -> None:
    servers, problems = _read(tmp_path, f"mcpServers:\n  s: {entry}\n  good: {{command: run}}\n")

    assert [server.name for server in servers] == ["good"]
    assert problems == (Problem(file="agent.yaml", line=line, reason=reason),)


def test_what_has_no_effect_on_a_server_is_reported_and_the_server_used(tmp_path: Path) -> None:
    servers, problems = _read(tmp_path, "mcpServers:\n  s:\n    url: http://b\n    args: [x]\n    timeout: 3\n")

    assert [server.name for server in servers] == ["s"]
    assert problems == (
        Problem(file="agent.yaml", line=4, reason="mcpServers.s.args has no effect on a server with a url"),
        Problem(
            file="agent.yaml",
            line=5,
            reason="mcpServers.s.timeout is not known and has no effect; did you mean timeout_s?",
        ),
    )


def test_agent_yaml_wins_over_mcp_json_server_by_server(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(
        '{\n\t"mcpServers": {\n\t\t"a": {"command": "json"},\n\t\t"b": {"command": "json"},\n'
        '\t\t"c": {"command": "json"}\n\t}\n}'
    )

    servers, problems = _read(tmp_path, "mcpServers:\n  b: {command: yaml}\n  c: {}\n")

    assert [(server.name, server.body["command"]) for server in servers] == [("a", "json"), ("b", "yaml")]
    assert problems == (
        Problem(file="agent.yaml", line=3, reason="server 'c' needs a command or a url, and has neither"),
    )


def test_mcp_json_is_read_with_lines_and_the_other_name_of_its_table(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(
        '{\n "inputs": [],\n "servers": {\n  "a": {"type": "http", "url": "http://a/mcp"},\n'
        '  "b": {\n   "url": 3}\n }\n}'
    )

    servers, problems = _read(tmp_path, "")

    assert [server.name for server in servers] == ["a"]
    assert problems == (
        Problem(file="mcp.json", line=6, reason="url must begin with http:// or https:// and name a host, not 3"),
    )


def test_mcp_json_that_does_not_parse_is_reported_by_line(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{\n "mcpServers": {},\n // comment\n}')

    servers, problems = _read(tmp_path, "mcpServers: {a: {command: run}}\n")

    assert [server.name for server in servers] == ["a"]
    assert [(problem.file, problem.line) for problem in problems] == [("mcp.json", 3)]


def test_any_server_name_works(tmp_path: Path) -> None:
    servers, problems = _read(tmp_path, 'mcpServers: {a_b: {command: x}, "sp ace": {command: x}, "日本": {command: x}}')

    assert problems == ()
    assert [server.name for server in servers] == ["a_b", "sp ace", "日本"]


def _read(folder: Path, manifest: str) -> tuple[tuple[ServerEntry, ...], tuple[Problem, ...]]:
    (folder / "agent.yaml").write_text(manifest)
    (folder / "prompts").mkdir()
    (folder / "prompts" / "core.md").write_text("You are a test.")
    agent = AgentFolder(folder, ENVIRON).current()
    return agent.servers, agent.problems
