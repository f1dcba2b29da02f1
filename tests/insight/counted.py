"""A small world whose turns are counted: an agent with a few items, given answers, and an analytics store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from windowpane.context.ids import SessionId
from windowpane.context.messages import Usage
from windowpane.engine import Engine
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.tables import TABLES
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.index import ItemIndex
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.testing import World

REFUND = "How long does a refund take?"
REFUND_ANSWER = "It takes five working days to reach your bank account."
PAPER = "Which paper are photos printed on?"
PAPER_ANSWER = "On matte paper."


def desk(root: Path, store: Store | None = None) -> World:
    """Return a world with an agent that selects by words."""
    world = World(
        root, store=store or MemoryStore(), selector=HybridSelector(ItemIndex(None)), environ={"OPENAI_API_KEY": "none"}
    )
    world.write("agent.yaml", "model: openai:gpt-4o\nworking_context: false\nsearch: {floor: 0.05}\n")
    world.rule("tone", "Be kind.", include="always")
    world.reference(
        "billing", "A refund of an invoice takes five working days to reach the bank account.", include="agent"
    )
    world.reference("printing", "Photos are printed on matte paper; resize a photo first.", include="agent")
    world.reference("hidden", "Nobody ever asks about this one.")
    return world


@asynccontextmanager
async def talking(root: Path, store: Store | None = None, **options: Any) -> AsyncGenerator[Engine]:
    async with desk(root, store).engine(**options) as engine:
        yield engine


async def ask(engine: Engine, session: SessionId, message: str = REFUND, answer: str = REFUND_ANSWER) -> None:
    """Have a turn whose answer is given, with tokens as a provider reports them."""
    prepared = await engine.prepared.begin(session, message)
    await engine.prepared.record(prepared, answer, usage=Usage(1000, 100, cache_read_tokens=250), model="gpt-4o")


async def counted(engine: Engine, analytics: AnalyticsStore | None = None) -> AnalyticsStore:
    """Return an analytics store that everything is counted in."""
    analytics = analytics or AnalyticsStore()
    kept = await AnalyticsUpdater(engine.store, analytics).update(within_s=None)
    assert kept.behind == 0
    return analytics


def everything(analytics: AnalyticsStore) -> dict[str, Sequence[Sequence[Any]]]:
    """Return all rows of all tables, by names instead of numbers, but for how long things took."""
    names = {0: "everyone", **dict(analytics.rows("SELECT pk, text FROM name"))}
    found: dict[str, Sequence[Sequence[Any]]] = {}
    for name, table in TABLES.items():
        if name != "latency":
            keys = table.keys
            rows = analytics.rows(
                f"SELECT {', '.join(keys)}, {', '.join(f'n_{c}' for c in table.counters)} FROM {name}"
            )
            named = [
                tuple(
                    names[value] if key not in ("span", "day", "step") else value
                    for key, value in zip(keys, row, strict=False)
                )
                + row[len(keys) :]
                for row in rows
            ]
            found[name] = sorted(named)
    columns = "id, owner, agent, seq, turn, turn_seq, day, model, record, seen_seq, texts_bytes"
    found["session"] = sorted(
        (row[0], names[row[1]], names[row[2]], *row[3:]) for row in analytics.rows(f"SELECT {columns} FROM session")
    )
    lessons = analytics.rows(
        "SELECT session.id, lesson.turn, lesson.seq, used, added FROM lesson JOIN session ON session.pk = session"
    )
    found["lesson"] = sorted(
        (row[0], row[1], row[2], *(sorted(names[int(pk)] for pk in refs.split()) for refs in row[3:]))
        for row in lessons
    )
    return found
