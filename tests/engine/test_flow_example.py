"""The worked example of the design: what a session and two of its requests contain."""

from __future__ import annotations

import pytest

from windowpane.context.items import rule_ref
from windowpane.request.selector import FixedSelector
from windowpane.testing import World, drain, tool


@pytest.mark.spec("S0.15", "S0.16", "S0.18", "S0.19", "S0.21", "S0.26", "S0.29-S0.31", "S0.47-S0.49", "S0.63", "S0.64")
@pytest.mark.spec("S1.7-S1.9", "S1.17", "S1.18", "S1.21", "S1.22")
async def test_session_items_stay_and_selected_ones_come_and_go(world: World) -> None:
    world.rule("A", include="always")
    world.rule("B", include="manual")
    world.rule("C", include="agent")
    world.reference("X", include="always")
    world.reference("Y", include="agent")
    world.selector = FixedSelector(
        {"How do I authenticate?": {"rule:C": 0.92}, "What's the error handling?": {"reference:Y": 0.87}}
    )
    world.says("With a key.", "With care.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        session = (await engine.items.add(session.id, rule_ref("B"))).state
        await drain(engine.turn(session.id, "How do I authenticate?"))
        await drain(engine.turn(session.id, "What's the error handling?"))
        first = await engine.past.context(session.id, 1)
        second = await engine.past.context(session.id, 2)
        after = await engine.sessions.get(session.id)

    held = [("rule:A", "always", None), ("reference:X", "always", None), ("rule:B", "manual", None)]
    assert [(str(item.ref), item.mode) for item in session.context_items] == [(ref, mode) for ref, mode, _ in held]
    assert [(str(item.ref), item.include_mode, item.similarity_score) for item in first.items] == [
        *held,
        ("rule:C", "agent", 0.92),
    ]
    assert [(str(item.ref), item.include_mode, item.similarity_score) for item in second.items] == [
        *held,
        ("reference:Y", "agent", 0.87),
    ]
    assert [str(candidate.ref) for candidate in second.candidates] == ["rule:C"]
    assert after.context_items == session.context_items


@pytest.mark.spec("S0.50")
async def test_a_selected_item_that_is_in_the_session_already_is_not_sent_twice(world: World) -> None:
    world.rule("C", include="agent")
    world.selector = FixedSelector({"How?": {"rule:C": 0.92}})
    world.says("So.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.add(session.id, rule_ref("C"))
        await drain(engine.turn(session.id, "How?"))
        context = await engine.past.context(session.id, 1)

    assert [(str(item.ref), item.include_mode) for item in context.items] == [("rule:C", "manual")]


@pytest.mark.spec("S0.45", "S0.46", "S0.51", "S1.19")
async def test_without_selection_the_request_is_the_session_and_the_candidates_say_why(world: World) -> None:
    world.rule("A", include="always")
    world.rule("C", include="agent")
    world.says("So.")

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How?"))
        context = await engine.past.context(session.id, 1)

    assert [str(item.ref) for item in context.items] == ["rule:A"]
    assert [(str(candidate.ref), candidate.code) for candidate in context.candidates] == [("rule:C", "selection_off")]


@pytest.mark.spec("S0.52-S0.54", "S1.33", "S1.74")
async def test_candidates_are_the_enabled_agent_items_that_the_session_does_not_hold(world: World) -> None:
    world.rule("held", include="agent")
    world.rule("off", include="agent", enabled="false")
    world.rule("by-hand", include="manual")
    world.rule("free", include="agent")
    world.reference("atlas", include="agent")
    world.toolbox.put(
        "files", [tool("find", include="agent"), tool("read"), tool("wipe", include="agent", permission="forbidden")]
    )

    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.add(session.id, rule_ref("held"))
        request = await engine.preview(session.id, "How?")

    assert [str(candidate.ref) for candidate in request.context.candidates] == [
        "reference:atlas",
        "rule:free",
        "files:find",
    ]
