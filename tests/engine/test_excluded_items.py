"""Items that a session never uses, and items that became `always` after it began."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windowpane.context.events import ItemAdded, ItemReadmitted, ItemRemoved, SessionItem
from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.errors import InvalidInputError, SessionNotFoundError, UnknownItemError
from windowpane.testing import Call, FixedSelector, Reply, World, drain, stored, tool

ATLAS = reference_ref("atlas")
EVERYTHING = {"rule:tone": 0.9, "reference:atlas": 0.9, "files:find": 0.9}


@pytest.fixture
def library(world: World) -> World:
    world.reference("atlas", include="agent")
    world.toolbox.put("files", [tool("find", include="agent")])
    world.selector = FixedSelector({"Hello": EVERYTHING})
    return world


@pytest.mark.spec("S0.5", "S0.13", "S0.26")
async def test_an_item_that_is_never_to_be_used_is_not_selected_until_that_is_taken_back(library: World) -> None:
    async with library.pane() as pane:
        session = await pane.sessions.create()
        excluded = await pane.sessions.exclude_item(session.id, ATLAS)
        again = await pane.sessions.exclude_item(session.id, ATLAS)
        without = (await pane.preview(session.id, "Hello")).context
        readmitted = await pane.sessions.readmit_item(session.id, "reference:atlas")
        with_it = (await pane.preview(session.id, "Hello")).context
        view = await pane.sessions.get(session.id)
        events = [entry.event for entry in await library.store.read(session.id)]

    assert (excluded.changed, excluded.items, excluded.excluded) == (True, (), (ATLAS,))
    assert (again.changed, readmitted.changed, readmitted.excluded, view.excluded) == (False, True, (), ())
    assert [str(item.ref) for item in without.items] == ["files:find"]
    assert [(str(each.ref), each.code, each.reason) for each in without.absent] == [
        ("reference:atlas", "removed", "never in this session: it was removed by hand")
    ]
    assert without.candidates == ()
    assert [str(item.ref) for item in with_it.items] == ["reference:atlas", "files:find"]
    assert events[1:] == [ItemRemoved(ref=ATLAS, actor="user"), ItemReadmitted(ref=ATLAS, actor="user")]


async def test_an_item_that_was_removed_by_hand_is_no_candidate_until_it_is_added_again(library: World) -> None:
    library.says("One.", "Two.")
    async with library.pane() as pane:
        session = await pane.sessions.create()
        await pane.sessions.add_item(session.id, ATLAS)
        await pane.sessions.remove_item(session.id, ATLAS)
        await drain(pane.turn(session.id, "Hello"))
        why = await pane.explain(session.id, 1, ATLAS)
        await pane.sessions.add_item(session.id, ATLAS)
        await pane.sessions.remove_item(session.id, ATLAS)
        await pane.sessions.add_item(session.id, ATLAS)
        await drain(pane.turn(session.id, "Hello"))
        second = await pane.turns.context(session.id, 2)

    assert (why.included, why.code, why.reason) == (False, "removed", "never in this session: it was removed by hand")
    assert [change.text for change in why.changes] == ["add it by hand"]
    assert [(str(item.ref), item.include_mode) for item in second.items] == [
        ("reference:atlas", "manual"),
        ("files:find", "agent"),
    ]


async def test_only_an_item_of_the_agent_can_be_excluded(library: World) -> None:
    async with library.pane() as pane:
        session = await pane.sessions.create()
        with pytest.raises(UnknownItemError):
            await pane.sessions.exclude_item(session.id, "reference:atlantis")


@pytest.mark.spec("S0.14", "S0.24", "S0.25")
async def test_an_item_that_becomes_always_enters_an_open_session_only_by_an_act(world: World) -> None:
    world.rule("tone", include="manual")
    world.says("One.", "Two.")
    async with world.pane() as pane:
        session = await pane.sessions.create()
        item = await pane.agents.item("pane", "rule:tone")
        changed = await pane.agents.change_item(
            "pane", "rule:tone", {"include": "always"}, revision=item.revision or ""
        )
        await drain(pane.turn(session.id, "Hello"))
        why = await pane.explain(session.id, 1, "rule:tone")
        new = await pane.sessions.create()
        await pane.agents.change_item(
            "pane", "rule:tone", {"priority": 10}, revision=changed.revision or "", also_in=session.id
        )
        events = [entry.event for entry in await world.store.read(session.id)]
        await drain(pane.turn(session.id, "Hello"))
        second = await pane.turns.context(session.id, 2)

    assert (why.included, why.code, why.reason) == (False, "became_always", "became `always` after this session began")
    assert new.items == (SessionItem(rule_ref("tone"), "always"),)
    assert events[-1] == ItemAdded(item=SessionItem(rule_ref("tone"), "manual"), actor="user")
    assert [(str(item.ref), item.include_mode) for item in second.items] == [("rule:tone", "manual")]


async def test_nothing_is_changed_when_the_session_that_shall_receive_the_item_is_not_one_of_the_agent(
    world: World,
) -> None:
    world.rule("tone", include="manual")
    other = world.root / "other" / "prompts" / "core.md"
    other.parent.mkdir(parents=True)
    other.write_text("You are another.")
    (world.root / "other" / "agent.yaml").write_text("model: scripted:test\n")
    async with world.pane() as pane:
        session = await pane.sessions.create("other")
        revision = (await pane.agents.item("pane", "rule:tone")).revision or ""
        with pytest.raises(InvalidInputError, match="is one of agent 'other', not of 'pane'"):
            await pane.agents.change_item(
                "pane", "rule:tone", {"include": "always"}, revision=revision, also_in=session.id
            )
        with pytest.raises(SessionNotFoundError):
            await pane.agents.change_item(
                "pane", "rule:tone", {"include": "always"}, revision=revision, also_in="ses_none"
            )
        now = await pane.agents.item("pane", "rule:tone")

    assert (now.include, now.revision) == ("manual", revision)


MODES = st.sampled_from(["always", "manual", "agent"])
STATES = st.tuples(MODES, st.booleans(), st.booleans(), st.booleans())
"""Include mode; enabled, or not forbidden; in the session; never in the session."""


@pytest.mark.spec("S0.5")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tools=st.lists(STATES, min_size=1, max_size=6), references=st.lists(STATES, min_size=1, max_size=4))
async def test_no_finder_ever_gives_what_is_manual_disabled_forbidden_or_never_in_the_session(
    tmp_path_factory: pytest.TempPathFactory,
    tools: list[tuple[str, bool, bool, bool]],
    references: list[tuple[str, bool, bool, bool]],
) -> None:
    world = World(tmp_path_factory.mktemp("world"))
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\n")
    states: dict[ItemRef, tuple[str, bool, bool, bool]] = {tool_ref("t", f"t{n}"): each for n, each in enumerate(tools)}
    states |= {reference_ref(f"r{n}"): each for n, each in enumerate(references)}
    world.toolbox.put(
        "t",
        [
            tool(ref.name, include=mode, permission="required" if on else "forbidden")
            for ref, (mode, on, _, _) in states.items()
            if ref.type == "tool"
        ],
    )
    for ref, (mode, on, _, _) in states.items():
        if ref.type == "reference":
            world.reference(ref.name, include=mode, enabled=str(on).lower())
    # One of each kind is always left out, so that the finders are offered.
    world.toolbox.put("u", [tool("spare", include="agent")])
    world.reference("spare", include="agent")
    world.selector = FixedSelector({"all": {str(ref): 0.5 for ref in states}})
    names = [ref.name for ref in states if ref.type == "reference"]
    world.says(
        Reply(
            calls=(
                Call("windowpane__find_tools", '{"query": "all"}', id="tools"),
                Call("windowpane__find_references", '{"query": "all"}', id="references"),
                *(Call("windowpane__read_reference", f'{{"name": "{name}"}}', id=name) for name in names),
            )
        ),
        "Done.",
    )

    async with world.pane() as pane:
        session = await pane.sessions.create()
        for ref, (_, _, held, never) in states.items():
            if held:
                await pane.sessions.add_item(session.id, ref)
            if never:
                await pane.sessions.exclude_item(session.id, ref)
        events = await drain(pane.turn(session.id, "Hello"))
        context = await pane.turns.context(session.id, 1)

    results = {e.result.call_id: e.result for e in stored(events) if e.type == "tool.returned"}
    allowed = {
        ref for ref, (mode, on, held, never) in states.items() if mode == "agent" and on and not never and not held
    }
    assert {item.ref for item in context.items if item.found} == allowed
    assert {name for name in names if not results[name].is_error} == {r.name for r in allowed if r.type == "reference"}
    listed = results["tools"].content + results["references"].content
    assert {ref for ref in states if f"t__{ref.name} " in listed or f"- {ref.name}:" in listed} == allowed
