"""Agent programs of other makers run through the recording proxy, with turns and tool calls, as they run without it.

`make test-compat` installs and runs them. Their telemetry and updates are switched off. What they send is compared and
measured, and never written down here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from compat.process import run
from windowpane.api.xray import XrayReport
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage
from windowpane.local.pane import LocalPane
from windowpane.testing import World
from windowpane.xray.importing.files import read_file
from windowpane.xray.importing.writer import Importer
from wire import anthropic_messages, google_gemini, openai_chat, openai_responses
from wire.reply import WireCall, WireReply
from wire.server import Asked, WireServer, running
from xray.place import Xray, xray

KEY = "sk-ant-planted-key-0123456789"
CONNECTION = ("host", "connection", "keep-alive", "transfer-encoding", "expect")


@dataclass
class Tap:
    """Stands between a program and the proxy, and keeps what the program sends."""

    url: str = ""
    heard: list[bytearray] = field(default_factory=list[bytearray])

    def assert_sent(self, asked: Asked) -> None:
        """Make sure that a request reached the upstream as the program sent it."""
        where = next((sent for sent in self.heard if asked.raw in sent), None)
        assert where is not None, hashlib.sha256(asked.raw).hexdigest()
        lines = {line.strip().lower() for line in bytes(where).decode("latin-1").split("\r\n")}
        for line in map(str.lower, asked.head):
            if line.partition(":")[0] not in CONNECTION:
                assert line in lines


@asynccontextmanager
async def tapped(proxy: Xray) -> AsyncGenerator[Tap]:
    tap = Tap()
    port = int(proxy.url.rpartition(":")[2])

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
        while data := await reader.read(65536):
            kept += data
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        tap.heard.append(bytearray())
        try:
            await asyncio.gather(
                carry(reader, back, tap.heard[-1]), carry(there, writer, bytearray()), return_exceptions=True
            )
        finally:
            writer.close()
            back.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    tap.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield tap


async def _steps(pane: LocalPane, session: str) -> list[list[tuple[str, list[str], list[bool]]]]:
    """Return the answers of a session: for each, its steps with text, tools called and whether their results came."""
    page = await pane.sessions.messages(session)
    return [
        [
            (step.text, [call.offered_name for call in step.tool_calls], [bool(one.content) for one in step.results])
            for step in message.model_reply.steps
        ]
        for message in page.messages
        if isinstance(message, AssistantMessage)
    ]


async def _imported(proxy: Xray, logs: Path) -> tuple[LocalPane, list[str]]:
    """Import the logs that a program left, for another owner, and return the ids of their sessions.

    For the owner of the recorded sessions there is nothing new in them.
    """
    files = [read_file(path) for path in sorted(logs.rglob("*.jsonl"))]
    assert [unread for file in files for unread in file.unread] == []
    told = [session for file in files for session in file.sessions]
    same = [await Importer(proxy.engine.store, "local").write(session) for session in told]
    assert [(one.calls, one.known, one.recorded) for one in same] == [(0, 0, len(one.calls)) for one in told]
    importer = Importer(proxy.engine.store, "reader")
    return LocalPane(proxy.engine, owner="reader"), [(await importer.write(session)).id for session in told]


async def _bodies(proxy: Xray, session: SessionId) -> list[dict[str, Any]]:
    """Return the bodies of a session's calls."""
    calls = await proxy.engine.calls.of_session(session)
    wires = [await proxy.engine.calls.wire(session, call) for call in calls if call.purpose == "answer"]
    return [json.loads(wire.body) for wire in wires if wire is not None and wire.body is not None]


def _in_blocks(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message of Anthropic's with its content as a list, where it is a text."""
    content = message["content"]
    return {**message, "content": [{"type": "text", "text": content}]} if isinstance(content, str) else message


def _assert_taken_apart(report: XrayReport, *kinds: str) -> None:
    """Make sure that these kinds were found in the last call, and that its parts cover it and add up."""
    call = next(sent.call for sent in report.calls if sent.call.number == report.last)
    assert set(kinds) <= {part.kind for part in report.parts}
    assert sum(part.bytes for part in report.parts) == call.size
    assert call.usage is not None
    assert sum(part.tokens for part in report.parts) == call.usage.input_tokens
    assert {share.kind: share.bytes for share in report.calls[-1].kinds}["tool"] > 5_000


async def _assert_recorded(proxy: Xray, server: WireServer) -> None:
    """Make sure that the bytes on record are those that the upstream got, for every call that has a body there."""
    kept: set[str] = set()
    for session in await proxy.sessions():
        for call in await proxy.engine.calls.of_session(session):
            wire = await proxy.engine.calls.wire(session, call)
            assert wire is not None
            assert wire.body is not None
            assert KEY not in str(wire)
            kept.add(hashlib.sha256(wire.body).hexdigest())
    assert {hashlib.sha256(asked.raw).hexdigest() for asked in server.asked if asked.method == "POST"} <= kept


@pytest.mark.client("Claude Code", "same bytes", "turns", "tools", "parts", "import")
async def test_claude_code_runs_with_turns_and_tools_and_is_one_session(world: World, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The note says 42.")
    (tmp_path / "CLAUDE.md").write_text("# House rules\nAlways be brief.\n")
    skill = tmp_path / ".claude" / "skills" / "weather" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: weather\ndescription: Tells the weather of a city.\n---\nAsk the sky.\n")
    read, again = (WireCall(f"toolu_{n}", "Read", (json.dumps({"file_path": str(note)}),)) for n in (1, 2))
    answers = [
        anthropic_messages.answer(WireReply(text=("I look.",), calls=(read,), input_tokens=12_000)),
        anthropic_messages.answer(WireReply(text=("Once more.",), calls=(again,), input_tokens=12_100)),
        anthropic_messages.answer(WireReply(text=("It is 42.",), input_tokens=12_200, cached_tokens=9000)),
        anthropic_messages.answer(WireReply(text=("You are welcome.",), input_tokens=13_000)),
    ]
    async with running(*answers) as server, xray(world, server.url) as proxy, tapped(proxy) as tap:
        environ = {"ANTHROPIC_BASE_URL": f"{tap.url}/anthropic", "ANTHROPIC_API_KEY": KEY}
        first = await run(tmp_path, ["claude", "-p", "What does the note say?"], environ)
        second = await run(tmp_path, ["claude", "-p", "--continue", "Thank you."], environ)
        (session,) = await proxy.sessions()
        view = await proxy.pane.sessions.get(session)
        report = await proxy.pane.sessions.xray(session)
        steps = await _steps(proxy.pane, session)
        await _assert_recorded(proxy, server)
        reader, (log,) = await _imported(proxy, tmp_path / "home" / ".claude" / "projects")
        read = await _steps(reader, log)
        pairs = list(zip(await _bodies(proxy, session), await _bodies(proxy, SessionId(log)), strict=True))

    assert read == steps
    # What the log tells is what was sent; of the system prompt, all but a line for billing.
    for sent, told in pairs:
        assert told["messages"] == [_in_blocks(message) for message in sent["messages"]]
        assert (told["tools"], told["model"]) == (sent["tools"], sent["model"])
        assert [block["text"] for block in told["system"]] == [block["text"] for block in sent["system"]][1:]
    assert (first.strip(), second.strip()) == ("It is 42.", "You are welcome.")
    for asked in server.asked:
        tap.assert_sent(asked)
    assert view.origin is not None
    assert (view.origin.program, view.title, view.turn_count) == ("claude-code", "What does the note say?", 2)
    assert steps == [
        [("I look.", ["Read"], [True]), ("Once more.", ["Read"], [True]), ("It is 42.", [], [])],
        [("You are welcome.", [], [])],
    ]
    assert {tool.name: tool.calls for tool in report.tools}["Read"] == 2
    _assert_taken_apart(report, "tool", "system", "environment", "instructions", "skills", "billing", "result")
    assert str(tmp_path / "CLAUDE.md") in [part.name for part in report.parts if part.kind == "instructions"]
    assert [(old.tool, old.subject, old.reads) for old in report.stale] == [("Read", str(note), 2)]


@pytest.mark.client("Codex", "same bytes", "turns", "tools", "parts", "import")
async def test_codex_runs_with_turns_and_tools_and_is_one_session(world: World, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("The note says 42.")
    (tmp_path / "AGENTS.md").write_text("# House rules\nAlways be brief.\n")
    read = WireCall("call_1", "exec_command", (json.dumps({"cmd": "cat note.txt"}),))
    answers = [
        openai_responses.answer(WireReply(text=("I look.",), calls=(read,))),
        openai_responses.answer(WireReply(text=("It is 42.",))),
        openai_responses.answer(WireReply(text=("You are welcome.",))),
    ]
    async with running(*answers) as server, xray(world, server.url) as proxy, tapped(proxy) as tap:
        settings = tmp_path / "home" / ".codex" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            f'model = "gpt-5.1-codex"\nmodel_provider = "xray"\nsandbox_mode = "danger-full-access"\n'
            f'[analytics]\nenabled = false\n[model_providers.xray]\nname = "xray"\n'
            f'base_url = "{tap.url}/openai/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )
        environ = {"OPENAI_API_KEY": KEY}
        first = await run(tmp_path, ["codex", "exec", "--skip-git-repo-check", "What does the note say?"], environ)
        again = ["codex", "exec", "--skip-git-repo-check", "resume", "--last", "Thank you."]
        second = await run(tmp_path, again, environ)
        (session,) = await proxy.sessions()
        view = await proxy.pane.sessions.get(session)
        report = await proxy.pane.sessions.xray(session)
        steps = await _steps(proxy.pane, session)
        await _assert_recorded(proxy, server)
        reader, (log,) = await _imported(proxy, tmp_path / "home" / ".codex" / "sessions")
        read = await _steps(reader, log)

    assert read == steps
    assert (first.strip().endswith("It is 42."), second.strip().endswith("You are welcome.")) == (True, True)
    for asked in server.asked:
        tap.assert_sent(asked)
    assert view.origin is not None
    assert (view.origin.program, view.title, view.turn_count) == ("codex", "What does the note say?", 2)
    assert [[(text, len(calls)) for text, calls, _ in answer] for answer in steps] == [
        [("I look.", 1), ("It is 42.", 0)],
        [("You are welcome.", 0)],
    ]
    _assert_taken_apart(report, "tool", "system", "environment", "instructions", "skills", "call", "result")
    assert [part.name for part in report.parts if part.kind == "instructions"] == [str(tmp_path / "AGENTS.md")]
    assert [part.name for part in report.parts if part.kind == "result"] == ["exec_command cat note.txt"]


@pytest.mark.client("Gemini CLI", "same bytes", "tools", "parts")
async def test_gemini_cli_runs_with_tools_and_is_one_session(world: World, tmp_path: Path) -> None:
    (tmp_path / "GEMINI.md").write_text("# House rules\nAlways be brief.\n")
    look = _reads(tmp_path, "read_file", lambda path: {"file_path": path})
    async with (
        running(*(google_gemini.answer(reply) for reply in _conversation(look))) as server,
        xray(world, server.url) as proxy,
        tapped(proxy) as tap,
    ):
        settings = tmp_path / "home" / ".gemini" / "settings.json"
        settings.parent.mkdir(parents=True)
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        settings.write_text(json.dumps({**auth, "privacy": {"usageStatisticsEnabled": False}}))
        environ = {"GOOGLE_GEMINI_BASE_URL": f"{tap.url}/google", "GEMINI_API_KEY": KEY}
        said = await run(tmp_path, ["gemini", "-m", "gemini-2.5-flash", "-p", "What does the note say?"], environ)
        (session,) = await proxy.sessions()
        report, steps = await proxy.pane.sessions.xray(session), await _steps(proxy.pane, session)
        await _assert_recorded(proxy, server)

    for asked in server.asked:
        tap.assert_sent(asked)
    assert "It is 42." in said
    assert steps == _steps_of("read_file")[:1]
    _assert_taken_apart(report, "tool", "system", "environment", "instructions", "skills", "call", "result")
    assert [part.name for part in report.parts if part.kind == "instructions"] == [str(tmp_path / "GEMINI.md")]


@pytest.mark.client("opencode", "same bytes", "turns", "tools", "parts")
async def test_opencode_runs_with_turns_and_tools_and_its_conversation_is_one_session(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("# House rules\nAlways be brief.\n")
    look = _reads(tmp_path, "read", lambda path: {"filePath": path})
    async with (
        running(*(openai_chat.answer(reply) for reply in _conversation(look))) as server,
        xray(world, server.url) as proxy,
        tapped(proxy) as tap,
    ):
        # Beside the conversation it asks for a title, whose answer the script has no place for.
        server.refuses = lambda asked: "tools" not in asked.body
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{tap.url}/openai/v1", "apiKey": KEY},
            "models": {"gpt-4o": {"name": "gpt-4o"}},
        }
        settings = {"provider": {"xray": provider}, "share": "disabled", "autoupdate": False}
        (tmp_path / "opencode.json").write_text(json.dumps(settings))
        own = ["opencode", "run", "-m", "xray/gpt-4o"]
        first = await run(tmp_path, [*own, "What does the note say?"], {})
        second = await run(tmp_path, [*own, "--continue", "Thank you."], {})
        reports = {session: await proxy.pane.sessions.xray(session) for session in await proxy.sessions()}
        session, report = next((session, report) for session, report in reports.items() if report.tools)
        steps = await _steps(proxy.pane, session)
        await _assert_recorded(proxy, server)

    for asked in server.asked:
        tap.assert_sent(asked)
    assert ("It is 42." in first, "You are welcome." in second) == (True, True)
    assert steps == _steps_of("read")
    _assert_taken_apart(report, "tool", "system", "environment", "instructions", "skills", "call", "result")
    assert [part.name for part in report.parts if part.kind == "instructions"] == [str(tmp_path / "AGENTS.md")]


def _reads(folder: Path, tool: str, arguments: Callable[[str], object]) -> WireCall:
    """Write a note and return the call that reads it."""
    note = folder / "note.txt"
    note.write_text("The note says 42.")
    return WireCall("call_1", tool, (json.dumps(arguments(str(note))),))


def _conversation(look: WireCall) -> Iterator[WireReply]:
    """Answer two questions; the first after a look at the note."""
    yield WireReply(text=("I look.",), calls=(look,), input_tokens=9_000)
    yield WireReply(text=("It is 42.",), input_tokens=9_100)
    yield WireReply(text=("You are welcome.",), input_tokens=9_200)


def _steps_of(tool: str) -> list[list[tuple[str, list[str], list[bool]]]]:
    """Return the steps of that conversation."""
    return [[("I look.", [tool], [True]), ("It is 42.", [], [])], [("You are welcome.", [], [])]]


@pytest.mark.client("aider", "same bytes", "parts")
async def test_aider_edits_a_file_and_is_recorded(world: World, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The note says 41.\n")
    edit = "note.txt\n```\n<<<<<<< SEARCH\nThe note says 41.\n=======\nThe note says 42.\n>>>>>>> REPLACE\n```\n"
    async with (
        running(openai_chat.answer(WireReply(text=(edit,), input_tokens=2_000))) as server,
        xray(world, server.url) as proxy,
        tapped(proxy) as tap,
    ):
        environ = {"OPENAI_API_BASE": f"{tap.url}/openai/v1", "OPENAI_API_KEY": KEY}
        quiet = ["--analytics-disable", "--no-check-update", "--no-show-model-warnings", "--no-git", "--no-gitignore"]
        ask = ["--model", "openai/gpt-4o", "--yes-always", "--message", "Let it say 42.", "note.txt"]
        await run(tmp_path, ["aider", *quiet, *ask], environ)
        (session,) = await proxy.sessions()
        report = await proxy.pane.sessions.xray(session)
        await _assert_recorded(proxy, server)

    assert note.read_text() == "The note says 42.\n"
    for asked in server.asked:
        tap.assert_sent(asked)
    kinds = {part.kind for part in report.parts}
    assert {"system", "message", "reply"} <= kinds
    assert sum(part.tokens for part in report.parts) == 2_000


@pytest.mark.client("Cline CLI", "same bytes", "tools", "parts")
async def test_cline_runs_with_tools_and_is_one_session(world: World, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# House rules\nAlways be brief.\n")
    look = _reads(tmp_path, "read_files", lambda path: {"files": [{"path": path}]})
    async with (
        running(*(openai_chat.answer(reply) for reply in _conversation(look))) as server,
        xray(world, server.url) as proxy,
        tapped(proxy) as tap,
    ):
        auth = ["--provider", "openai", "--apikey", KEY, "--modelid", "gpt-4o", "--baseurl", f"{tap.url}/openai/v1"]
        await run(tmp_path, ["cline", "auth", *auth], {})
        said = await run(tmp_path, ["cline", "What does the note say?"], {})
        (session,) = await proxy.sessions()
        report, steps = await proxy.pane.sessions.xray(session), await _steps(proxy.pane, session)
        await _assert_recorded(proxy, server)

    for asked in server.asked:
        tap.assert_sent(asked)
    assert "It is 42." in said
    assert steps == _steps_of("read_files")[:1]
    _assert_taken_apart(report, "tool", "system", "environment", "instructions", "call", "result")
    assert [part.name for part in report.parts if part.kind == "instructions"] == ["Workspace AGENTS.md"]
