"""Events on the wire: a turn as server-sent events.

A stored event has its sequence number as `id`, so a client knows what it has seen; a delta has none. The data is one
JSON object, `{seq, at, …event}`. When nothing happens for a while a comment keeps the connection open. A client that
goes away ends its stream and nothing else.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastapi import Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from windowpane.api.wire import wire
from windowpane.context.events import Recorded, WatchEvent
from windowpane.context.identity_cache import cached_by_identity
from windowpane.errors import WindowpaneError
from windowpane.server.problems import ProblemDocument, problem_of, render

MEDIA_TYPE = "text/event-stream"
PING_S = 15.0
_ENCODED = 64
"""How many events are remembered as they are sent: those that the listeners of a session are about to get."""

_AHEAD = 256
"""How many events wait for a client that reads slowly; the turn itself never waits."""


def sent_event(union: str | None = None) -> dict[str, Any]:
    """Return the schema of one server-sent event. `union` names the schema of its data, where it is one of ours."""
    data: dict[str, Any] = {"type": "string", "description": "The event as one JSON object."}
    if union is not None:
        forms = [{"$ref": f"#/components/schemas/{name}"} for name in (union, ProblemDocument.__name__)]
        data |= {"contentMediaType": "application/json", "contentSchema": {"anyOf": forms}}
    return {
        "type": "object",
        "required": ["data"],
        "properties": {
            "event": {"type": "string", "description": "The event's type; `problem` when the stream failed."},
            "data": data,
            "id": {"type": "string", "description": "Its sequence number, when it is stored."},
        },
    }


def wants_events(request: Request) -> bool:
    """Tell whether the client asked for server-sent events."""
    return any(MEDIA_TYPE in accepted for accepted in request.headers.getlist("accept"))


class ByteStream(StreamingResponse):
    """Server-sent events, written already, with pings in between."""

    media_type = MEDIA_TYPE

    def __init__(
        self, events: AsyncGenerator[bytes], ping_s: float = PING_S, headers: Mapping[str, str] | None = None
    ) -> None:
        self._events = events
        self._writer, reader = anyio.create_memory_object_stream[bytes](_AHEAD)
        self._reader = reader
        every = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(_with_pings(reader, ping_s), headers={**every, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until they end or the client goes away."""
        with self._reader:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_write, self._events, self._writer)
                await super().__call__(scope, receive, send)
                tasks.cancel_scope.cancel()


class EventStream(ByteStream):
    """A turn or a session as server-sent events."""

    def __init__(self, live: AsyncGenerator[WatchEvent], ping_s: float = PING_S) -> None:
        super().__init__(_written(live), ping_s)


async def _write(events: AsyncGenerator[bytes], writer: MemoryObjectSendStream[bytes]) -> None:
    with writer:
        async with aclosing(events):
            async for event in events:
                await writer.send(event)


async def _written(live: AsyncGenerator[WatchEvent]) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(live):
            async for event in live:
                yield _encoded(event)
    except WindowpaneError as error:
        yield format_sse_event(event="problem", data_str=render(problem_of(error)).decode())


async def _with_pings(reader: MemoryObjectReceiveStream[bytes], ping_s: float) -> AsyncIterator[bytes]:
    while True:
        chunk = KEEPALIVE_COMMENT
        with anyio.move_on_after(ping_s):
            try:
                chunk = await reader.receive()
            except anyio.EndOfStream:
                return
        yield chunk


def _encode(event: WatchEvent) -> bytes:
    kind = event.event.type if isinstance(event, Recorded) else event.type
    return format_sse_event(event=kind, data_str=as_json(wire(event)), id=_id(event))


# All who watch a session through this process get the very same event, so it is encoded once.
_encoded = cached_by_identity(_encode, _ENCODED)


def _id(event: WatchEvent) -> str | None:
    return str(event.seq) if isinstance(event, Recorded) else None


def as_json(body: dict[str, Any]) -> str:
    """Return a body as one line of JSON."""
    # Half a character, which a model may send, cannot travel as UTF-8.
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace").decode()
