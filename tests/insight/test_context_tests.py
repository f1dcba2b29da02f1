"""Context tests: read from files, judged against the real selection, and made of turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.api.context_tests import Breach, ContextTest, ContextTests
from windowpane.context.agents import Problem
from windowpane.context.items import Reference, reference_ref, rule_ref, tool_ref
from windowpane.context.messages import Utterance
from windowpane.context.request import Candidate, Evidence, Query
from windowpane.errors import InvalidInputError
from windowpane.insight.context_tests import (
    judge,
    keep_turn,
    parse_tests,
    read_tests,
    render_test,
    run_tests,
    save_test,
)
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.request.selector import Chosen, Selection
from windowpane.search.index import ItemIndex
from windowpane.testing import World, drain, tool

BILLING, LEGAL, TONE = reference_ref("billing"), rule_ref("legal"), rule_ref("tone")
SELECTION = Selection(
    query=Query(text="Refund?"),
    chosen=(Chosen(Reference("billing", "Refunds."), Evidence(0.8), "near enough"),),
    left_out=(Candidate(type="rule", name="legal", code="below_floor", reason="its score is too low"),),
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents", selector=HybridSelector(ItemIndex(None)))
    world.write("agent.yaml", "model: scripted:test\nworking_context: false\nsearch: {floor: 0.05}\n")
    world.rule("tone", "Be kind.", include="always")
    world.reference("billing", "Invoices and refunds. A refund takes five days.", include="agent")
    world.reference("printing", "Photos are printed on matte paper; resize a photo first.", include="agent")
    world.toolbox.put("weather", [tool("get_forecast", description="Get the weather forecast", include="agent")])
    return world


@pytest.mark.parametrize(
    ("test", "breaches"),
    [
        (ContextTest(name="t", message="m", must=(BILLING,)), ()),
        (ContextTest(name="t", message="m", must=(TONE,)), ()),
        (ContextTest(name="t", message="m", may=(BILLING,)), ()),
        (ContextTest(name="t", message="m", must_not=(LEGAL,)), ()),
        (
            ContextTest(name="t", message="m", must=(LEGAL,)),
            (Breach(ref=LEGAL, broke="must", reason="its score is too low"),),
        ),
        (
            ContextTest(name="t", message="m", must_not=(BILLING, TONE)),
            (
                Breach(ref=BILLING, broke="must_not", reason="near enough"),
                Breach(ref=TONE, broke="must_not", reason="it is in the session"),
            ),
        ),
        (
            ContextTest(name="t", message="m", may=()),
            (Breach(ref=BILLING, broke="unexpected", reason="near enough"),),
        ),
        (
            ContextTest(name="t", message="m", must=(reference_ref("biling"),)),
            (
                Breach(
                    ref=reference_ref("biling"),
                    broke="unknown",
                    reason="the agent has no such item; did you mean reference:billing?",
                ),
            ),
        ),
    ],
)
def test_a_test_passes_when_everything_is_where_it_belongs(test: ContextTest, breaches: tuple[Breach, ...]) -> None:
    verdict = judge(test, SELECTION, held=[TONE], known=[BILLING, LEGAL, TONE])

    assert verdict.breaches == breaches
    assert verdict.passed == (not breaches)


def test_a_file_is_read_with_everything_that_a_test_can_say(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "refunds.yaml").write_text(
        """- name: a follow-up
  message: and for those?
  history:
    - user: How long does a refund take?
    - assistant: Five days.
  added: [rule:tone]
  settings: {floor: 0.3, tools: {top_n: 2}}
  must: [reference:billing]
  may: [weather:get_forecast]
  must_not: [rule:legal]
- message: Hello
"""
    )

    assert read_tests(tmp_path) == ContextTests(
        (
            ContextTest(
                file="tests/refunds.yaml",
                line=1,
                name="a follow-up",
                message="and for those?",
                history=(
                    Utterance("user", "How long does a refund take?"),
                    Utterance("assistant", "Five days."),
                ),
                added=(TONE,),
                settings={"floor": 0.3, "tools": {"top_n": 2}},
                must=(BILLING,),
                may=(tool_ref("weather", "get_forecast"),),
                must_not=(LEGAL,),
            ),
            ContextTest(file="tests/refunds.yaml", line=11, name="Hello", message="Hello"),
        ),
        (),
    )


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("name: nothing", 1, "a test needs a message"),
        ("- just words", 1, "a test is a table with at least a message"),
        ("message: Hi\nmust: [billing]", 2, "'billing' names no item; write rule:NAME, reference:NAME or SERVER:TOOL"),
        ("message: Hi\nmust: billing", 2, "must must be a list, not a text"),
        ("message: Hi\nsettings: {flor: 1}", 2, "search.flor: unknown setting"),
        ("message: Hi\nhistory: [hello]", 2, "history is a list of `user: …` and `assistant: …`"),
        ("message: Hi\nmust: [rule:a]\nmust_not: [rule:a]", 1, "rule:a must and must not be selected"),
        ("message: Hi\nmusts: []", 2, "musts is not known and has no effect; did you mean must?"),
        ("a: [", 1, None),
    ],
)
def test_what_cannot_be_used_is_reported_with_file_and_line(
    tmp_path: Path, text: str, line: int, reason: str | None
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "bad.yaml").write_text(text)

    (problem,) = read_tests(tmp_path).problems

    assert problem == Problem(file="tests/bad.yaml", line=problem.line, reason=reason or problem.reason)
    assert reason is None or problem.line == line


refs = st.one_of(
    st.builds(rule_ref, st.text("abc-", min_size=1)),
    st.builds(reference_ref, st.text("abc-", min_size=1)),
    st.builds(tool_ref, st.sampled_from(["files", "a_b"]), st.text(min_size=1)),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip() != "")
tests = st.builds(
    ContextTest,
    name=texts,
    message=texts,
    history=st.lists(st.builds(Utterance, st.sampled_from(["user", "assistant"]), st.text(min_size=1)), max_size=2).map(
        tuple
    ),
    added=st.lists(refs, max_size=2).map(tuple),
    settings=st.fixed_dictionaries({}, optional={"floor": st.floats(0, 1).map(lambda value: round(value, 4))}),
    must=st.lists(refs, max_size=3).map(tuple),
    may=st.none() | st.lists(refs, max_size=3).map(tuple),
)


@given(tests)
def test_what_is_written_reads_as_the_same_test(test: ContextTest) -> None:
    assert parse_tests("t.yaml", render_test(test)) == ContextTests((replace(test, file="t.yaml"),), ())


async def test_tests_run_with_the_real_selection_and_say_what_is_wrong(world: World) -> None:
    world.write(
        "tests/all.yaml",
        """- message: How long does a refund take?
  must: [reference:billing]
  may: []
- message: How long does a refund take?
  must: [reference:printing]
- message: How long does a refund take?
  added: [reference:billing]
  must_not: [reference:billing]
- message: How long does a refund take?
  settings: {enabled: false}
  must: [reference:billing]
""",
    )
    world.write("tests/broken.yaml", "message: [")

    async with world.engine() as engine:
        report = await run_tests(engine, "pane")

    assert [verdict.passed for verdict in report.results] == [True, False, False, False]
    assert [[(str(b.ref), b.broke) for b in verdict.breaches] for verdict in report.results] == [
        [],
        [("reference:printing", "must")],
        [("reference:billing", "must_not")],
        [("reference:billing", "must")],
    ]
    assert [problem.file for problem in report.problems] == ["tests/broken.yaml"]
    assert not report.passed
    assert report.results[0].degraded == ("matched by keywords only: no embedding model is configured",)


async def test_a_turn_becomes_a_test_that_passes_until_the_selection_changes(world: World) -> None:
    world.says("Five days.", "Also five.")
    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"search": {"top_n": 2}})
        await drain(engine.turn(session.id, "How long does a refund take?"))
        await drain(engine.turn(session.id, "and for those?"))
        first = await keep_turn(engine, session.id, 1)
        second = await keep_turn(engine, session.id, 2, name="A follow-up!")
        fresh = await run_tests(engine, "pane")
        world.reference("billing", "Nothing about money.", include="agent")
        later = await run_tests(engine, "pane")

    assert first == ContextTest(
        file="tests/how-long-does-a-refund-take.yaml",
        name="How long does a refund take?",
        message="How long does a refund take?",
        settings={"text": {"top_n": 2}, "tools": {"top_n": 2}},
        must=(BILLING,),
        may=(),
    )
    assert (second.file, second.must) == ("tests/a-follow-up.yaml", (BILLING,))
    assert second.history == (
        Utterance("user", "How long does a refund take?"),
        Utterance("assistant", "Five days."),
    )
    assert [verdict.passed for verdict in fresh.results] == [True, True]
    assert [verdict.passed for verdict in later.results] == [False, False]


def test_a_test_never_overwrites_another(tmp_path: Path) -> None:
    test = ContextTest(name="Réfund?", message="Refund?")

    files = [save_test(tmp_path, test).file for _ in range(3)]

    assert files == ["tests/r-fund.yaml", "tests/r-fund-2.yaml", "tests/r-fund-3.yaml"]
    assert len(read_tests(tmp_path).tests) == 3


def test_a_test_is_not_written_through_a_link_or_into_nowhere(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "agent" / "tests").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(InvalidInputError, match="is a link"):
        save_test(tmp_path / "agent", ContextTest(name="t", message="m"))
    with pytest.raises(InvalidInputError, match="cannot be written"):
        save_test(tmp_path / "missing", ContextTest(name="t", message="m"))
