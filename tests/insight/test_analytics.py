from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight.counted import PAPER, PAPER_ANSWER, ask, counted, talking
from windowpane.api.analytics import Dashboard, Filters, PrefixKept, Quality, ScoreStep
from windowpane.context.events import ModelReplied, Recorded, TurnFinished, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.context.items import reference_ref, rule_ref
from windowpane.context.messages import Step
from windowpane.insight.analytics.count import Counts, Progress, count_events, item_key
from windowpane.insight.analytics.report import dashboard, item_rows
from windowpane.insight.analytics.spreadsheet import as_csv
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.update import Kept

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEPT = Kept(NOW, 0)


@pytest.mark.spec("S0.70", "S0.89", "S1.107", "S4.87")
async def test_a_dashboard_adds_up_what_turns_cost_and_what_was_used(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create(owner="ana")).id
        await ask(engine, session)
        await engine.items.add(session, reference_ref("hidden"))
        await ask(engine, session, PAPER, "I do not know.")
        analytics = await counted(engine)
        contexts = [await engine.past.context(session, turn) for turn in (1, 2)]

    found = dashboard(analytics, Filters(owner="ana"), KEPT)
    items = {row.ref.name: row for row in found.items}
    given = [item for context in contexts for item in (*context.items, *context.standing)]
    sent = [item for item in given if item.sent]
    assert (found.sessions, found.spent.turns, found.spent.calls) == (1, 2, 2)
    assert (found.spent.input_tokens, found.spent.output_tokens, found.spent.cache_read_tokens) == (2000, 200, 500)
    # 750 at 2.50 dollars a million, 250 cached at 1.25, 100 out at 10, each of them twice.
    assert found.spent.cost_usd == 2 * (750 * Decimal("2.5") + 250 * Decimal("1.25") + 100 * 10) / 10**6
    assert found.spent.request_tokens == sum(context.budget.used_tokens for context in contexts)
    assert sum(part.tokens for part in found.parts) == found.spent.request_tokens
    assert abs(sum(part.share for part in found.parts) - 1) < 0.001
    inputs = found.spent.cost_usd - 2 * Decimal(100 * 10) / 10**6
    assert abs(sum(part.cost_usd for part in found.parts) - inputs) < Decimal("0.0000001")
    assert {name: row.tokens for name, row in items.items() if row.included} == {
        name: sum(item.tokens for item in sent if item.name == name) for name in {item.name for item in sent}
    }
    assert (items["billing"].by_mode, items["billing"].used, items["billing"].by_use) == (
        {"agent": 1, "carried": 1},
        1,
        {"quoted": 1},
    )
    tone = items["tone"]
    # Without an embedding model its meaning was not compared: that no words were found says nothing.
    assert (tone.by_mode, tone.used_share, tone.probably, tone.no_trace, tone.unused_tokens) == (
        {"always": 2},
        0,
        0,
        0,
        0,
    )
    assert (items["printing"].considered, items["printing"].selected, items["printing"].used) == (2, 1, 0)
    assert (items["hidden"].added_by_hand, items["hidden"].by_mode) == (1, {"manual": 1})
    assert found.quality == Quality(selected=2, selected_used=1, missed=1, precision=0.5, recall=0.5)
    assert (found.prefix.compared, found.prefix.cached_share) == (1, 0.25)
    assert 0 < (found.prefix.kept_share or 0) < 1
    assert [(row.kind, row.name, row.given, row.used) for row in found.sources] == [
        ("reference", "billing", 2, 1),
        ("reference", "hidden", 1, 0),
        ("reference", "printing", 1, 0),
    ]
    assert found.patterns.outcomes == {"completed": 2}
    assert (sum(found.patterns.hours), found.patterns.lengths["2"]) == (2, 1)
    assert (found.storage.sessions, found.storage.turns) == (1, 2)
    assert found.storage.texts_bytes > 0


async def test_every_owner_sees_their_own_turns_and_filters_leave_out_the_rest(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        for owner, turns in (("ana", 2), ("ben", 1)):
            session = (await engine.sessions.create(owner=owner)).id
            for _ in range(turns):
                await ask(engine, session, PAPER, PAPER_ANSWER)
        hidden = await engine.sessions.create(owner="ana", listed=False)
        await ask(engine, hidden.id)
        analytics = await counted(engine)
        today = (await engine.past.context(hidden.id, 1)).timestamp.date()

    def turns_of(**filters: object) -> int:
        return dashboard(analytics, Filters(**filters), KEPT).spent.turns  # pyright: ignore[reportArgumentType]

    assert [turns_of(owner=owner) for owner in ("ana", "ben", "eve", None)] == [3, 1, 0, 4]
    assert [turns_of(agent=agent) for agent in ("pane", "other")] == [4, 0]
    assert [turns_of(model=model) for model in ("openai:gpt-4o", "echo")] == [4, 0]
    yesterday, tomorrow = today - timedelta(days=1), today + timedelta(days=1)
    assert [turns_of(since=day) for day in (yesterday, today, tomorrow)] == [4, 4, 0]
    assert [turns_of(until=day) for day in (yesterday, today, tomorrow)] == [0, 4, 4]
    empty = dashboard(analytics, Filters(owner="eve"), KEPT)
    assert (empty.items, empty.days, empty.choices.agents, empty.storage.sessions) == ((), (), (), 0)
    assert empty.quality == Quality()
    assert empty.prefix == PrefixKept()


def test_days_are_those_of_the_turns_and_a_session_begins_once() -> None:
    analytics = AnalyticsStore()
    progress = Progress()
    for number, day in enumerate((1, 1, 3), 1):
        made = told(progress, number, NOW + timedelta(days=day))
        assert analytics.add(SessionId("ses_a"), progress, made, seen_seq=made.progress.seq)
        progress = made.progress

    found = dashboard(analytics, Filters(), KEPT)

    assert [(row.day, row.sessions, row.active_sessions, row.spent.turns) for row in found.days] == [
        (date(2026, 5, 2), 1, 1, 2),
        (date(2026, 5, 4), 0, 1, 1),
    ]
    assert (found.choices.first_day, found.choices.last_day) == (date(2026, 5, 2), date(2026, 5, 4))
    (whole,) = [row for row in found.latency if row.stage == "whole"]
    assert (whole.count, whole.mean_ms) == (3, 2000)
    assert 1800 < whole.p50_ms <= whole.p95_ms < 2200


def told(progress: Progress, turn: int, at: datetime) -> Counts:
    """Return what a turn of two seconds adds, whose record is gone."""
    start = progress.seq + 1
    events = [
        Recorded(start, at, TurnStarted(turn=turn, message="Hi")),
        Recorded(start + 1, at, ModelReplied(turn=turn, step=Step(text="Hello.", model="gone", latency_ms=1500))),
        Recorded(start + 2, at + timedelta(seconds=2), TurnFinished(turn=turn, outcome="completed")),
    ]
    return count_events(SessionId("ses_a"), "ana", "pane", progress, events, {})


DAYS = st.dates(date(2026, 1, 25), date(2026, 4, 5))


@given(st.lists(st.tuples(DAYS, st.sampled_from(["ana", "ben"]), st.integers(1, 9)), max_size=30), st.data())
def test_whole_months_and_the_days_around_them_are_all_days(
    turns: list[tuple[date, str, int]], data: st.DataObject
) -> None:
    analytics = AnalyticsStore()
    for number, (day, owner, tokens) in enumerate(turns):
        made = Counts(owner, "pane", Progress(seq=1))
        made.add("turn", day.toordinal(), "echo", turns=1)
        made.add("item", day.toordinal(), "echo", item_key(rule_ref("tone")), included=1, tokens=tokens)
        analytics.add(SessionId(f"ses_{number}"), Progress(), made, seen_seq=1)
    ends = st.none() | DAYS | st.sampled_from([date.min, date.max])
    for _ in range(5):
        since, until, owner = data.draw(ends), data.draw(ends), data.draw(st.sampled_from([None, "ana", "ben"]))
        wanted = [
            (day, tokens)
            for day, whose, tokens in turns
            if (since or date.min) <= day <= (until or date.max) and owner in (None, whose)
        ]

        found = dashboard(analytics, Filters(owner=owner, since=since, until=until), KEPT)

        assert found.spent.turns == len(wanted)
        assert sum(row.tokens for row in found.items) == sum(tokens for _, tokens in wanted)
        if wanted and since is None and until is None:
            assert found.items[0].last_included == max(day for day, _ in wanted)
    analytics.close()


@pytest.mark.spec("S0.90", "S1.110")
async def test_lists_are_had_as_csv_and_no_name_becomes_a_formula(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create()).id
        await ask(engine, session)
        analytics = await counted(engine)
    made = Counts("local", "=cmd()", Progress(seq=1))
    made.add("turn", NOW.toordinal(), "-1+1", turns=1)
    analytics.add(SessionId("ses_x"), Progress(), made, seen_seq=1)
    found = dashboard(analytics, Filters(), KEPT)

    items = read(as_csv(found, "items"))
    agents = read(as_csv(found, "agents"))

    assert [(row["item"], row["included"], row["by_use_quoted"]) for row in items] == [
        ("reference:billing", "1", "1"),
        ("rule:tone", "1", "0"),
        ("reference:printing", "0", "0"),
    ]
    assert {row["agent"] for row in agents} == {"pane", "'=cmd()"}
    assert {row["model"] for row in read(as_csv(found, "models"))} == {"openai:gpt-4o", "'-1+1"}
    assert len(read(as_csv(found, "days"))) == len(found.days)
    assert as_csv(dashboard(AnalyticsStore(), Filters(), KEPT), "items") == ""


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.spec("S0.70", "S0.75")
async def test_scores_are_counted_in_ten_steps_with_what_became_of_them(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create()).id
        await ask(engine, session)
        analytics = await counted(engine)
        context = await engine.past.context(session, 1)

    billing, printing = (
        next(row for row in item_rows(analytics, Filters()) if row.ref == reference_ref(name))
        for name in ("billing", "printing")
    )
    chosen = context.item(reference_ref("billing"))
    assert chosen is not None
    assert chosen.evidence is not None
    left_out = context.candidates[0].evidence
    assert left_out is not None
    assert billing.mean_score == chosen.evidence.score
    assert billing.scores == (ScoreStep(low=int(chosen.evidence.score * 10) / 10, selected=1, left_out=0, used=1),)
    assert printing.scores == (ScoreStep(low=int(left_out.score * 10) / 10, selected=0, left_out=1, used=0),)
    found: Dashboard = dashboard(analytics, Filters(), KEPT)
    assert len(found.scores) == 10
    assert [row.ref for row in found.items if row.ref == rule_ref("tone") and not row.scores]
