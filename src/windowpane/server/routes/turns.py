"""Turns: send a message, decide about tool calls, stop, look ahead.

A turn is answered in one of two forms: as server-sent events while it happens, or as one JSON document when it has
ended or waits for a person. Both drain the same stream of the engine, and neither is needed for the turn to go on.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi import Request as HttpRequest
from pydantic import BaseModel, ConfigDict, Field

from windowpane.api.sessions import SessionView
from windowpane.api.turns import TurnView
from windowpane.context.events import ApprovalDecided, Live, MessageAdded, Recorded, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.context.messages import Decision, UserMessage
from windowpane.context.request import Request
from windowpane.engine import Engine
from windowpane.errors import ConflictError, StoreUnavailableError
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import Key
from windowpane.server.routes.messages import TurnNumber, turn_view
from windowpane.server.routes.sessions import Id, view_of
from windowpane.server.sse import MEDIA_TYPE, EventStream, sent_event, wants_events

router = APIRouter(prefix="/api/sessions/{session_id}", tags=["turns"])

LONGEST_WAIT_S = 600
EXAMPLE = 'id: 4\nevent: turn.started\ndata: {"seq":4,"at":"…","turn":1,"message":"Hello","type":"turn.started"}\n\n'
FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The turn as it stands at its end, or at the approval that it waits for.",
        "content": {MEDIA_TYPE: {"itemSchema": sent_event("WatchedEvent"), "example": EXAMPLE}},
    }
}


class NewMessage(BaseModel):
    """What the user says. With `wait_s`, a session that is busy is waited for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: str
    wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False, strict=True)] = 0


class Decisions(BaseModel):
    """What a person decided, by call id."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decisions: dict[str, Decision]


class Draft(BaseModel):
    """A message that is not sent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: str


class SaidMessage(BaseModel):
    """A message that was said elsewhere."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"role": "user", "content": "What did we say yesterday?"}]},
    )

    role: Literal["user", "assistant", "system"]
    content: str


@router.post(
    "/messages", summary="Send a message", response_model=TurnView, responses={**problems(*BODY, 404, 409), **FORMS}
)
async def send_message(
    engine: Chatting, http: HttpRequest, session_id: Id, message: NewMessage, key: Key = None
) -> TurnView | EventStream:
    """Answer a message. The turn goes on to its end when the client goes away; its answer is in the session.

    With an `Idempotency-Key`, the same message again joins the first turn.

    With `Accept: text/event-stream` every event of the turn is sent as it happens: `id` is the sequence number of a
    stored event, `event` its type, `data` the JSON object `{seq, at, …event}`. `reply.delta` events have no id.

    A turn whose model call failed is a turn like others: the status is 200, the `outcome` is `failed`, and the last
    of its `messages` is the error with what to do next. Only a message that could not be taken is a problem.
    """
    live = engine.turn(session_id, message.content, key=key, wait_s=message.wait_s)
    return await _answered(engine, http, session_id, live)


@router.post(
    "/approvals",
    summary="Decide about tool calls",
    response_model=TurnView,
    responses={**problems(*BODY, 404, 409), **FORMS},
)
async def decide(engine: Chatting, http: HttpRequest, session_id: Id, body: Decisions) -> TurnView | EventStream:
    """Decide about calls that wait: `allow_once`, `allow_session` or `deny`. The turn goes on when all are decided.

    Answered in the same two forms as a message.
    """
    return await _answered(engine, http, session_id, engine.approve(session_id, body.decisions))


@router.post(
    "/turns/{turn}/retry",
    summary="Send a turn's message again",
    response_model=TurnView,
    responses={**problems(404, 409), **FORMS},
)
async def retry_turn(
    engine: Chatting, http: HttpRequest, session_id: Id, turn: TurnNumber, key: Key = None
) -> TurnView | EventStream:
    """Answer the message of the last turn again, in a new turn, when it failed or was stopped. The model is asked once.

    Answered in the same two forms as a message. To ask an answered question again, fork before its turn.
    """
    view = await turn_view(engine, session_id, turn)
    state = await engine.session(session_id)
    started = next((message for message in view.messages if isinstance(message, UserMessage)), None)
    if turn != state.turn_count or view.outcome in ("completed", "running", "waiting") or started is None:
        raise ConflictError(f"turn {turn} cannot be sent again: only the last one can, if it failed or was stopped")
    return await _answered(engine, http, session_id, engine.turn(session_id, started.content, key=key))


@router.post(
    "/messages/record", status_code=201, summary="Add a message without a turn", responses=problems(*BODY, 404)
)
async def record_message(engine: Chatting, session_id: Id, said: SaidMessage, key: Key = None) -> SessionView:
    """Put a message into the conversation that was said elsewhere. No model is called."""
    return view_of(await engine.add_message(session_id, MessageAdded(role=said.role, content=said.content), key=key))


@router.post("/cancel", summary="Stop the turn", responses=problems(404, 409))
async def cancel_turn(engine: Chatting, session_id: Id) -> SessionView:
    """Stop the turn that is running or waiting. What it said so far is kept."""
    return view_of(await engine.cancel(session_id))


@router.post("/preview", summary="See the request that a message would make", responses=problems(*BODY, 404))
async def preview(
    engine: Reading,
    session_id: Id,
    draft: Draft,
    texts: Annotated[bool, Query(description="False: only the context, without messages and tools.")] = True,
) -> Request:
    """Return the messages, tools and context of a request, without storing anything or calling a model."""
    found = await engine.preview(session_id, draft.content)
    return found if texts else replace(found, messages=(), tools=())


async def _answered(
    engine: Engine, http: HttpRequest, session_id: SessionId, live: AsyncGenerator[Live]
) -> TurnView | EventStream:
    events = await _begun(live)
    if wants_events(http):
        return EventStream(events)
    turn, recorded = await _drained(events)
    return await turn_view(engine, session_id, turn, recorded)


async def _begun(live: AsyncGenerator[Live]) -> AsyncGenerator[Live]:
    """Return the stream once it has begun, so that what prevents a turn is a problem and not half a stream."""
    first = await anext(live, None)
    if first is None:
        raise StoreUnavailableError("the server is stopping")

    async def whole() -> AsyncGenerator[Live]:
        async with aclosing(live):
            yield first
            async for event in live:
                yield event

    return whole()


async def _drained(events: AsyncGenerator[Live]) -> tuple[int, list[Recorded]]:
    """Return the number of the turn when nothing more happens in it for now, and its events if it began here."""
    turn = 0
    recorded: list[Recorded] = []
    async with aclosing(events):
        async for live in events:
            if not isinstance(live, Recorded):
                continue
            # The first events may still close the turn before, which its worker left behind.
            if not turn and isinstance(live.event, TurnStarted | ApprovalDecided):
                turn = live.event.turn
            if recorded or isinstance(live.event, TurnStarted):
                recorded.append(live)
    return turn, recorded
