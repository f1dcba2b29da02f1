"""How long it takes to find words in many sessions: `.venv/bin/python bench/finding.py [SESSIONS]`.

Every session has one message of about 400 characters, made of words of which few are frequent, as in a language. It is
done with SQLite, and with PostgreSQL where that is installed.
"""

import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from stores.postgres_server import PostgresServer  # noqa: E402
from windowpane.context.events import MessageAdded, SessionCreated  # noqa: E402
from windowpane.context.ids import new_session_id  # noqa: E402
from windowpane.insight.finding.finder import SessionFinder  # noqa: E402
from windowpane.insight.finding.query import read_query  # noqa: E402
from windowpane.stores.base import Store  # noqa: E402
from windowpane.stores.postgres.store import PostgresStore  # noqa: E402
from windowpane.stores.sqlite.store import SQLiteStore  # noqa: E402

WORDS = 20_000
AT_ONCE = 2_000


def word(number: int) -> str:
    """Return a word of its own for a number."""
    letters = "bcdfglmnprst"
    vowels = "aeiou"
    made = ""
    while number or len(made) < 6:
        number, letter = divmod(number, len(letters))
        number, vowel = divmod(number, len(vowels))
        made += letters[letter] + vowels[vowel]
    return made


def text(chance: random.Random) -> str:
    """Return about 400 characters."""
    return " ".join(word(min(int(chance.paretovariate(0.6)), WORDS)) for _ in range(60))


async def fill(store: Store, sessions: int) -> None:
    """Begin so many sessions, many at once: what waits is written together."""
    chance = random.Random(1)

    async def begin(said: str) -> None:
        began = SessionCreated(agent="guide", owner="local", settings={}, items=())
        await store.append(new_session_id(), [began, MessageAdded(role="user", content=said)], expected_seq=0)

    for start in range(0, sessions, AT_ONCE):
        await asyncio.gather(*(begin(text(chance)) for _ in range(min(AT_ONCE, sessions - start))))


async def measure(name: str, store: Store, sessions: int) -> None:
    """Fill, index and ask."""
    began = time.perf_counter()
    await fill(store, sessions)
    print(f"{name}: {sessions:,} sessions written in {time.perf_counter() - began:.0f} s", flush=True)
    finder = SessionFinder(store)
    began, worked = time.perf_counter(), time.process_time()
    while not await finder.update(within_s=60):
        pass
    each = (time.process_time() - worked) / sessions * 1000
    print(f"  indexed in {time.perf_counter() - began:.0f} s, {each:.2f} ms of processor each", flush=True)
    # As on a server that goes on: what was touched in the last minutes is looked at again, and that is little.
    await fill(store, 1)
    await finder.update(within_s=60)
    for asked, line in {
        "a frequent word": word(1),
        "a rare word": word(15_000),
        "three words": f"{word(1)} {word(2)} {word(40)}",
        "a word that is not there": "qqqqq",
        "a word of another agent": f"{word(1)} agent:nobody",
        "a condition": "over:10k",
    }.items():
        times: list[float] = []
        found = 0
        for _ in range(20):
            before = time.perf_counter()
            found = len((await finder.find(read_query(line, owner="local"), limit=20)).found)
            times.append((time.perf_counter() - before) * 1000)
        times.sort()
        print(f"  {asked}: {found} on the first page, {median(times):.1f} ms, at best {times[0]:.1f} ms", flush=True)
    started = time.perf_counter()
    await SessionFinder(store).find(read_query(word(1), owner="local"), limit=20)
    print(f"  first search of a new process: {(time.perf_counter() - started) * 1000:.0f} ms", flush=True)


async def main(sessions: int, folder: Path) -> None:
    """Measure each store that there is."""
    async with SQLiteStore(folder / "sessions.db", "NORMAL") as store:
        await measure("SQLite", store, sessions)
    if shutil.which("postgres") is None:
        print("PostgreSQL is not installed")
        return
    (folder / "postgres").mkdir()
    server = PostgresServer(folder / "postgres")
    server.start()
    try:
        async with PostgresStore(server.place) as store:
            await measure("PostgreSQL", store, sessions)
    finally:
        server.stop()


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(count, Path(name)))
