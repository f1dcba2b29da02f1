"""Make a dashboard of what the analytics store has counted in a stretch of days."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeVar, get_args

from windowpane.api.analytics import (
    AgentRow,
    Choices,
    Dashboard,
    DayRow,
    Filters,
    ItemRow,
    ModelRow,
    PartRow,
    Patterns,
    PrefixKept,
    PurposeRow,
    Quality,
    RebaseRow,
    ScoreStep,
    SourceRow,
    Spent,
    Stage,
    StageRow,
    Storage,
)
from windowpane.api.turns import How
from windowpane.context.calls import CallPurpose
from windowpane.insight.analytics.count import LATENCY_BASE, SCORE_PARTS, SCORE_STEPS, WAYS_IN
from windowpane.insight.analytics.count_calls import NANO
from windowpane.insight.analytics.read import name_of, read_counts, sessions_where
from windowpane.insight.analytics.store import AnalyticsStore, item_ref
from windowpane.insight.analytics.tables import TABLES
from windowpane.insight.analytics.update import Kept

T = TypeVar("T")
R = TypeVar("R", ModelRow, AgentRow)


def dashboard(analytics: AnalyticsStore, filters: Filters, kept: Kept) -> Dashboard:
    """Return everything that the analytics store says about the turns that count."""
    turns = _Turns.read(analytics, filters)
    whole = _added(turns.rows)
    items = item_rows(analytics, filters)
    tallies = _tallies(analytics, filters)
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
        purposes=_purpose_rows(analytics, filters),
        parts=_part_rows(analytics, filters),
        items=items,
        scores=_score_steps(step for item in items for step in item.scores),
        latency=_stage_rows(analytics, filters),
        sources=_source_rows(analytics, filters, items),
        rebases=_rebase_rows(analytics, filters),
        patterns=_patterns(analytics, filters, whole, tallies),
        storage=_storage(analytics, filters),
        choices=_choices(analytics, filters),
    )


def counted_turns(analytics: AnalyticsStore, filters: Filters) -> int:
    """Return how many turns count."""
    return _added(_Turns.read(analytics, filters).rows)["turns"]


def item_rows(analytics: AnalyticsStore, filters: Filters) -> tuple[ItemRow, ...]:
    """Return what is known about each item of each agent, those that took the most tokens first."""
    counters = TABLES["item"].counters
    sums = ", ".join(f"sum(n_{counter})" for counter in counters)
    rows = read_counts(
        analytics,
        "item",
        filters,
        f"{name_of('agent')}, {name_of('item')}, max(d_included), max(d_used), {sums}",
        "GROUP BY agent, item",
    )
    found = [
        _item_row(agent, key, dict(zip(counters, counts, strict=True)), included, used)
        for agent, key, included, used, *counts in rows
    ]
    return tuple(sorted(found, key=lambda row: (-row.tokens, -row.considered, row.agent, row.ref.sort_key)))


@dataclass(frozen=True, slots=True)
class _TurnRow:
    day: int
    agent: str
    model: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Turns:
    rows: tuple[_TurnRow, ...]

    @staticmethod
    def read(analytics: AnalyticsStore, filters: Filters) -> "_Turns":
        counters = TABLES["turn"].counters
        sums = ", ".join(f"sum(n_{counter})" for counter in counters)
        columns = f"day, {name_of('agent')}, {name_of('model')}, {sums}"
        rows = read_counts(
            analytics, "turn", filters, columns, "GROUP BY day, agent, model ORDER BY 1, 2, 3", by_day=True
        )
        return _Turns(tuple(_TurnRow(day, agent, model, tuple(counts)) for day, agent, model, *counts in rows))

    def by(self, key: Callable[[_TurnRow], T]) -> dict[T, Counter[str]]:
        groups: dict[T, list[_TurnRow]] = {}
        for row in self.rows:
            groups.setdefault(key(row), []).append(row)
        return {name: _added(rows) for name, rows in groups.items()}


def _added(rows: Iterable[_TurnRow]) -> Counter[str]:
    sums = map(sum, zip(*(row.counts for row in rows), strict=True))
    return Counter(dict(zip(TABLES["turn"].counters, sums, strict=False)))


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
        calls_without_usage=counts["calls_without_usage"],
        calls_without_price=counts["calls_without_price"],
    )


def _dollars(nano: int) -> Decimal:
    return Decimal(nano) / NANO


def _quality(counts: Counter[str]) -> Quality:
    selected, used, missed = counts["selected"], counts["selected_used"], counts["missed"]
    probably = counts["selected_probably"]
    return Quality(
        selected=selected,
        selected_used=used,
        selected_probably=probably,
        missed=missed,
        precision=_share(used + probably, selected),
        recall=_share(used + probably, used + probably + missed),
    )


def _prefix(counts: Counter[str]) -> PrefixKept:
    return PrefixKept(
        compared=counts["compared"],
        kept_share=_share(counts["kept_bytes"], counts["prefix_bytes"]),
        cached_share=_share(counts["cache_read_tokens"], counts["input_tokens"]),
        rebases=counts["rebases"],
        rebase_usd=_dollars(counts["rebase_nano"]),
        expected_tokens=counts["expected_tokens"],
        read_tokens=counts["expected_read_tokens"],
        collapses=counts["collapses"],
        missing_tokens=counts["missing_tokens"],
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


def _most(rows: Iterable[R]) -> tuple[R, ...]:
    """Return rows, those with the most turns first."""
    return tuple(sorted(rows, key=lambda row: -row.spent.turns))


def _purpose_rows(analytics: AnalyticsStore, filters: Filters) -> tuple[PurposeRow, ...]:
    counters = TABLES["call"].counters
    columns = f"{name_of('purpose')}, {', '.join(f'sum(n_{counter})' for counter in counters)}"
    rows = read_counts(analytics, "call", filters, columns, "GROUP BY purpose ORDER BY sum(n_calls) DESC, 1")
    return tuple(_purpose_row(purpose, dict(zip(counters, counts, strict=True))) for purpose, *counts in rows)


def _purpose_row(purpose: CallPurpose, counts: Mapping[str, int]) -> PurposeRow:
    return PurposeRow(
        purpose=purpose,
        calls=counts["calls"],
        input_tokens=counts["input_tokens"],
        output_tokens=counts["output_tokens"],
        cache_read_tokens=counts["cache_read_tokens"],
        cache_write_tokens=counts["cache_write_tokens"],
        cost_usd=_dollars(counts["cost_nano"]),
        calls_without_usage=counts["without_usage"],
        calls_without_price=counts["without_price"],
    )


def _part_rows(analytics: AnalyticsStore, filters: Filters) -> tuple[PartRow, ...]:
    columns = f"{name_of('kind')}, sum(n_requests), sum(n_tokens), sum(n_cost_nano), sum(n_cut)"
    rows = read_counts(analytics, "part", filters, columns, "GROUP BY kind ORDER BY sum(n_tokens) DESC, 1")
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


def _rebase_rows(analytics: AnalyticsStore, filters: Filters) -> tuple[RebaseRow, ...]:
    columns = f"{name_of('kind')}, {name_of('item')}, sum(n_rebases), sum(n_rewritten_tokens), sum(n_cost_nano)"
    most = "GROUP BY kind, item ORDER BY sum(n_rewritten_tokens) DESC, 1, 2"
    return tuple(
        RebaseRow(code=code, item=item, rebases=rebases, rewritten_tokens=tokens, cost_usd=_dollars(cost))
        for code, item, rebases, tokens, cost in read_counts(analytics, "rebase", filters, columns, most)
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
        by_mode={way: counts[way] for way in WAYS_IN if counts[way]},
        tokens=counts["tokens"],
        cost_usd=_dollars(counts["cost_nano"]),
        used=counts["used"],
        by_use={how: counts[how] for how in get_args(How) if counts[how]},
        used_share=_share(counts["used"] + counts["probably"], counts["included"]),
        probably=counts["probably"],
        no_trace=counts["no_trace"],
        no_trace_tokens=counts["no_trace_tokens"],
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


def _stage_rows(analytics: AnalyticsStore, filters: Filters) -> tuple[StageRow, ...]:
    columns = f"{name_of('stage')}, step, sum(n_count), sum(n_total_ms)"
    rows = read_counts(analytics, "latency", filters, columns, "GROUP BY stage, step ORDER BY step")
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


def _source_rows(analytics: AnalyticsStore, filters: Filters, items: Sequence[ItemRow]) -> tuple[SourceRow, ...]:
    sites = read_counts(analytics, "site", filters, f"{name_of('site')}, sum(n_given), sum(n_used)", "GROUP BY site")
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


def _tallies(analytics: AnalyticsStore, filters: Filters) -> dict[str, dict[str, int]]:
    columns = "(SELECT text FROM name WHERE pk = kind), (SELECT text FROM name WHERE pk = tallied), sum(n_count)"
    rows = read_counts(analytics, "tally", filters, columns, "GROUP BY kind, tallied ORDER BY sum(n_count) DESC, 1, 2")
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
    analytics: AnalyticsStore, filters: Filters, whole: Counter[str], tallies: Mapping[str, Mapping[str, int]]
) -> Patterns:
    hours = tallies.get("hour", {})
    lengths = dict.fromkeys((name for name, _ in _LENGTHS), 0)
    where, values = sessions_where(filters)
    rows = analytics.rows(f"SELECT turn, count(*) FROM session WHERE {where} AND turn > 0 GROUP BY turn", values)  # noqa: S608 – columns of ours
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


def _storage(analytics: AnalyticsStore, filters: Filters) -> Storage:
    where, values = sessions_where(filters)
    ((sessions, turns, events, texts_bytes),) = analytics.rows(
        f"SELECT count(*), sum(turn), sum(seen_seq), sum(texts_bytes) FROM session WHERE {where}",  # noqa: S608 – columns of ours
        values,
    )
    return Storage(
        sessions=sessions,
        turns=turns or 0,
        events=events or 0,
        texts_bytes=texts_bytes or 0,
        analytics_bytes=analytics.size_bytes(),
    )


def _choices(analytics: AnalyticsStore, filters: Filters) -> Choices:
    own = Filters(owner=filters.owner)

    def names(column: str) -> tuple[str, ...]:
        rows = read_counts(analytics, "turn", own, f"DISTINCT {name_of(column)} AS text", "ORDER BY text")
        return tuple(row[0] for row in rows if row[0])

    ((first, last),) = read_counts(analytics, "turn", own, "min(day), max(day)", "", by_day=True)
    return Choices(
        agents=names("agent"),
        models=names("model"),
        first_day=None if first is None else date.fromordinal(first),
        last_day=None if last is None else date.fromordinal(last),
    )
