"""Work out the settings of a turn: the agent's, changed by the session's; and check changes before they are made."""

from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import ValidationError

from windowpane.agents.base import Agent
from windowpane.context.carried import CacheOrder
from windowpane.context.messages import FileKind
from windowpane.context.request import CallSettings
from windowpane.context.session import SETTING_NAMES, SessionSettings, SessionState, ToolPermission
from windowpane.errors import InvalidSettingError
from windowpane.errors.faults import first_fault
from windowpane.json_codec import JsonCodec
from windowpane.memory.recent import MemoryWindow
from windowpane.memory.window import window_of
from windowpane.models.base import CacheRules, Models
from windowpane.models.caching import with_price
from windowpane.request.prompt.clock import known_zone, parse_user_time
from windowpane.request.prompt.sites import is_address, shown_url
from windowpane.request.stable.rebase import history_limit
from windowpane.search.settings import laid_over
from windowpane.search.settings import search_settings as parsed_search_settings

WORKING_CONTEXT_WINDOW_TOKENS = 8_000
"""In a smaller window the room is needed for the conversation, not for notes about it."""
MAX_SETTING_CHARACTERS = 100_000
RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "max_output_tokens": (1, 1_000_000),
    "max_chat_turns": (1, 1000),
}
_TYPES: dict[str, JsonCodec[Any]] = {
    name: JsonCodec(hint) for name, hint in get_type_hints(SessionSettings).items() if name in SETTING_NAMES
}


def call_settings(agent: Agent, session: SessionState) -> CallSettings:
    """Return how the model is called in this session now."""
    own, ours = session.settings, agent.settings
    model = own.model or ours.model
    return CallSettings(
        model=model,
        temperature=ours.temperature if own.temperature is None else own.temperature,
        top_p=ours.top_p if own.top_p is None else own.top_p,
        max_output_tokens=own.max_output_tokens or ours.max_output_tokens,
        mode=own.mode or ours.mode,
        price=ours.prices.get(model),
    )


def file_inputs(models: Models, agent: Agent, model: str) -> tuple[FileKind, ...]:
    """Return the files that a model takes: what the agent says, else what is known."""
    return models.inputs(model) if agent.settings.inputs is None else agent.settings.inputs


def cache_order(agent: Agent, session: SessionState, rules: CacheRules | None) -> CacheOrder:
    """Return how requests of this session are put together now."""
    chosen = session.settings.cache or agent.settings.cache
    if chosen == "auto":
        return "stable" if rules is not None else "fresh"
    return chosen


def cache_rules(models: Models, agent: Agent, model: str) -> CacheRules | None:
    """Return what a model's provider does with what it has read before, at the agent's prices where it has some."""
    return with_price(models.cache_rules(model), agent.settings.prices.get(model))


def memory_window(models: Models, agent: Agent, session: SessionState, model: str) -> MemoryWindow:
    """Return how much of a session's conversation is sent whole to a model."""
    rules = cache_rules(models, agent, model)
    tokens, _ = window_of(agent, models.window_tokens(model))
    kept = (rules or CacheRules()) if cache_order(agent, session, rules) == "stable" else None
    return MemoryWindow(tokens=history_limit(kept, tokens), messages=agent.settings.memory.get("messages"))


def tool_permission(agent: Agent, session: SessionState) -> ToolPermission:
    """Return when tool calls of this session wait for a person."""
    return session.settings.tool_permission or agent.settings.tool_permission


def max_model_calls(agent: Agent, session: SessionState) -> int:
    """Return how many model calls one turn may make."""
    return session.settings.max_chat_turns or agent.settings.max_chat_turns


def search_settings(agent: Agent, session: SessionState) -> Mapping[str, Any]:
    """Return the search settings: the agent's, with the session's on top."""
    return laid_over(agent.settings.search, session.settings.search or {})


def no_working_context(agent: Agent, session: SessionState, window_tokens: int) -> str:
    """Return why the model is not asked to keep a working context though its agent wants it to; empty when it is."""
    if not agent.settings.working_context:
        return ""
    if not session.listed:
        return "a request without a session has nothing to be resumed"
    if window_tokens < WORKING_CONTEXT_WINDOW_TOKENS:
        return f"the window has {window_tokens:,} tokens, and below {WORKING_CONTEXT_WINDOW_TOKENS:,} it is left out"
    return ""


def checked_changes(changes: Mapping[str, Any], time_zone: str | None = None) -> dict[str, Any]:
    """Return settings that may be stored. A value of None clears a setting.

    `time_zone` is the session's own; a user's time without an offset is read in it, unless the changes name another.
    Times are stored as UTC.

    Raises:
        InvalidSettingError: there is no such setting, or it cannot have this value.
    """
    checked = {name: _checked(name, value) for name, value in changes.items()}
    if checked.get("user_time") is not None:
        zone = checked.get("time_zone", time_zone)
        checked["user_time"] = parse_user_time(checked["user_time"], zone).isoformat()
    return checked


def _checked(name: str, value: object) -> Any:
    """Return a value that the setting may have."""
    if name not in _TYPES:
        raise InvalidSettingError(name, f"unknown setting; available: {', '.join(SETTING_NAMES)}")
    try:
        checked: Any = _TYPES[name].adapter.validate_python(value, strict=True)
    except ValidationError as error:
        raise InvalidSettingError(name, first_fault(error)[1]) from None
    if name == "search" and checked is not None:
        parsed_search_settings(checked)
    if name == "time_zone" and checked is not None:
        known_zone(checked)
    if name == "current_url" and checked and not is_address(checked):
        raise InvalidSettingError(
            name, f"{shown_url(checked)[:60]!r} is no address; write one such as https://example.org/page"
        )
    length = len(value) if isinstance(value, str) else 0
    if length > MAX_SETTING_CHARACTERS:
        raise InvalidSettingError(name, f"has {length:,} characters and {MAX_SETTING_CHARACTERS:,} is the limit")
    low, high = RANGES.get(name, (0, 0))
    if name in RANGES and checked is not None and not low <= checked <= high:
        raise InvalidSettingError(
            name, f"must be between {low:g} and {high:g}, not {str(checked).removesuffix('.0')[:20]}"
        )
    return checked
