"""Two turns side by side: what entered, left, changed, moved, what it costs, and where prompts begin to differ."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight.turns import NOW, Scene, played
from windowpane.api.comparison import Comparison, ItemChange, PartChange, Prefix
from windowpane.context.carried import CarriedItem
from windowpane.context.ids import SessionId
from windowpane.context.items import Item, Reference, Rule, Tool, rule_ref
from windowpane.context.messages import AssistantMessage, ModelReply, Step, Usage, UserMessage
from windowpane.insight.compare import compare, prompt_bytes
from windowpane.search.settings import SearchSettings

TONE = Rule("tone", "Be kind.\nBe brief.", include="always", priority=100)
STYLE = Rule("style", "Write plainly.", include="always", priority=200)
BILLING = Reference("billing", "Refunds take five days.", include="agent")
BASE = Scene(items=(TONE, STYLE, BILLING), near={BILLING.ref: (0.1, 0.0)})


def happened(found: Comparison) -> list[tuple[str, str]]:
    return [(str(change.ref), change.happened) for change in found.items]


@pytest.mark.spec("S0.67", "S0.73")
def test_an_item_that_entered_is_named_with_its_reason_and_one_that_left_too() -> None:
    without, with_billing = played(BASE), played(replace(BASE, near={BILLING.ref: (0.7, 0.7)}))

    entered, left = compare(without, with_billing), compare(with_billing, without)

    chosen = with_billing.context.item(BILLING.ref)
    assert chosen is not None
    assert entered.items == (
        ItemChange(ref=BILLING.ref, happened="entered", reason=chosen.reason, tokens=chosen.tokens),
    )
    assert left.items == (
        ItemChange(
            ref=BILLING.ref,
            happened="left",
            reason="weak match: 0.03 (minimum 0.25)",
            tokens=-chosen.tokens,
        ),
    )
    assert [(part.kind, part.happened) for part in entered.parts] == [("selected", "entered")]
    assert entered.tokens == with_billing.context.budget.used_tokens - without.context.budget.used_tokens
    assert entered.tokens_by_part == {"selected": entered.tokens}
    assert left.tokens == -entered.tokens


def test_a_changed_text_is_shown_as_a_diff() -> None:
    edited = replace(TONE, text="Be kind.\nBe very brief.")

    found = compare(played(BASE), played(replace(BASE, items=(edited, STYLE, BILLING))))

    assert happened(found) == [("rule:tone", "changed")]
    assert found.items[0].diff.splitlines()[-2:] == ["-Be brief.", "+Be very brief."]
    assert [(part.kind, part.happened) for part in found.parts] == [("rules", "changed")]
    assert "+Be very brief." in found.parts[0].diff


def test_items_that_change_places_have_moved() -> None:
    found = compare(played(BASE), played(replace(BASE, items=(replace(TONE, priority=300), STYLE, BILLING))))

    assert happened(found) == [("rule:tone", "changed"), ("rule:tone", "moved")] or happened(found) == [
        ("rule:style", "moved"),
        ("rule:tone", "changed"),
    ]


def test_an_item_that_was_selected_and_then_added_by_hand_has_moved() -> None:
    chosen = replace(BASE, near={BILLING.ref: (0.7, 0.7)})

    found = compare(played(chosen), played(replace(chosen, held=(BILLING.ref,))))

    assert [(str(c.ref), c.happened, c.reason) for c in found.items] == [
        ("reference:billing", "moved", "moved from selected to references")
    ]


def test_an_item_that_stands_in_the_prompt_since_the_turn_before_has_not_moved() -> None:
    refunds = Reference("refunds", "Refunds go to the card.", include="agent", priority=900)
    both = {BILLING.ref: (0.7, 0.7), refunds.ref: (0.8, 0.8)}
    before = played(replace(BASE, items=(*BASE.items, refunds), near=both))
    left = before.context.item(refunds.ref)
    assert left is not None
    assert left.hash is not None
    carried = CarriedItem(
        type="reference",
        name="refunds",
        turn=1,
        place=0,
        used=1,
        reason=left.reason,
        tokens=left.tokens,
        hash=left.hash,
    )
    items = tuple(item for item in before.context.items if item.ref != refunds.ref)
    after = replace(before, context=replace(before.context, items=items, carried=(carried,)))

    assert compare(before, after).items == ()


def test_the_same_turn_is_the_same() -> None:
    past = played(BASE)
    size = len(prompt_bytes(past))

    found = compare(past, past)

    assert (found.items, found.parts, found.tokens, found.tokens_by_part) == ((), (), 0, {})
    assert found.prefix == Prefix(
        same_bytes=size, same_tokens=found.before.used_tokens, bytes_before=size, bytes_after=size
    )


def test_the_next_turn_of_a_conversation_keeps_the_whole_prompt_as_its_prefix() -> None:
    said = (
        UserMessage(content=BASE.message, turn=1, seq=2, at=NOW),
        AssistantMessage(model_reply=ModelReply((Step(text="By the corner."),)), turn=1, seq=3, at=NOW),
    )

    found = compare(played(BASE), played(replace(BASE, turn=2, recent=said, message="And crop?")))

    assert found.prefix.same_bytes == found.prefix.bytes_before
    assert found.prefix.same_tokens == found.before.used_tokens
    assert (found.prefix.part, found.prefix.happened) == (None, None)
    assert [(part.kind, part.name, part.happened) for part in found.parts] == [
        ("history", "message 2", "entered"),
        ("history", "message 3", "entered"),
        ("message", "", "changed"),
    ]


@pytest.mark.parametrize(
    ("after", "item", "part", "what"),
    [
        (replace(BASE, items=(replace(TONE, text="Be kind.\nBe bold."), STYLE, BILLING)), TONE, "rules", "changed"),
        (
            replace(BASE, items=(TONE, STYLE, Rule("a", "New.", include="always", priority=1), BILLING)),
            "a",
            "rules",
            "entered",
        ),
        (replace(BASE, items=(TONE, BILLING)), STYLE, "rules", "left"),
        (replace(BASE, items=(STYLE, BILLING)), TONE, "rules", "left"),
        (replace(BASE, held=(BILLING.ref,)), BILLING, "references", "entered"),
        (replace(BASE, core="You are somebody else."), None, "core", "changed"),
        (replace(BASE, message="Something else?"), None, "message", "changed"),
        (
            replace(BASE, items=(*BASE.items, Tool("files", "read", include="always"))),
            Tool("files", "read"),
            "tools",
            "entered",
        ),
    ],
)
def test_what_ended_the_common_prefix_is_named(after: Scene, item: Item | str | None, part: str, what: str) -> None:
    ref = rule_ref(item) if isinstance(item, str) else item.ref if item else None

    prefix = compare(played(BASE), played(after)).prefix

    assert (prefix.item, prefix.part, prefix.happened) == (ref, part, what)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.text("abé", min_size=1, max_size=4), unique=True, max_size=5),
    st.lists(st.text("abé", min_size=1, max_size=4), unique=True, max_size=5),
    st.text(max_size=6),
    st.text(max_size=6),
)
def test_prompts_agree_to_exactly_the_stated_byte(first: list[str], second: list[str], one: str, other: str) -> None:
    def scene(names: list[str], text: str) -> Scene:
        return Scene(items=tuple(Rule(name, f"{name} {text}", include="always") for name in names))

    before, after = played(scene(first, one)), played(scene(second, other))

    prefix = compare(before, after).prefix

    a, b, same = prompt_bytes(before), prompt_bytes(after), prefix.same_bytes
    assert (len(a), len(b)) == (prefix.bytes_before, prefix.bytes_after)
    assert a[:same] == b[:same]
    assert a[same : same + 1] != b[same : same + 1] or a == b
    assert (prefix.part is None) == (same in (len(a), len(b)))


@settings(max_examples=150, deadline=None)
@given(st.permutations(range(5)), st.permutations(range(5)), st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4)))
def test_entered_and_left_are_each_others_mirror(
    first: list[int], second: list[int], gone: set[int], new: set[int]
) -> None:
    def scene(order: list[int], without: set[int]) -> Scene:
        rules = [Rule(f"r{n}", "text", include="always", priority=place) for place, n in enumerate(order)]
        return Scene(items=tuple(rule for rule in rules if int(rule.name[1:]) not in without))

    there, back = played(scene(first, gone)), played(scene(second, new))
    forth, mirrored = compare(there, back), compare(back, there)

    swapped = {"entered": "left", "left": "entered", "changed": "changed"}
    kinds = ("entered", "left", "changed")
    assert {(c.ref, c.happened) for c in forth.items if c.happened in kinds} == {
        (c.ref, swapped[c.happened]) for c in mirrored.items if c.happened in kinds
    }
    assert forth.tokens == -mirrored.tokens
    assert forth.prefix.same_bytes == mirrored.prefix.same_bytes
    kept = [n for n in first if n not in gone | new]
    in_order = kept == [n for n in second if n not in gone | new]
    assert in_order == (not any(change.happened == "moved" for change in forth.items))


def test_cost_is_compared_where_prices_are_known() -> None:
    def scene(tokens: int, model: str) -> Scene:
        return replace(BASE, model=model, steps=(Step(text="Yes.", model=model, usage=Usage(tokens, 10)),))

    known = compare(played(scene(1000, "openai:gpt-4o")), played(scene(2000, "openai:gpt-4o")))
    unknown = compare(played(scene(1000, "openai:gpt-4o")), played(scene(2000, "mine:own")))

    assert known.before.cost_usd is not None
    assert known.after.cost_usd is not None
    assert known.cost_usd == known.after.cost_usd - known.before.cost_usd == Decimal("0.0025")
    assert unknown.cost_usd is None


def test_messages_of_another_session_are_matched_by_their_place() -> None:
    def scene(seq: int) -> Scene:
        return replace(BASE, recent=(UserMessage(content="Hello", turn=1, seq=seq, at=NOW),), search=SearchSettings())

    found = compare(played(scene(2)), replace(played(scene(7)), session_id=SessionId("ses_other")))

    assert found.parts == ()
    assert compare(played(scene(2)), played(scene(7))).parts == (
        PartChange(kind="history", name="message 7", happened="entered", tokens=5),
        PartChange(kind="history", name="message 2", happened="left", tokens=-5),
    )
