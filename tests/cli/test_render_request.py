"""What the terminal prints of a request."""

from dataclasses import replace

import pytest

from insight.records import context, reference, rule, tool
from windowpane.cli.render_request import draw_context
from windowpane.cli.terminal import Screen

TAIL = """

Parts:
Budget: 200 of 1,000 tokens used, 100 reserved for the reply, 700 left
Model: echo, turn 1, 2026-01-01 00:00:00 UTC
"""

Printed = pytest.CaptureFixture[str]


@pytest.mark.spec("S0.77", "S0.78", "S0.79", "S0.82", "S0.84", "S1.85", "S1.86", "S1.87", "S1.89", "S1.93")
def test_the_text_view_has_three_groups_with_labels_names_and_badges(capsys: Printed) -> None:
    # S0.79 writes `server:tool` and S1.93 `server. • tool`; the product writes the latter wherever a context is shown.
    record = context(
        rule("Authentication Rules", "always", 1),
        rule("Error Handling", "manual", 2),
        rule("File Operations", "agent", 3, 0.87),
        reference("API Documentation", "always", 1),
        reference("Database Schema", "agent", 2, 0.92),
        tool("filesystem", "read_file", "manual"),
        tool("database", "query", "agent", 0.85),
    )

    draw_context(Screen(), record)

    assert (
        capsys.readouterr().out
        == """\
Context Used:
3 rules (1 agent, 1 always, 1 manual), 2 references (1 agent, 1 always), 2 tools (1 agent, 1 manual)

Rules (3):
  001 • Authentication Rules [Always] 7 tokens
  002 • Error Handling [Manual] 7 tokens
  003 • File Operations [Agent - 0.87] 7 tokens

References (2):
  001 • API Documentation [Always] 7 tokens
  002 • Database Schema [Agent - 0.92] 7 tokens

Tools (2):
  database. • query [Agent - 0.85] 7 tokens
  filesystem. • read_file [Manual] 7 tokens"""
        + TAIL
    )


def test_an_item_that_was_not_simply_used_says_what_became_of_it_and_why(capsys: Printed) -> None:
    record = context(
        rule("kept", "always", 1),
        replace(rule("gone", "manual", None), status="missing", reason="no longer in the agent"),
        replace(reference("long", "manual", 40), status="truncated", reason="shortened from 9 to 5 tokens"),
    )

    draw_context(Screen(), record)

    assert (
        capsys.readouterr().out
        == """\
Context Used:
1 rule (always), 1 reference (manual); 1 not sent

Rules (1, 1 not sent):
  001 • kept [Always] 7 tokens
  --- • gone [Manual] 7 tokens – missing: no longer in the agent

References (1):
  040 • long [Manual] 7 tokens – truncated: shortened from 9 to 5 tokens

Tools (0):
  none"""
        + TAIL
    )


@pytest.mark.spec("S0.87")
def test_a_message_without_a_context_says_so(capsys: Printed) -> None:
    draw_context(Screen(), None)

    assert capsys.readouterr().out == "No context data available\n"
