from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight.records import context, reference, rule, tool
from windowpane.context.items import Reference, Rule, Tool, item_hash, reference_ref, rule_ref, tool_ref
from windowpane.context.request import Candidate, ContextItem, Part
from windowpane.insight.view import (
    ContextColumns,
    ContextPartRow,
    ContextRow,
    badge,
    changes_since,
    columns,
    label,
    parts,
    summary,
)


@pytest.mark.spec("S0.80", "S0.85")
def test_the_summary_counts_by_mode_and_says_all_when_one_mode_covers_a_group() -> None:
    given_context = context(
        *(rule(name, "agent") for name in "abc"),
        *(rule(name, "always") for name in "de"),
        reference("f", "agent"),
        reference("g", "manual"),
        *(tool("files", name, "manual") for name in "hij"),
    )

    assert summary(given_context) == (
        "5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"
    )


@pytest.mark.spec("S0.80")
@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((), "no items"),
        ((rule("a", "always"),), "1 rule (always)"),
        ((rule("a", "always"), rule("b", "always")), "2 rules (all always)"),
        ((tool("s", "t", "agent", 0.5),), "1 tool (agent)"),
        ((rule("a", "manual"), rule("b", "manual", status="missing")), "1 rule (manual); 1 not sent"),
        ((rule("b", "manual", status="server_down"),), "no items; 1 not sent"),
    ],
)
def test_the_summary_speaks_of_what_was_sent_and_leaves_empty_groups_out(
    items: tuple[ContextItem, ...], expected: str
) -> None:
    assert summary(context(*items)) == expected


@pytest.mark.spec("S1.91", "S1.92")
def test_rows_are_sorted_by_priority_then_name_and_tools_by_server_then_name() -> None:
    shown = columns(
        context(
            tool("b", "a", "always"),
            rule("late", "always", 900),
            rule("none", "manual", None),
            rule("beta", "always", 10),
            tool("a", "z", "always"),
            rule("alpha", "manual", 10),
            tool("a", "y", "manual"),
        )
    )

    assert [row.name for row in shown.rules] == ["alpha", "beta", "late", "none"]
    assert [(row.label, row.name) for row in shown.tools] == [("a.", "y"), ("a.", "z"), ("b.", "a")]


def test_a_row_carries_everything_that_is_drawn() -> None:
    shown = columns(context(rule("x", "agent", 7, 0.456)), {rule_ref("x"): "changed"})

    row = ContextRow(
        ref=rule_ref("x"),
        label="007",
        name="x",
        mode="agent",
        badge="Agent - 0.46",
        score=0.456,
        status="used",
        reason="why",
        tokens=7,
        since="changed",
    )
    assert shown == ContextColumns(rules=(row,), references=(), tools=())
    assert row.note == "changed since"


@given(priority=st.integers(0, 999), score=st.floats(0, 1))
@pytest.mark.spec("S1.85", "S1.89")
def test_priorities_have_three_digits_and_scores_two_decimals(priority: int, score: float) -> None:
    assert len(label(rule_ref("x"), priority)) == 3
    assert badge("agent", score) == f"Agent - {round(score, 2):.2f}"


def test_an_item_that_was_edited_or_deleted_since_is_named() -> None:
    same, edited, gone = Rule("same", "text"), Rule("edited", "old"), Reference("gone", "text")
    present, dropped, away = Tool("up", "present"), Tool("up", "dropped"), Tool("down", "away")
    record = context(
        *(
            replace(rule(item.name, "always"), type=item.ref.type, server=item.ref.server, hash=item_hash(item))
            for item in (same, edited, gone, present, dropped, away)
        )
    )

    now = {item.ref: item_hash(item) for item in (same, Rule("edited", "new"), present)}
    assert changes_since(record, now) == {
        rule_ref("edited"): "changed",
        reference_ref("gone"): "deleted",
        tool_ref("up", "dropped"): "deleted",
    }


def test_parts_of_one_kind_are_one_row_and_what_was_left_out_is_counted() -> None:
    record = replace(
        context(),
        parts=(
            Part(kind="core", tokens=10),
            Part(kind="history", tokens=3),
            Part(kind="history", tokens=4),
            Part(kind="message", tokens=5),
            Part(kind="history", tokens=0, status="left_out", reason="no room"),
            Part(kind="history", tokens=0, status="left_out", reason="no room"),
        ),
        candidates=(Candidate(type="rule", name="x", code="below", reason="below the floor"),),
    )

    assert parts(record) == (
        ContextPartRow(kind="core", count=1, tokens=10),
        ContextPartRow(kind="history", count=2, tokens=7, left_out=2, reasons=("no room",)),
        ContextPartRow(kind="message", count=1, tokens=5),
    )
