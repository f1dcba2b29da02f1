"""What a session is working on: changed by everybody in one way, kept, and remembered on resume."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from structlog.testing import capture_logs

from engine.changes import CHANGES, OWN
from windowpane.agents.folder import FolderAgents
from windowpane.context.events import (
    Event,
    ModelReplied,
    SessionContext,
    ToolReturned,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import SessionId
from windowpane.context.items import tool_ref
from windowpane.context.messages import ToolResult
from windowpane.context.request import Request
from windowpane.context.sets import MAX_PER_SET, MAX_TOTAL, SetChange
from windowpane.engine import Engine
from windowpane.errors import ModelStreamBrokenError, SessionNotFoundError, UnknownItemError
from windowpane.models.scripted import Call, Reply
from windowpane.request.file_marks import mark_of
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, stored, tool

TESTS = Path(__file__).parents[1]


def set_call(**arguments: Any) -> Call:
    return Call("windowpane__set_relevant_context", json.dumps(arguments), "c1")


def with_context_tools(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\n")


async def contexts(engine: Engine, session_id: SessionId) -> list[Event]:
    return [entry.event for entry in await engine.store.read(session_id) if isinstance(entry.event, SessionContext)]


def started(events: Sequence[Event]) -> list[tuple[int, str, bool]]:
    """Return the turns that were started: number, message, and whether the session was resumed."""
    return [(event.turn, event.message, event.resumed) for event in events if isinstance(event, TurnStarted)]


def resume_parts(request: Request) -> list[str]:
    return [message.content for message in request.messages if message.part == "resume"]


# Changing it


@pytest.mark.spec("S2.2", "S2.25", "S2.34", "S2.35", "S2.38", "S2.40")
async def test_every_change_is_one_event_with_all_sets_and_the_name_of_the_changed_one(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"environment_hint": "Linux"})
        replies = [
            (await engine.working.set(session.id, "ports", ["80"])).text,
            (await engine.working.set(session.id, "ports", ["81"], "merge", actor="model")).text,
            (await engine.working.set(session.id, "endpoints", ["https://example.org"])).text,
            (await engine.working.set(session.id, "ports", [])).text,
            (await engine.working.replace(session.id, {"applet": ["git-diff", "a=b"]})).text,
        ]
        events = await contexts(engine, session.id)
        session = await engine.sessions.get(session.id)

    assert replies == [
        "Set ports: 1 items",
        "Merged ports: 2 items",
        "Set endpoints: 1 items",
        "Cleared ports",
        "Replaced all context: 2 items",
    ]
    both = {"ports": ("80", "81"), "endpoints": ("https://example.org",)}
    assert events == [
        SessionContext(reason="changed", context={"ports": ("80",)}, set_name="ports"),
        SessionContext(reason="changed", context={"ports": ("80", "81")}, set_name="ports", actor="model"),
        SessionContext(reason="changed", context=both, set_name="endpoints"),
        SessionContext(reason="changed", context={"endpoints": ("https://example.org",)}, set_name="ports"),
        SessionContext(reason="changed", context={"applet": ("git-diff", "a=b")}),
    ]
    assert session.sets == {"applet": ("git-diff", "a=b")}
    assert session.settings.environment_hint == "Linux"


@pytest.mark.spec("S2.28", "S2.31")
async def test_one_set_or_all_of_them_can_be_read(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        empty = await engine.working.get(session.id)
        await engine.working.set(session.id, "ports", ["80"])

        assert empty == {}
        assert await engine.working.get(session.id) == {"ports": ("80",)}
        assert await engine.working.get(session.id, "ports") == {"ports": ("80",)}
        assert await engine.working.get(session.id, "files") == {"files": ()}
        with pytest.raises(SessionNotFoundError):
            await engine.working.get(SessionId("ses_none"))
        with pytest.raises(SessionNotFoundError):
            await engine.working.set(SessionId("ses_none"), "ports", ["80"])


@pytest.mark.spec("S2.24")
async def test_what_is_refused_and_what_changes_nothing_leaves_no_trace(world: World, tmp_path: Path) -> None:
    spec = tmp_path / "spec.md"
    spec.write_text("first")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        for name in ("a", "b", "c", "d"):
            await engine.working.set(session.id, name, [str(number) for number in range(10)])
        await engine.working.set(session.id, "files", [str(spec)])
        before = await engine.sessions.get(session.id)
        answers = [
            await engine.working.set(session.id, "ports", [str(number) for number in range(10)]),
            await engine.working.set(session.id, "files", ["spec.md"]),
            await engine.working.set(session.id, "files", [str(spec)], "merge"),
            await engine.working.set(session.id, "files", [str(spec)]),
            await engine.working.set(session.id, "files", [], "merge"),
            await engine.working.set(session.id, "ports", []),
            await engine.working.replace(session.id, {f"s{n}": [str(i) for i in range(10)] for n in range(6)}),
            await engine.working.replace(session.id, before.sets),
        ]
        after = await engine.sessions.get(session.id)

    assert [answer.reply for answer in answers] == [
        "Context too large (51 items, max 50). Remove some items first.",
        "Files need absolute paths, and 'spec.md' is not one. Nothing was changed.",
        "Merged files: 1 items",
        "Set files: 1 items",
        "Nothing to merge: files is unchanged (1 items)",
        "Cleared ports",
        "Context too large (60 items, max 50). Remove some items first.",
        "Replaced all context: 41 items",
    ]
    assert after == before


async def test_files_are_marked_when_they_are_named_and_marked_again_when_they_are_confirmed(
    world: World, tmp_path: Path
) -> None:
    spec, gone = tmp_path / "spec.md", tmp_path / "gone.md"
    spec.write_text("first")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.working.set(session.id, "files", [str(spec), str(gone)])
        first, first_mark = (await engine.sessions.get(session.id)).marks, mark_of(str(spec))
        spec.write_text("second")
        await engine.working.set(session.id, "files", [str(spec)], "merge")
        second, second_mark = (await engine.sessions.get(session.id)).marks, mark_of(str(spec))
        await engine.working.set(session.id, "files", [])
        cleared = (await engine.sessions.get(session.id)).marks

    assert first == {str(spec): first_mark}
    assert second == {str(spec): second_mark}
    assert first_mark != second_mark
    assert cleared == {}


@pytest.mark.spec("S2.18")
async def test_a_set_of_an_unknown_name_is_kept_and_warned_about_in_the_log(world: World) -> None:
    with capture_logs() as logs:
        async with world.engine() as engine:
            session = await engine.sessions.create()
            change = await engine.working.set(session.id, "fles", ["/a"])

    assert change == SetChange(
        {"fles": ("/a",)},
        "Set fles: 1 items",
        warnings=('Unknown set name: "fles" (typo?) Known: files, applet, endpoints, ports.',),
    )
    assert logs == [{"event": "context.unknown_set", "session": session.id, "names": ["fles"], "log_level": "warning"}]


@pytest.mark.spec("S2.6", "S2.14", "S2.17")
async def test_clearing_the_conversation_keeps_the_working_context(world: World) -> None:
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.working.set(session.id, "ports", ["80"])
        await drain(engine.turn(session.id, "Hi"))
        cleared = await engine.conversations.clear(session.id)

    assert (cleared.sets, cleared.message_count) == ({"ports": ("80",)}, 0)


# The model's tools


@pytest.mark.spec("S2.19", "S2.26", "S2.27", "S2.38", "S2.78")
async def test_the_model_notes_what_it_works_on_without_asking_and_whoever_watches_sees_it(world: World) -> None:
    with_context_tools(world)
    world.says(Reply(calls=(set_call(set_name="ports", items=["80"], mode="merge"),)), "Noted.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        live = await drain(engine.turn(session.id, "Work on port 80"))
        session = await engine.sessions.get(session.id)

    events = [event for event in stored(live) if isinstance(event, SessionContext | ToolReturned | ModelReplied)]
    changed = SessionContext(reason="changed", context={"ports": ("80",)}, set_name="ports", actor="model")
    assert [type(event) for event in events] == [ModelReplied, SessionContext, ToolReturned, ModelReplied]
    assert events[1] == changed
    returned = events[2]
    assert isinstance(returned, ToolReturned)
    assert returned.result == ToolResult("c1", "Merged ports: 1 items", latency_ms=returned.result.latency_ms)
    assert session.sets == {"ports": ("80",)}


@pytest.mark.spec("S2.24", "S2.30", "S2.32")
async def test_the_model_reads_its_notes_and_is_told_what_it_did_wrong(world: World) -> None:
    with_context_tools(world)
    get = Call("windowpane__get_relevant_context", "{}", "c1")
    wrong = set_call(setName="files", items=["spec.md"])
    right = set_call(setName="applet", items=["git-diff"])
    world.says(*(Reply(calls=(call,)) for call in (get, wrong, right, get)), "Done.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        live = await drain(engine.turn(session.id, "Go"))

    results = [event.result for event in stored(live) if isinstance(event, ToolReturned)]
    assert [(result.content, result.is_error) for result in results] == [
        ("No context stored for this session", False),
        ("Files need absolute paths, and 'spec.md' is not one. Nothing was changed.", True),
        ("Set applet: 1 items", False),
        ('{\n  "applet": [\n    "git-diff"\n  ]\n}', False),
    ]


@pytest.mark.spec("S2.33")
async def test_the_tools_are_in_every_request_and_its_record_and_in_no_session(world: World) -> None:
    with_context_tools(world)
    world.toolbox.put("files", [tool("read")])
    world.says("Hello.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))
        context = await engine.past.context(session.id, 1)
        await engine.items.remove(session.id, tool_ref("windowpane", "set_relevant_context"))
        with pytest.raises(UnknownItemError):
            await engine.items.add(session.id, tool_ref("windowpane", "set_relevant_context"))
        session = await engine.sessions.get(session.id)

    names = ["files__read", "windowpane__get_relevant_context", "windowpane__set_relevant_context"]
    assert session.tools == (("files", "read"),)
    assert [offered.offered_name for offered in world.model.calls[0].tools] == names
    assert [(item.offered_name, item.include_mode, item.status) for item in context.items] == [
        (name, "always", "used") for name in names
    ]
    assert [item.reason for item in context.items][1:] == ["built in: lets the model record what it is working on"] * 2
    assert all(item.tokens > 0 and item.hash for item in context.items)


async def test_an_agent_can_do_without_the_tools(world: World) -> None:
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\n")
    world.says("Hello.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))

        assert world.model.calls[0].tools == ()
        assert (await engine.past.context(session.id, 1)).items == ()


def test_a_tool_server_cannot_take_the_name_of_what_is_built_in(world: World) -> None:
    world.write("agent.yaml", "mcpServers:\n  windowpane:\n    command: windowpane\n    args: [mcp]\n")

    agent = FolderAgents(world.root).current("pane")

    assert agent.servers == ()
    assert [(problem.file, problem.line, problem.reason) for problem in agent.problems] == [
        ("agent.yaml", 2, "windowpane is the name of the tools that are built in; give this server another")
    ]


# Observed files


@pytest.mark.spec("S2.10-S2.12")
async def test_files_that_tools_touch_are_observed_and_never_noted_until_somebody_says_so(
    world: World, tmp_path: Path
) -> None:
    with_context_tools(world)
    path = tmp_path / "a.md"
    path.write_text("x")
    world.toolbox.put("files", [tool("read", permission="not_required")])
    read = Call("files__read", json.dumps({"filePath": str(path), "also": ["/b.md"]}))
    world.says(Reply(calls=(read, set_call(set_name="files", items=["/noted.md"]))), "Read.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Read"))
        before = await engine.sessions.get(session.id)
        refused = await engine.working.promote(session.id, [str(path), "/noted.md"])
        odd: list[Any] = [[7], [[]], "/b.md", None]
        unfit = [await engine.working.promote(session.id, paths) for paths in odd]
        promoted = await engine.working.promote(session.id, [str(path)])
        after = await engine.sessions.get(session.id)

    assert (before.observed, before.sets) == ((str(path), "/b.md"), {"files": ("/noted.md",)})
    assert refused == SetChange(None, "Not observed in this session: /noted.md. Nothing was changed.")
    assert unfit == [SetChange(None, "Items must be a list of strings.")] * 4
    assert promoted == SetChange({"files": ("/noted.md", str(path))}, "Merged files: 2 items")
    assert (after.sets, after.marks) == (promoted.sets, {str(path): mark_of(str(path))})


# Resume


@pytest.mark.spec("S2.1", "S2.4", "S2.7", "S2.37", "S2.64", "S2.65")
async def test_after_a_pause_the_model_is_reminded_in_a_block_of_its_own(world: World, tmp_path: Path) -> None:
    kept, edited, gone = (tmp_path / name for name in ("kept.md", "edited.md", "gone.md"))
    for file in (kept, edited, gone):
        file.write_text("before")
    world.says("Hello.", "Welcome back.")

    async with world.engine(resume_after_s=0) as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))
        await engine.working.set(session.id, "files", [str(kept), str(edited), str(gone)])
        edited.write_text("after")
        gone.unlink()
        preview = await engine.preview(session.id, "Where were we?")
        live = await drain(engine.turn(session.id, "Where were we?"))
        context = await engine.past.context(session.id, 2)
        sent = await engine.past.request(session.id, 2)
        session = await engine.sessions.get(session.id)

    sets = {"files": (str(kept), str(edited), str(gone))}
    assert started(stored(live)) == [(2, "Where were we?", True)]
    assert stored(live)[1] == SessionContext(reason="resume", context=sets, actor="system")
    block = f"""Relevant files:
- {kept}
- {edited}

(1 files not found)
- {gone}

Changed since they were noted:
- {edited}"""
    assert [block in part for part in resume_parts(sent)] == [True]
    assert resume_parts(preview) == resume_parts(sent)
    assert sent.messages[-1].content == "Where were we?"
    parts = [(part.kind, part.status, part.reason) for part in context.parts if part.kind == "resume"]
    assert parts == [("resume", "used", "the session is taken up again")]
    assert session.resume_pending is False
    assert "Where were we?" not in resume_parts(sent)[0]


async def test_a_session_with_nothing_to_remember_is_not_resumed(world: World) -> None:
    world.says("One.", "Two.")
    async with world.engine(resume_after_s=0) as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))
        live = await drain(engine.turn(session.id, "Hi again"))

        assert started(stored(live)) == [(2, "Hi again", False)]
        assert resume_parts(await engine.past.request(session.id, 2)) == []
        assert await contexts(engine, session.id) == []


async def test_without_a_pause_there_is_no_reminder(world: World) -> None:
    world.says("One.", "Two.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.working.set(session.id, "ports", ["80"])
        await drain(engine.turn(session.id, "Hi"))
        await drain(engine.turn(session.id, "Hi again"))

        assert [resume_parts(await engine.past.request(session.id, turn)) for turn in (1, 2)] == [[], []]


@pytest.mark.spec("S2.37", "S2.63")
async def test_after_a_restart_the_reminder_stays_until_a_turn_succeeds(world: World, tmp_path: Path) -> None:
    world.store = SQLiteStore(tmp_path / "windowpane.db")
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"environment_hint": "Linux"})
        await engine.working.set(session.id, "ports", ["80"])
        await drain(engine.turn(session.id, "Hi"))

    world.store = SQLiteStore(tmp_path / "windowpane.db")
    world.says(Reply(error=ModelStreamBrokenError("it broke")), "Again.", "And on.")
    async with world.engine() as engine:
        lives = [stored(await drain(engine.turn(session.id, message))) for message in ("One", "Two", "Three")]
        requests = [await engine.past.request(session.id, turn) for turn in (2, 3, 4)]

    assert [started(live) for live in lives] == [[(2, "One", True)], [(3, "Two", False)], [(4, "Three", False)]]
    assert [event.reason for live in lives for event in live if isinstance(event, SessionContext)] == ["resume"]
    assert [live[-1].outcome for live in lives if isinstance(live[-1], TurnFinished)] == [
        "failed",
        "completed",
        "completed",
    ]
    assert [len(resume_parts(request)) for request in requests] == [1, 1, 0]
    assert "Environment: Linux\n\nports: 80" in resume_parts(requests[0])[0]


async def test_a_request_for_a_model_of_your_own_has_the_reminder_too(world: World) -> None:
    async with world.engine(resume_after_s=0) as engine:
        session = await engine.sessions.create()
        await engine.working.set(session.id, "ports", ["80"])
        given_up = await engine.prepared.begin(session.id, "Hi")
        after_failure = await engine.prepared.abandon(given_up, "no answer")
        prepared = await engine.prepared.begin(session.id, "Hi")
        after_answer = await engine.prepared.record(prepared, "Hello.")

    assert [len(resume_parts(each.request)) for each in (given_up, prepared)] == [1, 1]
    assert (after_failure.resume_pending, after_answer.resume_pending) == (True, False)


async def test_a_restart_in_the_middle_brings_back_sets_approval_and_reminder(world: World, tmp_path: Path) -> None:
    with_context_tools(world)
    wipe = Reply(calls=(set_call(set_name="ports", items=["81"], mode="merge"), Call("files__wipe", "{}", "c2")))
    world.toolbox.put("files", [tool("wipe", "gone")])
    world.store = SQLiteStore(tmp_path / "windowpane.db")
    world.says(wipe)
    async with world.engine(resume_after_s=0) as engine:
        session = await engine.sessions.create()
        await engine.working.set(session.id, "ports", ["80"])
        await drain(engine.turn(session.id, "Wipe"))

    world.store = SQLiteStore(tmp_path / "windowpane.db")
    world.says("Gone.")
    async with world.engine() as engine:
        back = await engine.sessions.get(session.id)
        await drain(engine.approve(session.id, {"c2": "allow_once"}))
        done = await engine.sessions.get(session.id)

    assert back.sets == {"ports": ("80", "81")}
    assert back.open_turn is not None
    assert [call.id for call in back.open_turn.undecided] == ["c2"]
    assert back.resume_pending is True
    reminders = [m.content for m in world.model.calls[0].messages if "ports: 80" in m.content and m.role == "user"]
    assert len(reminders) == 1
    assert (done.open_turn, done.resume_pending, done.sets) == (None, False, {"ports": ("80", "81")})


# Many at once


@pytest.mark.spec("S2.24", "S2.25")
async def test_two_processes_that_change_one_session_lose_nothing_and_keep_to_the_caps(tmp_path: Path) -> None:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    async with world.engine() as engine, AsyncExitStack() as stack:
        session = await engine.sessions.create()
        processes: list[tuple[anyio.abc.Process, BufferedByteReceiveStream]] = []
        for name in ("a", "b"):
            command = [sys.executable, "-m", "engine.changes", str(tmp_path), session.id, name]
            opened = await anyio.open_process(command, env={**os.environ, "PYTHONPATH": str(TESTS)}, stderr=None)
            process = await stack.enter_async_context(opened)
            assert process.stdout is not None
            processes.append((process, BufferedByteReceiveStream(process.stdout)))
        for _, output in processes:
            assert await output.receive_until(b"\n", 100) == b"ready"
        for process, _ in processes:
            assert process.stdin is not None
            await process.stdin.send(b"\n")
        said = [
            [json.loads(await output.receive_until(b"\n", 10_000)) for _ in range(CHANGES)] for _, output in processes
        ]
        log = [event for event in await contexts(engine, session.id) if isinstance(event, SessionContext)]
        after = await engine.working.get(session.id)

    sets: dict[str, tuple[str, ...]] = {}
    for event in log:
        others = {name: items for name, items in event.context.items() if name != event.set_name}
        assert others == {name: items for name, items in sets.items() if name != event.set_name}
        assert all(len(items) <= MAX_PER_SET for items in event.context.values())
        assert sum(map(len, event.context.values())) <= MAX_TOTAL
        sets = dict(event.context)
    assert after == sets
    accepted = [change for changes in said for change in changes if not change[3]]
    ports = {items[0] for name, items, _, _ in accepted if name == "ports"}
    assert ports == set(after["ports"])
    assert len(log) <= len(accepted)
    refused = [change for changes in said for change in changes if change[3]]
    assert len(ports) + sum(name == "ports" for name, *_ in refused) == 2 * OWN
