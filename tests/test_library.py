"""The front door: `import windowpane`."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import structlog
from tests.search.endpoint import Endpoint

import windowpane
from patience import PATIENCE_S
from windowpane.api.pane import Pane
from windowpane.testing import Reply, ScriptedModel, World, drain, serving

BY_SDK = Path(__file__).parent / "tools" / "servers" / "by_sdk.py"
HEAVY = {"anyio", "fastapi", "httpx2", "mcp", "numpy", "pydantic", "pydantic_ai", "starlette", "structlog"}


def test_every_public_name_resolves_and_every_other_name_does_not() -> None:
    found = {name: getattr(windowpane, name) for name in windowpane.__all__}

    assert [name for name, value in found.items() if value is None] == []
    assert sorted(windowpane.__all__) == windowpane.__all__
    assert set(windowpane.__all__) <= set(dir(windowpane))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        windowpane.nothing  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_importing_the_package_loads_nothing_that_is_heavy() -> None:
    code = "import sys; before = set(sys.modules); import windowpane; print(*sorted(set(sys.modules) - before))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert HEAVY & {name.partition(".")[0] for name in loaded} == set()
    assert [name for name in loaded if name.startswith("windowpane")] == ["windowpane"]


def test_a_turn_of_an_agent_without_tool_servers_does_not_load_their_protocol(tmp_path: Path) -> None:
    (tmp_path / "agents/guide/prompts").mkdir(parents=True)
    (tmp_path / "agents/guide/agent.yaml").write_text("model: echo\n")
    (tmp_path / "agents/guide/prompts/core.md").write_text("Be brief.")
    code = """
import sys, windowpane
with windowpane.open_sync(agents="agents", store="memory:", data=".") as pane:
    print(pane.ask(pane.sessions.create().id, "Hi?").text != "")
print({"mcp", "mcp_types"} & set(sys.modules))
"""

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)

    assert ran.stdout == "True\nset()\n"


async def test_a_pane_is_opened_with_a_folder_and_a_store(tmp_path: Path) -> None:
    windowpane.init_agent(tmp_path / "agents" / "guide")
    async with windowpane.open(agents=tmp_path / "agents", store="memory:", data=tmp_path) as pane:
        session = await pane.sessions.create()
        events = [event async for event in pane.turn(session.id, "How do I add a rule?")]
        why = await pane.explain(session.id, turn=1, item="reference:agent-folder")

    assert any(isinstance(event, windowpane.Delta) for event in events)
    assert (session.agent, why.included) == ("guide", True)


async def test_a_pane_that_is_opened_warm_has_its_search_loaded_before_the_first_message(tmp_path: Path) -> None:
    windowpane.init_agent(tmp_path / "agents" / "guide")
    async with windowpane.open(agents=tmp_path / "agents", store="memory:", data=tmp_path, warm=True) as pane:
        with anyio.fail_after(PATIENCE_S):
            while pane.indexing is None or pane.indexing[0] < pane.indexing[1]:  # noqa: ASYNC110 (it is not announced)
                await anyio.sleep(0.05)
        progress = pane.indexing

    assert progress[1] > 1


async def test_a_warm_pane_indexes_what_every_agent_can_select_before_a_session_is_opened(tmp_path: Path) -> None:
    for name in ("cook", "gardener"):
        windowpane.init_agent(tmp_path / "agents" / name)
        rule = tmp_path / "agents" / name / "rules" / "own.md"
        rule.write_text(f"---\ninclude: agent\ndescription: What a {name} does\n---\nBe a good {name}.\n")
    with contextlib.closing(Endpoint()) as endpoint:
        opened = windowpane.open(
            agents=tmp_path / "agents",
            store="memory:",
            data=tmp_path,
            warm=True,
            embeddings_url=endpoint.url,
            embeddings_model="m",
        )
        wanted = {f"own: What a {name} does" for name in ("cook", "gardener")}
        async with opened:
            with anyio.fail_after(PATIENCE_S):
                while not wanted <= set(endpoint.texts):  # noqa: ASYNC110 (another thread fills it)
                    await anyio.sleep(0.05)


async def test_a_warm_pane_indexes_the_tools_of_an_agent_when_a_session_of_it_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "clerk"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "core.md").write_text("You are a clerk.")
    (folder / "agent.yaml").write_text("model: echo\n")
    servers = {"notes": {"command": sys.executable, "args": [str(BY_SDK), "stdio"], "include": "agent"}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with windowpane.open(agents=tmp_path / "agents", store="memory:", data=tmp_path, warm=True) as pane:
        session = await pane.sessions.create()
        with anyio.fail_after(PATIENCE_S):
            while pane.indexing is None:  # noqa: ASYNC110 (it is not announced)
                await anyio.sleep(0.05)
        progress = pane.indexing
        request = await pane.preview(session.id, "Please add two numbers")

    assert progress is not None
    assert progress[0] == progress[1] > 0
    found = [*request.context.items, *request.context.candidates]
    assert (any(each.ref.server == "notes" for each in found), request.context.degraded) == (True, ())


def test_a_script_calls_the_same_methods_without_await(tmp_path: Path) -> None:
    windowpane.init_agent(tmp_path / "agents" / "guide")
    with windowpane.open_sync(agents=tmp_path / "agents", store="memory:", data=tmp_path) as pane:
        session = pane.sessions.create(name="Script")
        text = "".join(event.text for event in pane.turn(session.id, "Hello") if isinstance(event, windowpane.Delta))
        record = pane.turns.get(session.id, 1)
        with pytest.raises(windowpane.SessionNotFoundError):
            pane.sessions.get("ses_none")
        with pytest.raises(windowpane.SessionNotFoundError):
            next(pane.turn("ses_none", "Hello"))

    assert (session.name, record.outcome) == ("Script", "completed")
    assert text
    assert text == record.text


async def test_a_setting_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(windowpane.InvalidInputError, match="unknown setting"):
        async with windowpane.open(data=tmp_path, colour="blue"):
            pass


async def test_a_preview_and_a_search_need_no_provider_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    windowpane.init_agent(tmp_path / "agents" / "guide")
    async with windowpane.open(agents=tmp_path / "agents", store="memory:", data=tmp_path) as pane:
        session = await pane.sessions.create(settings={"model": "openai:gpt-5-mini"})
        request = await pane.preview(session.id, "How do I add a rule?")
        found = await pane.agents.search("guide", "How do I add a rule?")
        with pytest.raises(windowpane.ModelError):
            await pane.models.check("openai:gpt-5-mini")

    assert request.context.settings.model == "openai:gpt-5-mini"
    assert [str(item.ref) for item in found.items]


async def test_the_small_world_is_a_pane_for_tests(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.rule("tone", "Be kind.", include="always")
    world.says("Hello.")
    async with world.pane() as pane:
        opened: Pane = pane
        session = await opened.sessions.create()
        turn = await opened.ask(session.id, "Hi")

    assert (turn.text, session.rules) == ("Hello.", ("tone",))


async def test_a_server_for_tests_answers_with_a_script(tmp_path: Path) -> None:
    World(tmp_path / "agents")
    settings = windowpane.Settings(agents=tmp_path / "agents", store_url="memory:", data=tmp_path)
    script = ScriptedModel("test", [Reply("Hello.")])
    async with serving(settings, script) as address, windowpane.Client(address) as pane:
        session = await pane.sessions.create()
        turn = await pane.ask(session.id, "Hi")

    assert (session.agent, turn.text) == ("pane", "Hello.")


async def test_a_server_for_tests_that_cannot_start_raises_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = windowpane.Settings(store_url=f"sqlite:///{tmp_path}/file/windowpane.db", data=tmp_path)
    with pytest.raises(windowpane.WindowpaneError, match=r"file/windowpane\.db: File exists"):
        async with serving(settings):
            pass


async def test_what_crashes_in_a_program_that_sets_up_no_log_is_told_without_what_was_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    structlog.reset_defaults()
    world = World(tmp_path / "agents")
    world.says(Reply(error=cast("Any", RuntimeError("out of order"))))
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "My password is hunter2."))

    out, told = capsys.readouterr()
    assert out == ""
    assert "turn.crashed" in told
    assert "RuntimeError: out of order" in told
    assert "hunter2" not in told


async def test_a_program_that_sets_up_no_log_prints_what_it_prints_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    structlog.reset_defaults()
    windowpane.init_agent(tmp_path / "agents" / "guide")
    settings = windowpane.Settings(agents=tmp_path / "agents", data=tmp_path, store_url="memory:")
    async with serving(settings) as address, windowpane.Client(address) as pane:
        await pane.sessions.create()

    assert capsys.readouterr() == ("", "")
