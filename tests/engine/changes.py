"""Another process that changes the working context of a session: `python -m engine.changes FOLDER SESSION NAME`.

It says "ready", waits for a line, and then says of each change what it was and whether it was refused.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import anyio

from windowpane.context.ids import SessionId
from windowpane.context.sets import ChangeMode
from windowpane.serving.logs import configure_logging
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World

CHANGES = 60
OWN = 5
"""How many ports each process notes, in the one set that nobody replaces."""


async def change(folder: Path, session: SessionId, name: str) -> None:
    configure_logging("error")
    choose = random.Random(name)
    world = World(folder / "agents", store=SQLiteStore(folder / "windowpane.db"))
    async with world.engine() as engine:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await anyio.to_thread.run_sync(sys.stdin.readline)
        for number in range(CHANGES):
            own = number % (CHANGES // OWN) == 0
            set_name = "ports" if own else choose.choice(["files", "endpoints", "x", "y", "z", "w"])
            items = [f"{name}{number}"] if own else [f"/{choose.randrange(20)}" for _ in range(choose.randrange(11))]
            mode: ChangeMode = "merge" if own or choose.random() < 0.8 else "replace"
            made = await engine.working.set(session, set_name, items, mode)
            sys.stdout.write(json.dumps([set_name, items, mode, made.refused]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(change, Path(sys.argv[1]), SessionId(sys.argv[2]), sys.argv[3])
