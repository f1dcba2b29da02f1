"""What one worker embedded of a session's past, no other one embeds again: it is kept with the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import numpy as np
import pytest

from patience import PATIENCE_S
from stores.kinds import KINDS
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.search.embedding.base import Vectors
from windowpane.search.history import HistoryIndex
from windowpane.stores.base import Store
from windowpane.testing import World, drain

WINDOW = "model: scripted:test\nworking_context: false\nfinders: false\nmemory: {messages: 8}\n"
SHARED = {kind.name: kind for kind in KINDS if kind.name in {"sqlite", "postgres", "redis", "postgres-encrypted"}}
BEHIND = 8
"""From this turn on something lies behind."""

LONG = "The chapter on this was changed in spring, and exceptions are made each month. " * 5


class Remembering:
    """Gives every text the same meaning, and remembers which it was given."""

    model, language = "remembering", None

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def vocabulary(self) -> dict[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.array([[1.0, 0.0]] * len(texts), np.float32)


@asynccontextmanager
async def worker(root: Path, store: Store, embedder: Remembering, answer: str) -> AsyncGenerator[Engine]:
    world = World(root / "agents", store)
    world.write("agent.yaml", WINDOW)
    world.says(*[answer.format(f"{id(embedder)}-{number}") for number in range(13)])
    async with world.engine(history=HistoryIndex(embedder)) as engine:
        yield engine


def question(number: int) -> str:
    return f"Let us talk about paint, shade {number}."


async def ask(engine: Engine, session_id: SessionId, number: int, settled: int) -> tuple[str, ...]:
    """Have a turn, wait until so many messages have vectors, and return what was amiss in the turn."""
    await drain(engine.turn(session_id, question(number)))
    with anyio.fail_after(PATIENCE_S):
        kept: dict[int, bytes] = {}
        while len(kept) < settled:
            kept = await engine.store.vectors(session_id)
            await anyio.sleep(0.01)
    return (await engine.past.context(session_id, number + 1)).degraded


@pytest.mark.parametrize("long", [False, True], ids=["short answers", "long answers"])
@pytest.mark.parametrize("store", sorted(SHARED))
async def test_workers_that_take_turns_and_one_that_is_started_later_embed_every_message_once(
    tmp_path: Path, store: str, long: bool
) -> None:
    kind = SHARED[store]
    place = kind.fresh(tmp_path)
    answer = f"Number {{}}. {LONG if long else ''}"
    first, second, third = embedders = [Remembering(), Remembering(), Remembering()]
    degraded: list[tuple[str, ...]] = []

    def settled(turns: int) -> int:
        # A short answer waits for the message after it.
        return 2 * turns - (not long) if turns >= BEHIND else 0

    async with (
        worker(tmp_path, kind.open(place), first, answer) as here,
        worker(tmp_path, kind.open(place), second, answer) as there,
    ):
        session_id = (await here.sessions.create()).id
        for number in range(12):
            engine = there if number in (9, 11) else here
            degraded.append(await ask(engine, session_id, number, settled(number + 1)))
    async with worker(tmp_path, kind.open(place), third, answer) as later:
        degraded.append(await ask(later, session_id, 12, settled(13)))

    embedded = Counter(text for embedder in embedders for text in embedder.texts)
    assert {text: times for text, times in embedded.items() if times > 1} == {}
    # Each turn with something behind it embeds its question by itself, and the two messages that it settles. Behind the
    # eighth turn there is something only if the summary, which is not waited for, was made before it.
    first.texts = [text for text in first.texts if text != question(BEHIND - 1)]
    assert [len(embedder.texts) for embedder in embedders] == [1 + settled(9) + 3, 3 + 3, 3]
    assert degraded[BEHIND:] == [()] * (13 - BEHIND)
