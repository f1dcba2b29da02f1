"""What turns cost and whether it was worth it, as values: everything that a dashboard shows.

There is no message text in it. Owners see what is theirs; a manager may see all owners together.
`insight/analytics/report.py` reads it from the analytics store.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, Protocol

from windowpane.api.turns import OutsideCallList
from windowpane.context.calls import CallPurpose
from windowpane.context.carried import RebaseCode
from windowpane.context.items import ItemRef
from windowpane.context.request import PartKind

Listed = Literal["days", "models", "agents", "purposes", "parts", "items", "scores", "latency", "sources", "rebases"]
"""The lists of a dashboard, which can be had as CSV."""

Stage = Literal["prepare", "model", "tools", "whole"]
"""A stretch of a turn: until the request is built, all its model calls, all its tool calls, from start to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which turns count: of whom, of which agent and model, from which day to which, both included. None: any."""

    owner: str | None = None
    agent: str | None = None
    model: str | None = None
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Turns and what they cost.

    `calls` are all calls, with retries and those for summaries. `request_tokens` is our own count of what was sent
    first in each turn; the other tokens are what providers reported for all calls together. `cost_usd` covers the calls
    whose usage and price are known; `calls_without_usage` and `calls_without_price` are the others, and
    `turns_without_price` the turns that have one of these.
    """

    turns: int = 0
    calls: int = 0
    request_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    turns_without_price: int = 0
    calls_without_usage: int = 0
    calls_without_price: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How well the selection chose. Shares are None where nothing was counted.

    `selected` counts items that the selection took in, `selected_used` those of them of which the answer has a trace,
    `selected_probably` those that it is near to in meaning without one. `missed` counts items that the user added by
    hand right after an answer, or named in the message: what was needed and not selected. So `precision` is the share
    of the selected that was used for sure or probably, and `recall` the share of the needed that was selected. At least
    so much: an item can be of use and leave no trace.
    """

    selected: int = 0
    selected_used: int = 0
    selected_probably: int = 0
    missed: int = 0
    precision: float | None = None
    recall: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixKept:
    """How stable the beginning of the prompt is, from one turn of a session to the next: what prompt caches live on.

    `kept_share` is how much of the previous prompt, in bytes, the next one began with; `cached_share` is how much of
    the input providers reported as read from their cache. `rebases` are requests that did not go on with the last one,
    with what that cost. Of the first calls of turns `expected_tokens` should have been read from the cache, and
    `read_tokens` were. In `collapses` of them far less was read than expected, `missing_tokens` in all: the provider
    dropped the beginning early, or another of its machines took the call.
    """

    compared: int = 0
    kept_share: float | None = None
    cached_share: float | None = None
    rebases: int = 0
    rebase_usd: Decimal = Decimal(0)
    expected_tokens: int = 0
    read_tokens: int = 0
    collapses: int = 0
    missing_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """One day, in UTC: sessions that had their first turn on it, and those that had any. Empty days are not listed."""

    day: date
    sessions: int
    active_sessions: int
    spent: Spent
    quality: Quality
    prefix: PrefixKept


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One model, as the request named it."""

    model: str
    spent: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """One agent."""

    agent: str
    sessions: int
    spent: Spent
    quality: Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class PurposeRow:
    """What calls were made for: tokens and cost as far as they are known, and how many calls lack which."""

    purpose: CallPurpose
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: Decimal
    calls_without_usage: int
    calls_without_price: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """One kind of part: in how many requests it was, what it took there, how often it had to be cut or left out.

    `cost_usd` is what it cost as input in all calls of those turns, at the price of its place: tokens that the provider
    read from its cache, wrote to it, or neither.
    """

    kind: PartKind
    requests: int
    tokens: int
    share: float
    cost_usd: Decimal
    cut: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One item over time.

    `included` counts the requests that it was sent in, `by_mode` how it came into them (`carried`: it stood there from
    an earlier turn); `tokens` and `cost_usd` are what it took there. `used` counts those in which the answer left a
    trace of it, `by_use` in what way, and `probably` those in which the answer is near to it in meaning without one;
    `used_share` is the share of both, so at least so much was of use. `no_trace` counts those in which neither was
    found, with `no_trace_tokens`: that does not prove that it was of no use. What is left was not compared.
    `unused_tokens` is what a tool took in requests in which it was not called. `considered` counts the selections in
    which it was a candidate, `selected` those that took it, `not_sent` the requests that it should have been in and was
    not (no room, server down, …). `added_by_hand` and `removed_by_hand` count what people did after an answer. `scores`
    are its scores as a candidate, in ten equal steps from 0 to 1: how often it was selected and how often not.
    """

    ref: ItemRef
    agent: str
    included: int = 0
    by_mode: Mapping[str, int] = field(default_factory=dict[str, int])
    tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    used: int = 0
    by_use: Mapping[str, int] = field(default_factory=dict[str, int])
    used_share: float | None = None
    probably: int = 0
    no_trace: int = 0
    no_trace_tokens: int = 0
    unused_tokens: int = 0
    considered: int = 0
    selected: int = 0
    not_sent: int = 0
    added_by_hand: int = 0
    removed_by_hand: int = 0
    mean_score: float | None = None
    scores: "tuple[ScoreStep, ...]" = ()
    last_included: date | None = None
    last_used: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreStep:
    """Candidates whose score was from `low` up to `low` + 0.1. `used` counts the selected that answers made use of."""

    low: float
    selected: int
    left_out: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebaseRow:
    """What broke the beginning of prompts: why, which item had to leave (empty where none had to), how often, and what
    was written again for it."""

    code: RebaseCode
    item: str
    rebases: int
    rewritten_tokens: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """How long a stage took, in milliseconds. Percentiles are good to about a tenth of their value."""

    stage: Stage
    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A reference, by its name, or a site that pages came from: how often it was given, and how often used."""

    kind: Literal["reference", "site"]
    name: str
    given: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """How people talk. `hours` are turns by hour of the day in UTC; `lengths` are sessions by how many turns they have.

    The keys of `lengths` are `1`, `2`, `3-5`, `6-10`, `11-20`, `21-50` and `51+`.
    """

    outcomes: Mapping[str, int]
    modes: Mapping[str, int]
    follow_ups: int
    small_talk: int
    degraded: int
    tool_calls: int
    tool_errors: int
    hours: tuple[int, ...]
    lengths: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What is kept of the owner's sessions now. `texts_bytes` is about what their requests take before compression."""

    sessions: int
    turns: int
    events: int
    texts_bytes: int
    analytics_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What filters can be set to: everything that the owner's turns have."""

    agents: tuple[str, ...]
    models: tuple[str, ...]
    first_day: date | None
    last_day: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Everything at once. `behind` is how many sessions have turns that are not counted yet: ask again for them.

    Lists are ordered by what matters: days in time, models, agents, parts and items by tokens, sources by use.
    """

    filters: Filters
    as_of: datetime
    behind: int
    sessions: int
    spent: Spent
    quality: Quality
    prefix: PrefixKept
    days: tuple[DayRow, ...]
    models: tuple[ModelRow, ...]
    agents: tuple[AgentRow, ...]
    purposes: tuple[PurposeRow, ...] = ()
    parts: tuple[PartRow, ...]
    items: tuple[ItemRow, ...]
    scores: tuple[ScoreStep, ...]
    latency: tuple[StageRow, ...]
    sources: tuple[SourceRow, ...]
    rebases: tuple[RebaseRow, ...] = ()
    patterns: Patterns
    storage: Storage
    choices: Choices


Period = Literal["day", "month"]
"""A stretch of time that a limit is for, by UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimitView:
    """A limit, and how much of it is used.

    `unpriced_calls` are calls of models that have no known price; they are not in `spent_usd`, so that may be too low.
    """

    period: Period
    limit_usd: Decimal
    spent_usd: Decimal
    unpriced_calls: int
    resets_at: datetime


@dataclass(frozen=True, slots=True)
class CostLimitsView:
    """The limits on what an owner's model calls may cost; none when nothing is limited, and then nothing is counted."""

    limits: tuple[CostLimitView, ...]


class SpendingApi(Protocol):
    """What an owner's calls may cost, and those that belong to no session."""

    async def cost_limits(self) -> CostLimitsView:
        """Return what the owner's model calls may cost a day and a month, and what they cost so far."""
        ...

    async def outside_calls(self, day: date | None = None) -> OutsideCallList:
        """Return the owner's calls of a day that belong to no session, such as those of a search. None: of today."""
        ...
