"""Which items a session holds, and how they came there."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from patience import PATIENCE_S
from windowpane.agents.folder import FolderAgents
from windowpane.context.events import ItemAdded, SessionItem
from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.engine import Engine
from windowpane.errors import UnknownItemError
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Call, Reply
from windowpane.testing import World, drain, tool
from windowpane.tools.mcp import McpToolbox


@pytest.mark.spec("S0.4-S0.6", "S0.20", "S0.24", "S0.43", "S0.44", "S1.3", "S1.16", "S0.2", "S1.1")
async def test_a_new_session_receives_exactly_the_always_items(world: World) -> None:
    world.rule("late", include="always", priority=900)
    world.rule("early", include="always", priority=1)
    world.rule("by-hand", include="manual")
    world.rule("when-needed", include="agent")
    world.rule("off", include="always", enabled="false")
    world.reference("handbook", include="always")
    world.reference("atlas", include="agent")
    world.toolbox.put("files", [tool("read"), tool("write", include="manual"), tool("find", include="agent")])

    async with world.engine() as engine:
        session = await engine.sessions.create()

    assert session.context_items == (
        SessionItem(rule_ref("early"), "always"),
        SessionItem(rule_ref("late"), "always"),
        SessionItem(reference_ref("handbook"), "always"),
        SessionItem(tool_ref("files", "read"), "always"),
    )


@pytest.mark.spec("S0.32-S0.35", "S0.88", "S1.14")
async def test_a_session_shows_its_items_also_as_rules_references_and_tools(world: World) -> None:
    world.rule("tone", include="always")
    world.reference("handbook", include="always")
    world.toolbox.put("files", [tool("read")])

    async with world.engine() as engine:
        session = await engine.sessions.create()

    assert (session.rules, session.references, session.tools) == (("tone",), ("handbook",), (("files", "read"),))


@pytest.mark.spec("S0.12", "S0.25", "S0.39-S0.41", "S1.6", "S1.15")
@pytest.mark.parametrize("include", ["manual", "agent"])
async def test_any_item_can_be_added_by_hand_and_is_recorded_as_manual(world: World, include: str) -> None:
    world.rule("tone", include=include)
    world.reference("atlas", include=include)
    world.toolbox.put("files", [tool("find", include=include)])
    refs = [rule_ref("tone"), reference_ref("atlas"), tool_ref("files", "find")]

    async with world.engine() as engine:
        session = await engine.sessions.create()
        changed = [await engine.items.add(session.id, ref) for ref in refs]
        session = await engine.sessions.get(session.id)

    assert session.context_items == tuple(SessionItem(ref, "manual") for ref in refs)
    assert [entry.event for change in changed for entry in change.recorded] == [
        ItemAdded(item=SessionItem(ref, "manual"), actor="user") for ref in refs
    ]


@pytest.mark.spec("S0.39", "S0.40", "S0.41", "S1.15")
async def test_adding_twice_changes_nothing_and_says_so(world: World) -> None:
    world.rule("tone", include="always")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        again = await engine.items.add(session.id, rule_ref("tone"))

    assert again.recorded == ()
    assert again.state.context_items == (SessionItem(rule_ref("tone"), "always"),)
    assert again.state.seq == session.seq


@pytest.mark.spec("S0.42")
async def test_two_tools_of_one_name_on_two_servers_are_two_items(world: World) -> None:
    world.toolbox.put("a", [tool("get", include="manual")])
    world.toolbox.put("b", [tool("get", include="manual")])

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.add(session.id, tool_ref("a", "get"))
        changed = await engine.items.add(session.id, tool_ref("b", "get"))

    assert changed.state.tools == (("a", "get"), ("b", "get"))


@pytest.mark.spec("S0.41")
async def test_an_item_that_the_agent_does_not_have_cannot_be_added(world: World) -> None:
    world.rule("tone-of-voice")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        with pytest.raises(UnknownItemError, match=r"no item 'rule:tone-of-voic'; did you mean rule:tone-of-voice\?"):
            await engine.items.add(session.id, rule_ref("tone-of-voic"))
        with pytest.raises(UnknownItemError):
            await engine.items.add(session.id, tool_ref("nowhere", "nothing"))

        assert (await engine.sessions.get(session.id)).context_items == ()


@pytest.mark.spec("S0.11", "S0.13", "S1.6")
async def test_a_removal_is_remembered_until_the_item_is_added_by_hand(world: World) -> None:
    world.rule("tone", include="always")
    world.toolbox.put("files", [tool("read")])

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.remove(session.id, rule_ref("tone"))
        await engine.items.remove(session.id, tool_ref("files", "read"))
        world.rule("tone", "A new text.", include="always", priority=1)
        world.toolbox.drop("files")
        world.toolbox.put("files", [tool("read"), tool("list")])
        world.says("Hello.", "Hello.")
        await drain(engine.turn(session.id, "Hi"))
        removed = await engine.sessions.get(session.id)
        added = await engine.items.add(session.id, rule_ref("tone"))

    assert removed.context_items == ()
    assert added.state.context_items == (SessionItem(rule_ref("tone"), "manual"),)


async def test_removing_what_is_not_there_changes_nothing(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        changed = await engine.items.remove(session.id, rule_ref("ghost"))

    assert (changed.recorded, changed.state.seq) == ((), session.seq)


@pytest.mark.spec("S0.10", "S0.14", "S1.5")
async def test_a_rule_that_becomes_always_does_not_enter_a_session_that_exists(world: World) -> None:
    async with world.engine() as engine:
        before = await engine.sessions.create()
        world.rule("new", include="always")
        after = await engine.sessions.create()

        assert (await engine.sessions.get(before.id)).rules == ()
        assert after.rules == ("new",)


async def test_a_tool_server_that_connects_late_delivers_its_always_tools_once(world: World) -> None:
    world.says("One.", "Two.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        world.toolbox.put("late", [tool("look"), tool("leap", include="manual")])
        await drain(engine.turn(session.id, "First"))
        first = await engine.sessions.get(session.id)
        world.toolbox.put("late", [tool("look"), tool("listen")])
        await drain(engine.turn(session.id, "Second"))
        second = await engine.sessions.get(session.id)

    assert first.context_items == (SessionItem(tool_ref("late", "look"), "always"),)
    assert second.context_items == first.context_items
    assert [offered.offered_name for offered in world.model.calls[0].tools] == ["late__look"]


async def test_a_mention_adds_the_item_and_leaves_the_message_alone(world: World) -> None:
    world.rule("tone")
    world.reference("atlas_2")
    world.says("Done.")
    message = "  Use @rule:tone\tand @reference:atlas_2, please.\n\n\n```\n@rule:missing  me@rule:tone.example\n```  "

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, message))
        session = await engine.sessions.get(session.id)

    assert session.context_items == (
        SessionItem(rule_ref("tone"), "manual"),
        SessionItem(reference_ref("atlas_2"), "manual"),
    )
    assert world.model.calls[0].messages[-1].content == message


@pytest.mark.spec("S0.27", "S0.28", "S1.10")
def test_only_a_tool_names_a_server() -> None:
    with pytest.raises(ValueError, match="a tool names its server"):
        ItemRef("tool", "read")
    with pytest.raises(ValueError, match="a rule or a reference has none"):
        ItemRef("rule", "tone", "files")

    assert [str(ref) for ref in (rule_ref("tone"), reference_ref("atlas"), tool_ref("files", "read"))] == [
        "rule:tone",
        "reference:atlas",
        "files:read",
    ]


async def test_a_tool_that_a_server_unlocks_joins_the_open_session_and_one_that_was_removed_does_not(
    world: World,
) -> None:
    server = Path(__file__).parents[1] / "tools" / "servers" / "by_sdk.py"
    shop = {"command": sys.executable, "args": [str(server), "stdio"], "permission": "not_required"}
    world.write("mcp.json", json.dumps({"mcpServers": {"shop": {**shop, "tools": {"pid": {"include": "manual"}}}}}))
    grow = [Reply(calls=(Call("shop__grow", f'{{"name": "{name}"}}', id=name),)) for name in ("fresh", "stale")]
    world.says(grow[0], "Grown.", grow[1], "Grown again.", "Done.")
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(
            Engine(
                store=world.store,
                agents=FolderAgents(world.root),
                models=PydanticModels(scripts=[world.model], environ=world.environ),
                toolbox=McpToolbox,
            )
        )
        session = (await engine.sessions.create()).id
        await drain(engine.turn(session, "Grow"))
        await _listed(engine, "fresh")
        await drain(engine.turn(session, "Grow again"))
        await _listed(engine, "stale")
        await engine.items.exclude(session, tool_ref("shop", "stale"))
        await drain(engine.turn(session, "Use it"))
        held = (await engine.sessions.get(session)).tools

    offered = [{each.offered_name for each in call.tools} for call in world.model.calls]
    assert ["shop__fresh" in names for names in offered] == [False, False, True, True, True]
    assert ("shop", "fresh") in held
    assert not any("shop__stale" in names for names in offered)


async def _listed(engine: Engine, name: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        while True:
            if name in {tool.name for server in await engine.agent_items.servers("pane") for tool in server.tools}:
                return
            await anyio.sleep(0.02)
