"""Measure the dashboard over a million turns, and what it costs to keep the analytics store up to date.

    python bench/analytics.py [TURNS]

The store is filled with what about a million turns of some 44,000 sessions add up to: a year of twenty owners with
three agents, two models and sixty items each, every item every day. These sums are made up; no such turns were had. A
store of a thousand real turns gives the cost of counting: one more turn, nothing new, and all of them from the
beginning. The last, times the turns in the analytics store, is what a dashboard without it would take. All times are of
one process and one after the other; the last column is in units of counting one turn.
"""

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from random import Random

import anyio

from windowpane.agents.folder import FolderAgents
from windowpane.api.analytics import Filters
from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.engine import Engine
from windowpane.insight.analytics.count import Counts, Progress
from windowpane.insight.analytics.report import dashboard
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.update import AnalyticsUpdater, Kept
from windowpane.models.provider import PydanticModels
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.index import ItemIndex
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.tools.functions import FunctionToolbox

DAYS = 365
OWNERS = 20
AGENTS = 3
MODELS = 2
ITEMS = 60
SESSION_TURNS = 20
REAL_SESSIONS = 40
REAL_TURNS = 25
KINDS = ("core", "rules", "references", "tools", "history", "selected", "message", "summary")
FIRST_DAY = date(2026, 1, 1).toordinal()
KEPT = Kept(datetime(2026, 12, 31, tzinfo=UTC), 0)


def fill(analytics: AnalyticsStore, turns: int) -> None:
    """Add what so many turns add up to, a day of an owner at a time."""
    random = Random(1)
    share = turns // (DAYS * OWNERS)
    sessions = max(share // SESSION_TURNS, 1)
    for owner in range(OWNERS):
        for day in range(FIRST_DAY, FIRST_DAY + DAYS):
            for number in range(sessions):
                made = Counts(
                    f"owner {owner}", f"agent {random.randrange(AGENTS)}", Progress(seq=100, turn=SESSION_TURNS)
                )
                if number == 0:
                    made = _day(made, day, share, random)
                analytics.add(SessionId(f"ses_{owner}_{day}_{number}"), Progress(), made, seen_seq=100)


def _day(made: Counts, day: int, turns: int, random: Random) -> Counts:
    for agent in range(AGENTS):
        for model in range(MODELS):
            part = Counts(made.owner, f"agent {agent}", made.progress, made.rows)
            count = turns // (AGENTS * MODELS)
            part.add(
                "turn", day, f"model {model}", turns=count, calls=count, input_tokens=5000 * count, cost_nano=count
            )
            for kind in KINDS:
                part.add("part", day, f"model {model}", kind, requests=count, tokens=500 * count)
            for item in range(ITEMS):
                name = f"reference\x1f\x1fagent-{agent}-item-{item}"
                part.add("item", day, f"model {model}", name, included=count // 6, tokens=40 * count, used=count // 12)
                for step in (2, 4, 6):
                    part.add("item", day, f"model {model}", name, **{f"selected_{step}": count // 9, "scores": 100})
            for stage in ("prepare", "model", "tools", "whole"):
                for _ in range(8):
                    part.add("latency", day, f"model {model}", stage, random.randint(20, 90), count=count // 8)
            for hour in range(8, 20):
                part.add("tally", day, f"model {model}", "hour", f"{hour:02}", count=count // 12)
    return made


def engine_at(folder: Path) -> Engine:
    """Return an engine over the folder."""
    return Engine(
        store=SQLiteStore(folder / "windowpane.db", synchronous="NORMAL"),
        agents=FolderAgents(folder / "agents"),
        models=PydanticModels(environ={"OPENAI_API_KEY": "none"}),
        toolbox=FunctionToolbox,
        selector=HybridSelector(ItemIndex(None)),
    )


def write_agent(folder: Path) -> None:
    """Write an agent with sixty references of some hundred words."""
    for name in ("prompts", "rules", "references"):
        (folder / name).mkdir(parents=True)
    (folder / "agent.yaml").write_text("model: openai:gpt-4o\nsearch: {floor: 0.05}\n")
    (folder / "prompts" / "core.md").write_text("You answer questions about everything.")
    (folder / "rules" / "tone.md").write_text("---\ninclude: always\n---\nBe kind.")
    for number in range(ITEMS):
        text = f"All about topic{number}. " + f"A topic{number} of kind K-{number} takes {number} days to arrive. " * 15
        (folder / "references" / f"topic-{number}.md").write_text(f"---\ninclude: agent\n---\n{text}")


async def ask(engine: Engine, session: SessionId, number: int) -> None:
    """Have one turn."""
    topic = number % ITEMS
    prepared = await engine.prepared.begin(session, f"How many days does topic{topic} take?")
    await engine.prepared.record(
        prepared, f"A topic{topic} of kind K-{topic} takes {topic} days.", usage=Usage(4000, 30)
    )


async def counting(folder: Path, analytics: AnalyticsStore) -> tuple[float, float, float]:
    """Return the milliseconds for one new turn, for nothing new, and per turn for all of them from the beginning."""
    async with engine_at(folder) as engine:
        sessions = [(await engine.sessions.create()).id for _ in range(REAL_SESSIONS)]
        for session in sessions:
            for turn in range(REAL_TURNS):
                await ask(engine, session, turn)
        updater = AnalyticsUpdater(engine.store, analytics)
        started = time.perf_counter()
        await updater.update(within_s=None)
        all_ms = 1000 * (time.perf_counter() - started) / (REAL_SESSIONS * REAL_TURNS)
        one: list[float] = []
        none: list[float] = []
        for number in range(30):
            await ask(engine, sessions[number % REAL_SESSIONS], number)
            for spent in (one, none):
                started = time.perf_counter()
                await updater.update(within_s=None)
                spent.append(1000 * (time.perf_counter() - started))
        return statistics.median(one), statistics.median(none), all_ms


def median_ms(work: Callable[[], object], times: int = 5) -> float:
    """Return the median time of a piece of work."""
    spent: list[float] = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spent.append(1000 * (time.perf_counter() - started))
    return statistics.median(spent)


async def main() -> None:
    """Fill the analytics store and print the table."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_agent(folder / "agents" / "desk")
        analytics = AnalyticsStore(folder / "analytics.db")
        started = time.perf_counter()
        fill(analytics, turns)
        sessions = analytics.rows("SELECT count(*) FROM session")[0][0]
        rows = Counter(
            {table: analytics.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("turn", "item", "part")}
        )
        turns = analytics.rows("SELECT sum(n_turns) FROM turn WHERE owner = 0 AND span = 0")[0][0]
        print(f"{turns:,} turns of {sessions:,} sessions: {dict(rows)} rows, {analytics.size_bytes() / 1e6:.0f} MB")
        print(f"(filled in {time.perf_counter() - started:.0f} s)\n")
        one_ms, none_ms, all_ms = await counting(folder, analytics)
        last = date.fromordinal(FIRST_DAY + DAYS - 30)
        for title, filters in (
            ("dashboard, one owner, 30 days", Filters(owner="owner 3", since=last)),
            ("dashboard, one owner, a year", Filters(owner="owner 3")),
            ("dashboard, everyone, 30 days", Filters(since=last)),
            ("dashboard, everyone, a year", Filters()),
        ):
            ms = median_ms(partial(dashboard, analytics, filters, KEPT))
            print(f"{title:<40} {ms:10.1f} ms {ms / one_ms:10.1f}")
        print(f"{'count one new turn':<40} {one_ms:10.1f} ms {1:10.1f}")
        print(f"{'look and find nothing new':<40} {none_ms:10.1f} ms {none_ms / one_ms:10.1f}")
        whole = all_ms * turns
        print(f"{'count all again (extrapolated)':<40} {whole:10.0f} ms {whole / one_ms:10.0f}")
        analytics.close()


if __name__ == "__main__":
    anyio.run(main)
