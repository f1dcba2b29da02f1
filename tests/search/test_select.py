from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.items import reference_ref, tool_ref
from windowpane.context.request import Candidate, Evidence
from windowpane.search.base import Measurements, PassageFinder, SearchQuery
from windowpane.search.chunks import Chunk
from windowpane.search.select import DomainSelection, select
from windowpane.search.settings import PRESETS, TOOL_PRESETS, SelectSettings

QUERY = SearchQuery("resize an image")


def measured(evidence: Mapping[str, tuple[float | None, float]]) -> Measurements:
    """Return measurements of references, by name: meaning and words."""
    keys = tuple(reference_ref(name) for name in evidence)
    count = len(keys)
    ranks = np.empty(count, np.intp)
    ranks[sorted(range(count), key=lambda i: keys[i].sort_key)] = np.arange(count)
    passages = tuple((Chunk(0, len(name), name),) for name in evidence)
    meaning = np.array([np.nan if near is None else near for near, _ in evidence.values()], float)
    found = PassageFinder(passages, np.arange(count, dtype=np.intp), np.nan_to_num(meaning, nan=-2).astype(np.float32))
    return Measurements("text", keys, meaning, np.array([words for _, words in evidence.values()], float), ranks, found)


def names(choices: DomainSelection) -> list[str]:
    return [choice.key.name for choice in choices.kept]


NOISE: dict[str, tuple[float | None, float]] = {f"other-{i:02}": (0.05 + i / 400, 0.0) for i in range(40)}

number = st.floats(0, 0.95).map(lambda value: round(value, 4))
items = st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.tuples(number | st.none(), number), max_size=30)
evidence_of_tools = st.tuples(number, number)
settings = st.builds(
    SelectSettings,
    top_n=st.integers(0, 8),
    include_score=st.floats(0.3, 1),
    floor=st.floats(0, 0.6),
    share_of_best=st.floats(0, 1),
)


@pytest.mark.spec("S1.32")
def test_a_clear_winner_stands_alone() -> None:
    choices = select(measured({**NOISE, "image-sizes": (0.62, 0.5)}), QUERY, SelectSettings())

    assert names(choices) == ["image-sizes"]


def test_several_equals_come_together() -> None:
    equals = dict.fromkeys(("crop", "resize", "rotate"), (0.6, 0.4))

    assert names(select(measured({**NOISE, **equals}), QUERY, SelectSettings())) == ["crop", "resize", "rotate"]


def test_nothing_is_taken_when_nothing_is_relevant() -> None:
    choices = select(measured(NOISE), QUERY, SelectSettings())

    assert names(choices) == []
    assert {choice.code for choice in choices} == {"below_floor"}


@pytest.mark.spec("S1.69", "S1.70")
def test_what_reaches_include_score_is_taken_beyond_top_n() -> None:
    strong = {f"strong-{i}": (0.8, 0.8) for i in range(8)}

    choices = select(measured({**NOISE, **strong}), QUERY, SelectSettings(top_n=3))

    assert len(names(choices)) == 8
    assert {choice.code for choice in choices.kept} == {"include_score"}


@pytest.mark.spec("S1.73")
def test_a_higher_include_score_forces_fewer_items_in() -> None:
    strong = {f"strong-{i}": (0.8, 0.8) for i in range(8)}
    given = measured({**NOISE, **strong})

    low, high = (select(given, QUERY, SelectSettings(top_n=2, include_score=score)) for score in (0.7, 1.0))

    assert (len(names(low)), len(names(high))) == (8, 2)


@pytest.mark.spec("S1.71")
def test_every_candidate_comes_back_with_what_decided() -> None:
    choices = select(measured({**NOISE, "crop": (0.45, 0.25), "resize": (0.3, 0.0)}), QUERY, SelectSettings())
    first, second, *rest = choices

    assert len(choices) == len(NOISE) + 2 == len(rest) + 2
    assert (first.key, first.kept, first.rank, first.code) == (reference_ref("crop"), True, 1, "relevant")
    assert (first.meaning, first.words, first.passage and first.passage.text) == (0.45, 0.25, "crop")
    assert first.reason == f"good match: {first.score:.2f} (minimum {first.cut_off:.2f}), number 1 of 42"
    assert (second.key, second.kept, second.code) == (reference_ref("resize"), False, "below_floor")
    assert second.reason == f"weak match: {second.score:.2f} (minimum 0.25)"
    assert rest[-1].passage is None


def test_small_talk_selects_nothing_unless_it_is_certain() -> None:
    given = measured({**NOISE, "image-sizes": (0.45, 0.25)})
    small_talk = SearchQuery("thanks", small_talk=True, reason="the message is small talk")

    choices = select(given, small_talk, SelectSettings())

    assert names(choices) == []
    assert next(iter(choices)).reason == "the message is small talk"


@pytest.mark.spec("S1.100")
def test_off_leaves_everything_out_and_says_so() -> None:
    choices = select(measured({"sure": (0.9, 0.9)}), QUERY, SelectSettings(enabled=False))

    assert [(choice.kept, choice.code, choice.reason) for choice in choices] == [(False, "off", "selection is off")]


def test_words_decide_alone_where_no_meaning_was_measured() -> None:
    by_words = {name: (None, words) for name, (_, words) in NOISE.items()} | {"image-sizes": (None, 0.6)}

    choices = select(measured(by_words), QUERY, SelectSettings())

    assert names(choices) == ["image-sizes"]
    assert next(iter(choices)).meaning is None


def test_one_item_alone_is_judged_too() -> None:
    near, far = measured({"only": (0.65, 0.5)}), measured({"only": (0.1, 0.0)})

    assert names(select(near, QUERY, SelectSettings())) == ["only"]
    assert names(select(far, QUERY, SelectSettings())) == []


def tools(evidence: Mapping[tuple[str, str], tuple[float, float]]) -> Measurements:
    """Return measurements of tools, by server and name."""
    found = measured({f"{server} {name}": near for (server, name), near in evidence.items()})
    return replace(found, domain="tool", keys=tuple(tool_ref(*key) for key in evidence))


def test_a_tool_far_behind_a_certain_one_is_spare_unless_it_is_of_the_same_server() -> None:
    pool = {
        ("clock", "get_time"): (0.8, 0.7),
        ("clock", "set_alarm"): (0.1, 0.0),
        ("mail", "send"): (0.1, 0.0),
        ("mail", "search"): (0.15, 0.0),
        ("world-clock", "time_in"): (0.75, 0.65),
    }

    choices = select(tools(pool), SearchQuery("What time is it in Tokyo?"), TOOL_PRESETS["normal"])

    assert [(choice.key.server, choice.key.name) for choice in choices.kept] == [
        ("clock", "get_time"),
        ("world-clock", "time_in"),
        ("clock", "set_alarm"),
    ]


@pytest.mark.parametrize(
    ("evidence", "kept"),
    [
        pytest.param((0.20, 0.25), [], id="neither"),
        pytest.param((0.26, 0.25), ["run"], id="near in meaning"),
        pytest.param((0.20, 0.32), ["run"], id="clear words"),
    ],
)
def test_a_tool_that_is_neither_near_nor_has_clear_words_is_not_taken(
    evidence: tuple[float, float], kept: list[str]
) -> None:
    choices = select(tools({("", "run"): evidence}), QUERY, TOOL_PRESETS["normal"])

    assert names(choices) == kept


def test_the_score_of_a_tool_does_not_jump_where_doubt_begins() -> None:
    scores = [
        next(iter(select(tools({("", "run"): (near / 1000, 0.25)}), QUERY, TOOL_PRESETS["normal"]))).score
        for near in range(200, 300)
    ]

    assert scores == sorted(scores)
    assert max(after - before for before, after in pairwise(scores)) < 0.05


@given(st.dictionaries(st.tuples(st.sampled_from("ab"), st.text("abcdef", min_size=1, max_size=3)), evidence_of_tools))
def test_at_most_top_n_tools_are_taken_however_certain_they_are(
    pool: dict[tuple[str, str], tuple[float, float]],
) -> None:
    choices = select(tools(pool), QUERY, TOOL_PRESETS["normal"])

    assert len(choices.kept) <= 10
    assert [choice.score for choice in choices] == sorted((choice.score for choice in choices), reverse=True)


def test_no_candidates_give_no_choices() -> None:
    assert list(select(measured({}), QUERY, SelectSettings())) == []


@given(items)
def test_a_more_aggressive_preset_takes_whatever_a_less_aggressive_one_does(
    evidence: dict[str, tuple[float | None, float]],
) -> None:
    aggressive, normal, conservative = (
        set(names(select(measured(evidence), QUERY, preset))) for preset in PRESETS.values()
    )

    assert conservative <= normal <= aggressive


@given(items, settings)
def test_at_most_top_n_are_taken_but_for_those_that_reach_include_score(
    evidence: dict[str, tuple[float | None, float]], settings: SelectSettings
) -> None:
    kept = select(measured(evidence), QUERY, settings).kept

    certain = [choice for choice in kept if choice.score >= settings.include_score]
    assert len(kept) <= max(settings.top_n, len(certain))


@given(items, settings)
def test_scores_lie_between_0_and_1_and_order_the_choices(
    evidence: dict[str, tuple[float | None, float]], settings: SelectSettings
) -> None:
    scores = [choice.score for choice in select(measured(evidence), QUERY, settings)]

    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(items, settings, st.floats(0, 0.4))
def test_a_higher_floor_never_takes_more(
    evidence: dict[str, tuple[float | None, float]], settings: SelectSettings, more: float
) -> None:
    given = measured(evidence)
    higher = replace(settings, floor=min(1.0, settings.floor + more))

    assert set(names(select(given, QUERY, higher))) <= set(names(select(given, QUERY, settings)))


@given(items, settings, st.randoms(use_true_random=False))
def test_the_order_of_the_input_plays_no_part(
    evidence: dict[str, tuple[float | None, float]], settings: SelectSettings, random: Random
) -> None:
    pairs = list(evidence.items())
    random.shuffle(pairs)

    assert list(select(measured(dict(pairs)), QUERY, settings)) == list(select(measured(evidence), QUERY, settings))


@given(items, settings)
def test_what_is_taken_is_what_is_kept(
    evidence: dict[str, tuple[float | None, float]], settings: SelectSettings
) -> None:
    choices = select(measured(evidence), QUERY, settings)

    assert choices.taken == tuple((choice.key, choice.score) for choice in choices.kept)


@given(items, settings, st.booleans(), st.booleans(), st.integers(0, 12))
def test_what_is_left_out_is_every_choice_that_is_not_kept_by_score_and_name(
    found: dict[str, tuple[float | None, float]], wanted: SelectSettings, enabled: bool, polite: bool, top_k: int
) -> None:
    asked = replace(QUERY, small_talk=polite, reason="the message is small talk")
    choices = select(measured(found), asked, replace(wanted, enabled=enabled, top_k=top_k))

    left = sorted((one for one in choices if not one.kept), key=lambda one: (-one.score, one.key.sort_key))
    assert tuple(choices.left_out) == tuple(
        Candidate(
            type="reference",
            name=one.key.name,
            code=one.code,
            reason=one.reason,
            evidence=Evidence(one.score, one.meaning, one.words, one.rank, one.passage, one.cut_off, one.floor),
        )
        for one in left
    )
    assert choices.kept == tuple(one for one in choices if one.kept)
