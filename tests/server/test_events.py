from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import anyio
import httpx2
from fastapi import FastAPI
from starlette.requests import Request

from server.place import listening
from windowpane.context.events import Delta, ItemRemoved, Live, Recorded
from windowpane.context.items import rule_ref
from windowpane.errors import SessionNotFoundError
from windowpane.server.sse import EventStream, wants_events


async def sent(live: AsyncGenerator[Live], ping_s: float = 15) -> str:
    app = FastAPI()

    async def stream(request: Request) -> EventStream:
        return EventStream(live, ping_s)

    app.add_route("/", stream)
    async with listening(app) as address, httpx2.AsyncClient(base_url=address) as client:
        return (await client.get("/")).text


async def test_a_quiet_turn_is_kept_open_by_comments() -> None:
    async def live() -> AsyncGenerator[Live]:
        await anyio.sleep(0.2)
        yield Delta(1, "Hi")

    text = await sent(live(), ping_s=0.02)

    assert text.startswith(": ping\n\n: ping\n\n")
    assert text.endswith(
        'event: reply.delta\ndata: {"turn": 1, "text": "Hi", "kind": "text", "type": "reply.delta"}\n\n'
    )


async def test_events_are_one_line_of_data_each_whatever_they_hold() -> None:
    async def live() -> AsyncGenerator[Live]:
        yield Delta(1, "a\r\nid: 9\n\ndata: é\u2028\ud800")
        yield Recorded(7, datetime(2026, 1, 2, tzinfo=UTC), ItemRemoved(ref=rule_ref("tone"), actor="user"))

    text = await sent(live())

    assert text == (
        "event: reply.delta\n"
        'data: {"turn": 1, "text": "a\\r\\nid: 9\\n\\ndata: é\u2028?", "kind": "text", "type": "reply.delta"}\n\n'
        "event: item.removed\n"
        'data: {"seq": 7, "at": "2026-01-02T00:00:00+00:00", '
        '"ref": {"type": "rule", "name": "tone", "server": null}, "actor": "user", "type": "item.removed"}\n'
        "id: 7\n\n"
    )


async def test_an_error_in_the_middle_of_a_stream_is_its_last_event() -> None:
    async def live() -> AsyncGenerator[Live]:
        yield Delta(1, "Hi")
        raise SessionNotFoundError("s")

    text = await sent(live())

    assert text.split("\n\n")[1].startswith("event: problem\ndata: ")
    assert '"code": "session_not_found"' in text


def test_events_are_sent_to_those_who_ask_for_them() -> None:
    def asked(accept: str) -> bool:
        return wants_events(Request({"type": "http", "headers": [(b"accept", accept.encode())]}))

    assert [asked(accept) for accept in ("text/event-stream", "*/*, text/event-stream;q=0.9", "*/*", "")] == [
        True,
        True,
        False,
        False,
    ]
