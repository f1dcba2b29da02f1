"""Selection in a turn, with the real model: the right items, for this message only, and never silently less."""

from __future__ import annotations

from pathlib import Path

import pytest

import windowpane
from windowpane.api.agents import FoundItems
from windowpane.api.replay import WhatIf
from windowpane.context.items import reference_ref, rule_ref, tool_ref
from windowpane.errors import InvalidSettingError
from windowpane.insight.explain import explain
from windowpane.insight.past import past_turn
from windowpane.insight.replay import rerun
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.vectors import VectorCache
from windowpane.search.index import ItemIndex
from windowpane.testing import World, drain, tool


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def library(world: World, cache_folder: Path) -> World:
    """An agent with a few very different items, and a patient search."""
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\nsearch: {deadline_s: 60}\n")
    world.reference(
        "billing",
        "Invoices are sent on the first day of each month. A refund takes five days.",
        include="agent",
        description="Invoices, payments and refunds",
    )
    world.reference(
        "printing",
        "Photos are printed at 300 dpi on matte paper. Resize a photo to 3000 pixels before you upload it.",
        include="agent",
        description="Printing and resizing photos",
    )
    world.rule(
        "legal",
        "Never give legal advice; name a lawyer instead.",
        include="agent",
        description="Questions about law, contracts and courts",
    )
    world.toolbox.put(
        "weather",
        [
            tool(
                "get_forecast",
                "Sunny.",
                description="Get the weather forecast for a city",
                include="agent",
                permission="not_required",
            )
        ],
    )
    world.selector = HybridSelector(ItemIndex(MiniLM(cache_folder / "model"), VectorCache(cache_folder / "vectors")))
    return world


@pytest.mark.spec("S0.16", "S0.74", "S0.75", "S1.2", "S1.20", "S1.32", "S1.34", "S1.71", "S1.74", "S1.78", "S1.99")
async def test_each_message_gets_the_items_it_needs_and_no_others(library: World) -> None:
    library.says("In five days.", "To 3000 pixels.", "Hello.")
    async with library.engine() as engine:
        session = await engine.sessions.create()
        for message in ("When is the refund for my invoice paid?", "How do I resize a photo before printing?", "Hi!"):
            await drain(engine.turn(session.id, message))
        contexts = [await engine.past.context(session.id, turn) for turn in (1, 2, 3)]

    assert [[str(item.ref) for item in context.items if item.include_mode == "agent"] for context in contexts] == [
        ["reference:billing"],
        ["reference:printing"],
        [],
    ]
    assert all(context.degraded == () for context in contexts)
    chosen = contexts[0].item(reference_ref("billing"))
    assert chosen is not None
    assert chosen.evidence is not None
    assert 0 < chosen.evidence.score <= 1
    assert (chosen.evidence.rank, chosen.evidence.passage is not None) == (1, True)
    assert {str(candidate.ref) for candidate in contexts[0].candidates} == {
        "reference:printing",
        "rule:legal",
        "weather:get_forecast",
    }
    assert all(candidate.reason and candidate.evidence for candidate in contexts[0].candidates)


async def test_a_selected_tool_can_be_called_in_its_turn(library: World) -> None:
    library.says("Fine.")
    async with library.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "What is the weather forecast for the city of Oslo?"))
        context = await engine.past.context(session.id, 1)

    assert context.item(tool_ref("weather", "get_forecast")) is not None
    assert "weather__get_forecast" in [offered.offered_name for offered in library.model.calls[0].tools]


@pytest.mark.spec("S1.39", "S1.72")
async def test_items_can_be_searched_without_a_session(library: World) -> None:
    refs = [reference_ref("billing"), reference_ref("printing"), rule_ref("legal"), rule_ref("missing")]
    async with library.engine() as engine:
        found = await engine.agent_items.search("pane", "resize a photo", refs)
        none = await engine.agent_items.search("pane", "resize a photo", refs, top_n=0, include_score=1.01)

    assert [(str(item.ref), item.include_mode) for item in found.items] == [("reference:printing", "agent")]
    assert none == FoundItems(())


@pytest.mark.spec("S1.100", "S1.113")
async def test_a_session_can_switch_selection_off_for_itself(library: World) -> None:
    async with library.engine() as engine:
        session = await engine.sessions.create(settings={"search": {"enabled": False}})
        request = await engine.preview(session.id, "When do I get my refund for the invoice?")
        with pytest.raises(InvalidSettingError, match="search"):
            await engine.sessions.update(session.id, {"search": {"top_n": "many"}})

    assert [candidate.code for candidate in request.context.candidates] == ["selection_off"] * 4


@pytest.mark.spec("S1.23")
async def test_without_the_model_words_decide_and_the_record_says_so(library: World, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    library.selector = HybridSelector(ItemIndex(MiniLM(tmp_path / "model", tmp_path / "empty")))
    library.says("In five days.")
    async with library.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "refund for invoices and payments"))
        context = await engine.past.context(session.id, 1)
        preview = await engine.preview(session.id, "refund for invoices and payments")
        found = await engine.agent_items.search("pane", "refund for invoices", [reference_ref("billing")])
        past = await past_turn(engine, session.id, 1)
        again = await rerun(engine, past, WhatIf(search={"text": {"floor": 0.2}}))

    assert [str(item.ref) for item in context.items if item.include_mode == "agent"] == ["reference:billing"]
    assert len(context.degraded) == 1
    assert context.degraded[0].startswith("matched by keywords only: ")
    assert [str(item.ref) for item in found.items] == ["reference:billing"]
    shown = (found, preview.context, again, explain(past, reference_ref("billing")))
    assert [one.degraded for one in shown] == [context.degraded] * 4


async def test_who_can_wait_for_the_search_to_start_misses_nothing(library: World) -> None:
    library.write("agent.yaml", "model: scripted:test\nworking_context: false\nsearch: {deadline_s: 0}\n")
    question = "How long does a refund take?"
    async with library.engine() as engine:
        session = await engine.sessions.create()
        at_once = (await engine.preview(session.id, question)).context
        await engine.agent_items.get_ready(session.id, question, within_s=60)
        in_time = (await engine.preview(session.id, question)).context

    assert [len(context.degraded) for context in (at_once, in_time)] == [1, 0]
    assert [str(item.ref) for item in in_time.items if item.include_mode == "agent"] == ["reference:billing"]


@pytest.mark.spec("S1.49", "S1.50", "S1.50b", "S1.55")
async def test_searching_leaves_the_agents_files_as_they_are(library: World) -> None:
    before = {path: path.read_bytes() for path in library.root.rglob("*") if path.is_file()}
    async with library.engine() as engine:
        session = await engine.sessions.create()
        await engine.preview(session.id, "How do I resize a photo?")

    assert {path: path.read_bytes() for path in library.root.rglob("*") if path.is_file()} == before


@pytest.mark.spec("S1.106")
async def test_what_is_selected_still_has_to_fit_the_window(library: World) -> None:
    library.write(
        "agent.yaml", "model: scripted:test\nworking_context: false\ncontext_window: 900\nmax_output_tokens: 100\n"
    )
    library.rule("legal", "Never give legal advice. " * 400, include="agent", description="Law and contracts")
    library.says("Ask a lawyer.")
    async with library.engine() as engine:
        session = await engine.sessions.create(settings={"search": {"deadline_s": 60, "preset": "aggressive"}})
        await drain(engine.turn(session.id, "Is this contract legal under the law?"))
        context = await engine.past.context(session.id, 1)

    legal = context.item(rule_ref("legal"))
    assert legal is not None
    assert (legal.include_mode, legal.status) == ("agent", "over_budget")
    assert context.budget.room_tokens >= 0


async def test_an_agent_without_candidates_never_loads_the_model(world: World, tmp_path: Path) -> None:
    world.rule("tone", include="always")
    world.selector = HybridSelector(ItemIndex(MiniLM(tmp_path / "model")))
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How do I resize a photo?"))

    assert not (tmp_path / "model").exists()


async def test_what_a_message_asks_by_itself_decides_and_the_turn_before_only_where_it_goes_on(library: World) -> None:
    library.says("A refund takes five days.", "Shakespeare.", "On matte paper.", "At 300 dpi.")
    messages = (
        "When is my refund paid?",
        "Who wrote Hamlet?",
        "How are photos printed?",
        "and how large should they be?",
    )
    async with library.engine() as engine:
        session = await engine.sessions.create()
        for message in messages:
            await drain(engine.turn(session.id, message))
        contexts = [await engine.past.context(session.id, turn) for turn in (1, 2, 3, 4)]

    assert [[item.name for item in context.items if item.include_mode == "agent"] for context in contexts] == [
        ["billing"],
        [],
        ["printing"],
        ["printing"],
    ]
    assert ["follow-up" in context.query.reason for context in contexts] == [False, False, False, True]
    assert [context.query.context_share > 0 for context in contexts] == [False, False, False, True]


async def test_where_the_answer_repeats_an_item_a_follow_up_takes_in_what_the_user_said(library: World) -> None:
    library.says(
        "Printing and resizing photos. Photos are printed at 300 dpi on matte paper. Resize a photo to 3000 pixels.",
        "Yes.",
    )
    async with library.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How are photos printed?"))
        await drain(engine.turn(session.id, "and on which paper?"))
        context = await engine.past.context(session.id, 2)

    assert context.query.text == "How are photos printed?\nand on which paper?"
    assert [item.name for item in context.items if item.include_mode == "agent"] == ["printing"]


async def test_with_context_off_every_message_is_searched_by_itself(library: World) -> None:
    library.says("On matte paper.", "300 dpi.")
    async with library.engine() as engine:
        session = await engine.sessions.create(settings={"search": {"deadline_s": 60, "context": "off"}})
        await drain(engine.turn(session.id, "How are photos printed?"))
        await drain(engine.turn(session.id, "and how large should they be?"))
        context = await engine.past.context(session.id, 2)
        mixed = await rerun(engine, await past_turn(engine, session.id, 2), WhatIf(search={"context": "auto"}))

    assert (context.query.text, context.query.context_share) == ("and how large should they be?", 0.0)
    assert context.search["context"] == "off"
    assert mixed.query == "How are photos printed?\nOn matte paper.\nand how large should they be?"
    assert mixed.entered == (reference_ref("printing"),)


async def test_the_first_session_of_the_readme_selects_what_each_message_asks_for(tmp_path: Path) -> None:
    windowpane.init_agent(tmp_path / "agents" / "guide")
    messages = ("How do I add a rule?", "What is the token budget?", "Who wrote Hamlet?", "Delete all my notes")
    selected: list[list[str]] = []
    async with windowpane.open(agents=tmp_path / "agents", store="memory:", data=tmp_path) as pane:
        session = await pane.sessions.create(settings={"search": {"deadline_s": 60}})
        for message in messages:
            turn = await pane.ask(session.id, message)
            context = await pane.turns.context(session.id, turn.turn)
            selected.append([item.name for item in context.items if item.include_mode == "agent"])

    assert "agent-folder" in selected[0]
    assert selected[1:3] == [["token-budget"], []]
    assert "token-budget" not in selected[3]


@pytest.mark.parametrize(
    ("before", "message", "query", "best"),
    [
        (
            "What is the capital of France?",
            "And how do I add a tool?",
            "What is the capital of France?\nAnd how do I add a tool?",
            "tool-servers",
        ),
        (
            "How are items selected?",
            "Why was one missing?",
            "How are items selected?\nWhy was one missing?",
            "selection",
        ),
        (
            "How do I add a tool?",
            "What happens when the window is full?",
            "What happens when the window is full?",
            "token-budget",
        ),
    ],
)
async def test_what_echo_shows_of_its_request_is_no_subject_to_go_on_with(
    tmp_path: Path, before: str, message: str, query: str, best: str
) -> None:
    windowpane.init_agent(tmp_path / "agents" / "guide")
    async with windowpane.open(agents=tmp_path / "agents", store="memory:", data=tmp_path) as pane:
        session = await pane.sessions.create(settings={"search": {"deadline_s": 60}})
        await pane.ask(session.id, before)
        await pane.ask(session.id, message)
        context = await pane.turns.context(session.id, 2)

    scores = {item.name: item.evidence.score for item in context.items if item.evidence is not None}
    assert context.query.text == query
    assert max(scores, key=lambda name: scores[name]) == best
