"""Past requests rebuilt byte for byte, whatever happened since, and their selection run again otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight.turns import Scene, played, scene_of, settings_of
from windowpane.api.replay import Rebuilt, WhatIf
from windowpane.context.ids import BlobHash, SessionId, content_hash
from windowpane.context.items import Reference, Rule, reference_ref, rule_ref
from windowpane.context.messages import AssistantMessage
from windowpane.context.request import Request
from windowpane.errors import InvalidInputError, InvalidSettingError, TurnNotFoundError, UnknownItemError
from windowpane.insight.compare import compare
from windowpane.insight.explain import explain
from windowpane.insight.past import PastTurn, past_turn
from windowpane.insight.replay import decided_again, rebuilt, rerun
from windowpane.models.scripted import Call, Reply
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.request.record import context_of, to_blobs
from windowpane.search.index import ItemIndex
from windowpane.search.settings import SearchSettings, written_out
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool

TURNS = 25
SESSIONS = 8


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An agent with items of every kind, selected by their words alone."""
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "windowpane.db"))
    world.write("agent.yaml", "model: scripted:test\nsearch: {floor: 0.05}\n")
    world.rule("tone", "Be kind. Grüße!", include="always")
    world.reference("billing", "Invoices and refunds. A refund takes five days.", include="agent")
    world.reference("printing", "Photos are printed on matte paper; resize a photo first.", include="agent")
    world.reference("hidden", "Nobody ever asks about this one.")
    world.toolbox.put("files", [tool("read", "contents", permission="not_required", include="agent")])
    world.selector = HybridSelector(ItemIndex(None))
    return world


def again(world: World) -> World:
    """Return the same world after a restart, with another process' worth of state."""
    return replace(
        world, store=SQLiteStore(world.root.parent / "windowpane.db"), selector=HybridSelector(ItemIndex(None))
    )


@pytest.mark.spec("S0.71", "S0.89", "S1.99")
async def test_every_recorded_request_is_rebuilt_to_the_byte_after_a_restart_and_after_edits(world: World) -> None:
    count = SESSIONS * TURNS
    world.says(*(f"Answer {number}." for number in range(count)))
    sent: dict[tuple[SessionId, int], tuple[BlobHash, Request]] = {}
    async with world.engine() as engine:
        for _ in range(SESSIONS):
            session = await engine.sessions.create()
            for turn in range(1, TURNS + 1):
                prepared = await engine.prepared.begin(
                    session.id, f"How long does refund {turn} of photo é{turn} take?"
                )
                sent[session.id, turn] = (to_blobs(prepared.request, {})[0], prepared.request)
                await engine.prepared.record(prepared, f"Five days, {turn}.")

    world.rule("tone", "Be rude.", include="always")
    (world.root / "pane" / "references" / "billing.md").unlink()
    after = again(world)
    async with after.engine() as engine:
        for (session_id, turn), (name, request) in sent.items():
            past = await past_turn(engine, session_id, turn)
            assert rebuilt(past) == Rebuilt(
                record=name,
                identical=True,
                damages=(),
                messages=len(past.request.messages),
                tools=len(past.request.tools),
                used_tokens=past.context.budget.used_tokens,
            )
            assert past.request == request
    assert len(sent) == count == 200


async def test_a_session_that_was_moved_to_another_store_replays_the_same(world: World, tmp_path: Path) -> None:
    world.says(Reply("Let me look.", calls=(Call("files__read"),)), "Five days.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.items.add(session.id, rule_ref("tone"))
        await drain(engine.turn(session.id, "How long does a refund take? Read the files."))
        document = await engine.sessions.export(session.id)
        here = await past_turn(engine, session.id, 1)

    elsewhere = World(tmp_path / "elsewhere", selector=HybridSelector(ItemIndex(None)))
    async with elsewhere.engine() as engine:
        moved = await engine.sessions.import_(document)
        there = await past_turn(engine, moved.id, 1)
        selection = await rerun(engine, there, WhatIf(query="Which paper are photos printed on?"))

    assert there == replace(here, session_id=moved.id)
    assert there.damages == ()
    assert there.request == here.request
    assert [outcome.ref for outcome in selection.outcomes if outcome.selected] == [reference_ref("printing")]


async def test_a_text_that_was_changed_or_lost_is_found(world: World) -> None:
    world.says("Five days.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How long does a refund take?"))
        past = await past_turn(engine, session.id, 1)

    name = next(name for name, text in past.texts.items() if "Be kind" in text and text.startswith("# Rules"))
    changed = replace(past, texts={**past.texts, name: past.texts[name].replace("kind", "mean")})
    lost = replace(past, texts={key: text for key, text in past.texts.items() if key != name})
    rewritten = replace(past, body=past.body.replace("scripted:test", "scripted:best"))

    assert past.damages == ()
    assert changed.damages == ("the text of rules was changed",)
    assert lost.damages == ("the text of rules is missing",)
    assert rewritten.damages == ("the record itself was changed",)
    assert rebuilt(lost).identical is False


async def test_a_turn_without_a_request_cannot_be_replayed(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        with pytest.raises(TurnNotFoundError):
            await past_turn(engine, session.id, 1)


@given(st.integers(0, 2**64))
@settings(max_examples=200, deadline=None, database=None)
def test_the_same_settings_decide_the_same(seed: int) -> None:
    past = played(scene_of(Random(seed)))

    found = decided_again(past, {})

    assert (found.entered, found.left, found.measured) == ((), (), False)
    items = {item.ref: item for item in past.context.items if item.include_mode == "agent"}
    left_out = {candidate.ref: candidate for candidate in past.context.candidates}
    for outcome in found.outcomes:
        recorded = items.get(outcome.ref) or left_out[outcome.ref]
        assert outcome.evidence == recorded.evidence
        if outcome.selected:
            assert outcome.fits == items[outcome.ref].sent
        else:
            assert (outcome.code, outcome.reason) == (left_out[outcome.ref].code, left_out[outcome.ref].reason)
    assert len(found.outcomes) == len(items) + len(left_out)


@given(st.integers(0, 2**64))
@settings(max_examples=200, deadline=None, database=None)
def test_other_settings_decide_as_if_the_turn_had_had_them(seed: int) -> None:
    random = Random(seed)
    scene = scene_of(random)
    other = SearchSettings(settings_of(random), settings_of(random))

    found = decided_again(played(scene), written_out(other))

    really = played(replace(scene, search=other)).context
    assert {outcome.ref: outcome.fits for outcome in found.outcomes if outcome.selected} == {
        item.ref: item.sent for item in really.items if item.include_mode == "agent"
    }


def test_a_preset_and_single_settings_can_be_tried_for_all_or_for_one_group() -> None:
    past = played(Scene(items=(Rule("a", "text", include="agent"),), search=SearchSettings()))

    conservative = decided_again(past, {"preset": "conservative", "tools": {"top_n": 9}}).search

    assert conservative["text"] == {
        "enabled": True,
        "top_k": 20,
        "top_n": 3,
        "include_score": 0.7,
        "floor": 0.4,
        "share_of_best": 0.6,
    }
    assert conservative["tools"] == {
        "enabled": True,
        "top_k": 20,
        "top_n": 9,
        "include_score": 1.01,
        "floor": 0.15,
        "share_of_best": 0.3,
    }
    with pytest.raises(InvalidSettingError, match=r"search.flor: unknown setting"):
        decided_again(past, {"flor": 0.1})
    with pytest.raises(InvalidSettingError, match=r"search.text: must be a mapping"):
        decided_again(past, {"text": 5})


@pytest.mark.spec("S0.74", "S0.75")
async def test_another_query_and_other_texts_are_measured_against_the_items_of_that_time(world: World) -> None:
    world.says("Five days.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How long does a refund take?"))
        (world.root / "pane" / "references" / "printing.md").unlink()
        past = await past_turn(engine, session.id, 1)

        other_query = await rerun(engine, past, WhatIf(query="Which paper are photos printed on?"))
        other_text = await rerun(engine, past, WhatIf(texts={reference_ref("billing"): "Nothing about money."}))
        described = await rerun(
            engine, past, WhatIf(descriptions={reference_ref("printing"): "How long does a refund take?"})
        )
        with pytest.raises(UnknownItemError):
            await rerun(engine, past, WhatIf(texts={rule_ref("tone"): "Be rude."}))
        with pytest.raises(InvalidInputError, match="the query is empty"):
            await rerun(engine, past, WhatIf(query="  "))

    assert (other_query.entered, other_query.left) == ((reference_ref("printing"),), (reference_ref("billing"),))
    assert other_query.measured
    assert other_query.degraded == ("matched by keywords only: no embedding model is configured",)
    assert (other_text.entered, other_text.left) == ((), (reference_ref("billing"),))
    assert (described.entered, described.measured) == ((reference_ref("printing"),), True)


async def test_a_follow_up_is_replayed_with_the_turns_before_it(world: World) -> None:
    world.says("Five days.", "Also five.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How long does a refund take?"))
        await drain(engine.turn(session.id, "and for those?"))
        past = await past_turn(engine, session.id, 2)
        found = await rerun(engine, past, WhatIf(query="and for those?"))
        messages = await engine.conversations.messages(session.id)

    assert past.context.query.context_share > 0
    assert found.query == past.context.query.text
    assert (found.entered, found.left) == ((), ())
    assert sum(isinstance(message, AssistantMessage) for message in messages) == 2


async def test_clearing_the_history_leaves_nothing_to_replay_and_the_next_turn_keeps_its_catalog(world: World) -> None:
    world.says("Five days.", "Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How long does a refund take?"))
        await engine.conversations.clear(session.id)
        emptied = await engine.store.blob_hashes(session.id)
        await drain(engine.turn(session.id, "How long does a refund take?"))
        past = await past_turn(engine, session.id, 2)

    assert emptied == []
    assert past.damages == ()
    assert past.catalog is not None
    assert text_of(past, "hidden") == "Nobody ever asks about this one."


async def test_a_catalog_is_stored_once_however_many_turns_share_it(world: World) -> None:
    world.says("One.", "Two.", "Three.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        for message in ("One?", "Two?"):
            await drain(engine.turn(session.id, message))
        first, second = [await past_turn(engine, session.id, turn) for turn in (1, 2)]
        world.reference("hidden", "Edited.")
        await drain(engine.turn(session.id, "Three?"))
        third = await past_turn(engine, session.id, 3)

    assert first.context.catalog == second.context.catalog != third.context.catalog
    assert [text_of(past, "hidden") for past in (first, third)] == ["Nobody ever asks about this one.", "Edited."]


def text_of(past: PastTurn, name: str) -> str:
    item = past.item(reference_ref(name))
    assert isinstance(item, Reference)
    return item.text


async def test_a_record_of_an_earlier_version_is_rebuilt_compared_and_explained(world: World) -> None:
    world.says("Five days.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How long does a refund take?"))
        now = await past_turn(engine, session.id, 1)
    body = json.loads(now.body)
    for name in ("search", "pieces", "catalog"):
        del body["context"][name]
    for name in ("context_share", "clauses", "small_talk"):
        body["context"]["query"].pop(name, None)
    del body["context"]["budget"]["pieces_tokens"]
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)

    old = replace(now, body=text, record=content_hash(text), context=context_of(text, now.texts), catalog=None)

    assert old.damages == ()
    assert old.request.messages == now.request.messages
    assert compare(old, now).items == ()
    assert explain(old, reference_ref("billing")).included
    with pytest.raises(InvalidInputError, match="recorded without its search settings"):
        decided_again(old, {})
