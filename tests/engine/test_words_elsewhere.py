"""A watcher on another worker sees the words of a reply while they are written."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from bus.nats_server import NatsServer
from patience import PATIENCE_S
from stores.kinds import KINDS
from windowpane.bus.nats import NatsBus
from windowpane.context.events import Delta, ModelReplied, Recorded
from windowpane.engine import Engine
from windowpane.models.scripted import Reply
from windowpane.testing import World, drain

SHARED = {kind.name: kind for kind in KINDS if kind.name in {"sqlite", "postgres", "redis", "postgres-encrypted"}}


@asynccontextmanager
async def two_workers(root: Path, store: str, bus: str, *replies: Reply) -> AsyncGenerator[tuple[Engine, Engine]]:
    """Open two workers on one store."""
    kind = SHARED[store]
    place = kind.fresh(root)
    server = NatsServer(root) if bus else None
    here, there = (World(root / "agents", kind.open(place)) for _ in range(2))
    here.says(*replies)
    async with AsyncExitStack() as stack:
        if server is not None:
            stack.callback(server.stop)
            if bus == "nats":
                server.start()
        engines = [
            await stack.enter_async_context(world.engine(bus=NatsBus(server.place) if server else None))
            for world in (here, there)
        ]
        yield engines[0], engines[1]


@pytest.mark.parametrize(
    ("store", "bus"),
    [
        ("sqlite", ""),
        ("sqlite", "nats"),
        ("sqlite", "a NATS server that is away"),
        ("postgres", ""),
        ("postgres", "nats"),
        ("postgres-encrypted", ""),
        ("redis", ""),
    ],
)
async def test_a_watcher_elsewhere_sees_words_while_they_are_written_and_then_the_answer(
    tmp_path: Path, store: str, bus: str
) -> None:
    written = anyio.Event()
    deltas: list[Delta] = []
    replied: list[Recorded] = []
    text = "Once upon a time there was a ✓ " * 40
    async with two_workers(tmp_path, store, bus, Reply(text, before_end=written)) as (here, there):
        session = (await here.sessions.create()).id
        with anyio.fail_after(PATIENCE_S):
            async with (
                anyio.create_task_group() as tasks,
                aclosing(there.watch(session, after=0)) as early,
            ):
                heard = ""
                tasks.start_soon(drain, here.turn(session, "Hi"))
                async for event in early:
                    heard += event.text if isinstance(event, Delta) else ""
                    assert text.startswith(heard)
                    if heard == text:
                        break
                # One who comes later gets all of it at once.
                async with aclosing(there.watch(session)) as late:
                    deltas = [event async for event in _until(late, text)]
                written.set()
                replied = [event async for event in _replied(early)]

    assert "".join(delta.text for delta in deltas) == text
    assert [entry.event.step.text for entry in replied if isinstance(entry.event, ModelReplied)] == [text]


async def _until(events: AsyncGenerator[object], text: str) -> AsyncGenerator[Delta]:
    length = 0
    async for event in events:
        if isinstance(event, Delta):
            length += len(event.text)
            yield event
            if length >= len(text):
                return


async def _replied(events: AsyncGenerator[object]) -> AsyncGenerator[Recorded]:
    async for event in events:
        if isinstance(event, Recorded):
            yield event
            if isinstance(event.event, ModelReplied):
                return


@pytest.mark.parametrize(("store", "bus"), [("sqlite", ""), ("postgres", ""), ("redis", "nats")])
async def test_one_who_follows_a_turn_through_another_worker_gets_its_words_once(
    tmp_path: Path, store: str, bus: str
) -> None:
    written = anyio.Event()
    text = "Once upon a time there was a ✓ " * 40
    heard = ""
    events: list[object] = []
    started: object = None
    async with two_workers(tmp_path, store, bus, Reply(text, before_end=written)) as (here, there):
        session = (await here.sessions.create()).id
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                begun = here.turn(session, "Hi")
                started = await anext(begun)
                tasks.start_soon(drain, begun)
                async with aclosing(there.follow(session, 1)) as following:
                    async for event in following:
                        events.append(event)
                        if isinstance(event, Delta):
                            heard += event.text
                            if heard == text:
                                written.set()

    assert events[0] == started
    assert heard == text
    assert [event.event.type for event in events if isinstance(event, Recorded)][-1] == "turn.finished"
