"""One API, two transports: a pane in this process and one over HTTP have the same methods and values."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from mcp import Client as McpClient

from server.place import engine_of, listening
from windowpane.api import pane as protocol
from windowpane.api.pane import Pane
from windowpane.api.replay import WhatIf
from windowpane.client import Client
from windowpane.context.events import Live, ModelReplied, Recorded, SessionDeleted, SessionItem
from windowpane.context.fetched import Fetched
from windowpane.context.items import Rule, Tool, rule_ref
from windowpane.context.messages import ToolResult
from windowpane.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RemoteError,
    SessionNotFoundError,
    StaleRevisionError,
    UnknownModelError,
    WindowpaneError,
)
from windowpane.local.pane import LocalPane
from windowpane.mcp_server.server import create_server
from windowpane.models.scripted import Call, Reply
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.index import ItemIndex
from windowpane.server.app import create_app
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool

pytestmark = pytest.mark.anyio

RESULT = Fetched(kind="web_search", url="https://example.org/2", content="Found.")
NAMESPACES = {
    "sessions": protocol.SessionsApi,
    "turns": protocol.TurnsApi,
    "agents": protocol.AgentsApi,
    "models": protocol.ModelsApi,
    "analytics": protocol.AnalyticsApi,
}


@pytest.mark.parametrize("kind", [LocalPane, Client])
def test_both_panes_have_every_method_of_the_protocol_with_its_names_and_types(kind: type) -> None:
    expected = dict(_signatures(Pane))
    expected |= {f"{name}.{method}": value for name, api in NAMESPACES.items() for method, value in _signatures(api)}

    found = {method: _signature(getattr(kind, method)) for method, _ in _signatures(Pane)}
    for name, api in NAMESPACES.items():
        namespace = get_type_hints(inspect.getattr_static(kind, name).fget)["return"]
        found |= {f"{name}.{method}": _signature(getattr(namespace, method)) for method, _ in _signatures(api)}

    assert found == expected


def _signatures(api: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(api).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            yield name, _signature(member)


def _signature(function: Any) -> list[tuple[Any, ...]]:
    hints = get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default, hints.get(each.name)) for each in parameters] + [
        ("return", None, None, hints["return"])
    ]


def test_the_client_loads_an_http_library_and_not_the_engine() -> None:
    code = "import sys, windowpane.client; print(*sorted(sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    heavy = {"fastapi", "starlette", "uvicorn", "pydantic_ai", "numpy", "mcp", "onnxruntime", "tokenizers"}
    assert heavy & set(loaded) == set()
    assert {name.split(".")[1] for name in loaded if name.startswith("windowpane.")} == {
        "api",
        "certificates",
        "client",
        "context",
        "errors",
        "json_codec",
    }
    assert "httpx2" in loaded


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    world.selector = HybridSelector(ItemIndex(None))
    world.toolbox.put("files", [tool("read", "The file says {path}.", permission="required")])
    world.rule("tone", "Be kind.", include="always")
    world.reference("billing", "Refunds take five days.", include="manual")
    return world


@asynccontextmanager
async def both(world: World) -> AsyncGenerator[tuple[LocalPane, Client]]:
    """Give a pane in this process and a pane over HTTP, which share one engine and so one store."""
    engine = engine_of(world)
    async with listening(create_app(engine)) as url, Client(url) as client:
        yield LocalPane(engine), client


async def drained(events: AsyncGenerator[Live]) -> list[Live]:
    return [event async for event in events]


async def test_whichever_pane_does_something_the_other_sees_the_same_values(world: World) -> None:
    world.says("Hello.", Reply("Reading.", calls=(Call("files__read", '{"path": "/a"}'),)), "It says /a.")
    async with both(world) as (local, client):
        session = await client.sessions.create("pane", name="Talk")
        events = await drained(client.turn(session.id, "Hi", key="once"))
        again = await drained(local.turn(session.id, "Hi", key="once"))
        waiting = await local.ask(session.id, "Read /a")
        decided = await drained(client.approve(session.id, {waiting.approvals[0].id: "allow_once"}))
        added = await client.sessions.add_item(session.id, "reference:billing")
        fork = await local.sessions.fork(session.id, 2, name="Fork", key="fork")
        refork = await client.sessions.fork(session.id, 2, name="Fork", key="fork")
        copy = await client.sessions.import_(await local.sessions.export(session.id), name="Copy")
        answers = [await _everything(pane, session.id) for pane in (local, client)]

    assert [event for event in events if isinstance(event, Recorded)] == [
        event for event in again if isinstance(event, Recorded)
    ]
    assert isinstance(decided[-1], Recorded)
    assert decided[-1].event.type == "turn.finished"
    assert (added.changed, [str(item.ref) for item in added.items]) == (
        True,
        ["rule:tone", "files:read", "reference:billing"],
    )
    assert (fork.turn_count, replace(refork, updated_at=fork.updated_at)) == (1, fork)
    assert (copy.name, copy.turn_count) == ("Copy", 2)
    assert answers[0] == answers[1]
    assert answers[0]["turn"].text == "Reading.\n\nIt says /a."


async def _everything(pane: Pane, session_id: str) -> dict[str, Any]:
    """Return the answers to every question that a pane can be asked about a session and its agent."""
    return {
        "session": await pane.sessions.get(session_id),
        "found": await pane.sessions.list(agent="pane", query="says /a"),
        "messages": await pane.sessions.messages(session_id, limit=3),
        "items": await pane.sessions.items(session_id),
        "context": await pane.sessions.context(session_id),
        "fetched": await pane.sessions.fetched(session_id),
        "statistics": await pane.sessions.statistics(session_id),
        "summary": (await pane.sessions.summary(session_id), await pane.sessions.sum_up(session_id)),
        "export": replace(await pane.sessions.export(session_id), exported_at=None),  # pyright: ignore[reportArgumentType] – left out of the comparison
        "turn": await pane.turns.get(session_id, 2),
        "request": await pane.turns.request(session_id, 2),
        "request context": await pane.turns.context(session_id, 2),
        "sent item": await pane.turns.item(session_id, 1, "rule:tone"),
        "why": await pane.explain(session_id, 1, "rule:tone"),
        "explanations": await pane.turns.explanations(session_id, 2),
        "comparison": await pane.turns.compare(session_id, 1, 2),
        "rebuilt": await pane.turns.rebuild(session_id, 2),
        "replayed": await pane.turns.replay(session_id, 2, WhatIf(search={"text": {"floor": 0.5}})),
        "debug": await pane.turns.debug(session_id, 2, topic="refunds"),
        "usage": await pane.turns.usage(session_id, 2),
        "use": await pane.turns.use(session_id, 2),
        "agents": await pane.agents.list(),
        "agent": await pane.agents.get("pane"),
        "agent's items": await pane.agents.items("pane", type="tool", query="read"),
        "item": await pane.agents.item("pane", "rule:tone"),
        "prompts": (await pane.agents.prompts("pane"), await pane.agents.prompt("pane", "core")),
        "manifest": (await pane.agents.manifest("pane"), await pane.agents.file("pane", "rules/tone.md")),
        "problems": await pane.agents.problems("pane"),
        "servers": (await pane.agents.servers("pane"), await pane.agents.server("pane", "files")),
        "search": await pane.agents.search("pane", "When is my refund?", items=["reference:billing"]),
        "tests": (await pane.agents.tests("pane"), await pane.agents.run_tests("pane")),
        "suggestions": await pane.agents.suggestions("pane"),
        "models": (await pane.models.list(), await pane.models.providers()),
        "dashboard": replace(await pane.analytics.dashboard(agent="pane"), as_of=None),  # pyright: ignore[reportArgumentType] – left out of the comparison
        "csv": await pane.analytics.csv("items"),
        "similar": await pane.analytics.similar(session_id, "Read /a"),
        "preview": replace((await pane.preview(session_id, "And now?")), context=None),  # pyright: ignore[reportArgumentType] – it holds the time
    }


@pytest.mark.parametrize("over_http", [False, True], ids=["local", "http"])
async def test_a_pane_changes_what_there_is(world: World, over_http: bool) -> None:
    world.says("Yes.", "Later.")
    async with both(world) as (local, client):
        pane: Pane = client if over_http else local
        session = (await pane.sessions.create(key="one")).id
        same = (await pane.sessions.create(key="one")).id
        changed = await pane.sessions.update(session, {"name": "Talk", "temperature": 0.5})
        files = await pane.sessions.set_context(session, "files", ["/a"])
        ports = await pane.sessions.replace_context(session, {"ports": ["80"]})
        said = await pane.sessions.add_message(session, "user", "By the way.")
        taken_back = await pane.sessions.remove_message(session, said.seq)
        pushed = await pane.sessions.push_page(session, "https://example.org/", text="Some text.")
        given = await pane.sessions.add_fetched(session, [RESULT])
        cleared = await pane.sessions.clear_fetched(session)
        made = await pane.agents.create_item("pane", Rule("brief", "Be brief.", include="always"), key="rule")
        again = await pane.agents.create_item("pane", Rule("brief", "Be brief.", include="always"), key="rule")
        edited = await pane.agents.change_item("pane", "rule:brief", {"priority": 7}, revision=made.revision or "")
        rewritten = await pane.agents.put_item("pane", "rule:brief", "Be very brief.", revision=edited.revision or "")
        site = await pane.agents.put_prompt("pane", "sites/example.org", "A site.", revision=None)
        tuned = await pane.agents.change_search("pane", {"text": {"top_n": 3}})
        await pane.agents.delete_item("pane", "rule:brief", revision="*")
        turn = await pane.ask(session, "Really?")
        test = await pane.turns.save_test(session, 1, name="Really")
        none = await pane.sessions.clear_history(session)
        await pane.sessions.delete(session)

    assert same == session
    assert (changed.name, changed.settings.temperature) == ("Talk", 0.5)
    assert (files.context, ports.context) == ({"files": ("/a",)}, {"ports": ("80",)})
    assert (said.message_count, taken_back.message_count) == (1, 0)
    assert (len(pushed.items), len(given.items), cleared.items) == (1, 2, ())
    assert again == made
    assert (edited.priority, rewritten.text, site.file) == (7, "Be very brief.", "prompts/sites/example.org.md")
    assert "top_n: 3" in tuned.raw
    assert (turn.outcome, turn.text) == ("completed", "Yes.")
    assert (test.test.file, none.message_count) == ("tests/really.yaml", 0)


@pytest.mark.parametrize("over_http", [False, True], ids=["local", "http"])
async def test_a_pane_runs_tools_of_its_caller_and_sends_a_failed_message_again(world: World, over_http: bool) -> None:
    world.says(Reply("Asking.", calls=(Call("client__clock", "{}"),)), "It is noon.", "Better.")
    clock = Tool("client", "clock", "Tell the time.")
    async with both(world) as (local, client):
        pane: Pane = client if over_http else local
        session = (await pane.sessions.create()).id
        asked = await drained(pane.turn(session, "What time is it?", tools=[clock]))
        steps = [
            event.event.step for event in asked if isinstance(event, Recorded) and isinstance(event.event, ModelReplied)
        ]
        call = steps[0].tool_calls[0]
        answered = await drained(pane.answer_calls(session, [ToolResult(call.id, "12:00")]))
        first = await pane.turns.get(session, 1)
        await pane.sessions.update(session, {"model": "openai:nobody"})
        failed = await pane.ask(session, "Sure?")
        await pane.sessions.update(session, {"model": None})
        await drained(pane.retry(session, 2))
        retried = await pane.turns.get(session, 3)

    assert isinstance(answered[-1], Recorded)
    assert first.text == "Asking.\n\nIt is noon."
    assert (failed.outcome, retried.outcome, retried.text) == ("failed", "completed", "Better.")


@pytest.mark.parametrize("over_http", [False, True], ids=["local", "http"])
async def test_a_pane_watches_a_session_until_it_is_deleted(world: World, over_http: bool) -> None:
    world.says("Yes.")
    async with both(world) as (local, client):
        pane: Pane = client if over_http else local
        session = (await pane.sessions.create()).id
        await local.ask(session, "Really?")
        seen: list[Any] = []
        async for event in pane.watch(session, after=0):
            seen.append(event)
            if getattr(event, "type", "") == "session.context":
                await local.sessions.delete(session)

    kinds = [event.event.type if isinstance(event, Recorded) else event.type for event in seen]
    assert kinds[:2] == ["session.created", "turn.started"]
    assert kinds[-2:] == ["session.context", "session.deleted"]
    assert seen[-1] == SessionDeleted()


@pytest.mark.parametrize("over_http", [False, True], ids=["local", "http"])
async def test_both_panes_raise_the_same_errors_in_the_same_words(world: World, over_http: bool) -> None:
    async with both(world) as (local, client):
        pane: Pane = client if over_http else local
        session = (await pane.sessions.create()).id
        raised = [
            await _raised(pane.sessions.get("ses_nobody")),
            await _raised(pane.sessions.update(session, {}, expected_seq=99)),
            await _raised(pane.sessions.set_context(session, "files", ["relative"])),
            await _raised(pane.turns.item(session, 1, "rule:tone")),
            await _raised(pane.models.check("nobody:none")),
            await _raised(pane.cancel(session)),
            await _raised(pane.explain(session, 1, "nothing")),
        ]

    kinds = (
        SessionNotFoundError,
        StaleRevisionError,
        InvalidInputError,
        NotFoundError,
        UnknownModelError,
        ConflictError,
        InvalidInputError,
    )
    assert [isinstance(error, kind) for error, kind in zip(raised, kinds, strict=True)] == [True] * len(kinds)
    assert [isinstance(error, RemoteError) for error in raised[:-1]] == [over_http] * (len(kinds) - 1)
    assert (str(raised[0]), vars(raised[0])["session_id"], raised[0].code) == (
        "no session 'ses_nobody'",
        "ses_nobody",
        "session_not_found",
    )


async def _raised(answer: Any) -> WindowpaneError:
    with pytest.raises(WindowpaneError) as raised:
        await answer
    return raised.value


@pytest.mark.parametrize("over_http", [False, True], ids=["local", "http"])
async def test_a_preview_and_a_search_need_no_provider_key(world: World, over_http: bool) -> None:
    async with both(world) as (local, client):
        pane: Pane = client if over_http else local
        session = (await pane.sessions.create(settings={"model": "openai:gpt-5-mini"})).id
        request = await pane.preview(session, "When is my refund?")
        found = await pane.agents.search("pane", "How many days do refunds take?", items=["reference:billing"])
        async with McpClient(create_server(local.engine)) as host:
            answer = await host.call_tool("search_context", {"session_id": session, "message": "When is my refund?"})
        failed = await pane.ask(session, "When is my refund?")

    assert request.context.settings.model == "openai:gpt-5-mini"
    assert [str(item.ref) for item in found.items] == ["reference:billing"]
    assert answer.structured_content is not None
    assert [item["item"] for item in answer.structured_content["items"]] == ["rule:tone", "files:read"]
    assert failed.outcome == "failed"


async def test_either_pane_keeps_items_out_of_a_session_and_brings_in_what_became_always(world: World) -> None:
    world.rule("legal", "Be exact.", include="agent")
    async with both(world) as (local, client):
        for pane, other in ((local, client), (client, local)):
            session = await pane.sessions.create("pane")
            excluded = await pane.sessions.exclude_item(session.id, "rule:legal")
            seen = await other.sessions.get(session.id)
            readmitted = await other.sessions.readmit_item(session.id, "rule:legal")
            made = await pane.agents.create_item("pane", Rule("new", "New.", include="always"), also_in=session.id)
            before = await other.sessions.items(session.id)
            await other.sessions.remove_item(session.id, "rule:new")
            put = await pane.agents.put_item(
                "pane", "rule:new", made.raw or "", revision=made.revision or "", also_in=session.id
            )
            after = await other.sessions.items(session.id)
            await pane.agents.delete_item("pane", "rule:new", revision=put.revision or "")

            assert (excluded.changed, excluded.excluded) == (True, (rule_ref("legal"),))
            assert seen.excluded == (rule_ref("legal"),)
            assert (readmitted.changed, readmitted.excluded) == (True, ())
            assert before[-1] == after[-1] == SessionItem(rule_ref("new"), "manual")
