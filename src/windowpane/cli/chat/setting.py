"""Read `/set NAME VALUE`: the settings of a session, by the names that they have everywhere."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from windowpane.context.session import SETTING_NAMES, SessionSettings
from windowpane.errors import InvalidInputError, InvalidSettingError

DEFAULT = "default"
"""The value that takes a setting back to what the agent says."""

SHORT_NAMES = {
    "preset": "search.preset",
    "override": "system_prompt",
    "url": "current_url",
    "permission": "tool_permission",
    "intent": "current_intent",
}
_NUMBERS = ("temperature", "top_p", "max_output_tokens", "max_chat_turns")


def change_of(settings: SessionSettings, line: str) -> tuple[str, Any]:
    """Return the setting that a line changes, and its new value; None: as the agent has it.

    A part of `search` is changed by its name behind a dot. What values may be is checked where they are stored.

    Raises:
        InvalidInputError: there is no value.
        InvalidSettingError: there is no such setting.
    """
    given, _, written = line.partition(" ")
    name, _, part = SHORT_NAMES.get(given, given).partition(".")
    written = written.strip()
    if name not in SETTING_NAMES or (part and name != "search"):
        raise InvalidSettingError(given, f"unknown setting; available: {', '.join((*SETTING_NAMES, *SHORT_NAMES))}")
    if not written:
        raise InvalidInputError(f"write a value: /set {given} VALUE, or /set {given} {DEFAULT}")
    value = None if written == DEFAULT else _value(name, written)
    return name, _search(settings.search or {}, part, value) if part else value


def shown(settings: SessionSettings) -> list[tuple[str, str]]:
    """Return the settings that a session has of its own, written out."""
    own = ((field.name, getattr(settings, field.name)) for field in fields(settings))
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in own if value is not None]


def _value(name: str, written: str) -> Any:
    if name not in (*_NUMBERS, "search"):
        return written
    try:
        return json.loads(written)
    except ValueError:
        return written


def _search(search: Mapping[str, Any], part: str, value: Any) -> dict[str, Any] | None:
    domain, _, key = part.partition(".")
    if key:
        value = _search(search.get(domain) or {}, key, value)
    kept = {name: old for name, old in search.items() if name != domain}
    return kept | ({} if value is None else {domain: value}) or None
