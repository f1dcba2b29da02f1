"""What an append costs: as a session grows, for one caller, for many, and from several processes.

Each figure stands beside a raw prototype on the same engine with the same durability, measured in the same run: the
same text in one INSERT per transaction, or in one script call, without events, keys, listeners or an event loop. On a
shared machine read the ratios. Run it with `.venv/bin/python bench/append.py [sqlite] [redis]`; the environment's
TMPDIR chooses the disk.
"""

import asyncio
import sqlite3
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Literal, cast

from windowpane.context.events import MessageAdded, SessionCreated
from windowpane.context.ids import SessionId, new_session_id
from windowpane.stores.base import Store
from windowpane.stores.sqlite.file import Synchronous
from windowpane.stores.sqlite.store import SQLiteStore

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from stores.redis_server import RedisServer

TEXT = "What about the invoices of last week? " * 11
MESSAGE = MessageAdded(role="user", content=TEXT)
AT_MESSAGES = (100, 1_000, 10_000)
TIMES = 200
ROUNDS, ROUNDS_APART = 5, 3
ONE_CALLER = 300
CALLERS, EACH = 64, 50
PROCESSES, APPENDS = 8, 100

Engine = Literal["sqlite", "redis"]


class Raw(ABC):
    """The least that could be called an append, on some engine."""

    at_once = 1
    """How many go out together where many callers wait."""

    @abstractmethod
    def append(self, writer: int, times: int = 1) -> None: ...

    @abstractmethod
    def count(self) -> int: ...

    @abstractmethod
    def close(self) -> None: ...


class RawSQLite(Raw):
    def __init__(self, place: str) -> None:
        path, _, synchronous = place.partition("?synchronous=")
        self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {synchronous}")
        self._db.execute("CREATE TABLE IF NOT EXISTS message (seq INTEGER PRIMARY KEY, writer INTEGER, body TEXT)")

    def append(self, writer: int, times: int = 1) -> None:
        for _ in range(times):
            self._db.execute("INSERT INTO message (writer, body) VALUES (?, ?)", (writer, TEXT))

    def count(self) -> int:
        return self._db.execute("SELECT count(*) FROM message").fetchone()[0]

    def close(self) -> None:
        self._db.close()


class RawRedis(Raw):
    at_once = CALLERS
    SCRIPT = """
        local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
        redis.call('XADD', KEYS[2], seq .. '-0', 'writer', ARGV[1], 'body', ARGV[2])
        return seq
    """

    def __init__(self, place: str) -> None:
        # Not for those processes that have no use for it: it takes long to load.
        import redis

        self._client = cast("Any", redis).Redis.from_url(place)
        self._sha = self._client.script_load(self.SCRIPT)

    def append(self, writer: int, times: int = 1) -> None:
        if times == 1:
            self._client.evalsha(self._sha, 2, "row", "log", writer, TEXT)
            return
        pipeline = self._client.pipeline(transaction=False)
        for _ in range(times):
            pipeline.evalsha(self._sha, 2, "row", "log", writer, TEXT)
        pipeline.execute()

    def count(self) -> int:
        return self._client.xlen("log")

    def close(self) -> None:
        self._client.close()


def open_sqlite(place: str) -> Store:
    path, _, synchronous = place.partition("?synchronous=")
    return SQLiteStore(path, cast("Synchronous", synchronous))


def open_redis(place: str) -> Store:
    from windowpane.stores.redis.store import RedisStore

    return RedisStore(place)


STORES: dict[Engine, tuple[Callable[[str], Store], Callable[[str], Raw]]] = {
    "sqlite": (open_sqlite, RawSQLite),
    "redis": (open_redis, RawRedis),
}
DURABILITIES: tuple[tuple[Engine, str], ...] = (
    ("sqlite", "FULL"),
    ("sqlite", "NORMAL"),
    ("redis", "always"),
    ("redis", "everysec"),
)


def main(wanted: list[str]) -> None:
    for engine, durability in DURABILITIES:
        if not wanted or engine in wanted:
            print(f"\n{engine}, {durability}, message of {len(TEXT)} characters")
            with tempfile.TemporaryDirectory() as name, places(engine, durability, Path(name)) as fresh:
                asyncio.run(measure(engine, fresh))


@contextmanager
def places(engine: Engine, durability: str, directory: Path) -> Generator[Callable[[], str]]:
    """Give a function that names a fresh place on an engine."""
    made = iter(range(16))
    if engine == "sqlite":
        yield lambda: f"{directory}/{next(made)}.db?synchronous={durability}"
        return
    server = RedisServer(directory, durability=durability)
    try:
        server.start()
        yield lambda: f"{server.place}/{next(made)}"
    finally:
        server.stop()


async def measure(engine: Engine, fresh: Callable[[], str]) -> None:
    ours, raw = STORES[engine]
    async with ours(fresh()) as store:
        at = await growth(store)
    table(
        ("one append", "µs", "ratio to message 100"),
        [
            (f"at message {number:,}", f"{cost * 1e6:,.0f}", f"{cost / at[0]:.2f}")
            for number, cost in zip(AT_MESSAGES, at, strict=True)
        ],
    )

    raw_alone: list[float] = []
    raw_together: list[float] = []
    alone: list[float] = []
    together: list[float] = []
    async with ours(fresh()) as store:
        with closing(raw(fresh())) as prototype:
            at_once = prototype.at_once
            for _ in range(ROUNDS):
                raw_alone.append(raw_appends(prototype, 1))
                alone.append(await one_caller(store))
                raw_together.append(raw_appends(prototype, prototype.at_once))
                together.append(await many_callers(store))
    raw_apart: list[float] = []
    ours_apart: list[float] = []
    survived = 0
    for _ in range(ROUNDS_APART):
        raw_apart.append((await in_processes(engine, fresh(), "raw"))[0])
        rate, survived = await in_processes(engine, fresh(), "ours")
        ours_apart.append(rate)
    table(
        ("appends a second, median", "ours", "raw", "ratio"),
        [
            ("one caller", *compared(alone, raw_alone)),
            (f"{CALLERS} callers, one process (raw: {at_once} at once)", *compared(together, raw_together)),
            (f"{PROCESSES} processes × {APPENDS}, one session", *compared(ours_apart, raw_apart)),
            (f"survived of {PROCESSES * APPENDS}", str(survived), "", ""),
        ],
    )


def compared(ours: Sequence[float], raw: Sequence[float]) -> tuple[str, str, str]:
    return f"{median(ours):,.0f}", f"{median(raw):,.0f}", f"{median(ours) / median(raw):.2f}"


async def growth(store: Store) -> list[float]:
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


async def one_caller(store: Store) -> float:
    session = await begin(store)
    started = time.perf_counter()
    for n in range(ONE_CALLER):
        await store.append(session, [MESSAGE], key=f"{n}")
    return ONE_CALLER / (time.perf_counter() - started)


async def many_callers(store: Store) -> float:
    session = await begin(store)

    async def call(caller: int) -> None:
        for n in range(EACH):
            await store.append(session, [MESSAGE], key=f"{caller}:{n}")

    started = time.perf_counter()
    await asyncio.gather(*(call(caller) for caller in range(CALLERS)))
    return CALLERS * EACH / (time.perf_counter() - started)


async def begin(store: Store) -> SessionId:
    session = new_session_id()
    await store.append(session, [SessionCreated(agent="a", owner="o", settings={}, items=())], expected_seq=0)
    return session


def raw_appends(prototype: Raw, at_once: int) -> float:
    rounds = ONE_CALLER if at_once == 1 else EACH
    started = time.perf_counter()
    for n in range(rounds):
        prototype.append(n, at_once)
    return rounds * at_once / (time.perf_counter() - started)


async def in_processes(engine: Engine, place: str, kind: Literal["ours", "raw"]) -> tuple[float, int]:
    """Return the appends a second of all processes from a common start, and how many messages are there."""
    ours, raw = STORES[engine]
    session = SessionId("none")
    if kind == "ours":
        async with ours(place) as store:
            session = await begin(store)
    else:
        raw(place).close()
    command = [sys.executable, __file__, "--process", engine, kind, place, session]
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
        with closing(raw(place)) as prototype:
            return rate, prototype.count()
    async with ours(place) as store:
        return rate, len(await store.read(session, after=1))


async def process(engine: Engine, kind: str, place: str, session: str, writer: str) -> None:
    """Be one of the processes."""
    ours, raw = STORES[engine]
    if kind == "raw":
        with closing(raw(place)) as prototype:
            await started_together()
            for _ in range(APPENDS):
                prototype.append(int(writer))
            print("done", flush=True)
    else:
        async with ours(place) as store:
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
        asyncio.run(process(cast("Engine", sys.argv[2]), *sys.argv[3:]))
    else:
        main(sys.argv[1:])
