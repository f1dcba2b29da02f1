"""What turns cost and whether it was worth it: the ledger's roll-ups, added up for a stretch of days.

Everything comes from roll-ups by day (`insight/ledger.py`), so a dashboard over a million turns reads a few thousand
rows. There is no message text in it. Owners see what is theirs; whoever manages may see everybody's together.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeVar, cast, get_args

from windowpane.context.items import IncludeMode, ItemRef
from windowpane.context.request import PartKind
from windowpane.insight.account import LATENCY_BASE, NANO, SCORE_PARTS, SCORE_STEPS
from windowpane.insight.bookkeeping import Kept
from windowpane.insight.ledger import DAY, EVERYONE, MONTH, TABLES, Ledger, item_ref
from windowpane.insight.use import How

Listed = Literal["days", "models", "agents", "parts", "items", "scores", "latency", "sources"]
"""The lists of a dashboard, which can be had as CSV."""

T = TypeVar("T")

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

    `request_tokens` is our own count of what was sent first in each turn; the other tokens are what providers reported
    for all calls together. `cost_usd` covers the turns whose price is known; `turns_without_price` are the others.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How well the selection chose. Shares are None where nothing was counted.

    `selected` counts items that the selection took in, `selected_used` those of them in which the answer left a trace.
    `missed` counts items that somebody added by hand right after an answer, or named in the message: what was needed
    and not selected. So `precision` is the share of the selected that was used, and `recall` the share of the needed
    that was selected, as far as anybody can tell.
    """

    selected: int = 0
    selected_used: int = 0
    missed: int = 0
    precision: float | None = None
    recall: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixKept:
    """How stable the beginning of the prompt is, from one turn of a session to the next: what prompt caches live on.

    `kept_share` is how much of the previous prompt, in bytes, the next one began with; `cached_share` is how much of
    the input providers reported as read from their cache.
    """

    compared: int = 0
    kept_share: float | None = None
    cached_share: float | None = None


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
class PartRow:
    """One kind of part: in how many requests it was, what it took there, how often it had to be cut or left out.

    `cost_usd` is its share, by tokens, of what the input of those turns cost.
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

    `included` counts the requests that it was sent in, `by_mode` how it came into them; `tokens` and `cost_usd` are
    what it took there. `used` counts those in which the answer left a trace of it, `by_use` in what way;
    `unused_tokens` is what it took in the others. `considered` counts the selections in which it was a candidate,
    `selected` those that took it, `not_sent` the requests that it should have been in and was not (no room, server
    down, …). `added_by_hand` and `removed_by_hand` count what people did after an answer. `scores` are its scores as a
    candidate, in ten equal steps from 0 to 1: how often it was selected and how often not.
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
    ledger_bytes: int


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
    parts: tuple[PartRow, ...]
    items: tuple[ItemRow, ...]
    scores: tuple[ScoreStep, ...]
    latency: tuple[StageRow, ...]
    sources: tuple[SourceRow, ...]
    patterns: Patterns
    storage: Storage
    choices: Choices


def dashboard(ledger: Ledger, filters: Filters, kept: Kept) -> Dashboard:
    """Return everything that the ledger says about the turns that count."""
    turns = _Turns.read(ledger, filters)
    whole = _added(turns.rows)
    items = item_rows(ledger, filters)
    tallies = _tallies(ledger, filters)
    return Dashboard(
        filters=filters,
        as_of=kept.as_of,
        behind=kept.behind,
        sessions=whole["begun"],
        spent=_spent(whole),
        quality=_quality(whole),
        prefix=_prefix(whole),
        days=tuple(_day_row(day, counts) for day, counts in sorted(turns.by(lambda row: row.day).items())),
        models=_most(ModelRow(model=name, spent=_spent(counts)) for name, counts in turns.by(_model).items()),
        agents=_most(_agent_row(name, counts) for name, counts in turns.by(_agent).items()),
        parts=_part_rows(ledger, filters),
        items=items,
        scores=_score_steps(step for item in items for step in item.scores),
        latency=_stage_rows(ledger, filters),
        sources=_source_rows(ledger, filters, items),
        patterns=_patterns(ledger, filters, whole, tallies),
        storage=_storage(ledger, filters),
        choices=_choices(ledger, filters),
    )


def as_csv(found: Dashboard, listed: Listed) -> str:
    """Return one of a dashboard's lists as CSV, a line for each entry, with a heading."""
    rows = [dict(_columns(row)) for row in cast("Sequence[object]", getattr(found, listed))]
    text = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), restval=0)
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def counted_turns(ledger: Ledger, filters: Filters) -> int:
    """Return how many turns count."""
    return _added(_Turns.read(ledger, filters).rows)["turns"]


def item_rows(ledger: Ledger, filters: Filters) -> tuple[ItemRow, ...]:
    """Return what is known about each item of each agent, those that took the most tokens first."""
    counters = TABLES["item"].counters
    sums = ", ".join(f"sum(n_{counter})" for counter in counters)
    rows = _read(
        ledger,
        "item",
        filters,
        f"{_text('agent')}, {_text('item')}, max(d_included), max(d_used), {sums}",
        "GROUP BY agent, item",
    )
    found = [
        _item_row(agent, key, dict(zip(counters, counts, strict=True)), included, used)
        for agent, key, included, used, *counts in rows
    ]
    return tuple(sorted(found, key=lambda row: (-row.tokens, -row.considered, row.agent, row.ref.sort_key)))


def _read(ledger: Ledger, table: str, filters: Filters, columns: str, then: str, *, by_day: bool = False) -> list[Any]:
    """Return columns of the rows that count, of whole months where that is enough and of days around them."""
    clauses: list[str] = []
    values: list[Any] = []
    for span, first, last in _spans(filters, by_day=by_day):
        where, wanted = _where(filters)
        clauses.append(f"SELECT * FROM {table} WHERE {where} AND span = {span} AND day BETWEEN {first} AND {last}")  # noqa: S608 – names of ours, and numbers
        values += wanted
    return ledger.rows(f"SELECT {columns} FROM ({' UNION ALL '.join(clauses)}) {then}", values)  # noqa: S608 – names of ours


def _text(column: str) -> str:
    return f"(SELECT text FROM name WHERE pk = {column})"  # noqa: S608 – a column of ours


def _spans(filters: Filters, *, by_day: bool) -> Iterator[tuple[int, int, int]]:
    """Return stretches of rows, each with its first and last day: whole months, and the days before and after."""
    first = filters.since.toordinal() if filters.since else 1
    last = filters.until.toordinal() if filters.until else date.max.toordinal()
    # The first day of the first whole month, and of the first month that is not whole any more.
    whole = first if filters.since is None else _month_from(filters.since)
    end = last + 1 if filters.until is None else (filters.until + timedelta(days=1)).replace(day=1).toordinal()
    if by_day or whole >= end:
        yield DAY, first, last
        return
    yield MONTH, whole, end - 1
    if first < whole:
        yield DAY, first, whole - 1
    if end <= last:
        yield DAY, end, last


def _month_from(day: date) -> int:
    """Return the day that is the first of a month, this one or the next."""
    return day.toordinal() if day.day == 1 else ((day.replace(day=1) + timedelta(days=32)).replace(day=1)).toordinal()


def _where(filters: Filters) -> tuple[str, list[Any]]:
    owner = f"owner = {EVERYONE}" if filters.owner is None else "owner = (SELECT pk FROM name WHERE text = ?)"
    clauses, values = [owner], list[Any]() if filters.owner is None else [filters.owner]
    for column in ("agent", "model"):
        wanted = getattr(filters, column)
        if wanted is not None:
            clauses.append(f"{column} = (SELECT pk FROM name WHERE text = ?)")  # noqa: S608 – a column of ours
            values.append(wanted)
    return " AND ".join(clauses), values


@dataclass(frozen=True, slots=True)
class _TurnRow:
    day: int
    agent: str
    model: str
    counts: Counter[str]


@dataclass(frozen=True, slots=True)
class _Turns:
    rows: tuple[_TurnRow, ...]

    @staticmethod
    def read(ledger: Ledger, filters: Filters) -> "_Turns":
        counters = TABLES["turn"].counters
        sums = ", ".join(f"sum(n_{counter})" for counter in counters)
        columns = f"day, {_text('agent')}, {_text('model')}, {sums}"
        rows = _read(ledger, "turn", filters, columns, "GROUP BY day, agent, model", by_day=True)
        return _Turns(
            tuple(
                _TurnRow(day, agent, model, Counter(dict(zip(counters, counts, strict=True))))
                for day, agent, model, *counts in rows
            )
        )

    def by(self, key: Callable[[_TurnRow], T]) -> dict[T, Counter[str]]:
        groups: dict[T, list[_TurnRow]] = {}
        for row in self.rows:
            groups.setdefault(key(row), []).append(row)
        return {name: _added(rows) for name, rows in groups.items()}


def _added(rows: Iterable[_TurnRow]) -> Counter[str]:
    whole = Counter[str]()
    for row in rows:
        whole.update(row.counts)
    return whole


def _model(row: _TurnRow) -> str:
    return row.model


def _agent(row: _TurnRow) -> str:
    return row.agent


def _spent(counts: Counter[str]) -> Spent:
    return Spent(
        turns=counts["turns"],
        calls=counts["calls"],
        request_tokens=counts["request_tokens"],
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cache_read_tokens=counts["cache_read_tokens"],
        cache_write_tokens=counts["cache_write_tokens"],
        cost_usd=_dollars(counts["cost_nano"]),
        turns_without_price=counts["turns_without_price"],
    )


def _dollars(nano: int) -> Decimal:
    return Decimal(nano) / NANO


def _quality(counts: Counter[str]) -> Quality:
    selected, used, missed = counts["selected"], counts["selected_used"], counts["missed"]
    return Quality(
        selected=selected,
        selected_used=used,
        missed=missed,
        precision=_share(used, selected),
        recall=_share(used, used + missed),
    )


def _prefix(counts: Counter[str]) -> PrefixKept:
    return PrefixKept(
        compared=counts["compared"],
        kept_share=_share(counts["kept_bytes"], counts["prefix_bytes"]),
        cached_share=_share(counts["cache_read_tokens"], counts["input_tokens"]),
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _day_row(day: int, counts: Counter[str]) -> DayRow:
    return DayRow(
        day=date.fromordinal(day),
        sessions=counts["begun"],
        active_sessions=counts["active"],
        spent=_spent(counts),
        quality=_quality(counts),
        prefix=_prefix(counts),
    )


def _agent_row(name: str, counts: Counter[str]) -> AgentRow:
    return AgentRow(agent=name, sessions=counts["begun"], spent=_spent(counts), quality=_quality(counts))


R = TypeVar("R", ModelRow, AgentRow)


def _most(rows: Iterable[R]) -> tuple[R, ...]:
    """Return rows, those with the most turns first."""
    return tuple(sorted(rows, key=lambda row: -row.spent.turns))


def _part_rows(ledger: Ledger, filters: Filters) -> tuple[PartRow, ...]:
    columns = f"{_text('kind')}, sum(n_requests), sum(n_tokens), sum(n_cost_nano), sum(n_cut)"
    rows = _read(ledger, "part", filters, columns, "GROUP BY kind ORDER BY sum(n_tokens) DESC")
    whole = sum(row[2] for row in rows)
    return tuple(
        PartRow(
            kind=kind,
            requests=requests,
            tokens=tokens,
            share=_share(tokens, whole) or 0.0,
            cost_usd=_dollars(cost),
            cut=cut,
        )
        for kind, requests, tokens, cost, cut in rows
    )


def _item_row(
    agent: str,
    key: str,
    counts: Mapping[str, int],
    last_included: int,
    last_used: int,
) -> ItemRow:
    scores = [
        ScoreStep(
            low=step / SCORE_STEPS,
            selected=counts[f"selected_{step}"],
            left_out=counts[f"left_out_{step}"],
            used=counts[f"used_{step}"],
        )
        for step in range(SCORE_STEPS)
    ]
    scored = sum(step.selected + step.left_out for step in scores)
    return ItemRow(
        ref=item_ref(key),
        agent=agent,
        included=counts["included"],
        by_mode={mode: counts[mode] for mode in get_args(IncludeMode) if counts[mode]},
        tokens=counts["tokens"],
        cost_usd=_dollars(counts["cost_nano"]),
        used=counts["used"],
        by_use={how: counts[how] for how in get_args(How) if counts[how]},
        used_share=_share(counts["used"], counts["included"]),
        unused_tokens=counts["unused_tokens"],
        considered=counts["considered"],
        selected=counts["selected"],
        not_sent=counts["not_sent"],
        added_by_hand=counts["added_by_hand"],
        removed_by_hand=counts["removed_by_hand"],
        mean_score=round(counts["scores"] / scored / SCORE_PARTS, 4) if scored else None,
        scores=tuple(step for step in scores if step.selected or step.left_out),
        last_included=date.fromordinal(last_included) if last_included else None,
        last_used=date.fromordinal(last_used) if last_used else None,
    )


def _score_steps(steps: Iterable[ScoreStep]) -> tuple[ScoreStep, ...]:
    """Return the scores of all items together, every step of them."""
    found = {step / SCORE_STEPS: (0, 0, 0) for step in range(SCORE_STEPS)}
    for step in steps:
        selected, left_out, used = found[step.low]
        found[step.low] = (selected + step.selected, left_out + step.left_out, used + step.used)
    return tuple(ScoreStep(low=low, selected=s, left_out=o, used=u) for low, (s, o, u) in found.items())


def _stage_rows(ledger: Ledger, filters: Filters) -> tuple[StageRow, ...]:
    columns = f"{_text('stage')}, step, sum(n_count), sum(n_total_ms)"
    rows = _read(ledger, "latency", filters, columns, "GROUP BY stage, step ORDER BY step")
    stages: dict[Stage, list[tuple[int, int, int]]] = {stage: [] for stage in get_args(Stage)}
    for stage, *row in rows:
        stages[stage].append((row[0], row[1], row[2]))
    return tuple(_stage_row(stage, steps) for stage, steps in stages.items() if steps)


def _stage_row(stage: Stage, steps: Sequence[tuple[int, int, int]]) -> StageRow:
    count = sum(times for _, times, _ in steps)

    def percentile(share: float) -> float:
        passed = 0
        for step, times, _ in steps:
            passed += times
            if passed >= share * count:
                return round(LATENCY_BASE**step, 1)
        return 0.0

    return StageRow(
        stage=stage,
        count=count,
        mean_ms=round(sum(total for *_, total in steps) / count, 1),
        p50_ms=percentile(0.5),
        p95_ms=percentile(0.95),
        p99_ms=percentile(0.99),
    )


def _source_rows(ledger: Ledger, filters: Filters, items: Sequence[ItemRow]) -> tuple[SourceRow, ...]:
    sites = _read(ledger, "site", filters, f"{_text('site')}, sum(n_given), sum(n_used)", "GROUP BY site")
    references = Counter[str](), Counter[str]()
    for item in items:
        if item.ref.type == "reference" and item.included:
            references[0][item.ref.name] += item.included
            references[1][item.ref.name] += item.used
    rows = [SourceRow(kind="site", name=name, given=given, used=used) for name, given, used in sites]
    rows += [
        SourceRow(kind="reference", name=name, given=given, used=references[1][name])
        for name, given in references[0].items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.used, -row.given, row.name)))


def _tallies(ledger: Ledger, filters: Filters) -> dict[str, dict[str, int]]:
    columns = "(SELECT text FROM name WHERE pk = kind), (SELECT name.text FROM name WHERE pk = tallied), sum(n_count)"
    rows = _read(ledger, "tally", filters, columns, "GROUP BY kind, tallied ORDER BY sum(n_count) DESC")
    found: dict[str, dict[str, int]] = {}
    for kind, name, times in rows:
        found.setdefault(kind, {})[name] = times
    return found


_LENGTHS: Sequence[tuple[str, int]] = (
    ("1", 1),
    ("2", 2),
    ("3-5", 5),
    ("6-10", 10),
    ("11-20", 20),
    ("21-50", 50),
    ("51+", 10**9),
)


def _patterns(
    ledger: Ledger, filters: Filters, whole: Counter[str], tallies: Mapping[str, Mapping[str, int]]
) -> Patterns:
    hours = tallies.get("hour", {})
    lengths = dict.fromkeys((name for name, _ in _LENGTHS), 0)
    where, values = _of_sessions(filters)
    rows = ledger.rows(f"SELECT turn, count(*) FROM session WHERE {where} AND turn > 0 GROUP BY turn", values)  # noqa: S608 – columns of ours
    for turns, sessions in rows:
        lengths[next(name for name, most in _LENGTHS if turns <= most)] += sessions
    return Patterns(
        outcomes=tallies.get("outcome", {}),
        modes=tallies.get("mode", {}),
        follow_ups=whole["follow_ups"],
        small_talk=whole["small_talk"],
        degraded=whole["degraded"],
        tool_calls=whole["tool_calls"],
        tool_errors=whole["tool_errors"],
        hours=tuple(hours.get(f"{hour:02}", 0) for hour in range(24)),
        lengths=lengths,
    )


def _of_sessions(filters: Filters) -> tuple[str, list[Any]]:
    """Return those of the filters that mean something for a session as it is now."""
    where, values = _where(Filters(owner=filters.owner, agent=filters.agent))
    return (where if filters.owner is not None else where.replace(f"owner = {EVERYONE}", "1")), values


def _storage(ledger: Ledger, filters: Filters) -> Storage:
    where, values = _of_sessions(filters)
    ((sessions, turns, events, texts_bytes),) = ledger.rows(
        f"SELECT count(*), sum(turn), sum(seen_seq), sum(texts_bytes) FROM session WHERE {where}",  # noqa: S608 – columns of ours
        values,
    )
    return Storage(
        sessions=sessions,
        turns=turns or 0,
        events=events or 0,
        texts_bytes=texts_bytes or 0,
        ledger_bytes=ledger.size_bytes(),
    )


def _choices(ledger: Ledger, filters: Filters) -> Choices:
    own = Filters(owner=filters.owner)

    def names(column: str) -> tuple[str, ...]:
        rows = _read(ledger, "turn", own, f"DISTINCT {_text(column)} AS text", "ORDER BY text")
        return tuple(row[0] for row in rows if row[0])

    ((first, last),) = _read(ledger, "turn", own, "min(day), max(day)", "", by_day=True)
    return Choices(
        agents=names("agent"),
        models=names("model"),
        first_day=None if first is None else date.fromordinal(first),
        last_day=None if last is None else date.fromordinal(last),
    )


def _columns(row: object) -> Iterator[tuple[str, object]]:
    """Return an entry's values by column. Values within values stand beside the others, sums by key as `name_key`."""
    for part in fields(cast("Any", row)):
        value: Any = getattr(row, part.name)
        if isinstance(value, ItemRef):
            yield "item", _harmless(str(value))
        elif isinstance(value, Mapping):
            counted = cast("Mapping[str, int]", value)
            yield from ((f"{part.name}_{key}", counted.get(key, 0)) for key in _KEYS[part.name])
        elif isinstance(value, tuple):
            continue
        elif is_dataclass(value):
            yield from _columns(value)
        else:
            yield part.name, _harmless(value) if isinstance(value, str) else value


_KEYS: Mapping[str, tuple[str, ...]] = {"by_mode": get_args(IncludeMode), "by_use": get_args(How)}


def _harmless(text: str) -> str:
    """Return a name that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
