"""How much room conversations take in each store: real turns of the example agent, with everything that is recorded.

Each turn sends a different question, gets an answer of 400 characters, and is stored with its request context and every
text it was made of. Run it with `.venv/bin/python bench/footprint.py`.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import asyncpg  # noqa: E402

from stores.postgres_server import PostgresServer  # noqa: E402
from stores.redis_server import RedisServer  # noqa: E402
from windowpane.agents.init import init_agent  # noqa: E402
from windowpane.models.provider import PydanticModels  # noqa: E402
from windowpane.models.scripted import Reply, ScriptedModel  # noqa: E402
from windowpane.settings import Settings  # noqa: E402
from windowpane.wiring import open_engine  # noqa: E402

SESSIONS, TURNS = 20, 10
QUESTIONS = (
    "How do I add a rule?",
    "And a reference?",
    "What does an include mode do?",
    "Why was my reference not selected for the last message?",
    "Write down that we meet on Tuesday.",
)
ANSWER = "You write it into a file of the agent's folder, and the next request has it. " * 5


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        init_agent(directory / "agents" / "guide")
        for part in ("postgres", "redis"):
            (directory / part).mkdir()
        postgres, redis = PostgresServer(directory / "postgres"), RedisServer(directory / "redis")
        postgres.start()
        redis.start()
        print(f"{SESSIONS} sessions of {TURNS} turns, {len(ANSWER)} characters an answer\n")
        print("| store | a session | a turn | log and keys | texts of requests | the rest |")
        print("|---|---|---|---|---|---|")
        try:
            await talk(directory, f"sqlite:///{directory}/sessions.db")
            show("SQLite, size of the file", (directory / "sessions.db").stat().st_size)
            await talk(directory, postgres.place)
            await show_postgres(postgres.place)
            before = redis.run("INFO", "memory")["used_memory"]
            await talk(directory, f"{redis.place}/0")
            show("Redis, memory", redis.run("INFO", "memory")["used_memory"] - before)
        finally:
            redis.stop()
            postgres.stop()


async def talk(directory: Path, url: str) -> None:
    replies = [Reply(ANSWER)] * (SESSIONS * TURNS * 2)
    models = PydanticModels(scripts=[ScriptedModel("bench", replies)])
    async with open_engine(Settings(data=directory, store_url=url), models=models) as engine:
        for number in range(SESSIONS):
            session = (await engine.sessions.create(settings={"model": "scripted:bench"})).id
            for turn in range(TURNS):
                question = f"{QUESTIONS[turn % len(QUESTIONS)]} ({number}, {turn})"
                async for _ in engine.turn(session, question, wait_s=60):
                    pass


async def show_postgres(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("VACUUM")
    sizes = {
        row["name"]: row["bytes"]
        for row in await connection.fetch(
            "SELECT relname AS name, pg_total_relation_size(oid) AS bytes FROM pg_class "
            "WHERE relnamespace = 'windowpane'::regnamespace AND relkind = 'r'"
        )
    }
    await connection.close()
    log, texts = sizes["event"] + sizes.get("append_key", 0), sizes["blob"]
    show("PostgreSQL, tables and indexes", sum(sizes.values()), log, texts)


def show(name: str, size: int, log: int | None = None, texts: int | None = None) -> None:
    parts = ("–", "–", "–") if log is None or texts is None else (kib(log), kib(texts), kib(size - log - texts))
    print(f"| {name} | {kib(size)} | {size / SESSIONS / TURNS / 1024:,.1f} KiB | {' | '.join(parts)} |", flush=True)


def kib(size: int) -> str:
    return f"{size / SESSIONS / 1024:,.0f} KiB"


if __name__ == "__main__":
    asyncio.run(main())
