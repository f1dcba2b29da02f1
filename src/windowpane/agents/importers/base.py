"""What an import found, and what became of it."""

from dataclasses import dataclass
from typing import Any, Literal

from windowpane.context.items import Reference, Rule

Became = Literal["created", "updated", "unchanged", "kept", "not_imported"]
"""What became of something: `kept` is what stands there already and was edited by hand, so it is left alone."""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that a file can become. `why` says why it has this include mode."""

    source: str
    item: Rule | Reference
    why: str


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A tool server that a file describes, in the shape of `mcp.json`."""

    source: str
    name: str
    body: dict[str, Any]
    why: str = ""


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Something that cannot be brought in, and why."""

    source: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One line of the report: what became of what. `target` is a file of the agent's folder, and maybe a name in it."""

    source: str
    target: str
    became: Became
    why: str


Finding = FoundItem | FoundServer | NotTaken
