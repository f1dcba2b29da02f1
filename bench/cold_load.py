"""What a worker pays that has never seen a session: to load it, to run a turn on it; and what it keeps in memory.

A session of 10,000 messages is loaded from SQLite by a worker that has just started, from the whole log and from the
latest snapshot, beside a session of 100 messages; then one turn runs on it, with a model that answers at once. Another
process touches 100,000 small sessions and shows how much memory it takes as it goes. Run it with
`.venv/bin/python bench/cold_load.py`.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from windowpane.agents.folder import FolderAgents
from windowpane.context.events import ModelReplied, SessionCreated, TurnFinished, TurnStarted
from windowpane.context.ids import SessionId, new_session_id
from windowpane.context.messages import Step
from windowpane.engine import Engine
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Reply, ScriptedModel
from windowpane.search.history import HistoryIndex
from windowpane.stores.base import Snapshot
from windowpane.stores.codec import encode_state
from windowpane.stores.sessions import Sessions
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.tools.functions import FunctionToolbox

MESSAGE = "What about the invoices of last week? " * 11
CREATED = SessionCreated(agent="pane", owner="o", settings={}, items=())
SIZES = (100, 10_000)
ROUNDS = 5
SESSIONS = 100_000
SHOWN = (1_000, 10_000, 25_000, 50_000, 100_000)
TIGHT = 512


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(loads(Path(name)))
        print(f"\nMemory of a worker that touches {SESSIONS:,} small sessions, one after another\n")
        subprocess.run([sys.executable, __file__, "--touch", name], check=True)


async def loads(directory: Path) -> None:
    agent = directory / "agents" / "pane" / "prompts"
    agent.mkdir(parents=True)
    (agent / "core.md").write_text("You are Pane.")
    (agent.parent / "agent.yaml").write_text("model: scripted:bench\n")
    print(f"| cold, median of {ROUNDS} | {' | '.join(f'{size:,} messages' for size in SIZES)} | ratio |")
    print("|---|---|---|---|")
    async with SQLiteStore(directory / "sessions.db") as store:
        sessions = [await talk(store, size) for size in SIZES]
        await row("load from the whole log", sessions, lambda session: load(store, session))
        for session in sessions:
            state = await Sessions(store).state(session)
            await store.put_snapshot(session, Snapshot(state.seq, encode_state(state)))
        await row("load from the snapshot", sessions, lambda session: load(store, session))
    path = directory / "sessions.db"
    await row("a whole turn, nothing recalled", sessions, lambda session: turn(directory, path, session, None))
    await row(
        "a whole turn, recalling by words from all of it",
        sessions,
        lambda session: turn(directory, path, session, HistoryIndex(None)),
    )


async def talk(store: SQLiteStore, messages: int) -> SessionId:
    session = new_session_id()
    await store.append(session, [CREATED], expected_seq=0)
    for start in range(1, messages // 2 + 1, TIGHT):
        await store.append(
            session,
            [
                event
                for number in range(start, min(start + TIGHT, messages // 2 + 1))
                for event in (
                    TurnStarted(turn=number, message=f"{number} {MESSAGE}", tokens=90),
                    ModelReplied(turn=number, step=Step(text=f"{number} {MESSAGE}"), tokens=90),
                    TurnFinished(turn=number, outcome="completed"),
                )
            ],
        )
    return session


async def row(name: str, sessions: list[SessionId], work: Callable[[SessionId], Awaitable[float]]) -> None:
    costs: list[list[float]] = [[] for _ in sessions]
    for _ in range(ROUNDS):
        for session, cost in zip(sessions, costs, strict=True):
            cost.append(await work(session))
    small, large = (median(cost) for cost in costs)
    print(f"| {name} | {small * 1e3:,.1f} ms | {large * 1e3:,.1f} ms | {large / small:.1f} |", flush=True)


async def load(store: SQLiteStore, session: SessionId) -> float:
    started = time.perf_counter()
    await Sessions(store).state(session)
    return time.perf_counter() - started


async def turn(directory: Path, path: Path, session: SessionId, history: HistoryIndex | None) -> float:
    engine = Engine(
        store=SQLiteStore(path),
        agents=FolderAgents(directory / "agents"),
        models=PydanticModels(scripts=[ScriptedModel("bench", [Reply("Fine.")] * 3)]),
        toolbox=FunctionToolbox,
        history=history,
    )
    async with engine:
        started = time.perf_counter()
        async for _ in engine.turn(session, "And the week before?"):
            pass
        return time.perf_counter() - started


async def touch(directory: Path) -> None:
    """Begin and load sessions one after another, with a state that has some messages in it."""
    async with SQLiteStore(directory / "many.db", "NORMAL") as store:
        sessions = Sessions(store)
        said = TurnStarted(turn=1, message=MESSAGE, tokens=90)
        replied = ModelReplied(turn=1, step=Step(text=MESSAGE), tokens=90)
        done = TurnFinished(turn=1, outcome="completed")
        at_start = resident_mib()
        print("| sessions touched | resident | since the start |")
        print("|---|---|---|")
        touched = 0
        for shown in SHOWN:
            while touched < shown:
                ids = [new_session_id() for _ in range(min(TIGHT, shown - touched))]
                events = [CREATED, said, replied, done]
                await asyncio.gather(*(store.append(session, events, expected_seq=0) for session in ids))
                await asyncio.gather(*(sessions.state(session) for session in ids))
                touched += len(ids)
            print(f"| {touched:,} | {resident_mib():,.0f} MiB | +{resident_mib() - at_start:,.0f} MiB |", flush=True)
    size = (directory / "many.db").stat().st_size
    print(f"\n{size / SESSIONS:,.0f} bytes of file for each session of 4 events, {len(MESSAGE)} characters a message")


def resident_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--touch"]:
        asyncio.run(touch(Path(sys.argv[2])))
    else:
        main()
