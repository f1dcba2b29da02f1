"""A process of its own that opens the library and says step by step what that took.

    fresh_process.py DATA

It prints a JSON object, one entry for each step: which of the model's libraries are loaded by then, whether there are
vectors, and the processor time of the step.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Any

from windowpane.context.ids import SessionId
from windowpane.context.items import reference_ref
from windowpane.engine import Engine
from windowpane.settings import Settings
from windowpane.wiring import open_engine

RUNTIME = ("onnx", "onnxruntime", "safetensors", "tokenizers", "torch")
AGAIN = 5


class Steps:
    """What each step took."""

    def __init__(self, data: Path) -> None:
        self.noted: dict[str, dict[str, Any]] = {}
        self._cache = data / "cache"

    async def take(self, name: str, does: Iterable[Awaitable[object]]) -> None:
        """Do something, once or several times, and note the least processor time that it took."""
        times: list[float] = []
        for awaited in does:
            began = time.process_time()
            await awaited
            times.append(time.process_time() - began)
        loaded = [library for library in RUNTIME if library in sys.modules]
        self.noted[name] = {"loaded": loaded, "cached": sorted(_names(self._cache)), "cpu_s": min(times)}


async def main(data: Path) -> dict[str, Any]:
    """Open an agent, talk to it, search, search again, add some items, add many more."""
    folder, steps = data / "agents" / "library", Steps(data)
    (folder / "prompts").mkdir(parents=True)
    (folder / "references").mkdir()
    (folder / "prompts" / "core.md").write_text("You are Pane.")
    (folder / "agent.yaml").write_text("model: echo\nsearch: {deadline_s: 60}\n")
    _write(folder, ["photos"], "Photos are printed at 300 dpi.")
    async with open_engine(Settings(data=data)) as engine:
        session = (await engine.sessions.create()).id
        await steps.take("talk", [_talk(engine)])
        await steps.take("first search", [_first(engine, session)])
        await steps.take("search 1", (engine.preview(session, f"Photos, {number}?") for number in range(AGAIN)))
        for count in (10, 100):
            names = [f"of-{count}-{number}" for number in range(count)]
            _write(folder, names, "{} is about the subject {} and nothing else.")
            await steps.take(f"index {count}", [engine.preview(session, f"What is of {count}?")])
        await steps.take("search 111", (engine.preview(session, f"What is {number}?") for number in range(AGAIN)))
    return steps.noted


async def _talk(engine: Engine) -> None:
    session = await engine.sessions.create(settings={"search": {"enabled": False}})
    async for _ in engine.turn(session.id, "Hello"):
        pass


async def _first(engine: Engine, session: SessionId) -> None:
    await engine.agent_items.search("library", "photos", [reference_ref("photos")])
    # That search does not wait for the model. This one does.
    await engine.preview(session, "How are photos printed?")


def _write(folder: Path, names: Iterable[str], text: str) -> None:
    for name in names:
        said = text.format(name, name[::-1])
        (folder / "references" / f"{name}.md").write_text(f"---\ninclude: agent\n---\n{said}")


def _names(folder: Path) -> Iterable[str]:
    return (file.parent.name for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
