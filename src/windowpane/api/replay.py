"""A past request once more: whether it can be rebuilt, and its selection under other circumstances."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windowpane.context.ids import BlobHash
from windowpane.context.items import ItemRef
from windowpane.context.request import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Whether a past request can be rebuilt byte for byte; `damages` say what is amiss if not."""

    record: BlobHash
    identical: bool
    damages: tuple[str, ...]
    messages: int
    tools: int
    used_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What is to be different: search settings by name, another query, other texts or descriptions of items."""

    search: Mapping[str, Any] = field(default_factory=dict[str, Any])
    query: str | None = None
    texts: Mapping[ItemRef, str] = field(default_factory=dict[ItemRef, str])
    descriptions: Mapping[ItemRef, str] = field(default_factory=dict[ItemRef, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedItem:
    """What became of one candidate: in the turn, and now. `fits` is None for one that was not selected."""

    ref: ItemRef
    selected: bool
    was_selected: bool
    code: str
    reason: str
    evidence: Evidence | None
    fits: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """A selection that was run again, best first. `measured` tells whether anything had to be measured again.

    `search` are all settings that it ran under. `degraded` says what was less good than it should be.
    """

    query: str
    search: Mapping[str, Any]
    measured: bool
    outcomes: tuple[ReplayedItem, ...]
    entered: tuple[ItemRef, ...]
    left: tuple[ItemRef, ...]
    degraded: tuple[str, ...] = ()
