from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windowpane.agents.base import Agent
from windowpane.agents.folder import FolderAgents
from windowpane.api.analytics import ItemRow, ScoreStep
from windowpane.api.suggestions import Edit, Suggestion
from windowpane.context.items import Item, ItemRef, Tool, reference_ref, rule_ref, tool_ref
from windowpane.errors import InvalidInputError, MissingFileError, StaleRevisionError, UnknownItemError
from windowpane.insight.analytics.suggest import apply, suggestions
from windowpane.testing import World

PAY = Tool("bank", "pay", "Pays.", include="always")
SERVER = """mcpServers:
  bank:
    command: bank-server
    tools:
      pay: {permission: forbidden}  # nobody pays
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("agent.yaml", f"model: scripted:test\n{SERVER}")
    world.rule("tone", "Be kind.", include="always")
    world.rule("law", "Long. " * 500, include="always")
    world.reference("billing", "About bills.", include="always", priority=5)
    world.reference("prices", "About prices.", include="agent")
    world.reference("hidden", "About nothing.")
    return world


def agent(world: World) -> Agent:
    return FolderAgents(world.root).current("pane")


def row(ref: ItemRef, **counts: Any) -> ItemRow:
    return ItemRow(ref=ref, agent="pane", **counts)


def suggested(world: World, *rows: ItemRow, turns: int = 100) -> list[Suggestion]:
    found = agent(world)
    items: tuple[Item, ...] = (*found.rules, *found.references, PAY)
    return list(suggestions(found, items, rows, turns))


def unused(ref: ItemRef, tokens: int = 100, **more: Any) -> ItemRow:
    whole = tokens * 100
    counts = {"unused_tokens": whole} if ref.type == "tool" else {"no_trace": 100, "no_trace_tokens": whole}
    return row(ref, included=100, tokens=whole, used=0, used_share=0.0, **counts, **more)


@pytest.mark.spec("S0.93", "S0.94", "S1.108", "S1.111")
def test_what_is_always_there_and_seldom_used_is_to_be_demoted(world: World) -> None:
    billing, pay = suggested(world, unused(reference_ref("billing"), 100), unused(PAY.ref, 50))

    assert (billing.kind, billing.ref, billing.saves_tokens, billing.saves_tokens_per_request) == (
        "demote",
        reference_ref("billing"),
        10_000,
        100,
    )
    assert billing.edit == Edit(ref=reference_ref("billing"), settings={"include": "agent"})
    assert billing.why == (
        "In 100 requests, there was no trace of it in the answers, at 100 tokens each time. With include mode "
        "agent, it is sent only when needed. That no trace was found does not prove that it is of no use."
    )
    assert (pay.kind, pay.edit) == ("demote", Edit(ref=PAY.ref, settings={"include": "agent"}))
    assert pay.why == (
        "In 100 requests, there was no call of it in the answers, at 50 tokens each time. With include mode "
        "agent, it is sent only when needed."
    )


def test_what_was_never_compared_or_probably_used_is_no_reason_to_suggest_anything(world: World) -> None:
    tokens = {"included": 100, "tokens": 10_000}
    by_words_alone = row(reference_ref("billing"), used_share=0.0, **tokens)
    in_other_words = row(reference_ref("billing"), probably=50, no_trace=50, no_trace_tokens=5000, **tokens)

    assert suggested(world, by_words_alone) == []
    assert suggested(world, in_other_words) == []


def test_a_rule_that_is_always_there_is_never_to_be_removed_for_want_of_a_trace(world: World) -> None:
    found = suggested(world, unused(rule_ref("tone"), 10), unused(rule_ref("law"), 500))

    (law,) = found
    assert (law.kind, law.ref, law.edit, law.saves_tokens) == ("shorten", rule_ref("law"), None, 25_000)
    assert law.why.endswith("a rule that shapes the answer leaves none. It is not suggested to remove it.")


@pytest.mark.spec("S0.94", "S1.108")
def test_what_is_selected_and_never_used_is_to_be_removed_and_what_never_wins_too(world: World) -> None:
    (selected,) = suggested(world, unused(reference_ref("prices"), 100, selected=100, considered=100))
    scores = (ScoreStep(low=0.1, selected=0, left_out=60, used=0),)
    (loser,) = suggested(world, row(reference_ref("prices"), considered=60, scores=scores))

    assert (selected.kind, selected.saves_tokens) == ("remove", 10_000)
    assert selected.edit == Edit(ref=reference_ref("prices"), settings={"enabled": False})
    assert (loser.kind, loser.saves_tokens, loser.edit) == ("remove", 0, selected.edit)
    assert "never selected; its scores stayed below 0.2" in loser.why


@pytest.mark.spec("S0.93", "S1.111")
def test_what_people_add_by_hand_again_and_again_is_to_be_promoted(world: World) -> None:
    (manual,) = suggested(world, row(reference_ref("hidden"), added_by_hand=4))
    (often,) = suggested(
        world, row(reference_ref("prices"), considered=40, selected=2, included=8, tokens=80, added_by_hand=6)
    )
    (everywhere,) = suggested(
        world,
        row(reference_ref("prices"), considered=100, selected=95, included=95, tokens=950, used=90, used_share=0.95),
    )

    assert (manual.kind, manual.edit) == ("promote", Edit(ref=reference_ref("hidden"), settings={"include": "agent"}))
    assert (often.kind, often.saves_tokens) == ("promote", -920)
    assert often.edit == Edit(ref=reference_ref("prices"), settings={"include": "always"})
    assert (everywhere.kind, everywhere.saves_tokens) == ("promote", -50)
    assert everywhere.why.startswith("It was in 95 of 100 requests and used in 90.")


def test_what_was_selected_once_and_carried_for_long_is_not_to_be_removed(world: World) -> None:
    assert suggested(world, unused(reference_ref("prices"), 100, selected=1, considered=100)) == []


def test_little_evidence_suggests_nothing(world: World) -> None:
    few = row(reference_ref("billing"), included=19, tokens=1900, used_share=0.0, no_trace=19, no_trace_tokens=1900)
    once = row(reference_ref("hidden"), added_by_hand=2)
    often = row(reference_ref("billing"), included=100, tokens=100, used=50, used_share=0.5)
    gone = unused(reference_ref("gone"))

    assert suggested(world, few, once, gone) == []
    assert suggested(world, often) == []


@pytest.mark.spec("S0.93", "S1.111")
@pytest.mark.parametrize(
    ("ref", "settings", "file"),
    [
        (reference_ref("billing"), {"include": "agent"}, "references/billing.md"),
        (reference_ref("hidden"), {"include": "agent"}, "references/hidden.md"),
        (rule_ref("tone"), {"enabled": False}, "rules/tone.md"),
        (tool_ref("bank", "pay"), {"include": "agent"}, "agent.yaml"),
        (tool_ref("bank", "other"), {"include": "manual"}, "agent.yaml"),
    ],
)
def test_a_suggestion_is_applied_and_undone_byte_for_byte(
    world: World, ref: ItemRef, settings: dict[str, Any], file: str
) -> None:
    path = world.root / "pane" / file
    before = path.read_text()

    done = apply(agent(world), Edit(ref=ref, settings=settings), revision="*")
    between = path.read_text()
    undone = apply(agent(world), done.undo, revision=done.revision)

    assert (done.agent, done.file) == ("pane", file)
    assert between != before
    assert "# nobody pays" in between or file != "agent.yaml"
    assert path.read_text() == before
    assert undone.undo == Edit(ref=ref, settings=settings)


def test_what_cannot_be_applied_is_refused_and_changes_nothing(world: World) -> None:
    found = agent(world)
    billing = reference_ref("billing")
    for edit, error in (
        (Edit(ref=billing, settings={"priority": "1"}), InvalidInputError),
        (Edit(ref=billing, settings={}), InvalidInputError),
        (Edit(ref=billing, settings={"include": "never"}), InvalidInputError),
        (Edit(ref=billing, settings={"enabled": "yes"}), InvalidInputError),
        (Edit(ref=PAY.ref, settings={"enabled": False}), InvalidInputError),
        (Edit(ref=reference_ref("none"), settings={"include": "agent"}), UnknownItemError),
        (Edit(ref=tool_ref("none", "x"), settings={"include": "agent"}), MissingFileError),
    ):
        with pytest.raises(error):
            apply(found, edit, revision="*")
    with pytest.raises(StaleRevisionError):
        apply(found, Edit(ref=billing, settings={"include": "agent"}), revision="another")

    assert agent(world) == found
