from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.ids import RequestId
from windowpane.context.items import IncludeMode, Reference, Rule, Tool, item_hash, reference_ref, rule_ref, tool_ref
from windowpane.context.request import (
    Budget,
    CallSettings,
    Candidate,
    ContextItem,
    Evidence,
    ItemStatus,
    Part,
    Query,
    RequestContext,
)
from windowpane.insight.view import (
    NO_CONTEXT,
    ContextColumns,
    ContextPartRow,
    ContextRow,
    badge,
    changes_since,
    columns,
    label,
    parts,
    render_text,
    summary,
)


def rule(
    name: str, mode: IncludeMode, priority: int | None = 500, score: float | None = None, status: ItemStatus = "used"
) -> ContextItem:
    return ContextItem(
        type="rule",
        name=name,
        include_mode=mode,
        priority=priority,
        status=status,
        reason="why",
        evidence=None if score is None else Evidence(score),
        tokens=7,
    )


def reference(name: str, mode: IncludeMode, priority: int = 500, score: float | None = None) -> ContextItem:
    return replace(rule(name, mode, priority, score), type="reference")


def tool(server: str, name: str, mode: IncludeMode, score: float | None = None) -> ContextItem:
    return replace(rule(name, mode, None, score), type="tool", server=server)


def context(*items: ContextItem) -> RequestContext:
    return RequestContext(
        id=RequestId("req_1"),
        turn=1,
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        agent="guide",
        settings=CallSettings(model="echo"),
        query=Query(text="hello"),
        items=items,
        budget=Budget(window_tokens=1000, reply_tokens=100, used_tokens=200),
    )


@pytest.mark.spec("S0.77", "S0.78", "S0.79", "S0.82", "S0.84", "S1.85", "S1.86", "S1.87", "S1.89", "S1.93")
def test_the_text_view_has_three_groups_with_labels_names_and_badges() -> None:
    # S0.79 writes `server:tool` and S1.93 `server. • tool`; the product writes the latter wherever a context is shown.
    shown = render_text(
        context(
            rule("Authentication Rules", "always", 1),
            rule("Error Handling", "manual", 2),
            rule("File Operations", "agent", 3, 0.87),
            reference("API Documentation", "always", 1),
            reference("Database Schema", "agent", 2, 0.92),
            tool("filesystem", "read_file", "manual"),
            tool("database", "query", "agent", 0.85),
        )
    )

    assert (
        shown
        == """\
Context Used:
3 rules (1 agent, 1 always, 1 manual), 2 references (1 agent, 1 always), 2 tools (1 agent, 1 manual)

Rules (3):
  001 • Authentication Rules [Always]
  002 • Error Handling [Manual]
  003 • File Operations [Agent - 0.87]

References (2):
  001 • API Documentation [Always]
  002 • Database Schema [Agent - 0.92]

Tools (2):
  database. • query [Agent - 0.85]
  filesystem. • read_file [Manual]"""
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


def test_an_item_that_was_not_simply_used_says_what_became_of_it_and_why() -> None:
    shown = render_text(
        context(
            rule("kept", "always", 1),
            replace(rule("gone", "manual", None), status="missing", reason="no longer in the agent"),
            replace(reference("long", "manual", 40), status="truncated", reason="shortened from 9 to 5 tokens"),
        )
    )

    assert (
        shown
        == """\
Context Used:
1 rule (always), 1 reference (manual); 1 not sent

Rules (1, 1 not sent):
  001 • kept [Always]
  --- • gone [Manual] – missing: no longer in the agent

References (1):
  040 • long [Manual] – truncated: shortened from 9 to 5 tokens

Tools (0):
  none"""
    )


@pytest.mark.spec("S0.87")
def test_a_message_without_a_context_says_so() -> None:
    assert render_text(None) == NO_CONTEXT == "No context data available"


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
