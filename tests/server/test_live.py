"""Watching a session over HTTP: server-sent events and WebSockets, live, after a gap, across workers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from engine.world import World
from server.place import SentEvent, events_in, new_session, served
from windowpane.stores.sqlite import SQLiteStore


async def taken(events: AsyncIterator[SentEvent], count: int) -> list[SentEvent]:
    with anyio.fail_after(60):
        return [await anext(events) for _ in range(count)]


@pytest.mark.spec("S2.34-S2.36", "S2.38", "S2.40", "S2.48", "S2.55")
async def test_a_watcher_is_told_how_the_context_stands_and_then_every_change(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)

    async with client.stream("GET", f"/api/sessions/{session}/events") as response:
        events = events_in(response)
        [loaded] = await taken(events, 1)
        await client.patch(
            f"/api/sessions/{session}", json={"setContext": {"setName": "files", "items": ["/work/a.md"]}}
        )
        [changed] = await taken(events, 1)

    assert (loaded.event, loaded.id, loaded.data) == (
        "session.context",
        None,
        {"type": "session.context", "data": {"reason": "load", "context": {}}},
    )
    assert (changed.event, changed.id) == ("session.context", "2")
    assert changed.data["data"] == {"reason": "changed", "context": {"files": ["/work/a.md"]}, "setName": "files"}


async def test_a_watcher_that_comes_back_misses_nothing(world: World, client: httpx2.AsyncClient) -> None:
    world.model.add()
    session = await new_session(client)
    for name in ("one", "two"):
        await client.patch(f"/api/sessions/{session}", json={"name": name})

    async with client.stream("GET", f"/api/sessions/{session}/events?after=1") as response:
        all_of_it = await taken(events_in(response), 3)
    async with client.stream("GET", f"/api/sessions/{session}/events", headers={"Last-Event-ID": "2"}) as response:
        rest = await taken(events_in(response), 2)

    assert [(event.event, event.id) for event in all_of_it] == [
        ("session.updated", "2"),
        ("session.updated", "3"),
        ("session.context", None),
    ]
    assert [(event.event, event.id) for event in rest] == [("session.updated", "3"), ("session.context", None)]


async def test_a_turn_is_seen_word_by_word_by_those_who_watch(world: World) -> None:
    world.says("Good day.")
    async with served(world) as client:
        session = await new_session(client)
        async with client.stream("GET", f"/api/sessions/{session}/events") as response:
            events = events_in(response)
            await taken(events, 1)
            await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
            seen = await taken(events, 6)

    assert [event.event for event in seen] == [
        "turn.started",
        "request.built",
        "reply.delta",
        "reply.delta",
        "model.replied",
        "turn.finished",
    ]
    assert "".join(event.data["text"] for event in seen if event.event == "reply.delta") == "Good day."


async def test_a_watcher_sees_what_another_worker_does(world: World, tmp_path: Path) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    other = World(world.root, store=SQLiteStore(tmp_path / "a.db"))
    async with served(world) as here, served(other) as there:
        session = await new_session(here)
        async with here.stream("GET", f"/api/sessions/{session}/events") as response:
            events = events_in(response)
            await taken(events, 1)
            await there.patch(f"/api/sessions/{session}", json={"name": "Renamed elsewhere"})
            [seen] = await taken(events, 1)

    assert (seen.event, seen.data["changes"]) == ("session.updated", {"name": "Renamed elsewhere"})


async def test_a_socket_gets_the_same_events_and_is_closed_when_the_session_goes(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    address = str(client.base_url).replace("http://", "ws://").rstrip("/")

    async with connect(f"{address}/api/sessions/{session}/events?after=0") as socket:
        first = [_type(await socket.recv()) for _ in range(2)]
        await client.patch(f"/api/sessions/{session}", json={"name": "New"})
        then = _type(await socket.recv())
        await client.delete(f"/api/sessions/{session}")
        last = _type(await socket.recv())
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()

    assert (first, then, last) == (["session.created", "session.context"], "session.updated", "session.deleted")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4404


async def test_a_page_of_another_site_cannot_watch(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    address = str(client.base_url).replace("http://", "ws://").rstrip("/")

    with pytest.raises(InvalidStatus):
        async with connect(f"{address}/api/sessions/{session}/events", origin="https://evil.example"):  # pyright: ignore[reportArgumentType] - a NewType of str
            pass


async def test_watching_what_is_not_there_is_a_problem(client: httpx2.AsyncClient) -> None:
    response = await client.get("/api/sessions/ses_none/events")

    assert (response.status_code, response.json()["code"]) == (404, "session_not_found")


async def test_many_watchers_see_the_same_in_the_same_order(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    seen: list[list[str | None]] = []
    ready = anyio.Semaphore(0)

    async def watch() -> None:
        async with client.stream("GET", f"/api/sessions/{session}/events") as response:
            events = events_in(response)
            await taken(events, 1)
            ready.release()
            seen.append([event.id for event in await taken(events, 5)])

    async with anyio.create_task_group() as tasks:
        for _ in range(30):
            tasks.start_soon(watch)
        for _ in range(30):
            await ready.acquire()
        for number in range(5):
            await client.patch(f"/api/sessions/{session}", json={"name": str(number)})

    assert seen == [["2", "3", "4", "5", "6"]] * 30


def _type(message: str | bytes) -> Any:
    return json.loads(message)["type"]
