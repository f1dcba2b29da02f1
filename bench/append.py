"""What an append costs: as a session grows, for one caller, for many, and from several processes.

Each figure stands beside a raw prototype on the same engine with the same durability, measured in the same run: one
INSERT of the same text per transaction, without events, keys, listeners or an event loop. On a shared machine read
the ratios. Run it with `.venv/bin/python bench/append.py [directory]`; the directory chooses the disk.
"""

import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from windowpane.context.events import MessageAdded, SessionCreated
from windowpane.context.ids import SessionId, new_session_id
from windowpane.stores.sqlite import SQLiteStore
from windowpane.stores.sqlite_file import Synchronous

TEXT = "What about the invoices of last week? " * 11
MESSAGE = MessageAdded(role="user", content=TEXT)
AT_MESSAGES = (100, 1_000, 10_000)
TIMES = 200
ROUNDS = 5
ONE_CALLER = 300
CALLERS, EACH = 64, 50
PROCESSES, APPENDS = 8, 100


def main(directory: str | None) -> None:
    durabilities: tuple[Synchronous, ...] = ("FULL", "NORMAL")
    for synchronous in durabilities:
        print(f"\nSQLite, synchronous={synchronous}, message of {len(TEXT)} characters")
        with tempfile.TemporaryDirectory(dir=directory) as name:
            asyncio.run(measure(Path(name), synchronous))


async def measure(directory: Path, synchronous: Synchronous) -> None:
    async with SQLiteStore(directory / "growth.db", synchronous) as store:
        at = await growth(store)
    table(
        ("one append", "µs", "ratio to message 100"),
        [
            (f"at message {number:,}", f"{cost * 1e6:,.0f}", f"{cost / at[0]:.2f}")
            for number, cost in zip(AT_MESSAGES, at, strict=True)
        ],
    )

    raw: list[float] = []
    alone: list[float] = []
    together: list[float] = []
    async with SQLiteStore(directory / "ours.db", synchronous) as store:
        with closing(raw_database(directory / "raw.db", synchronous)) as db:
            for _ in range(ROUNDS):
                raw.append(raw_appends(db))
                alone.append(await one_caller(store))
                together.append(await many_callers(store))
    raw_apart: list[float] = []
    ours_apart: list[float] = []
    survived = 0
    for n in range(ROUNDS):
        raw_apart.append((await in_processes(directory / f"raw{n}.db", synchronous, "raw"))[0])
        rate, survived = await in_processes(directory / f"ours{n}.db", synchronous, "ours")
        ours_apart.append(rate)
    table(
        (f"appends a second, median of {ROUNDS}", "ours", "raw", "ratio"),
        [
            ("one caller", *compared(alone, raw)),
            (f"{CALLERS} callers, one process (raw: one)", *compared(together, raw)),
            (f"{PROCESSES} processes × {APPENDS}, one session", *compared(ours_apart, raw_apart)),
            (f"survived of {PROCESSES * APPENDS}", str(survived), "", ""),
        ],
    )


def compared(ours: Sequence[float], raw: Sequence[float]) -> tuple[str, str, str]:
    return f"{median(ours):,.0f}", f"{median(raw):,.0f}", f"{median(ours) / median(raw):.2f}"


async def growth(store: SQLiteStore) -> list[float]:
    """Return the median seconds of one append to sessions of each size, in turns so that all meet the same noise."""
    sessions = [await begin(store) for _ in AT_MESSAGES]
    for session, size in zip(sessions, AT_MESSAGES, strict=True):
        fill = (store.append(session, [MESSAGE], key=f"fill {n}") for n in range(size - TIMES // 2))
        await asyncio.gather(*fill)
    costs: list[list[float]] = [[] for _ in AT_MESSAGES]
    for n in range(TIMES):
        for session, cost in zip(sessions, costs, strict=True):
            started = time.perf_counter()
            await store.append(session, [MESSAGE], key=f"{n}")
            cost.append(time.perf_counter() - started)
    return [median(cost) for cost in costs]


async def one_caller(store: SQLiteStore) -> float:
    session = await begin(store)
    started = time.perf_counter()
    for n in range(ONE_CALLER):
        await store.append(session, [MESSAGE], key=f"{n}")
    return ONE_CALLER / (time.perf_counter() - started)


async def many_callers(store: SQLiteStore) -> float:
    session = await begin(store)

    async def call(caller: int) -> None:
        for n in range(EACH):
            await store.append(session, [MESSAGE], key=f"{caller}:{n}")

    started = time.perf_counter()
    await asyncio.gather(*(call(caller) for caller in range(CALLERS)))
    return CALLERS * EACH / (time.perf_counter() - started)


async def begin(store: SQLiteStore) -> SessionId:
    session = new_session_id()
    await store.append(session, [SessionCreated(agent="a", owner="o", settings={}, items=())], expected_seq=0)
    return session


def raw_appends(db: sqlite3.Connection) -> float:
    started = time.perf_counter()
    for n in range(ONE_CALLER):
        raw_append(db, n)
    return ONE_CALLER / (time.perf_counter() - started)


def raw_database(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("CREATE TABLE IF NOT EXISTS message (seq INTEGER PRIMARY KEY, writer INTEGER, body TEXT)")
    return db


def raw_append(db: sqlite3.Connection, writer: int) -> None:
    db.execute("INSERT INTO message (writer, body) VALUES (?, ?)", (writer, TEXT))


async def in_processes(path: Path, synchronous: Synchronous, kind: str) -> tuple[float, int]:
    """Return the appends a second of all processes from a common start, and how many messages are there."""
    session = SessionId("none")
    if kind == "ours":
        async with SQLiteStore(path, synchronous) as store:
            session = await begin(store)
    else:
        raw_database(path, synchronous).close()
    command = [sys.executable, __file__, "--process", kind, str(path), synchronous, session]
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(*command, str(n), stdin=pipe, stdout=pipe) for n in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    started = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"done\n"
    rate = PROCESSES * APPENDS / (time.perf_counter() - started)
    for process in processes:
        await process.wait()
    if kind == "raw":
        with closing(raw_database(path, synchronous)) as db:
            return rate, db.execute("SELECT count(*) FROM message").fetchone()[0]
    async with SQLiteStore(path, synchronous) as store:
        return rate, len(await store.read(session, after=1))


async def process(kind: str, path: str, synchronous: Synchronous, session: str, writer: str) -> None:
    """Be one of the processes."""
    if kind == "raw":
        with closing(raw_database(Path(path), synchronous)) as db:
            await started_together()
            for _ in range(APPENDS):
                raw_append(db, int(writer))
            print("done", flush=True)
    else:
        async with SQLiteStore(path, synchronous) as store:
            await started_together()
            for n in range(APPENDS):
                await store.append(SessionId(session), [MESSAGE], key=f"{writer}:{n}")
            print("done", flush=True)


async def started_together() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    print()
    for first, *others in (head, *rows):
        numbers = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join((first.ljust(widths[0]), *numbers)).rstrip())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--process"]:
        _, _, kind, path, synchronous, session, writer = sys.argv
        asyncio.run(process(kind, path, "NORMAL" if synchronous == "NORMAL" else "FULL", session, writer))
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else None)
