"""Watch a session: everything that happens to it, as server-sent events or over a WebSocket on the same path.

Both can be resumed after a gap: `after` (or the browser's own `Last-Event-ID`) is the last sequence number seen. Then
comes what was missed, `session.context` with reason `load`, and what happens. A listener that falls behind is told
`missed` and goes on from the log. `session.deleted` ends the stream.
"""

from contextlib import aclosing
from typing import Annotated, Any

import anyio
from fastapi import Header, Path, Query, WebSocket
from starlette.responses import StreamingResponse
from starlette.websockets import WebSocketDisconnect

from windowpane.api.wire import wire
from windowpane.context.events import SessionDeleted
from windowpane.context.ids import SessionId
from windowpane.errors import (
    ScopeNeededError,
    SessionNotFoundError,
    StoreUnavailableError,
    TokenNeededError,
    WindowpaneError,
)
from windowpane.server.dependencies import Reading, admit
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import LARGEST_SEQ, Id
from windowpane.server.problems import problems
from windowpane.server.sse import MEDIA_TYPE, EventStream, as_json, sent_event

router = LazyRouter(prefix="/api/sessions/{session_id}", tags=["live"])

NO_TOKEN = (4401, "a token is needed, and none came that can be used")
NO_SCOPE = (4403, "the token does not allow this")
NOT_FOUND = (4404, "there is no such session")
DELETED = (4404, "the session was deleted")
STOPPING = (1001, "the server is stopping")
LATER = (1013, "the store cannot be reached now; come back later")
FAILED = (1011, "something went wrong; the server's log has the details")
"""Why a socket is closed: the code, for programs, and what it means."""

EXAMPLE = (
    'id: 7\nevent: session.context\ndata: {"seq":7,"at":"…","type":"session.context",'
    '"data":{"reason":"changed","context":{"ports":["80"]},"setName":"ports"}}\n\n'
)
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events until the session is deleted.",
        "content": {MEDIA_TYPE: {"itemSchema": sent_event("WatchedEvent"), "example": EXAMPLE}},
    }
}
After = Annotated[
    int | None,
    Query(ge=0, le=LARGEST_SEQ, description="Begin after this sequence number; without it, with what comes."),
]
LastEventId = Annotated[
    int | None, Header(ge=0, le=LARGEST_SEQ, description="What a browser sends when it reconnects. It goes first.")
]


@router.get(
    "/events", summary="Watch a session", response_class=StreamingResponse, responses={**problems(404), **STREAM}
)
async def watch_session(
    pane: Reading, session_id: Id, after: After = None, last_event_id: LastEventId = None
) -> EventStream:
    """Send everything that happens to the session as server-sent events; a WebSocket on this path gets the same.

    Stored events have their sequence number as `id`. A client that comes back says the last one it has seen, in
    `after` or `Last-Event-ID`, and misses nothing. Once what was missed is sent comes `session.context` with reason
    `load`. `reply.delta` is text on its way, from turns of the worker that is asked. `missed` tells a client that it
    fell behind: text on its way was dropped, and begins again; stored events are never dropped.
    """
    await pane.sessions.get(session_id)
    return EventStream(pane.watch(session_id, after=after if last_event_id is None else last_event_id))


@router.websocket("/events")
async def watch_over_socket(socket: WebSocket, session_id: Annotated[SessionId, Path()], after: After = None) -> None:
    """Send the same events as JSON messages. What the client sends is passed over."""
    await socket.accept()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_gone, socket, tasks.cancel_scope)
        try:
            code, reason = await _send_events(socket, session_id, after)
            await socket.close(code, reason)
        except WebSocketDisconnect:
            pass
        tasks.cancel_scope.cancel()


async def _send_events(socket: WebSocket, session_id: SessionId, after: int | None) -> tuple[int, str]:
    """Send events until there are no more, and return why."""
    last = STOPPING
    try:
        pane = await admit(socket, "read")
        async with aclosing(pane.watch(session_id, after=after)) as events:
            async for event in events:
                await socket.send_text(as_json(wire(event)))
                last = DELETED if isinstance(event, SessionDeleted) else STOPPING
    except TokenNeededError:
        return NO_TOKEN
    except ScopeNeededError:
        return NO_SCOPE
    except SessionNotFoundError:
        return NOT_FOUND
    except StoreUnavailableError:
        return LATER
    except WindowpaneError:
        return FAILED
    return last


async def _until_gone(socket: WebSocket, scope: anyio.CancelScope) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    scope.cancel()
