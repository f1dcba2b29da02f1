"""Measure looking back: rebuild recorded requests after a restart, explain, compare and run selections again.

    python bench/lookback.py [REQUESTS]

Ten thousand requests are recorded in sessions of fifty turns, in an SQLite file, with an agent of 200 items that
selects by words. Then the file is opened anew, every request is rebuilt, and its hash is compared with the recorded
one. All times are of one process and one after the other; the last column is in units of building one request.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from windowpane.agents.folder import FolderAgents
from windowpane.api.replay import WhatIf
from windowpane.context.ids import SessionId
from windowpane.context.items import reference_ref
from windowpane.engine import Engine
from windowpane.insight.compare import compare
from windowpane.insight.explain import explain, explain_all
from windowpane.insight.past import PastTurn, past_turn
from windowpane.insight.replay import rebuilt, rerun
from windowpane.models.provider import PydanticModels
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.search.index import ItemIndex
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.tools.functions import FunctionToolbox

TURNS = 50
ITEMS = 200
SAMPLES = 100
TOPICS = ("refund", "invoice", "photo", "paper", "shipping", "password", "account", "weather", "recipe", "contract")


def write_agent(folder: Path) -> None:
    """Write an agent whose items are told apart by their words."""
    (folder / "prompts").mkdir(parents=True)
    (folder / "rules").mkdir()
    (folder / "references").mkdir()
    (folder / "agent.yaml").write_text("model: echo\nsearch: {floor: 0.05}\n")
    (folder / "prompts" / "core.md").write_text("You answer questions about everything.")
    (folder / "rules" / "tone.md").write_text("---\ninclude: always\n---\nBe kind.")
    for number in range(ITEMS):
        topic = TOPICS[number % len(TOPICS)]
        text = f"All about {topic} number {number}. " + f"A {topic} takes {number} days. " * 30
        (folder / "references" / f"{topic}-{number}.md").write_text(f"---\ninclude: agent\n---\n{text}")


def engine_at(folder: Path) -> Engine:
    """Return an engine over the folder, as a fresh process would have it."""
    return Engine(
        store=SQLiteStore(folder / "windowpane.db"),
        agents=FolderAgents(folder / "agents"),
        models=PydanticModels(),
        toolbox=FunctionToolbox,
        selector=HybridSelector(ItemIndex(None)),
    )


async def fill(folder: Path, requests: int) -> tuple[list[SessionId], float]:
    """Record requests; return their sessions and how many milliseconds building one takes."""
    sessions: list[SessionId] = []
    spent: list[float] = []
    async with engine_at(folder) as engine:
        for _ in range(requests // TURNS):
            session = (await engine.sessions.create()).id
            sessions.append(session)
            for turn in range(TURNS):
                start = time.perf_counter()
                prepared = await engine.prepared.begin(
                    session, f"How many days does {TOPICS[turn % len(TOPICS)]} {turn} take?"
                )
                spent.append(time.perf_counter() - start)
                await engine.prepared.record(prepared, f"It takes {turn} days.")
    return sessions, 1000 * statistics.median(spent)


async def replay_all(folder: Path, sessions: list[SessionId]) -> tuple[int, float]:
    """Rebuild every request; return how many are the recorded ones to the byte, and the milliseconds for one."""
    identical = 0
    start = time.perf_counter()
    async with engine_at(folder) as engine:
        for session in sessions:
            for turn in range(1, TURNS + 1):
                past = await past_turn(engine, session, turn, with_catalog=False)
                identical += rebuilt(past).identical
    return identical, 1000 * (time.perf_counter() - start) / (len(sessions) * TURNS)


async def looked_back(folder: Path, session: SessionId, build_ms: float) -> None:
    """Print what each way of looking back costs, reading included."""
    async with engine_at(folder) as engine:

        async def turn(number: int) -> PastTurn:
            return await past_turn(engine, session, number)

        async def explained(number: int) -> None:
            explain(await turn(number), reference_ref("refund-0"))

        async def explained_all(number: int) -> None:
            explain_all(await turn(number))

        async def compared(number: int) -> None:
            other = await past_turn(engine, session, max(1, number - 1), with_catalog=False)
            compare(other, await past_turn(engine, session, number, with_catalog=False))

        async def other_settings(number: int) -> None:
            await rerun(engine, await turn(number), WhatIf(search={"floor": 0.01, "top_n": 9}))

        async def other_query(number: int) -> None:
            await rerun(engine, await turn(number), WhatIf(query=f"Which recipe has {number} steps?"))

        for name, work, samples in (
            ("explain one item", explained, SAMPLES),
            (f"explain all {ITEMS + 1} items", explained_all, SAMPLES // 10),
            ("compare two turns", compared, SAMPLES),
            ("select again, other settings", other_settings, SAMPLES),
            ("select again, other query", other_query, SAMPLES // 5),
        ):
            ms = await median_ms(work, samples)
            print(f"{name:<34} {ms:8.2f} ms  {ms / build_ms:6.2f}")


async def median_ms(work: Callable[[int], Awaitable[None]], samples: int) -> float:
    """Return the median time of a piece of work over several turns."""
    spent: list[float] = []
    for sample in range(samples):
        start = time.perf_counter()
        await work(1 + sample % TURNS)
        spent.append(time.perf_counter() - start)
    return 1000 * statistics.median(spent)


def stored_bytes(folder: Path) -> int:
    """Return how large the store has become."""
    return sum(file.stat().st_size for file in folder.glob("windowpane.db*"))


async def main() -> None:
    """Fill a store, open it anew, and print the table."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_agent(folder / "agents" / "desk")
        sessions, build_ms = await fill(folder, requests)
        count = len(sessions) * TURNS
        print(f"{count:,} requests recorded, {stored_bytes(folder) / count / 1000:.1f} kB each in the store")
        identical, replay_ms = await replay_all(folder, sessions)
        print(f"{identical:,} of {count:,} rebuilt byte for byte after opening the store anew\n")
        print(f"{'build and record a request':<34} {build_ms:8.2f} ms  {1:6.2f}")
        print(f"{'rebuild a request and check it':<34} {replay_ms:8.2f} ms  {replay_ms / build_ms:6.2f}")
        await looked_back(folder, sessions[0], build_ms)
        if identical != count:
            sys.exit("not every request was rebuilt")


if __name__ == "__main__":
    anyio.run(main)
