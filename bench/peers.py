"""Our stores beside what people keep conversations in today: the same work, in one run, on the same servers.

Ours and each of the others take turns on the same engine (SQLite file, PostgreSQL, Redis), a few times each, so that
both meet the same noise; of what one caller pays the first quartile is shown, of what many do at once the best round.
Read the ratios. The others live in an environment of their own, which `make bench` builds from
`requirements-peers.lock`. Run it with `.venv/bin/python bench/peers.py [name …]`; a name chooses those that contain it.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from stores.postgres_server import PostgresServer  # noqa: E402
from stores.redis_server import RedisServer  # noqa: E402

WORKER = Path(__file__).with_name("peers") / "worker.py"
PEERS = ROOT / ".venv" / "peers" / "bin" / "python"
ROUNDS = 4

Engine = Literal["sqlite", "postgres", "redis"]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another store: its name, the worker's name for it, the engine it uses, how it writes a place on that engine.

    The targets are how many times as fast ours is to be: one append, one append at message 5,000, 64 callers, 8
    processes, and reading the last messages.
    """

    name: str
    store: str
    engine: Engine
    place: Callable[[str], str]
    append: float = 1.0
    long: float = 1.0
    many: float = 1.0
    contended: float = 1.0
    tail: float = 1.0


def sqlalchemy(place: str) -> str:
    scheme, _, rest = place.partition("://")
    return f"{'sqlite+aiosqlite' if scheme == 'sqlite' else 'postgresql+asyncpg'}://{rest}"


def path(place: str) -> str:
    return place.removeprefix("sqlite:///")


def same(place: str) -> str:
    return place


ALL = (
    Peer("Django file cache", "django", "sqlite", lambda place: f"file:{path(place)}", append=20, long=200),
    Peer("OpenAI Agents SQLite", "openai-sqlite", "sqlite", path, append=1.2, many=15, tail=6),
    Peer("OpenAI Agents SQLAlchemy, SQLite", "openai-sqlalchemy", "sqlite", sqlalchemy),
    Peer("LangGraph SQLite", "langgraph", "sqlite", path, append=25, long=200),
    Peer("ADK SQLite", "adk", "sqlite", sqlalchemy, append=15),
    Peer("Django Redis cache", "django", "redis", same, append=5, long=40),
    Peer("OpenAI Agents Redis", "openai-redis", "redis", same, append=3.5, many=20, contended=10),
    Peer("OpenAI Agents SQLAlchemy, PostgreSQL", "openai-sqlalchemy", "postgres", sqlalchemy, append=5, many=30),
    Peer("LangGraph PostgreSQL", "langgraph", "postgres", same, append=30, long=300),
    Peer("ADK PostgreSQL", "adk", "postgres", sqlalchemy, append=10),
)


@dataclass(slots=True)
class Measured:
    """What one store took. `append` and `tail` are seconds of each operation, `long` those by length."""

    append: list[float] = field(default_factory=list[float])
    tail: list[float] = field(default_factory=list[float])
    long: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    many: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    contended: list[dict[str, float]] = field(default_factory=list[dict[str, float]])

    @property
    def append_rate(self) -> float:
        return 1 / quartile(self.append)

    @property
    def many_rate(self) -> float:
        return max(round_["rate"] for round_ in self.many)

    @property
    def contended_rate(self) -> float:
        return max(round_["rate"] for round_ in self.contended)

    def at(self, length: str) -> float | None:
        return quartile(self.long[length]) if length in self.long else None

    @property
    def growth(self) -> tuple[float, int]:
        first, *_, last = self.long
        return quartile(self.long[last]) / quartile(self.long[first]), int(last)


def quartile(costs: list[float]) -> float:
    return sorted(costs)[len(costs) // 4]


class Worker:
    """A process that has one store."""

    def __init__(self, python: Path, store: str, place: str) -> None:
        quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            [python, WORKER, store, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | quiet,
        )
        self.measured = Measured()

    def ask(self, command: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def take_turn(self) -> None:
        self.measured.append += self.ask("append")
        for length, cost in self.ask("long").items():
            self.measured.long.setdefault(length, []).append(cost)
        self.measured.tail += self.ask("tail")
        self.measured.many.append(self.ask("many"))

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def main(wanted: list[str]) -> None:
    if not PEERS.exists():
        sys.exit("the other stores are not installed; `make bench` installs them, or `make .venv/peers/installed`")
    print("| beside | append/s, one caller | at message 5,000, µs | 64 callers, /s (lost) | 8 processes, /s | lost |")
    print("|---|---|---|---|---|---|")
    measured: list[tuple[Peer, Measured, Measured]] = []
    with tempfile.TemporaryDirectory() as name, servers(Path(name)) as fresh:
        for peer in ALL:
            if wanted and not any(part.lower() in peer.name.lower() for part in wanted):
                continue
            ours, theirs = compare(peer, fresh)
            show(f"ours, {peer.engine}", ours)
            show(f"**{peer.name}**", theirs)
            measured.append((peer, ours, theirs))
    ratios(measured)


def compare(peer: Peer, fresh: Callable[[Engine], str]) -> tuple[Measured, Measured]:
    """Let ours and another store take turns."""
    ours = Worker(Path(sys.executable), "windowpane", fresh(peer.engine))
    theirs = Worker(PEERS, peer.store, peer.place(fresh(peer.engine)))
    try:
        for worker in (ours, theirs, ours):
            worker.measured.contended.append(worker.ask("contended"))
        for worker in (ours, theirs):
            worker.ask("open")
        for _ in range(ROUNDS):
            for worker in (ours, theirs):
                worker.take_turn()
    finally:
        ours.end()
        theirs.end()
    return ours.measured, theirs.measured


@contextmanager
def servers(directory: Path) -> Generator[Callable[[Engine], str]]:
    """Start the servers, and give a function that names a fresh place on an engine."""
    (directory / "postgres").mkdir()
    (directory / "redis").mkdir()
    postgres, redis = PostgresServer(directory / "postgres", durable=True), RedisServer(directory / "redis")
    postgres.start()
    redis.start()
    made = 0

    def fresh(engine: Engine) -> str:
        nonlocal made
        made += 1
        if engine == "sqlite":
            return f"sqlite:///{directory}/{made}.db"
        if engine == "redis":
            return f"{redis.place}/{made % 16}"
        created = f"import asyncio, asyncpg, sys\n{CREATE}"
        subprocess.run([sys.executable, "-c", created, postgres.place, f"bench{made}"], check=True)
        return postgres.place.rpartition("/")[0] + f"/bench{made}"

    try:
        yield fresh
    finally:
        redis.stop()
        postgres.stop()


CREATE = """
async def main(url, name):
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()

asyncio.run(main(*sys.argv[1:]))
"""


def show(name: str, of: Measured) -> None:
    contended = max(of.contended, key=lambda round_: round_["rate"])
    refused = f", {contended['refused']} refused" if contended["refused"] else ""
    many_lost = sum(round_["lost"] for round_ in of.many)
    at_5000 = of.at("5000")
    cells = (
        f"{of.append_rate:,.0f}",
        "–" if at_5000 is None else f"{at_5000 * 1e6:,.0f}",
        f"{of.many_rate:,.0f}" + (f" ({many_lost:,})" if many_lost else ""),
        f"{of.contended_rate:,.0f}",
        f"{contended['lost']} of {contended['acknowledged']}{refused}",
    )
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def ratios(measured: list[tuple[Peer, Measured, Measured]]) -> None:
    print("\nHow many times as fast ours is (target)\n")
    print("| than | append | at 5,000 | 64 callers | 8 processes | last 20 messages | growth, theirs · ours |")
    print("|---|---|---|---|---|---|---|")
    for peer, ours, theirs in measured:
        our_cost, their_cost = ours.at("5000"), theirs.at("5000")
        cells = (
            times(ours.append_rate / theirs.append_rate, peer.append),
            times(their_cost / our_cost, peer.long) if our_cost and their_cost else "–",
            times(ours.many_rate / theirs.many_rate, peer.many),
            times(ours.contended_rate / theirs.contended_rate, peer.contended),
            times(quartile(theirs.tail) / quartile(ours.tail), peer.tail),
            " · ".join(f"{grown:.1f} × to {length:,}" for grown, length in (theirs.growth, ours.growth)),
        )
        print(f"| {peer.name} | {' | '.join(cells)} |")


def times(ratio: float, target: float) -> str:
    return f"{ratio:.1f} × ({target:g})" + ("" if ratio >= target else " ✗")


if __name__ == "__main__":
    main(sys.argv[1:])
