"""What changed from one request to another, and what that cost where the provider had kept the first one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from windowpane.api.turns import CallView, SentKind
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPartChange:
    """What became of a part of a body. `tokens` is how many it takes more, or less; `diff` is a unified diff."""

    kind: SentKind
    name: str
    happened: Happened
    tokens: int
    diff: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallComparison:
    """Two calls of a session side by side, part by part.

    `same_bytes` counts from the beginning of the bodies, `same_tokens` those of the parts that the provider reads
    first and that are the same. `tokens_by_kind` is the difference; kinds that take as much as before are not in it.
    """

    before: CallView
    after: CallView
    before_tokens: int
    after_tokens: int
    same_bytes: int
    same_tokens: int
    changes: tuple[CallPartChange, ...]
    tokens_by_kind: Mapping[str, int]


BreakKind = Literal["added", "removed", "edited", "reordered", "reserialized", "cache_control", "expired", "model"]
"""What broke a prefix. `reserialized`: the same with its keys in another order. `cache_control`: no mark of the request
reaches what is kept. `expired`: more time passed than the provider keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixBreak:
    """Where a call stopped beginning as the one before, so that the provider could not read it from its cache.

    `at` is the block of the body, and `item` whose it is, where that is known: an item such as `rule:tone`, a part of
    the prompt, a message. `before` and `after` are what stands there, in brief, in the call `since` and in this one.
    `lost_tokens` are those that could have been read and were billed again, `cost_usd` what that cost: null when usage
    or price is not known.
    """

    at: str
    item: str | None
    kind: BreakKind
    reason: str
    since: int
    before: str
    after: str
    lost_tokens: int
    cost_usd: Decimal | None

    @property
    def blamed(self) -> str:
        """Return what is to blame: the item, or the block."""
        return self.item or self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCollapse:
    """The provider read much less from its cache than the bodies let expect, and why that may be."""

    missing_tokens: int
    reason: str
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCache:
    """What a call read from the provider's cache, wrote to it, and paid in full: null when it reported no usage.

    `expected_tokens` are those that the provider should have read; null when the body is not known.
    """

    call: CallView
    read_tokens: int | None
    written_tokens: int | None
    plain_tokens: int | None
    expected_tokens: int | None
    broke: PrefixBreak | None = None
    collapse: CacheCollapse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedItem:
    """What the breaks at one item, part or block cost together. `cost_usd` is null when none of it is known."""

    name: str
    breaks: int
    lost_tokens: int
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheReport:
    """The calls of a session as the provider's cache saw them, and what broke the prefix, the dearest first."""

    calls: tuple[CallCache, ...]
    read_tokens: int
    written_tokens: int
    plain_tokens: int
    lost_tokens: int
    lost_usd: Decimal | None
    blamed: tuple[BlamedItem, ...]
