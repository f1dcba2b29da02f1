from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from insight.counted import PAPER, PAPER_ANSWER, REFUND, ask, counted, talking
from insight.turns import played, scene_of, settings_of
from windowpane.api.evaluation import CalibrationStep, Wrong
from windowpane.context.items import reference_ref
from windowpane.errors import InvalidFileError, InvalidInputError
from windowpane.insight.evaluate import (
    LabelledQuestion,
    asked_before,
    asked_now,
    evaluate,
    measured,
    questions_of,
    read_labels,
)
from windowpane.insight.rescore import scored
from windowpane.insight.tune import counts_under, tune, write_search
from windowpane.search.settings import SearchSettings, SelectSettings, search_settings

BILLING, PRINTING, HIDDEN = reference_ref("billing"), reference_ref("printing"), reference_ref("hidden")


def question(name: str, *marks: tuple[float, bool], small_talk: bool = False, lost: int = 0) -> LabelledQuestion:
    return LabelledQuestion(
        name=name,
        domain="text",
        refs=tuple(reference_ref(f"r{place}") for place in range(len(marks))),
        scores=tuple(score for score, _ in marks),
        needed=tuple(needed for _, needed in marks),
        free=(False,) * len(marks),
        lost=tuple(reference_ref(f"lost{place}") for place in range(lost)),
        small_talk=small_talk,
    )


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_the_first_few_are_exactly_what_the_selection_takes(seed: int) -> None:
    random = Random(seed)
    past = played(scene_of(random))
    found = scored(past.context)
    tried = [settings_of(random) for _ in range(3)]

    for asked in questions_of("a", found, frozenset(), frozenset()):
        for chosen in tried:
            taken = asked.refs[: asked.taken(chosen)]
            assert taken == tuple(choice.key for choice in found[asked.domain].under(chosen).kept)
        selected, hits = counts_under(asked, tried)
        assert selected.tolist() == [asked.taken(chosen) for chosen in tried]
        assert not hits.any()


@pytest.mark.spec("S0.70", "S0.91", "S1.110")
def test_an_evaluation_counts_what_was_taken_and_what_was_needed() -> None:
    asked = [
        question("one", (0.9, True), (0.6, False), (0.1, True)),
        question("two", (0.8, True), (0.3, False), lost=1),
        question("three", (0.35, False), (0.1, False), small_talk=True),
    ]

    found = evaluate("pane", asked, SearchSettings(SelectSettings(floor=0.2, share_of_best=0.6)))

    assert found.whole == measured(3, needed=4, selected=3, hits=2)
    assert (found.whole.precision, found.whole.recall, found.whole.f1) == (0.6667, 0.5, 0.5714)
    assert found.whole.mean_selected == 1.0
    assert found.calibration[9] == CalibrationStep(low=0.9, candidates=1, needed=1, share=1.0)
    assert found.calibration[1] == CalibrationStep(low=0.1, candidates=2, needed=1, share=0.5)
    assert found.calibration[2] == CalibrationStep(low=0.2, candidates=0, needed=0, share=None)
    assert found.wrong == (
        Wrong(name="one", needless=(reference_ref("r1"),), missed=(reference_ref("r2"),)),
        Wrong(name="two", needless=(), missed=(reference_ref("lost0"),)),
    )
    with pytest.raises(InvalidInputError, match="there are no labelled questions"):
        evaluate("pane", [], SearchSettings())


@pytest.mark.spec("S0.91", "S0.97", "S1.110")
async def test_labels_are_gathered_from_what_was_used_and_added(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create()).id
        await ask(engine, session)
        await engine.items.add(session, HIDDEN)
        other = (await engine.sessions.create()).id
        await ask(engine, other, PAPER, "I do not know.")
        gone = (await engine.sessions.create()).id
        await ask(engine, gone)
        analytics = await counted(engine)
        await engine.sessions.delete(gone)
        asked = await asked_before(engine, analytics.lessons(None, "pane", limit=10))
        context = await engine.past.context(session, 1)

    by_name = {question.name: question for question in asked}
    first, second = by_name[f"{session} 1"], by_name[f"{other} 1"]
    assert set(by_name) == {first.name, second.name}
    assert dict(zip(first.refs, first.needed, strict=True)) == {BILLING: True, PRINTING: False}
    assert first.lost == (HIDDEN,)
    chosen = context.item(BILLING)
    assert chosen is not None
    assert chosen.evidence is not None
    assert first.scores[0] == chosen.evidence.score
    assert not any(second.needed)


@pytest.mark.spec("S0.91", "S1.110")
async def test_labels_come_from_a_file_and_are_measured_now(tmp_path: Path) -> None:
    yaml, lines, bad = tmp_path / "labels.yaml", tmp_path / "labels.jsonl", tmp_path / "bad.yaml"
    yaml.write_text(f"- message: {REFUND}\n  must: [reference:billing]\n  may: [reference:printing]\n")
    lines.write_text(f'{{"message": "{REFUND}", "must": ["reference:billing"]}}\n\n{{"message": "{PAPER}"}}\n')
    bad.write_text("- message: Hi\n  must: [nothing]\n")
    async with talking(tmp_path / "agents") as engine:
        from_yaml = await asked_now(engine, "pane", read_labels(yaml))
        from_lines = await asked_now(engine, "pane", read_labels(lines))

    assert [(one.name, one.refs, one.needed, one.free) for one in from_yaml] == [
        ("labels.yaml:1", (BILLING, PRINTING), (True, False), (False, True))
    ]
    assert [(one.name, one.needed) for one in from_lines] == [
        ("labels.jsonl:1", (True, False)),
        ("labels.jsonl:3", (False, False)),
    ]
    with pytest.raises(InvalidFileError, match="'nothing' names no item"):
        read_labels(bad)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_labels(tmp_path / "none.yaml")


def noisy(count: int, seed: int, low: float) -> list[LabelledQuestion]:
    """Return questions whose needed candidates score above `low` and whose others score below."""
    random = Random(seed)
    return [
        question(
            f"q{number}",
            *sorted(
                [
                    *((round(random.uniform(low, low + 0.3), 4), True) for _ in range(random.randint(1, 2))),
                    *((round(random.uniform(0, low), 4), False) for _ in range(6)),
                ],
                reverse=True,
            ),
        )
        for number in range(count)
    ]


@pytest.mark.spec("S0.93", "S0.97", "S1.111")
def test_settings_that_do_better_on_questions_held_out_are_proposed() -> None:
    (found,) = tune(noisy(60, 1, 0.45), SearchSettings())

    assert found.better
    assert found.domain == "text"
    assert found.folds == 5
    assert found.before.questions == found.after.questions == 60
    assert (found.after.f1 or 0) > (found.before.f1 or 0) + 0.1
    assert found.settings["floor"] == 0.45
    assert found.changes["floor"] == 0.45


def test_nothing_is_proposed_where_there_is_nothing_to_learn() -> None:
    random = Random(4)
    chance = [
        question(f"q{number}", *((score / 10, random.random() < 0.3) for score in (9, 7, 5, 3, 1)))
        for number in range(40)
    ]
    perfect = [question(f"q{number}", (0.9, True), (0.1, False)) for number in range(20)]

    assert [found.better for found in tune(perfect, SearchSettings())] == [False]
    assert tune(perfect, SearchSettings())[0].changes == {}
    assert (tune(chance, SearchSettings())[0].after.f1 or 0) < 0.6
    with pytest.raises(InvalidInputError, match="too few labelled questions"):
        tune(perfect[:9], SearchSettings())


@pytest.mark.spec("S0.93", "S1.111")
async def test_a_proposal_is_written_into_the_agents_file_and_the_rest_of_it_stays(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        file = tmp_path / "agents" / "pane" / "agent.yaml"
        file.write_text("model: echo  # for now\nsearch:\n  floor: 0.05\n  tools: {top_n: 2}\n")
        now = search_settings(engine.agents.current("pane").settings.search)
        proposals = tune(noisy(60, 1, 0.45), now)
        write_search(
            engine.agents.current("pane"), {found.domain: found.changes for found in proposals if found.better}
        )
        written = engine.agents.current("pane")
        with pytest.raises(InvalidInputError, match="nothing better was found"):
            write_search(written, {})

    assert file.read_text().startswith("model: echo  # for now\nsearch:\n  floor: 0.05\n  tools: {top_n: 2}\n")
    after = search_settings(written.settings.search)
    assert after.text == SelectSettings(**proposals[0].settings)
    assert after.tools == now.tools


async def test_tuning_on_past_turns_needs_no_model_and_no_measurement(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        for number in range(12):
            session = (await engine.sessions.create()).id
            await ask(engine, session, *((REFUND,) if number % 2 else (PAPER, PAPER_ANSWER)))
        asked = await asked_before(engine, (await counted(engine)).lessons(None, "pane", limit=100))

    (found,) = tune(asked, SearchSettings())
    assert found.before.questions == 12
