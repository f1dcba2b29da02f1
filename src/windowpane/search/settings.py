"""How freely items are taken: presets, and what an agent or a session changes about them.

    search:
      preset: conservative        # aggressive | normal | conservative
      top_n: 4                    # changes the preset for both domains
      tools: {top_n: 6}           # changes it for tools alone; `text` is for rules and references
      deadline_s: 0.5
      context: off                # auto | off: whether a follow-up is searched for with the turn before it

A session's settings are laid over its agent's (`laid_over`): a preset of the session is the whole preset, whatever
single keys the agent has changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, cast

from windowpane.context.items import Domain
from windowpane.errors import InvalidSettingError


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """How freely the items of one domain are taken. The defaults are the preset `normal` of rules and references."""

    enabled: bool = True
    """Whether items are selected at all."""
    top_k: int = 20
    """How many candidates are recorded in detail."""
    top_n: int = 5
    """How many items are included at most, beside those that reach `include_score`."""
    include_score: float = 0.7
    """An item with this score or more is always included."""
    floor: float = 0.25
    """An item with a lower score is never included."""
    share_of_best: float = 0.35
    """An item is included only if it scores at least this share of the best score."""


_NAMES = tuple(field.name for field in fields(SelectSettings))

PRESETS: Mapping[str, SelectSettings] = {
    "aggressive": SelectSettings(top_n=8, floor=0.15, share_of_best=0.2),
    "normal": SelectSettings(),
    "conservative": SelectSettings(top_n=3, floor=0.4, share_of_best=0.6),
}
"""Aggressive takes more on weaker evidence, conservative less."""

TOOL_PRESETS: Mapping[str, SelectSettings] = {
    "aggressive": SelectSettings(top_n=15, include_score=1.01, floor=0.04, share_of_best=0.05),
    "normal": SelectSettings(top_n=10, include_score=1.01, floor=0.06, share_of_best=0.1),
    "conservative": SelectSettings(top_n=5, include_score=1.01, floor=0.15, share_of_best=0.3),
}
"""The presets of tools: a missing tool costs the task, a spare one some tokens. `top_n` is the most that are taken:
no score reaches `include_score`."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings of one search: a set for each domain, and how long it may wait for vectors."""

    text: SelectSettings = SelectSettings()
    tools: SelectSettings = TOOL_PRESETS["normal"]
    deadline_s: float = 1.0
    """How long a search may wait for embeddings, in seconds. After that, keywords decide alone."""
    context: Literal["auto", "off"] = "auto"
    """Whether a follow-up is searched for together with the turn before it. `off`: every message by itself."""

    def of(self, domain: Domain) -> SelectSettings:
        """Return the settings of a domain."""
        return self.tools if domain == "tool" else self.text

    @property
    def enabled(self) -> bool:
        """Tell whether there is anything to search for."""
        return self.text.enabled or self.tools.enabled


_DEFAULTS = SearchSettings()


def search_settings(given: Mapping[str, Any]) -> SearchSettings:
    """Return the settings that a mapping describes; what it does not name stays as the preset has it.

    Raises:
        InvalidSettingError: a name is unknown or a value cannot be used.
    """
    given = dict(given)
    deadline_s = _number("deadline_s", given.pop("deadline_s", _DEFAULTS.deadline_s), 0, 60)
    context = _context(given.pop("context", _DEFAULTS.context))
    by_domain = {name: _mapping(name, given.pop(name, {})) for name in ("text", "tools")}
    text, tools = (
        _changed(_changed(presets["normal"], given, "", presets), by_domain[name], f"{name}.", presets)
        for name, presets in (("text", PRESETS), ("tools", TOOL_PRESETS))
    )
    return SearchSettings(text, tools, deadline_s, context)


def laid_over(agent: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Return an agent's settings with a session's on top: key by key, and a preset in the place of all that it decides.

    What a session says for both domains counts also where the agent says something for one of them.
    """
    common = {name: value for name, value in session.items() if name not in ("text", "tools")}
    kept = _beside(agent, "deadline_s", "context") if "preset" in session else agent
    laid = {**kept, **session}
    for domain in ("text", "tools"):
        own = _mapping(domain, session.get(domain, {}))
        before = _mapping(domain, agent.get(domain, {}))
        before = _beside(before) if "preset" in common or "preset" in own else before
        if merged := {**{name: value for name, value in before.items() if name not in common}, **own}:
            laid[domain] = merged
    return laid


def _beside(settings: Mapping[str, Any], *more: str) -> dict[str, Any]:
    """Return what a preset does not decide."""
    return {name: settings[name] for name in ("enabled", *more) if name in settings}


def written_out(settings: SearchSettings) -> dict[str, Any]:
    """Return the mapping that describes these settings, every one of them, whatever presets come to mean."""
    return {
        "text": _written(settings.text),
        "tools": _written(settings.tools),
        "deadline_s": settings.deadline_s,
        "context": settings.context,
    }


def _written(settings: SelectSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in _NAMES}


_LIMITS: Mapping[str, tuple[float, float]] = {
    "top_k": (0, 1000),
    "top_n": (0, 1000),
    "include_score": (0, 1.01),
    "floor": (0, 1),
    "share_of_best": (0, 1),
}


def _changed(
    settings: SelectSettings, changes: Mapping[str, Any], where: str, presets: Mapping[str, SelectSettings]
) -> SelectSettings:
    if not changes:
        return settings
    changes = dict(changes)
    preset = changes.pop("preset", None)
    if preset is not None:
        if not isinstance(preset, str) or preset not in presets:
            raise InvalidSettingError(
                f"search.{where}preset", f"unknown preset {preset!r}; available: {', '.join(presets)}"
            )
        settings = replace(presets[preset], enabled=settings.enabled)
    for name, value in changes.items():
        if name not in _NAMES:
            raise InvalidSettingError(f"search.{where}{name}", "unknown setting")
        settings = replace(settings, **{name: _value(where + name, name, value)})
    return settings


def _value(where: str, name: str, value: object) -> bool | int | float:
    if name == "enabled":
        if not isinstance(value, bool):
            raise InvalidSettingError(f"search.{where}", f"must be true or false, not {value!r}")
        return value
    number = _number(where, value, *_LIMITS[name])
    if name in ("top_k", "top_n"):
        if number != int(number):
            raise InvalidSettingError(f"search.{where}", f"must be a whole number, not {value!r}")
        return int(number)
    return number


def _number(where: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidSettingError(f"search.{where}", f"must be a number between {low:g} and {high:g}, not {value!r}")
    return float(value)


def _context(value: object) -> Literal["auto", "off"]:
    # YAML reads a bare `off` as false.
    if value is False or value == "off":
        return "off"
    if value != "auto":
        raise InvalidSettingError("search.context", f"must be auto or off, not {value!r}")
    return "auto"


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidSettingError(f"search.{name}", f"must be a mapping, not {value!r}")
    return cast("Mapping[str, Any]", value)
