"""Requests are built beside the loop that serves: it goes on meanwhile, and what is its own stays on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread
import numpy as np

from patience import PATIENCE_S
from windowpane.context.events import MessageAdded, TurnFinished
from windowpane.context.ids import SessionId
from windowpane.context.items import Item
from windowpane.context.messages import Message, UserMessage
from windowpane.errors import WindowpaneError
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.request.selector import FixedSelector, Selection
from windowpane.search.embedding.base import Vectors
from windowpane.search.index import ItemIndex
from windowpane.testing import World, drain


class BusyEmbedder:
    """Lets nothing else run on its loop, as work in Python does, until it is told to go on."""

    model = "busy"
    language = None

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.waited = True

    async def vocabulary(self) -> dict[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.begun.set()
        self.waited = self.waited and self.go_on.wait(PATIENCE_S)
        return np.ones((len(texts), 1), np.float32)


async def test_other_sessions_are_served_while_a_request_is_built(world: World) -> None:
    embedder = BusyEmbedder()
    world.selector = HybridSelector(ItemIndex(embedder))
    world.rule("tone", "Be kind.", include="agent")
    world.says("Answered.", "Answered.")
    async with world.engine() as engine:
        first, second = await engine.sessions.create(), await engine.sessions.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, engine.turn(first.id, "What is your tone?"))
            await anyio.to_thread.run_sync(embedder.begun.wait, PATIENCE_S)
            await engine.conversations.add(second.id, MessageAdded(role="user", content="Meanwhile."))
            embedder.go_on.set()
        recent = (await engine.sessions.get(second.id)).recent
        said = [message.content for message in recent if isinstance(message, UserMessage)]

    assert said == ["Meanwhile."]
    assert embedder.waited


class OwnSelector(FixedSelector):
    """A selector of the caller's own. It notes on which loop it is used."""

    def __init__(self) -> None:
        super().__init__({"Hi": {"rule:tone": 0.9}})
        self.loops: list[object] = []

    async def __aenter__(self) -> Self:
        self.loops.append(asyncio.get_running_loop())
        return self

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        self.loops.append(asyncio.get_running_loop())
        return await super().select(message, recent, candidates, settings)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loops.append(asyncio.get_running_loop())


async def test_a_selector_of_the_callers_own_is_used_on_the_callers_loop(world: World) -> None:
    selector = world.selector = OwnSelector()
    world.rule("tone", "Be kind.", include="agent")
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))
        context = await engine.past.context(session.id, 1)

    assert [str(item.ref) for item in context.items] == ["rule:tone"]
    assert [loop is asyncio.get_running_loop() for loop in selector.loops] == [True, True, True]


class FailingSelector(FixedSelector):
    """A selector that cannot be used the first time."""

    def __init__(self) -> None:
        super().__init__({})
        self._failures = [WindowpaneError("the selector is away")]

    async def select(
        self, message: str, recent: Sequence[Message], candidates: Sequence[Item], settings: Mapping[str, Any]
    ) -> Selection:
        if self._failures:
            raise self._failures.pop()
        return await super().select(message, recent, candidates, settings)


async def ends(world: World, session_id: SessionId) -> list[tuple[int, str, str]]:
    """Return how the turns of a session ended, and why they failed."""
    entries = await world.store.read(session_id)
    ended = [entry.event for entry in entries if isinstance(entry.event, TurnFinished)]
    return [(event.turn, event.outcome, event.error.message if event.error else "") for event in ended]


async def test_a_request_that_cannot_be_built_ends_its_turn_and_no_other(world: World) -> None:
    world.selector = FailingSelector()
    world.rule("tone", "Be kind.", include="agent")
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        for message in ("Hi", "Hi again"):
            await drain(engine.turn(session.id, message))
        ended = await ends(world, session.id)

    assert ended == [(1, "failed", "the selector is away"), (2, "completed", "")]


async def test_a_turn_that_is_cancelled_while_its_request_is_built_ends(world: World) -> None:
    embedder = BusyEmbedder()
    world.selector = HybridSelector(ItemIndex(embedder))
    world.rule("tone", "Be kind.", include="agent")
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain, engine.turn(session.id, "What is your tone?"))
            await anyio.to_thread.run_sync(embedder.begun.wait, PATIENCE_S)
            await engine.cancel(session.id)
            embedder.go_on.set()
        await drain(engine.turn(session.id, "And now?", wait_s=PATIENCE_S))
        ended = await ends(world, session.id)

    assert ended == [(1, "cancelled", ""), (2, "completed", "")]
