"""How long it takes to find words in many sessions: `python bench/finding.py [SESSIONS]`.

Every session has one message of about 400 characters, made of words of which few are frequent, as in a language.
"""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from windowpane.context.events import MessageAdded, SessionCreated
from windowpane.context.ids import new_session_id
from windowpane.insight.finding.finder import SessionFinder
from windowpane.insight.finding.query import read_query
from windowpane.stores.base import Store
from windowpane.stores.sqlite.store import SQLiteStore

WORDS = 20_000
AT_ONCE = 500


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


@asynccontextmanager
async def filled(file: Path, sessions: int) -> AsyncIterator[Store]:
    """Open a store with so many sessions."""
    chance = random.Random(1)
    async with SQLiteStore(file, "NORMAL") as store:

        async def begin(said: str) -> None:
            began = SessionCreated(agent="guide", owner="local", settings={}, items=())
            await store.append(new_session_id(), [began, MessageAdded(role="user", content=said)], expected_seq=0)

        for start in range(0, sessions, AT_ONCE):
            await asyncio.gather(*(begin(text(chance)) for _ in range(min(AT_ONCE, sessions - start))))
        yield store


async def main(sessions: int, file: Path) -> None:
    """Fill, index and ask."""
    async with filled(file, sessions) as store:
        finder = SessionFinder(store)
        began = time.process_time()
        while not await finder.update(within_s=60):
            pass
        print(
            f"indexed {sessions:,} sessions: {(time.process_time() - began) / sessions * 1000:.2f} ms of processor each"
        )
        for name, line in {
            "a frequent word": word(1),
            "a rare word": word(15_000),
            "three words": f"{word(1)} {word(2)} {word(40)}",
            "a word that is not there": "qqqqq",
            "a condition": "over:10k",
        }.items():
            times: list[float] = []
            for _ in range(20):
                before = time.perf_counter()
                page = await finder.find(read_query(line, owner="local"), limit=20)
                times.append((time.perf_counter() - before) * 1000)
            print(f"{name}: {len(page.found)} on the first page, {median(times):.1f} ms (median of 20)")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(count, Path(folder) / "sessions.db"))
