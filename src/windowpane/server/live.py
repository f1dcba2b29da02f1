"""Watch a session: everything that happens to it, as server-sent events or over a WebSocket on the same path.

Both can be resumed after a gap: `after` (or the browser's own `Last-Event-ID`) is the last sequence number seen. Then
comes what was missed, `session.context` with reason `load`, and what happens. A listener that falls behind is told
`missed` and goes on from the log. `session.deleted` ends the stream.
"""

from contextlib import aclosing
from typing import Annotated, Any, cast

import anyio
from fastapi import APIRouter, Header, Query, WebSocket
from starlette.responses import StreamingResponse
from starlette.websockets import WebSocketDisconnect

from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import SessionNotFoundError, StoreUnavailableError
from windowpane.live import SessionDeleted
from windowpane.server.events import MEDIA_TYPE, EventStream, as_json, wire
from windowpane.server.opened import OpenEngine
from windowpane.server.problems import problems
from windowpane.server.sessions import Id

router = APIRouter(prefix="/api/sessions/{session_id}", tags=["live"])

GONE = 4404
"""The close code of a socket whose session does not exist, or not any more."""

NOT_READY = 1013
GOING_AWAY = 1001
EXAMPLE = (
    'id: 7\nevent: session.context\ndata: {"seq":7,"at":"…","type":"session.context","data":{"reason":"changed"}}\n\n'
)
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events until the session is deleted.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": EXAMPLE}},
    }
}
After = Annotated[int | None, Query(ge=0, description="Begin after this sequence number; without it, with what comes.")]


@router.get(
    "/events",
    summary="Watch a session",
    response_class=StreamingResponse,
    response_model=None,
    responses={**problems(404), **STREAM},
)
async def watch_session(
    engine: OpenEngine,
    session_id: Id,
    after: After = None,
    last_event_id: Annotated[int | None, Header(ge=0, description="What a browser sends when it reconnects.")] = None,
) -> EventStream:
    """Send everything that happens to the session as server-sent events; a WebSocket on this path gets the same.

    Stored events have their sequence number as `id`. A client that comes back says the last one it has seen, in
    `after` or `Last-Event-ID`, and misses nothing.
    """
    await engine.session(session_id)
    return EventStream(engine.watch(session_id, after=last_event_id if after is None else after))


@router.websocket("/events")
async def watch_over_socket(socket: WebSocket, session_id: SessionId, after: After = None) -> None:
    """Send the same events as JSON messages. What the client sends is passed over."""
    await socket.accept()
    if not socket.app.state.opened:
        await socket.close(NOT_READY, "the server is not ready")
        return
    engine = cast("Engine", socket.app.state.engine)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_gone, socket, tasks.cancel_scope)
        gone = False
        try:
            async with aclosing(engine.watch(session_id, after=after)) as events:
                async for event in events:
                    await socket.send_text(as_json(wire(event)))
                    gone = isinstance(event, SessionDeleted)
            await socket.close(GONE if gone else GOING_AWAY)
        except SessionNotFoundError as error:
            await socket.close(GONE, str(error))
        except StoreUnavailableError as error:
            await socket.close(NOT_READY, str(error))
        except WebSocketDisconnect:
            pass
        tasks.cancel_scope.cancel()


async def _until_gone(socket: WebSocket, scope: anyio.CancelScope) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            scope.cancel()
            return
