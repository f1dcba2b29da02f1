from dataclasses import asdict
from typing import Any

import pytest

from windowpane.errors import InvalidSettingError
from windowpane.search.settings import (
    PRESETS,
    TOOL_PRESETS,
    SearchSettings,
    SelectSettings,
    laid_over,
    search_settings,
    written_out,
)


@pytest.mark.spec("S1.40")
def test_the_defaults_are_those_of_the_design() -> None:
    assert search_settings({}) == SearchSettings()
    assert (SelectSettings().top_k, SelectSettings().top_n, SelectSettings().include_score) == (20, 5, 0.7)


@pytest.mark.spec("S1.114")
def test_a_preset_stands_for_a_combination_and_aggressive_takes_more() -> None:
    aggressive, normal, conservative = (search_settings({"preset": name}).text for name in PRESETS)

    assert (aggressive, normal, conservative) == tuple(PRESETS.values())
    assert aggressive.floor < normal.floor < conservative.floor
    assert aggressive.top_n > normal.top_n > conservative.top_n


@pytest.mark.spec("S1.72", "S1.100", "S1.102", "S1.113")
def test_each_domain_may_change_what_both_share() -> None:
    settings = search_settings({"preset": "conservative", "top_n": 4, "tools": {"top_n": 8, "enabled": False}})

    assert (settings.of("text").top_n, settings.of("tool").top_n) == (4, 8)
    assert (settings.of("text").enabled, settings.of("tool").enabled) == (True, False)
    assert settings.of("text").floor == PRESETS["conservative"].floor
    assert settings.of("tool").floor == TOOL_PRESETS["conservative"].floor


AGENT = {"preset": "aggressive", "top_n": 7, "deadline_s": 0.5, "tools": {"top_n": 9, "floor": 0.3, "enabled": False}}


@pytest.mark.parametrize(
    ("session", "together"),
    [
        ({}, AGENT),
        ({"top_n": 2}, {**AGENT, "top_n": 2, "tools": {"floor": 0.3, "enabled": False}}),
        ({"tools": {"floor": 0.1}}, {**AGENT, "tools": {"top_n": 9, "floor": 0.1, "enabled": False}}),
        ({"preset": "normal"}, {"preset": "normal", "deadline_s": 0.5, "tools": {"enabled": False}}),
        ({"tools": {"preset": "normal"}}, {**AGENT, "tools": {"preset": "normal", "enabled": False}}),
    ],
)
def test_a_session_beats_its_agent_and_its_preset_all_keys_that_a_preset_decides(
    session: dict[str, Any], together: dict[str, Any]
) -> None:
    assert laid_over(AGENT, session) == together


@pytest.mark.spec("S1.100")
def test_selection_can_be_switched_off() -> None:
    assert not search_settings({"enabled": False}).enabled


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "bold"}, "search.preset: unknown preset 'bold'; available: aggressive, normal, conservative"),
        (
            {"preset": ["normal"]},
            "search.preset: unknown preset ['normal']; available: aggressive, normal, conservative",
        ),
        ({"topn": 3}, "search.topn: unknown setting"),
        ({"tools": {"floor": 2}}, "search.tools.floor: must be a number between 0 and 1, not 2"),
        ({"top_n": 2.5}, "search.top_n: must be a whole number, not 2.5"),
        ({"enabled": "yes"}, "search.enabled: must be true or false, not 'yes'"),
        ({"context": "on"}, "search.context: must be auto or off, not 'on'"),
        ({"text": 3}, "search.text: must be a mapping, not 3"),
        ({"deadline_s": -1}, "search.deadline_s: must be a number between 0 and 60, not -1"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettingError) as caught:
        search_settings(given)
    assert str(caught.value) == message


def test_context_is_auto_or_off_and_yaml_may_read_off_as_false() -> None:
    assert [search_settings(given).context for given in ({}, {"context": "off"}, {"context": False})] == [
        "auto",
        "off",
        "off",
    ]


def test_settings_that_are_written_out_are_all_there_and_read_as_the_same() -> None:
    settings = search_settings({"preset": "aggressive", "tools": {"top_n": 3}, "deadline_s": 2, "context": "off"})

    assert written_out(settings) == asdict(settings)
    assert search_settings(written_out(settings)) == settings
