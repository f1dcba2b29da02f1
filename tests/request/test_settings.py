from __future__ import annotations

from typing import Any

import pytest

from windowpane.agents.base import Agent
from windowpane.context.agents import AgentSettings
from windowpane.context.ids import SessionId
from windowpane.context.request import CallSettings
from windowpane.context.session import SessionSettings, SessionState
from windowpane.errors import InvalidSettingError
from windowpane.memory.window import window_of
from windowpane.request.settings import call_settings, checked_changes, max_model_calls, search_settings

AGENT = Agent(
    name="a",
    folder="a",
    settings=AgentSettings(model="m:1", temperature=0.7, max_chat_turns=5, search={"preset": "normal", "top_n": 5}),
)


@pytest.mark.spec("S1.13")
def test_the_session_overrides_its_agent_setting_by_setting() -> None:
    session = SessionState(
        id=SessionId("s"), settings=SessionSettings(temperature=0.0, mode="thinking", search={"top_n": 2})
    )

    assert call_settings(AGENT, session) == CallSettings(
        model="m:1", temperature=0.0, top_p=None, max_output_tokens=4096, mode="thinking"
    )
    assert max_model_calls(AGENT, session) == 5
    assert search_settings(AGENT, session) == {"preset": "normal", "top_n": 2}


@pytest.mark.parametrize("url", ["https://example.org/a b", "HTTP:\\\\sec.gov", "file:///a.html", "about:blank", ""])
def test_any_address_that_a_browser_can_show_is_taken(url: str) -> None:
    assert checked_changes({"current_url": url}) == {"current_url": url}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"temprature": 1}, "temprature: unknown setting"),
        ({"temperature": "warm"}, "temperature: Input should be a valid number"),
        ({"temperature": 2.5}, "temperature: must be between 0 and 2, not 2.5"),
        ({"temperature": float("nan")}, "temperature: must be between 0 and 2, not nan"),
        ({"top_p": -0.1}, "top_p: must be between 0 and 1"),
        ({"max_output_tokens": 0}, "max_output_tokens: must be between 1 and 1e"),
        ({"max_chat_turns": True}, "max_chat_turns: Input should be a valid integer"),
        ({"tool_permission": "sometimes"}, "tool_permission: Input should be 'always', 'never' or 'tool'"),
        ({"mode": "fast"}, "mode: Input should be 'normal', 'thinking' or 'research'"),
        ({"model": 7}, "model: Input should be a valid string"),
        ({"current_url": "not a url"}, "current_url: 'not%20a%20url' is no address; write one such as https://"),
        ({"current_url": "https://"}, "current_url: 'https://' is no address"),
        ({"current_url": "example.org/tides"}, "current_url: 'example.org/tides' is no address"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_the_reason(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidSettingError) as caught:
        checked_changes(changes)

    assert str(caught.value).startswith(why)


def test_none_clears_a_setting() -> None:
    assert checked_changes({"temperature": None, "current_url": None}) == {"temperature": None, "current_url": None}


def test_the_window_comes_from_the_agent_then_the_model_then_a_cautious_guess() -> None:
    own = Agent(name="a", folder="a", settings=AgentSettings(context_window=1000))

    assert [window_of(own, 9), window_of(AGENT, 9), window_of(AGENT, None)] == [
        (1000, "agent.yaml"),
        (9, "model"),
        (32_768, "assumed"),
    ]
