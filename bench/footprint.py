"""How much room conversations take in each store: real turns of an agent with 100 items, with everything recorded.

Each turn sends a different question, gets an answer of 400 characters, and is stored with its request context and every
text it was made of; the model is scripted, so there is no ledger of HTTP calls (`bench/call_storage.py` has that). One
session comes first and brings the agent's texts. Others follow until every partition has its first pages. What a
session takes is what each further one adds with its first turn, less what a further turn adds. PostgreSQL's tables are
written again before they are measured. Run it with
`.venv/bin/python bench/footprint.py [ITEMS]`.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import asyncpg  # noqa: E402

from stores.postgres_server import PostgresServer  # noqa: E402
from stores.redis_server import RedisServer  # noqa: E402
from windowpane.agents.init import init_agent  # noqa: E402
from windowpane.context.ids import SessionId  # noqa: E402
from windowpane.engine import Engine  # noqa: E402
from windowpane.models.provider import PydanticModels  # noqa: E402
from windowpane.models.scripted import Reply, ScriptedModel  # noqa: E402
from windowpane.settings import Settings  # noqa: E402
from windowpane.wiring import open_engine  # noqa: E402

ITEMS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
BEFORE, SESSIONS, TURNS = 64, 32, 10
QUESTIONS = (
    "How do I add a rule?",
    "And a reference?",
    "What does an include mode do?",
    "Why was my reference not selected for the last message?",
    "Write down that we meet on Tuesday.",
)
ANSWER = "You write it into a file of the agent's folder, and the next request has it. " * 5
Size = Callable[[], Awaitable[int]]


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        agent = directory / "agents" / "guide"
        init_agent(agent)
        for number in range(ITEMS):
            words = " ".join(f"word{(number * 37 + n * n) % 997}" for n in range(120))
            (agent / "references" / f"topic-{number}.md").write_text(
                f"---\ninclude: agent\ndescription: Topic {number}\n---\nTopic {number}: {words}.\n"
            )
        for part in ("postgres", "redis"):
            (directory / part).mkdir()
        postgres, redis = PostgresServer(directory / "postgres"), RedisServer(directory / "redis")
        postgres.start()
        redis.start()
        file = directory / "sessions.db"

        async def of_file() -> int:
            return file.stat().st_size

        async def of_memory() -> int:
            return redis.run("INFO", "memory")["used_memory"]

        print(f"{ITEMS} items, {SESSIONS} sessions of {TURNS} turns, {len(ANSWER)} characters an answer\n")
        print("| store | the first session | a further session | a turn |")
        print("|---|---|---|---|")
        try:
            await measure("SQLite, size of the file", directory, f"sqlite:///{file}", of_file)
            await measure(
                "PostgreSQL, tables and indexes", directory, postgres.place, lambda: of_tables(postgres.place)
            )
            await measure("Redis, memory", directory, f"{redis.place}/0", of_memory)
        finally:
            redis.stop()
            postgres.stop()


async def measure(name: str, directory: Path, url: str, size: Size) -> None:
    """Print what sessions take in one store."""
    models = PydanticModels(scripts=[ScriptedModel("bench", [Reply(ANSWER)] * ((BEFORE + SESSIONS * TURNS) * 4))])
    settings = Settings(data=directory, store_url=url)
    # The file of SQLite is whole when it is closed.
    async with open_engine(settings, models=models):
        pass
    empty = await size()
    async with open_engine(settings, models=models) as engine:
        await begin(engine, 0)
    one = await size()
    async with open_engine(settings, models=models) as engine:
        for number in range(1, BEFORE):
            await begin(engine, number)
    before = await size()
    async with open_engine(settings, models=models) as engine:
        sessions = [await begin(engine, number) for number in range(BEFORE, BEFORE + SESSIONS)]
    first = await size()
    async with open_engine(settings, models=models) as engine:
        for number, session in enumerate(sessions, BEFORE):
            for turn in range(1, TURNS):
                await say(engine, session, number, turn)
    last = await size()
    turn = (last - first) / SESSIONS / (TURNS - 1)
    session = (first - before) / SESSIONS - turn
    print(f"| {name} | {kib(one - empty - turn)} | {kib(session)} | {kib(turn)} |", flush=True)


async def begin(engine: Engine, number: int) -> SessionId:
    session = (await engine.sessions.create(settings={"model": "scripted:bench"})).id
    await say(engine, session, number, 0)
    return session


async def say(engine: Engine, session: SessionId, number: int, turn: int) -> None:
    async for _ in engine.turn(session, f"{QUESTIONS[turn % len(QUESTIONS)]} ({number}, {turn})", wait_s=60):
        pass


async def of_tables(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM FULL")
        return await connection.fetchval(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relnamespace = 'windowpane'::regnamespace AND relkind = 'r'"
        )
    finally:
        await connection.close()


def kib(size: float) -> str:
    return f"{size / 1024:,.1f} KiB"


if __name__ == "__main__":
    asyncio.run(main())
