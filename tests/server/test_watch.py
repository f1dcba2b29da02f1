"""Watching a session over HTTP: server-sent events and WebSockets, live, after a gap, across workers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from patience import PATIENCE_S
from server.place import SentEvent, engine_of, events_in, listening, new_session, served
from windowpane.context.events import MessageAdded
from windowpane.context.ids import SessionId
from windowpane.server.app import create_app
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import Reply, World


async def taken(events: AsyncIterator[SentEvent], count: int) -> list[SentEvent]:
    with anyio.fail_after(PATIENCE_S):
        return [await anext(events) for _ in range(count)]


@pytest.mark.spec("S2.34-S2.36", "S2.38", "S2.40", "S2.48", "S2.55")
async def test_a_watcher_is_told_how_the_context_stands_and_then_every_change(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)

    async with client.stream("GET", f"/api/sessions/{session}/events") as response:
        events = events_in(response)
        [loaded] = await taken(events, 1)
        await client.patch(
            f"/api/sessions/{session}", json={"setContext": {"setName": "files", "items": ["/srv/a.md"]}}
        )
        [changed] = await taken(events, 1)

    assert (loaded.event, loaded.id, loaded.data) == (
        "session.context",
        None,
        {"type": "session.context", "data": {"reason": "load", "context": {}}},
    )
    assert (changed.event, changed.id) == ("session.context", "2")
    assert changed.data["data"] == {"reason": "changed", "context": {"files": ["/srv/a.md"]}, "setName": "files"}


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
    seen_all = anyio.Event()
    world.says(Reply("Good day.", before_end=seen_all))
    async with served(world) as client, anyio.create_task_group() as asking:
        session = await new_session(client)
        async with client.stream("GET", f"/api/sessions/{session}/events") as response:
            events = events_in(response)
            await taken(events, 1)
            asking.start_soon(partial(client.post, f"/api/sessions/{session}/messages", json={"content": "Hi"}))
            begun = await taken(events, 2)
            said = ""
            # The model has not come to an end before all of its words were seen.
            while said != "Good day.":
                [words] = await taken(events, 1)
                assert words.event == "reply.delta"
                said += words.data["text"]
            seen_all.set()
            ended = await taken(events, 2)

            assert [event.event for event in begun] == ["turn.started", "request.built"]
            assert [event.event for event in ended] == ["model.replied", "turn.finished"]


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


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Origin": "https://evil.example"}, 403, "foreign_origin"),
        ({"Origin": "null"}, 403, "foreign_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign_origin"),
        ({"Host": "evil.example"}, 421, "wrong_host"),
    ],
)
async def test_a_page_of_another_site_cannot_watch(
    client: httpx2.AsyncClient, headers: dict[str, str], status: int, code: str
) -> None:
    session = await new_session(client)

    refused = await opened(client, f"/api/sessions/{session}/events", headers)

    assert (refused.status_code, refused.json()["code"]) == (status, code)


async def test_its_own_page_may_watch(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    own = Origin(str(client.base_url).rstrip("/"))

    async with connect(socket_address(client, session), origin=own) as socket:
        first = json.loads(await socket.recv())

    assert first == {"type": "session.context", "data": {"reason": "load", "context": {}}}


@pytest.mark.parametrize("after", ["-1", "x", "9" * 30])
async def test_a_place_that_is_none_is_refused(client: httpx2.AsyncClient, after: str) -> None:
    session = await new_session(client)

    as_events = await client.get(f"/api/sessions/{session}/events", params={"after": after})
    as_socket = await opened(client, f"/api/sessions/{session}/events?after={after}", {})

    assert (as_events.status_code, as_socket.status_code) == (422, 403)


async def test_a_socket_for_a_session_that_is_not_there_is_closed_with_a_code(client: httpx2.AsyncClient) -> None:
    async with connect(socket_address(client, "ses_none")) as socket:
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()

    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4404, "there is no such session")


async def test_what_a_client_says_on_a_socket_is_passed_over(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)

    async with connect(socket_address(client, session)) as socket:
        await socket.recv()
        for _ in range(50):
            await socket.send("hello?")
        await client.patch(f"/api/sessions/{session}", json={"name": "New"})

        assert _type(await socket.recv()) == "session.updated"


async def test_the_last_event_that_a_browser_saw_goes_before_the_address_it_reconnects_to(
    client: httpx2.AsyncClient,
) -> None:
    session = await new_session(client)
    for name in ("one", "two"):
        await client.patch(f"/api/sessions/{session}", json={"name": name})
    path, headers = f"/api/sessions/{session}/events?after=0", {"Last-Event-ID": "2"}

    async with client.stream("GET", path, headers=headers) as response:
        seen = await taken(events_in(response), 2)

    assert [event.id for event in seen] == ["3", None]


async def test_a_listener_that_does_not_read_is_told_and_loses_no_stored_event(world: World) -> None:
    """Its connection takes no more than fits into buffers; the session goes on, and the log has the rest."""
    engine = engine_of(world)
    async with (
        listening(create_app(engine)) as address,
        httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as client,
    ):
        session = SessionId(await new_session(client))
        async with connect(socket_address(client, session), compression=None) as socket:
            socket.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]  # it is one that can
            long = MessageAdded(role="user", content="x" * 60_000)
            for _ in range(10):
                await engine.store.append(session, [long] * 100)
            socket.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]  # it is one that can
            seen: list[Any] = []
            with anyio.fail_after(PATIENCE_S):
                while not seen or seen[-1].get("seq") != 1001:
                    seen.append(json.loads(await socket.recv()))

    assert [event["seq"] for event in seen if "seq" in event] == list(range(2, 1002))
    missed = [event for event in seen if event["type"] == "missed"]
    assert missed
    assert all(event == {"type": "missed", "after": event["after"]} for event in missed)


def socket_address(client: httpx2.AsyncClient, session: str) -> str:
    return f"{client.base_url}".replace("http://", "ws://").rstrip("/") + f"/api/sessions/{session}/events"


async def opened(client: httpx2.AsyncClient, path: str, headers: dict[str, str]) -> httpx2.Response:
    """Return what the server answers to a browser that wants to open a socket."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    return await client.get(path, headers={**upgrade, **headers})


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
        for _ in range(50):
            tasks.start_soon(watch)
        for _ in range(50):
            await ready.acquire()
        for number in range(5):
            await client.patch(f"/api/sessions/{session}", json={"name": str(number)})

    assert seen == [["2", "3", "4", "5", "6"]] * 50


def _type(message: str | bytes) -> Any:
    return json.loads(message)["type"]


@pytest.mark.spec("S2.37", "S2.39")
async def test_a_captured_applet_and_a_session_taken_up_again_are_told_to_those_who_watch(world: World) -> None:
    world.says("Welcome back.")
    async with served(world) as client:
        session = await new_session(client)
        applet = ["git-diff", "path=/srv"]
        async with client.stream("GET", f"/api/sessions/{session}/events") as response:
            events = events_in(response)
            await taken(events, 1)
            await client.patch(
                f"/api/sessions/{session}",
                json={"sessionId": session, "setContext": {"setName": "applet", "items": applet}},
            )
            [captured] = await taken(events, 1)
    # A server that starts anew takes up what was left.
    async with served(world) as client:
        await client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        async with client.stream("GET", f"/api/sessions/{session}/events?after=2") as response:
            events = events_in(response)
            [started, resumed] = await taken(events, 2)

    context = {"applet": applet}
    assert captured.data["data"] == {"reason": "changed", "context": context, "setName": "applet"}
    assert (started.event, started.data["resumed"]) == ("turn.started", True)
    assert resumed.data == {
        "seq": 4,
        "at": resumed.data["at"],
        "type": "session.context",
        "data": {"reason": "resume", "context": context},
        "actor": "system",
        "marks": {},
    }


def frame(opcode: int, body: bytes, *, masked: bool = True, flags: int = 0x80, length: bytes | None = None) -> bytes:
    """Return a frame of the WebSocket protocol, or something like one."""
    mask = bytes(4) if masked else b""
    size = length or bytes([(0x80 if masked else 0) | len(body)])
    return bytes([flags | opcode]) + size + mask + body


GARBAGE = {
    "no frames": b"GET / HTTP/1.1\r\n\r\n" * 10,
    "zeros": bytes(1000),
    "a frame without a mask": frame(1, b"Hi", masked=False),
    "an opcode that there is not": frame(0xB, b"Hi"),
    "reserved bits": frame(1, b"Hi", flags=0xF0),
    "text that is none": frame(1, b"\xff\xfe\xfd"),
    "a continuation of nothing": frame(0, b"Hi"),
    "a ping in parts": frame(9, b"Hi", flags=0),
    "a close without sense": frame(8, b"\x00"),
    "a frame of 2^62 bytes": frame(2, b"x", length=b"\xff" + (2**62).to_bytes(8, "big")),
    "a frame that does not end": frame(2, b"x" * 100, length=b"\xfe" + (65535).to_bytes(2, "big")),
}


async def test_garbage_over_a_socket_ends_that_socket_at_most(client: httpx2.AsyncClient) -> None:
    session = await new_session(client)
    host, port = str(client.base_url).removeprefix("http://").rstrip("/").split(":")
    head = (
        f"GET /api/sessions/{session}/events HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n"
    )
    greeted: dict[str, bytes] = {}
    seen: list[str] = []
    async with connect(socket_address(client, session)) as other:
        await other.recv()
        for what, garbage in GARBAGE.items():
            async with await anyio.connect_tcp(host, int(port)) as stream:
                await stream.send(head.encode())
                greeted[what] = (await stream.receive())[:12]
                await stream.send(garbage)
                await client.patch(f"/api/sessions/{session}", json={"name": what})
            with anyio.fail_after(PATIENCE_S):
                seen.append(json.loads(await other.recv())["changes"]["name"])

    assert greeted == dict.fromkeys(GARBAGE, b"HTTP/1.1 101")
    assert seen == [*GARBAGE]
