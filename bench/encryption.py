"""What encryption costs: an append, reading a session again, and a whole turn, with a key against without.

Processor time of all threads, both measured in turns on the same disk: read the ratios. A turn has an agent with 100
rules and a model that answers at once. Run it with `.venv/bin/python bench/encryption.py`; the environment's TMPDIR
chooses the disk.
"""

import asyncio
import base64
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from windowpane.context.events import MessageAdded, SessionCreated
from windowpane.context.ids import SessionId, new_session_id
from windowpane.stores.base import Store
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.encrypted.store import EncryptedStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World

TEXT = "What about the invoices of last week? " * 11
MESSAGE = MessageAdded(role="user", content=TEXT)
APPENDS, EVENTS, READS, TURNS, ITEMS, ROUNDS = 200, 1_000, 10, 20, 100, 5

Measure = Callable[[Store, Path], Awaitable[float]]


async def begin(store: Store) -> SessionId:
    session = new_session_id()
    await store.append(session, [SessionCreated(agent="a", owner="o", settings={}, items=())], expected_seq=0)
    return session


async def append_ms(store: Store, directory: Path) -> float:
    """Return what an append of one message takes, where the log's end is expected, as in a turn."""
    async with store:
        session = await begin(store)
        start = time.process_time()
        for seq in range(1, APPENDS + 1):
            await store.append(session, [MESSAGE], expected_seq=seq)
        return (time.process_time() - start) / APPENDS * 1e3


async def read_ms(store: Store, directory: Path) -> float:
    """Return what reading a session of a thousand messages takes."""
    async with store:
        session = await begin(store)
        await store.append(session, [MESSAGE] * EVENTS, expected_seq=1)
        start = time.process_time()
        for _ in range(READS):
            await store.read(session)
        return (time.process_time() - start) / READS * 1e3


async def turn_ms(store: Store, directory: Path) -> float:
    """Return what a turn takes, the first one aside."""
    world = World(directory / "agents", store=store)
    for number in range(ITEMS):
        world.rule(f"rule-{number}", f"{number}. {TEXT}", include="always")
    world.says(*["An answer of some length. " * 20] * (TURNS + 1))
    async with world.pane() as pane:
        session = await pane.sessions.create()
        await pane.ask(session.id, TEXT)
        start = time.process_time()
        for _ in range(TURNS):
            await pane.ask(session.id, TEXT)
        return (time.process_time() - start) / TURNS * 1e3


async def compare(name: str, measure: Measure) -> None:
    keys = KeyRing.parse(base64.b64encode(os.urandom(32)).decode(), "encryption_key")
    plain: list[float] = []
    sealed: list[float] = []
    sizes: list[float] = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as directory:
            files = [Path(directory) / "plain.db", Path(directory) / "sealed.db"]
            plain.append(await measure(SQLiteStore(files[0], "NORMAL"), Path(directory)))
            sealed.append(await measure(EncryptedStore(SQLiteStore(files[1], "NORMAL"), keys), Path(directory)))
            sizes.append(files[1].stat().st_size / files[0].stat().st_size)
    ratio = median(with_key / without for with_key, without in zip(sealed, plain, strict=True))
    print(f"{name:28} {median(plain):9.3f} {median(sealed):9.3f} {ratio:7.2f} {median(sizes):7.2f}")


async def main() -> None:
    print(f"{'SQLite NORMAL, ms':28} {'plain':>9} {'sealed':>9} {'ratio':>7} {'file':>7}")
    await compare("append of a message", append_ms)
    await compare(f"read {EVENTS:,} messages", read_ms)
    await compare(f"turn with {ITEMS} rules", turn_ms)


if __name__ == "__main__":
    asyncio.run(main())
