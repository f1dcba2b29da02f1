"""`explain`, `compare`, `replay` and `test` as real commands."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

from cli.running import windowpane
from windowpane.agents.init import init_agent

AGENT = """model: echo
working_context: false
search: {floor: 0.05, deadline_s: 60}
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a small agent and a session of two turns."""
    folder = tmp_path_factory.mktemp("lookback")
    agent = init_agent(folder / "agents" / "desk")
    for old in (*(agent / "rules").glob("*"), *(agent / "references").glob("*")):
        old.unlink()
    (agent / "agent.yaml").write_text(AGENT)
    (agent / "rules" / "tone.md").write_text("---\ninclude: always\n---\nBe kind.")
    (agent / "references" / "billing.md").write_text(
        "---\ninclude: agent\ndescription: Invoices, payments and refunds\n---\nA refund takes five days."
    )
    (agent / "references" / "printing.md").write_text(
        "---\ninclude: agent\ndescription: Printing and resizing photos\n---\nPhotos are printed on matte paper."
    )
    for message in ("When do I get my refund for the invoice?", "How do I resize a photo before printing?"):
        session = ("last",) if message.startswith("How") else ()
        command(folder, "chat", *session, "--message", message)
    return folder


def command(data: Path, *arguments: str, code: int = 0) -> str:
    """Run a command in this process and return what it printed."""
    done = windowpane(data, *arguments)
    assert done.code == code, done.err
    return done.out


@pytest.mark.spec("S0.69")
def test_explain_says_why_and_what_would_have_changed_that(data: Path) -> None:
    one = command(data, "explain", "last", "1", "printing")
    everything = command(data, "explain", "last", "1", "--json")

    assert one.startswith("reference:printing: not included (left out)\n  why: weak match: ")
    assert "would have included it: include_score ≤ 0." in one
    assert one.rstrip().endswith("or add it by hand")
    assert {entry["ref"]["name"]: entry["included"] for entry in json.loads(everything)} == {
        "billing": True,
        "printing": False,
        "tone": True,
        "find_references": True,
        "read_reference": True,
    }
    assert "Not included (1):\n  reference:printing 0." in command(data, "explain", "last", "1")


def test_compare_shows_what_entered_and_left_and_where_the_prompts_differ(data: Path) -> None:
    shown = command(data, "compare", "last", "1", "2")
    as_json = command(data, "compare", "last", "2", "1", "--json")

    lines = shown.splitlines()
    assert lines[0] == "Turn 1 → turn 2"
    assert any(line.startswith("  + reference:printing entered (+") for line in lines)
    assert any(line.startswith("  - reference:billing left (-") for line in lines)
    assert lines[-3].endswith(", +0.000000 US dollars")
    assert lines[-2] == "Calls: 1 (in this process) → 1 (in this process)"
    assert lines[-1].startswith("Prompt prefix: ")
    assert {(item["ref"]["name"], item["happened"]) for item in json.loads(as_json)["items"]} == {
        ("billing", "entered"),
        ("printing", "left"),
    }


def test_replay_rebuilds_and_runs_the_selection_again(data: Path, tmp_path: Path) -> None:
    text = tmp_path / "billing.md"
    text.write_text("Nothing about money.")

    plain = command(data, "replay", "last", "1")
    settings = command(data, "replay", "last", "1", "--include-score", "0")
    query = command(data, "replay", "last", "1", "--query", "How do I resize a photo?", "--json")
    item = command(data, "replay", "last", "1", "--item", f"billing={text}", "--json")

    assert plain.startswith("Turn 1 rebuilt, identical to the recorded request: ")
    assert "Selected (2):\n" in settings
    assert "  + reference:printing" in settings
    body = json.loads(query)
    assert body["rebuilt"]["identical"] is True
    assert [ref["name"] for ref in body["selection"]["entered"]] == ["printing"]
    assert json.loads(item)["selection"]["measured"] is True


def test_a_turn_is_made_a_test_and_tests_end_with_an_exit_code(data: Path, tmp_path: Path) -> None:
    made = command(data, "test", "--from-turn", "last", "1")
    passed = command(data, "test", "desk")
    failing = data / "agents" / "desk" / "tests" / "failing.yaml"
    failing.write_text("name: photos need billing\nmessage: How do I resize a photo?\nmust: [reference:billing]\n")
    failed = windowpane(data, "test", "--junit", str(tmp_path / "report.xml"))
    as_json = command(data, "test", "--json", code=1)
    failing.unlink()

    assert (data / "agents/desk/tests/when-do-i-get-my-refund-for-the-invoice.yaml").read_text() == made
    assert "  must:\n  - reference:billing\n" in made
    assert passed.splitlines()[-1] == "1 test, all passed"
    assert failed.code == 1
    assert "✗ photos need billing  desk/tests/failing.yaml:1\n    message: How do I resize a photo?\n" in failed.out
    assert "    - reference:billing must be selected: weak match: " in failed.out
    assert failed.out.splitlines()[-1] == "2 tests, 1 failed"
    suite = parse(tmp_path / "report.xml").getroot()[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("desk", "2", "1")
    assert [[v["passed"] for v in report["results"]] for report in json.loads(as_json)] == [[False, True]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "last", "1", "rule:none"), "the agent has no item 'rule:none'"),
        (("replay", "last", "1", "--item", "billing"), "'billing' names no file; write --item NAME=FILE"),
        (("replay", "last", "9"), "has no turn 9"),
        (("test", "--agents", "/nowhere"), "no tests found; write tests/*.yaml beside agent.yaml"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(data: Path, arguments: tuple[str, ...], words: str) -> None:
    done = windowpane(data, *arguments)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert words in done.err
