"""Explanations, and the law about them: the stated change turns the decision round, and one step less does not."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from insight.turns import Scene, asked, played, scene_of, sent, tools_scene_of
from windowpane.api.explanation import Change, Explanation, Need, RoomState
from windowpane.context.items import (
    Item,
    ItemRef,
    Reference,
    Rule,
    Tool,
    reference_ref,
    rule_ref,
    tool_ref,
)
from windowpane.errors import UnknownItemError
from windowpane.insight.changes import change_of, one_step_less
from windowpane.insight.explain import explain, explain_all
from windowpane.search.settings import SearchSettings, SelectSettings

CROP = Reference("crop", "Crop with the mouse.", include="agent")
RESIZE = Reference("resize", "Resize by the corner.", include="agent")
OTHERS = tuple(Reference(f"other-{i:02}", f"Text {i}.", include="agent") for i in range(20))
LIBRARY = Scene(
    items=(CROP, RESIZE, *OTHERS),
    near={CROP.ref: (0.62, 0.5), RESIZE.ref: (0.5, 0.2)} | {o.ref: (0.05 + i / 400, 0.0) for i, o in enumerate(OTHERS)},
    search=SearchSettings(SelectSettings(floor=0.2, share_of_best=0.6)),
)


@pytest.mark.spec("S0.69", "S0.76")
@given(st.integers(0, 2**64))
@settings(max_examples=1000, deadline=None, database=None)
def test_the_stated_change_turns_the_decision_round_and_one_step_less_does_not(seed: int) -> None:
    random = Random(seed)
    scene = scene_of(random)

    check_law(scene, random.choice(scene.items))


@pytest.mark.spec("S0.69", "S0.76")
@given(st.integers(0, 2**64))
@settings(max_examples=300, deadline=None, database=None)
def test_the_law_holds_for_tools_under_the_presets_that_they_have(seed: int) -> None:
    random = Random(seed)
    scene = tools_scene_of(random)

    check_law(scene, random.choice(scene.items))


def check_law(scene: Scene, item: Item) -> None:
    """Explain an item, make every change that would turn the decision round, and each one step smaller."""
    past = played(scene)
    explanation = explain(past, item.ref)

    assert explanation.included == (item.ref in sent(past.context))
    assert explanation.changes or not explanation.evidence
    for change in explanation.changes:
        event(f"{change.effect}: {' + '.join(need.what for need in change.needs)}")
        assert holds(scene, item.ref, change)
        for position, need in enumerate(change.needs):
            if need.bound is not None:
                less = (*change.needs[:position], one_step_less(need), *change.needs[position + 1 :])
            else:
                less = (*change.needs[:position], *change.needs[position + 1 :])
            assert not holds(scene, item.ref, change_of(change.effect, less))


def holds(scene: Scene, ref: ItemRef, change: Change) -> bool:
    """Make a change, take the turn again from its beginning, and tell whether it has the effect that it states."""
    again = asked(changed(scene, ref, change)).context
    match change.effect:
        case "includes":
            return ref in sent(again)
        case "leaves_out":
            return ref not in sent(again)
        case "completes":
            item = again.item(ref)
            return item is not None and item.status == "used"


def changed(scene: Scene, ref: ItemRef, change: Change) -> Scene:
    search: Any = {"text": scene.search.text, "tools": scene.search.tools}
    for domain, values in change.search.items():
        search[domain] = replace(search[domain], **values)
    acts = {need.what for need in change.needs}
    held = (*scene.held, ref) if "add" in acts else scene.held
    items = scene.items
    if "remove" in acts:
        held = tuple(other for other in held if other != ref)
        items = tuple(without_always(item) if item.ref == ref else item for item in items)
    return replace(
        scene,
        items=items,
        held=held,
        search=SearchSettings(search["text"], search["tools"]),
        window_tokens=scene.window_tokens + change.tokens,
    )


def without_always(item: Item) -> Item:
    return replace(item, include="manual")


def test_every_kind_of_change_is_named_in_words() -> None:
    crop, resize = explain(played(LIBRARY), CROP.ref), explain(played(LIBRARY), RESIZE.ref)

    assert crop.evidence is not None
    assert resize.evidence is not None
    score, best = resize.evidence.score, crop.evidence.score
    assert (resize.included, resize.fate, resize.code, resize.compared) == (False, "left_out", "below_cut_off", 22)
    assert (
        resize.reason == f"weaker than the best: {score:.2f} (minimum {resize.evidence.cut_off:.2f}, 60% of the best)"
    )
    assert resize.evidence.rank == 2
    share = next(need for change in resize.changes for need in change.needs if need.what == "share_of_best")
    assert abs(float(share.value or 0) - score / best) < 0.0002
    assert [change.text for change in resize.changes] == [
        f"share_of_best ≤ {share.value:.10g}",
        f"include_score ≤ {score:.10g}",
        "add it by hand",
    ]
    assert resize.smallest == resize.changes[0]
    assert [change.effect for change in crop.changes] == ["leaves_out"] * len(crop.changes)


def test_several_settings_are_named_together_where_one_is_not_enough() -> None:
    strict = replace(
        LIBRARY, search=SearchSettings(SelectSettings(top_n=1, floor=0.9, include_score=1.0, share_of_best=0.6))
    )

    found = explain(played(strict), RESIZE.ref)

    assert found.evidence is not None
    assert found.changes[0].text == f"include_score ≤ {found.evidence.score:.10g}"
    assert [need.what for need in found.changes[1].needs] == ["floor", "share_of_best", "top_n"]
    assert found.changes[1].needs[2].text == "top_n ≥ 2"
    assert found.changes[1].search == {
        "text": {"floor": found.evidence.score, "share_of_best": found.changes[1].needs[1].value, "top_n": 2}
    }


def test_the_tokens_that_were_missing_are_named() -> None:
    rule = Rule("long", "word " * 400, include="agent")
    scene = Scene(items=(rule, *OTHERS), near={rule.ref: (0.7, 0.6)}, window_tokens=600)

    found = explain(played(scene), rule.ref)

    assert (found.included, found.fate, found.code) == (False, "over_budget", "over_budget")
    assert found.tokens is not None
    assert found.room.pieces_tokens == 600 - 100 - 160
    assert found.room.left_tokens is not None
    missing = found.tokens - found.room.left_tokens
    assert found.reason == f"needs {found.tokens} tokens; {found.room.left_tokens} were left after more important items"
    assert found.changes == (
        change_of(
            effect="includes",
            needs=(Need(what="tokens", text=f"+{missing} tokens", value=missing, bound="least"),),
        ),
    )


def test_an_item_that_had_nothing_to_do_with_the_turn_is_explained_too() -> None:
    manual = Rule("tone", "Be kind.")
    off = Rule("old", "Be rude.", include="agent", enabled=False)
    forbidden = Tool("files", "wipe", permission="forbidden", include="agent")
    past = played(replace(LIBRARY, items=(*LIBRARY.items, manual, off, forbidden)))

    found = [explain(past, ref) for ref in (manual.ref, off.ref, forbidden.ref)]

    assert [(f.included, f.fate, f.mode, f.reason, [c.text for c in f.changes]) for f in found] == [
        (False, "not_in_session", "manual", "manual item; it was not added to this session", ["add it by hand"]),
        (False, "disabled", "agent", "disabled by the agent", ["`enabled: true` in its file"]),
        (False, "not_permitted", "agent", "forbidden by the agent", ["a permission other than `forbidden`"]),
    ]


def test_small_talk_is_overruled_by_include_score_or_by_hand_alone() -> None:
    found = explain(played(replace(LIBRARY, small_talk=True)), RESIZE.ref)

    assert found.evidence is not None
    assert found.reason == "because"
    assert [change.text for change in found.changes] == [
        f"include_score ≤ {found.evidence.score:.10g}",
        "add it by hand",
    ]


def test_everything_the_agent_had_is_explained_at_once() -> None:
    past = played(replace(LIBRARY, items=(*LIBRARY.items, Rule("tone", "Be kind.", include="always"))))

    found = explain_all(past)

    assert [f.ref for f in found] == sorted(
        (item.ref for item in (*LIBRARY.items, Rule("tone", ""))), key=lambda r: r.sort_key
    )
    assert {f.ref for f in found if f.included} == {CROP.ref, rule_ref("tone")}
    assert found == tuple(explain(past, f.ref) for f in found)


def test_an_item_that_the_agent_did_not_have_is_unknown() -> None:
    with pytest.raises(UnknownItemError, match="reference:missing"):
        explain(played(LIBRARY), reference_ref("missing"))


def test_a_record_from_before_there_were_catalogs_still_says_why() -> None:
    past = played(LIBRARY)
    old = replace(
        past,
        catalog=None,
        context=replace(
            past.context, search={}, pieces=(), catalog=None, budget=replace(past.context.budget, pieces_tokens=None)
        ),
    )

    assert explain(old, RESIZE.ref) == Explanation(
        ref=RESIZE.ref,
        included=False,
        fate="left_out",
        mode="agent",
        code="below_cut_off",
        reason=explain(past, RESIZE.ref).reason,
        evidence=explain(past, RESIZE.ref).evidence,
        compared=22,
        tokens=None,
        room=RoomState(pieces_tokens=None, left_tokens=None),
        changes=(change_of(effect="includes", needs=(Need(what="add", text="add it by hand"),)),),
    )


def test_items_whose_texts_nobody_kept_are_explained_without_their_size() -> None:
    past = played(LIBRARY)

    found = {f.ref: f for f in explain_all(replace(past, catalog=None))}

    assert found[CROP.ref].included
    assert (found[RESIZE.ref].tokens, found[RESIZE.ref].code) == (None, "below_cut_off")
    assert all(need.what != "tokens" for change in found[RESIZE.ref].changes for need in change.needs)


def test_a_catalog_gives_items_back_as_they_were() -> None:
    tool = Tool("files", "read", "Read.", {"type": "object", "properties": {"path": {"type": "string"}}}, "agent")
    reference = Reference(
        "crop", "Crop.", "How to crop", 7, "agent", version="3", related=("resize",), title="Cropping"
    )
    rule = Rule("old", "Text.", enabled=False)
    past = played(replace(LIBRARY, items=(tool, reference, rule)))

    assert [past.item(item.ref) for item in (tool, reference, rule)] == [tool, reference, rule]
    assert past.item(tool_ref("files", "none")) is None
