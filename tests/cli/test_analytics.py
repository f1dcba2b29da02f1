"""`use`, `analytics`, `suggest`, `eval` and `tune` as real commands."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from cli.running import windowpane
from stores.postgres_server import fresh_database
from windowpane.agents.init import init_agent
from windowpane.settings import Settings
from windowpane.wiring import open_engine

AGENT = """model: echo
working_context: false
search: {floor: 0.05, share_of_best: 0.1, deadline_s: 60}
"""
LABELS = "\n".join(f"- {{message: 'When is refund {number} paid?', must: [reference:billing]}}" for number in range(12))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a small agent and twenty-one turns."""
    folder = tmp_path_factory.mktemp("analytics")
    agent = init_agent(folder / "agents" / "desk")
    for old in (*(agent / "rules").glob("*"), *(agent / "references").glob("*")):
        old.unlink()
    (agent / "agent.yaml").write_text(AGENT)
    (agent / "rules" / "tone.md").write_text("---\ninclude: always\n---\nBe kind.")
    (agent / "references" / "manual.md").write_text("---\ninclude: always\n---\nA manual that nobody draws upon.")
    (agent / "references" / "billing.md").write_text(
        "---\ninclude: agent\ndescription: Invoices, payments and refunds\n---\n"
        "A refund of an invoice reaches the bank account after five working days."
    )
    (agent / "references" / "printing.md").write_text(
        "---\ninclude: agent\ndescription: Printing and resizing photos\n---\nPhotos are printed on matte paper."
    )

    async def talk() -> None:
        async with open_engine(Settings(data=folder)) as engine:
            session = (await engine.sessions.create()).id
            for number in range(21):
                prepared = await engine.prepared.begin(session, f"When is refund number {number} of mine paid?")
                await engine.prepared.record(
                    prepared, f"Refund {number} reaches the bank account after five working days."
                )

    anyio.run(talk)
    return folder


def command(data: Path, *arguments: str, code: int = 0, typed: str = "") -> str:
    done = windowpane(data, *arguments, piped=typed.encode())
    assert done.code == code, done.err
    return done.out


@pytest.mark.spec("S0.92", "S1.107")
def test_use_says_which_items_an_answer_made_use_of(data: Path) -> None:
    shown = command(data, "use", "last", "1")
    as_json = json.loads(command(data, "use", "last", "1", "--json"))

    assert shown.splitlines() == [
        "· rule:tone – no trace was found",
        "· reference:manual – no trace was found",
        "✓ reference:billing – quoted: reaches the bank account after",
    ]
    assert [item["used"] for item in as_json] == [False, False, True]


@pytest.mark.spec("S0.89", "S0.90", "S1.110", "S4.87")
def test_analytics_are_shown_and_had_as_json_and_csv(data: Path) -> None:
    shown = command(data, "analytics")
    as_json = json.loads(command(data, "analytics", "--json", "--agent", "desk"))
    as_csv = command(data, "analytics", "--csv", "items")
    before = json.loads(command(data, "analytics", "--json", "--until", "2020-01-01"))

    assert shown.startswith("1 session, 21 turns, ")
    assert "\n  reference:billing: in 21 requests, " in shown
    assert (as_json["spent"]["turns"], before["spent"]["turns"]) == (21, 0)
    assert as_csv.splitlines()[0].startswith("item,agent,included,")
    assert [line for line in as_csv.splitlines() if line.startswith("reference:billing,desk,21,")]
    assert len(list((data / "cache").glob("analytics-*.db"))) == 1


def test_everything_is_counted_again_on_request_and_not_through_a_server(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = command(data, "analytics", "--csv", "parts")
    monkeypatch.setenv("WINDOWPANE_ANALYTICS_URL", fresh_database())
    elsewhere = command(data, "analytics", "--rebuild", "--csv", "parts")
    again = command(data, "analytics", "--csv", "parts")
    remote = windowpane(data, "analytics", "--rebuild", "--url", "http://127.0.0.1:1")

    assert counted.count("\n") > 2
    assert (elsewhere, again) == (counted, counted)
    assert (remote.code, "run it on the server, without --url" in remote.err) == (1, True)


@pytest.mark.spec("S0.93", "S0.94", "S1.108", "S1.111")
def test_a_suggestion_is_shown_and_applied_after_asking(data: Path) -> None:
    file = data / "agents" / "desk" / "references" / "manual.md"
    before = file.read_text()
    shown = command(data, "suggest")
    declined = command(data, "suggest", "desk", "--apply", "1", code=1, typed="n\n")
    unchanged = file.read_text()
    applied = command(data, "suggest", "desk", "--apply", "1", "--yes")
    changed = file.read_text()
    file.write_text(before)

    assert shown.startswith("1. demote reference:manual (saves ")
    assert "Nothing was changed." in declined
    assert unchanged == before
    assert changed == before.replace("always", "agent")
    assert applied.startswith("Changed references/manual.md (demote reference:manual: include: agent).")
    assert applied.endswith("To undo, set there: include: always\n")


@pytest.mark.spec("S0.91", "S0.97", "S1.110")
def test_eval_measures_on_past_turns_or_on_a_file_and_draws_the_calibration(data: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.yaml"
    labels.write_text(LABELS)
    used = command(data, "eval", "desk")
    labelled = json.loads(command(data, "eval", "desk", "--labels", str(labels), "--json"))

    assert used.startswith("21 questions: recall 1.000, precision ")
    assert "\nNeeded, by score (of items with a score of 0.4, about 40% should be needed):\n  0.0–0.1 " in used
    assert labelled["whole"]["questions"] == 12
    assert labelled["whole"]["recall"] == 1.0


@pytest.mark.spec("S0.93", "S1.111")
def test_tune_shows_before_and_after_and_writes_only_when_told_to(data: Path, tmp_path: Path) -> None:
    file = data / "agents" / "desk" / "agent.yaml"
    labels = tmp_path / "labels.yaml"
    labels.write_text(LABELS)
    as_it_was = file.read_text()
    nothing = command(data, "tune", "desk", "--labels", str(labels), "--write", "--yes")
    before = "model: echo\nsearch:  # takes everything\n  floor: 0.0\n  share_of_best: 0.0\n  deadline_s: 60\n"
    file.write_text(before)
    shown = command(data, "tune", "desk", "--labels", str(labels))
    declined = command(data, "tune", "desk", "--labels", str(labels), "--write", code=1, typed="n\n")
    kept = file.read_text()
    command(data, "tune", "desk", "--labels", str(labels), "--write", "--yes")
    written = file.read_text()
    better = json.loads(command(data, "eval", "desk", "--labels", str(labels), "--json"))
    file.write_text(as_it_was)

    assert nothing.endswith("no clear improvement was found; keep the settings\nNothing was changed.\n")
    assert shown.startswith("rules and references, 12 questions in 5 groups:\n  now: recall 1.000, precision 0.")
    assert "\n  tuned, on held-out questions: recall 1.000, precision 1.000, F1 1.000" in shown
    assert "\n  proposed: " in shown
    assert "Nothing was changed. --write writes these settings to agent.yaml, after asking." in shown
    assert kept == before
    assert "Nothing was changed." in declined
    assert written != before
    assert written.startswith("model: echo\nsearch:  # takes everything\n")
    assert better["whole"]["precision"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("analytics", "--since", "yesterday"), "--since takes a day such as 2026-01-31, not 'yesterday'"),
        (("analytics", "--csv", "messages"), "no list 'messages'; available: days, models, agents"),
        (("suggest", "desk", "--apply", "99"), "no suggestion 99; there are "),
        (("eval", "none"), "none"),
        (("eval", "desk", "--labels", "/nowhere.yaml"), "/nowhere.yaml cannot be read"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(data: Path, arguments: tuple[str, ...], words: str) -> None:
    done = windowpane(data, *arguments)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert words in done.err
