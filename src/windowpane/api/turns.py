"""Turns as answers: how a turn stands, what it was given, and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from windowpane.api.wire import FlatEvent
from windowpane.context.items import ItemRef
from windowpane.context.messages import Message, Outcome, ToolCall, Usage
from windowpane.context.request import ContextItem, RequestContext


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """A turn: how it ended or stands, what was said, and what the model was given.

    `text` is what the assistant said so far. `approvals` are the tool calls that wait for a decision. `seq` is how far
    the session's log had come. `request_context` is null when the turn failed before a request could be built.
    """

    turn: int
    outcome: Outcome | Literal["waiting", "running"]
    text: str
    messages: tuple[Message, ...]
    approvals: tuple[ToolCall, ...]
    request_context: RequestContext | None
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord(TurnView):
    """A turn with everything that happened from its start to the start of the next."""

    events: tuple[FlatEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentItem:
    """An item of a past request as it was then.

    `text` is the whole text of a rule or a reference; when the item's status is `truncated` the model was given its
    beginning, and the turn's request shows how much. `definition` is everything that the item's hash covers. Both are
    null when there was nothing to send. `changed_since` compares with the agent now; it is `unknown` when the tool's
    server is away.
    """

    item: ContextItem
    text: str | None
    definition: Mapping[str, Any] | None
    changed_since: Literal["unchanged", "changed", "deleted", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAnalysis:
    """How large a conversation's context has become. `cost_estimate` is in US dollars, None when the price is unknown.

    `context_size` is in characters.
    """

    context_size: int
    estimated_tokens: int
    messages_stored: int
    is_compressed: bool
    cost_estimate: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUsage:
    """One model call. `residual_tokens` is how many input tokens the provider counted beyond ours; null: it said none.

    `cost_usd` is null when the model has no known price.
    """

    model: str
    counted_tokens: int
    reported_tokens: int | None
    residual_tokens: int | None
    usage: Usage
    latency_ms: int
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """What a turn cost, call by call and together. `conversation` is about the part of it that grows."""

    turn: int
    model: str
    calls: tuple[CallUsage, ...]
    usage: Usage
    cost_usd: Decimal | None
    conversation: UsageAnalysis


Band = Literal["short", "medium", "large", "very large"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDebug:
    """One turn's memory. `message_count` counts all stored messages, `window_count` those that were sent whole."""

    conversation_context: str
    message_count: int
    window_count: int
    has_summary: bool
    context_length: int
    band: Band
    estimated_tokens: int
    recent_sources_used: tuple[str, ...]
    available_related_documents: tuple[str, ...]
    warnings: tuple[str, ...]


How = Literal["called", "cited", "quoted", "drawn_upon"]
"""In what way an item was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemUse:
    """Whether one item that was sent was used, how, and by what words of the answer one can see it."""

    ref: ItemRef
    used: bool
    how: How | None = None
    trace: str = ""


@dataclass(frozen=True, slots=True)
class TurnUse:
    """Every item that a turn's model was given, and whether the answer made use of it."""

    items: tuple[ItemUse, ...]
