"""Turns as answers: how a turn stands, what it was given, what was sent, and what it cost, call by call."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from windowpane.api.wire import FlatEvent
from windowpane.context.calls import CallPurpose, FoldedReply, WireHead
from windowpane.context.ids import SessionId
from windowpane.context.items import IncludeMode, ItemRef, ItemType
from windowpane.context.messages import Message, Outcome, Source, ToolCall, ToolQuestion, Usage
from windowpane.context.request import ContextItem, OfferedTool, PartKind, RequestContext, RequestMessage

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """A turn: how it ended or stands, what was said, and what the model was given.

    `text` is what the assistant said so far. `approvals` are the tool calls that wait for a decision, `questions` what
    a running tool asks. `seq` is how far the session's log had come. `sources` are the documents that the answer could
    draw on, and `confidence` is the score of the best of them; null when there are none. `context_debug` is what the
    model was told of the conversation. It and `request_context` are null when the turn failed before a request could
    be built.
    """

    session_id: SessionId
    turn: int
    outcome: Outcome | Literal["waiting", "running"]
    text: str
    messages: tuple[Message, ...]
    approvals: tuple[ToolCall, ...]
    questions: tuple[ToolQuestion, ...]
    request_context: RequestContext | None
    seq: int
    sources: tuple[Source, ...]
    confidence: float | None
    context_debug: ContextDebug | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord(TurnView):
    """A turn with everything that happened from its start to the start of the next."""

    events: tuple[FlatEvent, ...]


ChangedSince = Literal["unchanged", "changed", "deleted", "unknown"]
"""What has become of an item since it was sent; `unknown` when the tool's server is away or the client brought it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastItem(ContextItem):
    """An item of a past request. `changed_since` compares with the agent now."""

    changed_since: ChangedSince


@dataclass(frozen=True, slots=True, kw_only=True)
class PastContext(RequestContext):
    """The record of a past request, with what has become of its items since."""

    items: tuple[PastItem, ...]


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
    changed_since: ChangedSince


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


How = Literal["called", "cited", "quoted", "drawn_upon"]
"""In what way an item was used."""


Verdict = Literal["used", "probably", "no_trace", "not_called", "unknown"]
"""What can be told of an item's use.

`used`: the answer shows it. `probably`: the answer has no words of it, but says something very near to it.
`no_trace`: neither was found, which does not prove that it was of no use. `not_called`: a tool that was not called.
`unknown`: no words of it are in the answer, and its meaning could not be compared.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemUse:
    """Whether one item that was sent was used, how, and by what words of the answer one can see it.

    `used` is true for the verdict `used` alone. `nearness` is the cosine between the item and the answer where they are
    nearest; None where it was not needed or could not be measured.
    """

    ref: ItemRef
    used: bool
    how: How | None = None
    trace: str = ""
    verdict: Verdict = "unknown"
    nearness: float | None = None


@dataclass(frozen=True, slots=True)
class TurnUse:
    """Every item that a turn's model was given, and whether the answer made use of it."""

    items: tuple[ItemUse, ...]


CallState = Literal["complete", "cut", "error", "retried", "running", "lost"]
"""How a call stands. `retried`: it failed and was tried again. `lost`: its worker died before its end was known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One call to a provider.

    `number` counts the calls of the list from 1, `step` the model calls of the turn, `attempt` the tries of a step.
    `seen` is false when the bytes were not seen on the wire: the model runs in this process, or its client takes no
    transport of ours. `built_in` tells of a model of Windowpane's own that nothing was sent, that no provider reports
    usage and that it is free. `usage` is null when the provider reported none. Input of 0 was not reported; of the
    output `output_unknown` tells that. `cost_usd` is null when any of these or the price is not known.
    `counted_tokens` is our own count of what was built.
    """

    number: int
    id: str
    turn: int | None
    step: int
    attempt: int
    purpose: CallPurpose
    model: str
    started_at: datetime
    outcome: CallState
    seen: bool
    size: int
    status: int | None
    first_byte_ms: int | None
    duration_ms: int | None
    usage: Usage | None
    output_unknown: bool = False
    built_in: bool = False
    cost_usd: Decimal | None
    counted_tokens: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallList:
    """Calls in the order in which they were sent, and what they used together.

    The sums are of the calls whose usage or price is known; the other calls are counted by `without_usage` and
    `without_price`. A call to a built-in model is neither: no provider reports its usage, and it is free.
    """

    calls: tuple[CallView, ...]
    usage: Usage
    cost_usd: Decimal | None
    without_usage: int
    without_price: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideCallList:
    """An owner's calls of one day that belong to no session, as `session` keeps them; None: there were none."""

    day: date
    session: str | None
    calls: CallList


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptItem:
    """An item of a turn's request in brief. `sent` is false when the model was not given it.

    `carried` tells that this message did not select it: it stands in the prompt since an earlier turn.
    """

    type: ItemType
    name: str
    server: str | None
    include_mode: IncludeMode
    score: float | None
    tokens: int
    sent: bool
    carried: bool = False


@dataclass(frozen=True, slots=True)
class PartTokens:
    """What one kind of part takes of a request."""

    kind: PartKind
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReceipt:
    """What a turn's model was given and what that cost, in brief.

    `context_tokens` is our own count of the request. `usage` and `cost_usd` are of all calls of the turn, as a
    `CallList` has them; `input_cost_usd` is what the input took of the cost. `built_in` counts the calls to built-in
    models, whose tokens no provider reports. `left_out` counts the items that were considered and not sent.
    `summarised` tells that a summary stood for earlier messages.
    """

    turn: int
    at: datetime
    outcome: Outcome | Literal["waiting", "running"]
    model: str
    context_tokens: int
    window_tokens: int
    reply_tokens: int
    parts: tuple[PartTokens, ...]
    items: tuple[ReceiptItem, ...]
    left_out: int
    summarised: bool
    degraded: bool
    calls: int
    usage: Usage
    cost_usd: Decimal | None
    input_cost_usd: Decimal | None
    without_usage: int
    without_price: int
    built_in: int = 0
    duration_ms: int


@dataclass(frozen=True, slots=True)
class TurnReceipts:
    """Turns in their order, those left out whose request is not on record. `next` continues the list; null: its end."""

    turns: tuple[TurnReceipt, ...]
    next: int | None


OwnerKind = Literal["message", "item", "tool", "setting", "step", "model", "mapping"]
"""Whose bytes they are: of a message or part of the prompt, of an item, of a tool, of a setting, of an earlier step
of this turn, the model's own words that it wants back, or made by the client library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSpan:
    """A stretch of a body, in characters, and whose it is. Stretches follow one another without a gap."""

    start: int
    end: int
    kind: OwnerKind
    owner: str


SentKind = Literal[
    "tool",
    "system",
    "environment",
    "instructions",
    "skills",
    "mcp",
    "reminder",
    "billing",
    "message",
    "reply",
    "thinking",
    "call",
    "result",
    "attachment",
    "setting",
]
"""What a part of a body is. `instructions` are files such as CLAUDE.md or AGENTS.md, `mcp` what tool servers say of
themselves, `reminder` and `billing` what a program adds to messages. `message` is what the user wrote, `reply` what the
model said, `call` and `result` what it called and what came back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """A part of a body, in characters. Parts follow one another without a gap.

    `tokens` is this part's share of what the provider counted, or our own count where it reported none; the parts of
    a call add up to it. `cost_usd` is what these tokens cost: null when usage or price is not known.
    """

    kind: SentKind
    name: str
    start: int
    end: int
    bytes: int
    tokens: int
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireChange:
    """One difference between what was built and what was sent, and what made it."""

    where: str
    built: str
    sent: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call whole: as built, and as sent.

    `messages` and `tools` are as built; the last `added` messages are new since the call before. `message_tokens` is
    our own count of each message. `head` and `body` are as sent, null when the wire was not seen; `erased` tells that
    the body was kept and has been erased. `spans` say whose each stretch of the body is, and `changes` what the client
    library made different. `answer` is what a recorded program was answered; null: the turn's messages say it.
    `parts` are what the body is made of.
    """

    call: CallView
    messages: tuple[RequestMessage, ...]
    message_tokens: tuple[int, ...]
    added: int
    tools: tuple[OfferedTool, ...]
    head: WireHead | None
    sha256: str
    body: str | None
    erased: bool
    spans: tuple[WireSpan, ...]
    changes: tuple[WireChange, ...]
    answer: FoldedReply | None = None
    parts: tuple[SentPart, ...] = ()
