"""A model that asks for what it was not given: `find_tools`, `find_references`, `read_reference`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.api.replay import WhatIf
from windowpane.context.events import Live, Recorded, RequestBuilt
from windowpane.context.items import reference_ref, tool_ref
from windowpane.context.request import Found, Request
from windowpane.request.finders import PAGE_TOKENS, pages
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.index import ItemIndex
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import Call, FixedSelector, Reply, World, drain, stored, tool
from windowpane.text.tokens import count

FIND_TIME = Call("windowpane__find_tools", '{"query": "current time in a city"}', id="find")
TIME = Call("clock__get_time", '{"city": "Tokyo"}', id="time")
MESSAGE = "Thanks!"
LISTED = ("calendars", "guests", "invoices", "lamps", "orders", "parcels", "plants", "rooms", "songs", "taxis", "teams")


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def office(world: World, cache_folder: Path) -> World:
    """An agent with tools and references that a word of thanks selects none of, and a patient search."""
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\nsearch: {deadline_s: 60}\n")
    world.toolbox.put(
        "clock",
        [
            tool("get_time", "12:00 in {city}", description="Get the current time in a city", include="agent"),
            tool("set_alarm", description="Set an alarm for a time of day", include="manual"),
        ],
    )
    world.toolbox.put("mail", [tool("send", description="Send an email to a person", include="agent")])
    world.reference("holidays", "Closed on the first of May.", include="agent", description="Public holidays")
    world.reference("salaries", "Secret.", include="manual", description="Public holidays and salaries")
    world.selector = HybridSelector(ItemIndex(MiniLM(cache_folder / "model"), VectorCache(cache_folder / "vectors")))
    return world


def _offered(request: Request) -> list[str]:
    return [tool.offered_name for tool in request.tools]


def _result(events: list[Live], call_id: str) -> str:
    results = [event.result for event in stored(events) if event.type == "tool.returned"]
    return next(result.content for result in results if result.call_id == call_id)


@pytest.mark.spec("S0.3", "S0.26", "S2.33")
async def test_a_tool_that_was_left_out_can_be_found_and_called_in_the_same_turn_with_its_approval(
    office: World,
) -> None:
    office.says(Reply(calls=(FIND_TIME,)), Reply(calls=(TIME,)), "It is noon.")

    async with office.pane() as pane:
        session = await pane.sessions.create()
        asked = await drain(pane.turn(session.id, MESSAGE))
        waiting = await pane.turns.get(session.id, 1)
        await drain(pane.approve(session.id, {"time": "allow_once"}))
        answered = await pane.turns.get(session.id, 1)
        context = await pane.turns.context(session.id, 1)
        request = await pane.turns.request(session.id, 1)
        rebuilt = await pane.turns.rebuild(session.id, 1)
        why = await pane.explain(session.id, 1, "clock:get_time")

    finders = ["windowpane__find_tools", "windowpane__find_references", "windowpane__read_reference"]
    found = [*finders, "clock__get_time", "mail__send"]
    assert [[tool.offered_name for tool in call.tools] for call in office.model.calls] == [finders, found, found]
    assert _result(asked, "find") == (
        "Found 2. You can call them now:\n"
        "- clock__get_time (server clock): Get the current time in a city\n"
        "- mail__send (server mail): Send an email to a person"
    )
    assert [call.id for call in waiting.approvals] == ["time"]
    assert (answered.outcome, answered.text) == ("completed", "It is noon.")
    item = context.item(tool_ref("clock", "get_time"))
    assert item is not None
    assert item.found is not None
    assert (item.include_mode, item.status, item.evidence) == ("agent", "used", None)
    assert item.reason == "asked for by the model in step 1: find_tools('current time in a city')"
    assert (item.found.step, item.found.finder, item.found.query) == (1, "find_tools", "current time in a city")
    assert _offered(request) == found
    assert rebuilt.identical
    assert (why.included, why.code, why.reason) == (True, "asked_for", item.reason)
    assert [change.text for change in why.changes] == ["never in this session", "`finders: false` in agent.yaml"]


async def test_what_was_found_is_kept_when_the_turn_goes_on_in_another_process(office: World, tmp_path: Path) -> None:
    office.says(Reply(calls=(FIND_TIME,)), Reply(calls=(TIME,)), "It is noon.")
    async with SQLiteStore(tmp_path / "log.db") as store:
        office.store = store
        async with office.pane() as pane:
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, MESSAGE))
    async with SQLiteStore(tmp_path / "log.db") as store:
        office.store = store
        async with office.pane() as pane:
            await drain(pane.approve(session.id, {"time": "allow_once"}))
            answered = await pane.turns.get(session.id, 1)

    assert answered.text == "It is noon."
    assert [call.tools for call in office.model.calls[1:]] == [office.model.calls[1].tools] * 2
    assert office.model.calls[2].messages[-1].content == "12:00 in Tokyo"


async def test_the_request_is_recorded_again_with_the_step_that_it_is_for(office: World) -> None:
    office.says(Reply(calls=(FIND_TIME,)), "Nothing to do.")

    async with office.pane() as pane:
        session = await pane.sessions.create()
        events = await drain(pane.turn(session.id, MESSAGE))
        context = await pane.turns.context(session.id, 1)
        replayed = await pane.turns.explanations(session.id, 1)

    built = [e.event for e in events if isinstance(e, Recorded) and isinstance(e.event, RequestBuilt)]
    assert [event.step for event in built] == [1, 2]
    assert context.budget.used_tokens == sum(part.tokens for part in context.parts)
    assert next(part.name for part in context.parts if part.kind == "tools") == "5 offered"
    finder = context.item(tool_ref("windowpane", "find_tools"))
    assert finder is not None
    assert finder.reason == "built in: lets the model ask for tools that were not sent"
    assert 0 < finder.tokens < 100
    assert {str(why.ref): why.code for why in replayed} == {
        "reference:holidays": "small_talk",
        "reference:salaries": "not_in_session",
        "clock:get_time": "asked_for",
        "clock:set_alarm": "not_in_session",
        "mail:send": "asked_for",
        "windowpane:find_references": "always",
        "windowpane:find_tools": "always",
        "windowpane:read_reference": "always",
    }


async def test_a_replay_decides_about_what_the_selection_saw_and_not_about_what_was_found(office: World) -> None:
    office.says(Reply(calls=(FIND_TIME,)), "Nothing to do.")
    async with office.pane() as pane:
        session = await pane.sessions.create()
        await drain(pane.turn(session.id, MESSAGE))
        rerun = await pane.turns.replay(session.id, 1, WhatIf())

    assert (rerun.entered, rerun.left) == ((), ())
    assert {str(outcome.ref) for outcome in rerun.outcomes} == {"reference:holidays", "clock:get_time", "mail:send"}
    assert not any(outcome.selected or outcome.was_selected for outcome in rerun.outcomes)


@pytest.mark.spec("S0.5")
async def test_a_reference_can_be_found_and_read_and_is_a_source_then(office: World) -> None:
    find = Call("windowpane__find_references", '{"query": "public holidays"}', id="find")
    read = Call("windowpane__read_reference", '{"name": "holidays"}', id="read")
    secret = Call("windowpane__read_reference", '{"name": "salaries"}', id="secret")
    office.says(Reply(calls=(find,)), Reply(calls=(read, secret)), "On the first of May.")

    async with office.pane() as pane:
        session = await pane.sessions.create()
        events = await drain(pane.turn(session.id, MESSAGE))
        context = await pane.turns.context(session.id, 1)
        messages = await pane.sessions.messages(session.id)

    assert _result(events, "find") == ("Found 1. Read them with read_reference:\n- holidays: Public holidays")
    assert _result(events, "read") == "Reference holidays:\n\nClosed on the first of May."
    assert _result(events, "secret") == "No reference named 'salaries' can be read. Use find_references."
    item = context.item(reference_ref("holidays"))
    assert item is not None
    assert (item.include_mode, item.status, item.reason) == (
        "agent",
        "used",
        "asked for by the model in step 2: read_reference('holidays')",
    )
    assert item.found == Found(step=2, finder="read_reference", query="holidays", pages=(1,))
    answer = messages.messages[-1]
    assert answer.role == "assistant"
    assert [source.title for source in answer.sources] == ["holidays"]


async def test_a_long_reference_is_read_in_pages_and_the_record_says_which(office: World) -> None:
    paragraph = "The river runs through the valley. " * 40
    text = "\n\n".join(f"{number}. {paragraph}" for number in range(20))
    office.reference("rivers", text, include="agent", description="Rivers")

    def read(page: int) -> Call:
        return Call("windowpane__read_reference", f'{{"name": "rivers", "page": {page}}}', id=f"page {page}")

    office.says(Reply(calls=(read(1), read(99))), Reply(calls=(read(3), read(1))), "It runs.")
    async with office.pane() as pane:
        session = await pane.sessions.create()
        events = await drain(pane.turn(session.id, MESSAGE))
        item = (await pane.turns.context(session.id, 1)).item(reference_ref("rivers"))

    whole = pages(text)
    first, third = _result(events, "page 1"), _result(events, "page 3")
    assert first == f"Reference rivers, page 1 of {len(whole)}:\n\n{whole[0]}"
    assert third == f"Reference rivers, page 3 of {len(whole)}:\n\n{whole[2]}"
    assert _result(events, "page 99") == f"'rivers' has {len(whole)} pages; there is no page 99."
    assert item is not None
    assert (item.status, item.reason) == (
        "truncated",
        "asked for by the model in step 1: read_reference('rivers'), pages 1, 3",
    )
    assert item.tokens == count(whole[0]) + count(whole[2])


@given(st.text(max_size=400).map(lambda text: text * 60))
@settings(max_examples=50, deadline=None)
def test_pages_are_the_text_in_pieces_that_are_short_enough(text: str) -> None:
    assert "".join(pages(text)) == text
    assert all(count(page) <= PAGE_TOKENS + 8 for page in pages(text))


async def test_finders_are_not_offered_when_the_agent_the_selection_or_the_caller_does_without(office: World) -> None:
    yaml = "model: scripted:test\nworking_context: false\n"
    office.write("agent.yaml", f"{yaml}finders: false\n")
    async with office.pane() as pane:
        session = await pane.sessions.create()
        switched_off = await pane.preview(session.id, MESSAGE)
        office.write("agent.yaml", f"{yaml}search: {{tools: {{enabled: false}}}}\n")
        without_tools = await pane.preview(session.id, MESSAGE)
        office.write("agent.yaml", yaml)
        prepared = await pane.prepare(session.id, MESSAGE)

    assert _offered(switched_off) == []
    assert _offered(without_tools) == ["windowpane__find_references", "windowpane__read_reference"]
    assert _offered(prepared.request) == []


async def test_a_tool_that_there_is_no_room_for_is_recorded_and_a_smaller_one_is_offered(world: World) -> None:
    world.write(
        "agent.yaml", "model: scripted:test\nworking_context: false\ncontext_window: 2000\nmax_output_tokens: 100\n"
    )
    large = {"type": "object", "properties": {"text": {"type": "string", "description": "word " * 1500}}}
    world.toolbox.put("a", [tool("large", include="agent", parameters=large), tool("small", include="agent")])
    world.selector = FixedSelector({"any": {"a:large": 0.9, "a:small": 0.5}})
    find = Call("windowpane__find_tools", '{"query": "any"}', id="find")
    world.says(Reply(calls=(find,)), Reply(calls=(find,)), "Done.")

    async with world.pane() as pane:
        session = await pane.sessions.create()
        events = await drain(pane.turn(session.id, "Hello"))
        context = await pane.turns.context(session.id, 1)

    assert _result(events, "find") == "Found 1. You can call them now:\n- a__small (server a): "
    found = {item.name: (item.status, item.reason) for item in context.items if item.found}
    reason = "asked for by the model in step 1: find_tools('any')"
    assert found == {
        "large": ("over_budget", f"{reason}; there was no room for it"),
        "small": ("used", reason),
    }
    assert [len(call.tools) for call in world.model.calls] == [1, 2, 2]


async def test_what_a_model_asks_for_is_searched_together_with_the_message_that_it_is_working_on(office: World) -> None:
    versions = [
        tool(name, description=text, include="agent")
        for name, text in {
            "git_log": "Shows the commit logs",
            **{f"list_{what}": f"List all {what} in order" for what in LISTED},
        }.items()
    ]
    office.toolbox.put("versions", versions)
    office.write("agent.yaml", "model: scripted:test\nsearch: {deadline_s: 60, tools: {top_n: 0}}\n")
    office.says(
        Reply(calls=(Call("windowpane__find_tools", '{"query": "the right one for it"}', id="find"),)), "Ana did."
    )

    async with office.pane() as pane:
        session = await pane.sessions.create()
        events = await drain(pane.turn(session.id, "Which commits did Ana make last week?"))

    assert _result(events, "find").splitlines()[1] == "- versions__git_log (server versions): Shows the commit logs"


async def test_a_call_without_a_query_is_told_what_to_give(office: World) -> None:
    calls = [
        Call("windowpane__find_tools", "{}", id="a"),
        Call("windowpane__find_tools", '{"query": "xyzzy"}', id="b"),
        Call("windowpane__read_reference", '{"name": 7}', id="c"),
    ]
    office.says(Reply(calls=tuple(calls)), "Done.")
    async with office.pane() as pane:
        session = await pane.sessions.create()
        events = await drain(pane.turn(session.id, MESSAGE))
        context = await pane.turns.context(session.id, 1)

    assert _result(events, "a") == "Give a query: what it is for, in a few words."
    assert _result(events, "c") == "Give the name of a reference, and the number of a page."
    assert not [item for item in context.items if item.found and item.sent and item.found.query != "xyzzy"]
