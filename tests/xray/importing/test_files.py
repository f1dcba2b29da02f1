"""`windowpane xray import` reads logs and exports as sessions, once, and names what it cannot read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from windowpane.api.pane import Pane
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, ErrorMessage, Usage, UserMessage
from windowpane.testing import World
from windowpane.xray.importing.files import read_file
from windowpane.xray.importing.writer import Importer
from xray.importing import logs

IMPORT = [sys.executable, "-m", "windowpane", "xray"]


def written(path: Path, documents: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    return path


async def imported(world: World, path: Path) -> list[str]:
    """Import a file into the world's store, and return the ids of its sessions."""
    read = read_file(path)
    assert read.unread == ()
    importer = Importer(world.store, "local")
    return [(await importer.write(told)).id for told in read.sessions]


async def conversation(pane: Pane, session: str) -> list[Any]:
    """Return who said what: questions, answers by step with calls and results, failures."""
    told: list[Any] = []
    for message in (await pane.sessions.messages(session)).messages:
        if isinstance(message, UserMessage):
            told.append(message.content)
        elif isinstance(message, AssistantMessage):
            for step in message.model_reply.steps:
                calls = [(call.offered_name, call.arguments) for call in step.tool_calls]
                told.append((step.thinking, step.text, calls, [(one.content, one.is_error) for one in step.results]))
        elif isinstance(message, ErrorMessage):
            told.append(message.content)
    return told


ANSWERED: list[Any] = [
    "What does the note say?",
    (
        "Hm.",
        "I look.",
        [("Read", '{"path": "note.txt"}'), ("Run", '{"command": "exit 3"}')],
        [("It says 42.", False), ("Exit code 3", True)],
    ),
    ("", "It is 42.", [], []),
]


async def test_a_log_of_claude_code_is_a_session_and_what_it_grew_by_is_added(world: World, tmp_path: Path) -> None:
    log = written(tmp_path / "log.jsonl", logs.claude_old())
    began = datetime.now(UTC)
    async with world.pane() as pane:
        (session,) = await imported(world, log)
        row = await world.store.row(SessionId(session))
        before = await conversation(pane, session)
        first = await pane.sessions.calls(session)
        assert await imported(world, log) == [session]
        assert await pane.sessions.calls(session) == first
        written(log, [*logs.claude_old(), *logs.claude_more()])
        assert await imported(world, log) == [session]
        view = await pane.sessions.get(session)
        after = await conversation(pane, session)
        calls = (await pane.sessions.calls(session)).calls
        wire = await pane.turns.call(session, 1, 2)

    assert before == ANSWERED
    assert after == [*ANSWERED, "Thank you.", ("", "You are welcome.", [], [])]
    assert view.origin is not None
    assert (view.agent, view.origin.kind, view.origin.source, view.origin.version, view.origin.not_told) == (
        "xray:claude-code",
        "import",
        "claude-code",
        "2.1.326",
        ("wire", "system", "tools", "failures"),
    )
    assert str(view.created_at) == "2026-03-01 10:00:00+00:00"
    # A session that was imported a moment ago does not expire for its age.
    assert row.touched_at >= began
    usage = Usage(9120, 5, cache_read_tokens=9000, cache_write_tokens=100)
    assert [(c.turn, c.step, c.attempt, c.outcome, c.seen, c.usage, c.duration_ms) for c in calls] == [
        (1, 1, 1, "complete", False, usage, 1300),
        (1, 2, 1, "complete", False, usage, 1500),
        (2, 1, 1, "retried", False, None, 1000),
        (2, 1, 2, "complete", False, usage, 2000),
    ]
    assert all(call.cost_usd is not None for call in calls if call.usage)
    assert json.loads(wire.body or "") == {
        "model": "claude-opus-4-6",
        "messages": [
            {"role": "user", "content": [logs.ASK, logs.NOTE]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm."},
                    {"type": "text", "text": "I look."},
                    logs.READ,
                    logs.RUN,
                ],
            },
            {"role": "user", "content": [logs.READ_RESULT, logs.RUN_RESULT]},
        ],
    }


async def test_requests_that_a_log_of_claude_code_keeps_are_put_together_whole(world: World, tmp_path: Path) -> None:
    main = written(tmp_path / "log.jsonl", logs.claude_new())
    below = written(tmp_path / "log" / "subagents" / "agent-a77.jsonl", logs.claude_subagent())
    async with world.pane() as pane:
        (session,) = await imported(world, main)
        (child,) = await imported(world, below)
        report = await pane.sessions.xray(session)
        bodies = [json.loads((await pane.turns.call(session, 1, number)).body or "") for number in (1, 2, 3)]
        told = await conversation(pane, child)

    origin = report.session.origin
    assert origin is not None
    assert origin.not_told == ("wire",)
    assert report.subagents == (child,)
    assert told == ["Look into it.", ("", "Done.", [], [])]
    lost = "the log has no answer to it"
    assert [(c.call.turn, c.call.step, c.call.attempt, c.call.outcome, c.call.reason) for c in report.calls] == [
        (1, 1, 1, "complete", ""),
        (1, 2, 1, "retried", lost),
        (1, 2, 2, "complete", ""),
    ]
    marked = [logs.SYSTEM[0], {**logs.SYSTEM[1], "cache_control": {"type": "ephemeral"}}]
    asked = {"role": "user", "content": [logs.NOTE, logs.ASK]}
    assert bodies[0] == {
        "model": "claude-opus-4-6",
        "max_tokens": 64000,
        "system": marked,
        "tools": logs.TOOLS,
        "messages": [asked],
    }
    called = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, logs.READ]}
    assert (
        bodies[1]
        == bodies[2]
        == {
            **bodies[0],
            "messages": [asked, called, {"role": "user", "content": [logs.READ_RESULT]}],
        }
    )
    assert [(tool.name, tool.calls) for tool in report.tools] == [("Read", 1), ("Run", 0)]


async def test_a_log_of_codex_is_a_session(world: World, tmp_path: Path) -> None:
    async with world.pane() as pane:
        (session,) = await imported(world, written(tmp_path / "rollout.jsonl", logs.codex()))
        view = await pane.sessions.get(session)
        told = await conversation(pane, session)
        calls = (await pane.sessions.calls(session)).calls
        wire = await pane.turns.call(session, 1, 2)

    assert told == [
        "What does the note say?",
        ("Hm.", "I look.", [("exec", '{"cmd": "cat"}')], [("It says 42.", False)]),
        ("", "It is 42.", [], []),
        "Thank you.",
        ("", "You are welcome.", [], []),
    ]
    assert view.origin is not None
    assert (view.agent, view.origin.conversation, view.origin.not_told) == (
        "xray:codex",
        "01a1",
        ("wire", "tools", "usage", "failures"),
    )
    usage = Usage(30, 4, cache_read_tokens=10)
    assert [(call.turn, call.step, call.outcome, call.usage, call.reason) for call in calls] == [
        (1, 1, "complete", usage, ""),
        (1, 2, "complete", usage, ""),
        (2, 1, "retried", None, "stream disconnected"),
        (2, 1, "complete", None, ""),
    ]
    body = json.loads(wire.body or "")
    assert (body["model"], body["instructions"]) == ("gpt-5.1-codex", "You are another.")
    assert [(item["type"], item.get("role")) for item in body["input"]] == [
        ("message", "developer"),
        ("message", "user"),
        ("message", "user"),
        ("reasoning", None),
        ("message", "assistant"),
        ("function_call", None),
        ("function_call_output", None),
    ]


async def test_exports_of_langfuse_and_litellm_are_the_same_conversation(world: World, tmp_path: Path) -> None:
    pretty = tmp_path / "trace.json"
    pretty.write_text(json.dumps(logs.langfuse(), indent=2))
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps(logs.litellm()))
    async with world.pane() as pane:
        (one,) = await imported(world, pretty)
        (other,) = await imported(world, rows)
        views = [await pane.sessions.get(session) for session in (one, other)]
        told = [await conversation(pane, session) for session in (one, other)]
        calls = [(await pane.sessions.calls(session)).calls for session in (one, other)]
        bodies = [json.loads((await pane.turns.call(session, 1, 1)).body or "") for session in (one, other)]

    answered: list[Any] = ["What time is it?", ("", "", [("clock", "{}")], [("noon", False)]), ("", "Noon.", [], [])]
    assert told == [answered, answered]
    assert [(view.agent, view.origin and view.origin.conversation) for view in views] == [
        ("xray:langfuse", "chat-7"),
        ("xray:litellm", "chat-7"),
    ]
    assert [view.origin and view.origin.not_told for view in views] == [("wire",), ("wire",)]
    assert [[(c.outcome, c.attempt, c.usage, c.reason) for c in of] for of in calls] == [
        [
            ("complete", 1, Usage(30, 5, cache_read_tokens=10), ""),
            ("retried", 1, None, "rate limit"),
            ("complete", 2, Usage(40, 2), ""),
        ],
        [
            ("complete", 1, Usage(30, 5, cache_read_tokens=10), ""),
            ("retried", 1, None, "RateLimitError: slow down"),
            ("complete", 2, Usage(30, 5, cache_read_tokens=10), ""),
        ],
    ]
    assert [call.model for of in calls for call in of] == ["gpt-4o"] * 3 + ["openai:gpt-4o"] * 3
    assert bodies == [
        {"model": "gpt-4o", "messages": logs.CHAT, "tools": [logs.CHAT_TOOL]},
        {"model": "gpt-4o", "messages": logs.CHAT, "tools": [logs.CHAT_TOOL], "max_tokens": 99},
    ]


def test_the_command_imports_folders_and_names_what_it_cannot_read(tmp_path: Path) -> None:
    folder = tmp_path / "projects"
    log = written(folder / "p" / "log.jsonl", logs.claude_old())
    log.write_text(log.read_text().replace("\n", "\nnot json\n", 1) + '{"broken off')
    written(folder / "p" / "log.meta.json", [{"agentType": "one"}])
    written(folder / "codex" / "rollout.jsonl", logs.codex())
    other = tmp_path / "other.txt"
    other.write_text("words\n")
    environ = {**os.environ, "WINDOWPANE_DATA": str(tmp_path / "data")}

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [*IMPORT, *map(str, arguments)]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    first = run("import", folder, other, tmp_path / "nothing.jsonl")
    again = run("import", folder, "--json")
    shown = run("report", "last")

    assert first.returncode == 1, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == "6 calls imported into 2 sessions"
    assert lines[3:] == [
        "codex does not tell the bytes that were sent, the definitions of tools, the tokens of some calls and "
        "calls that failed",
        "claude-code does not tell the bytes that were sent, the system prompt, the definitions of tools and "
        "calls that failed",
        "1 other file left alone",
        "Not read (4):",
        f"  {log}:2: it is no JSON",
        f"  {log}:13: it is no JSON",
        f"  {other}: it is none of these: Claude Code, Codex, OpenTelemetry, Langfuse, LiteLLM",
        f"  {tmp_path / 'nothing.jsonl'}: No such file or directory",
    ]
    assert again.returncode == 0
    report = json.loads(again.stdout)
    assert [(line["source"], line["calls"], line["known"]) for line in report["sessions"]] == [
        ("codex", 0, 4),
        ("claude-code", 0, 2),
    ]
    assert "which does not tell the bytes that were sent" in shown.stdout


async def test_an_import_tells_how_far_it_is(world: World, tmp_path: Path) -> None:
    (told,) = read_file(written(tmp_path / "log.jsonl", logs.claude_old())).sessions
    heard: list[tuple[int, int]] = []

    async with world.pane():
        await Importer(world.store, "local", lambda done, total: heard.append((done, total))).write(told)

    assert heard == [(0, 2), (1, 2), (2, 2)]
