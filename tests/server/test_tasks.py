"""Every task that outlives a request, killed in the middle of its work: the rest of the server lives on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest

from server.place import EVENTS, events_in, new_session, served
from windowpane.callers import TokenFile
from windowpane.models.scripted import Reply
from windowpane.stores.expiry import ExpiringStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World

SUPERVISORS = ("keep_running", "supervised")
KEPT = (
    "analytics.count",
    "expiry.sweep",
    "session.watch",
    "session.words",
    "sessions.index",
    "sqlite.look_out",
    "tokens.watch",
    "turn.cancel",
    "turn.leases",
    "turn.words",
    "xray.attend",
)
"""Tasks that begin again when they fail, or when they are needed next."""

OF_THE_TURN = ("turn.run",)
"""Tasks whose failure ends their turn at most."""


@dataclass(frozen=True)
class Busy:
    """A server in the middle of a turn that is watched. `go_on` lets the model finish."""

    client: httpx2.AsyncClient
    session: str
    go_on: anyio.Event


@asynccontextmanager
async def busy(tmp_path: Path) -> AsyncGenerator[Busy]:
    world = World(tmp_path / "agents", store=ExpiringStore(SQLiteStore(tmp_path / "windowpane.db")))
    go_on = anyio.Event()
    world.says(Reply("Half an answer", before_end=go_on), "Whole.", "Whole.")
    tokens = TokenFile(tmp_path / "tokens.json")
    async with served(world, tokens=tokens) as client:
        session = await new_session(client)
        watching = client.stream("GET", f"/api/sessions/{session}/events")
        sending = client.stream("POST", f"/api/sessions/{session}/messages", json={"content": "Hi"}, headers=EVENTS)
        async with watching, sending as turn:
            async for event in events_in(turn):
                if event.event == "reply.delta":
                    break
            yield Busy(client, session, go_on)
            go_on.set()


def long_lived() -> dict[str, asyncio.Task[Any]]:
    """Return the tasks of this process that are supervised, by name."""
    found: dict[str, asyncio.Task[Any]] = {}
    for task in asyncio.all_tasks():
        step: Any = task.get_coro()
        while step is not None:
            frame = getattr(step, "cr_frame", None)
            if frame is not None and frame.f_code.co_name in SUPERVISORS:
                found[frame.f_locals["name"]] = task
            step = getattr(step, "cr_await", None)
    return found


async def kill(name: str) -> None:
    """Let whatever a task waits for at this moment raise an error that no part expects.

    Only the task is told: what it waits for may belong to a thread, which will set a result of its own.
    """
    while (waits_for := awaited_by(name)) is None:  # noqa: ASYNC110 - tasks tell no one that they began
        await anyio.sleep(0.01)
    loop = asyncio.get_running_loop()
    failed = loop.create_future()
    failed.set_exception(RuntimeError(f"{name} was killed"))
    task = long_lived()[name]
    for wake_up, context in cast("list[tuple[Any, Any]]", getattr(waits_for, "_callbacks")):  # noqa: B009 - private
        # Others may wait for the same, and not only tasks.
        if getattr(wake_up, "__self__", None) is task:
            waits_for.remove_done_callback(wake_up)
            loop.call_soon(wake_up, failed, context=context)


def awaited_by(name: str) -> asyncio.Future[Any] | None:
    """Return what a task waits for; None while it runs or is not there."""
    future: asyncio.Future[Any] | None = getattr(long_lived().get(name), "_fut_waiter", None)
    return future if future is not None and not future.done() else None


async def test_these_tasks_live_long_in_a_busy_server(tmp_path: Path) -> None:
    async with busy(tmp_path):
        while not {*KEPT, *OF_THE_TURN} <= set(long_lived()):  # noqa: ASYNC110 - tasks tell no one that they began
            await anyio.sleep(0.01)
        running = set(long_lived())

    assert running == {*KEPT, *OF_THE_TURN}


@pytest.mark.parametrize("name", [*KEPT, *OF_THE_TURN])
async def test_the_server_lives_on_when_one_of_its_tasks_is_killed(tmp_path: Path, name: str) -> None:
    async with busy(tmp_path) as server:
        await kill(name)
        alive = await server.client.get("/healthz")
        other = await new_session(server.client)
        meanwhile = await server.client.post(f"/api/sessions/{other}/messages", json={"content": "Hi"})
        server.go_on.set()
        after = await server.client.post(
            f"/api/sessions/{server.session}/messages", json={"content": "And now?", "wait_s": 60}
        )
        first = await server.client.get(f"/api/sessions/{server.session}/turns/1")

    assert alive.status_code == 200
    assert [answer.json()["outcome"] for answer in (meanwhile, after)] == ["completed"] * 2
    assert first.json()["outcome"] == ("failed" if name == "turn.run" else "completed")
