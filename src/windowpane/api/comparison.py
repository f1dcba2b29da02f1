"""What changed from one request to another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef
from windowpane.context.messages import Usage
from windowpane.context.request import PartKind

Happened = Literal["entered", "left", "changed", "moved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """What became of an item. `reason` is why it came, or why it went. `diff` is a unified diff of what it says."""

    ref: ItemRef
    happened: Happened
    reason: str
    tokens: int
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """What became of a stretch of the prompt. `tokens` is how many it takes more, or less."""

    kind: PartKind
    name: str
    happened: Happened
    tokens: int
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two turns, in figures.

    `calls` are all of its calls, with retries; `usage` and `cost_usd` are what is known of them together, and
    `calls_without_usage` and `calls_without_price` say of how many that is not known. `cost_usd` is None when none is.
    """

    session_id: SessionId
    turn: int
    model: str
    used_tokens: int
    items: int
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: Decimal | None
    calls_without_usage: int = 0
    calls_without_price: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """How far two prompts agree. `same_bytes` counts from the beginning; `same_tokens` is about as many tokens.

    What ended the agreement: an item where one can be named, the part that it stands in, and what happened to it. All
    are None when one prompt is the beginning of the other or both are the same.
    """

    same_bytes: int
    same_tokens: int
    bytes_before: int
    bytes_after: int
    part: PartKind | None = None
    name: str = ""
    item: ItemRef | None = None
    happened: Happened | None = None
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two turns side by side. `tokens_by_part` is the difference; parts that take as much as before are not in it."""

    before: Side
    after: Side
    items: tuple[ItemChange, ...]
    parts: tuple[PartChange, ...]
    tokens: int
    tokens_by_part: Mapping[str, int]
    cost_usd: Decimal | None
    prefix: Prefix
