"""Turns: send a message, decide about tool calls, stop, look ahead.

A turn is answered in one of two forms: as server-sent events while it happens, or as one JSON document when it has
ended or waits for a person. Both drain the same stream of the engine, and neither is needed for the turn to go on.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Query
from fastapi import Request as HttpRequest
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from windowpane.api.sessions import SessionView
from windowpane.api.turns import TurnView
from windowpane.context.events import Live
from windowpane.context.ids import SessionId
from windowpane.context.items import CLIENT_SERVER, Tool
from windowpane.context.messages import AnswerAction, Decision, NewFile, ToolResult
from windowpane.context.request import ReplyOptions, Request
from windowpane.errors import StoreUnavailableError
from windowpane.files.read import MAX_FILES
from windowpane.local.pane import LocalPane
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import FileBody, Id, RequestBody, TurnNumber
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import Key
from windowpane.server.sse import MEDIA_TYPE, EventStream, sent_event, wants_events
from windowpane.sessions.conversation import MAX_CLIENT_TOOLS

router = LazyRouter(prefix="/api/sessions/{session_id}", tags=["turns"])

LONGEST_WAIT_S = 600
EXAMPLE = 'id: 4\nevent: turn.started\ndata: {"seq":4,"at":"…","turn":1,"message":"Hello","type":"turn.started"}\n\n'
FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The turn as it stands at its end, or at the approval that it waits for.",
        "content": {MEDIA_TYPE: {"itemSchema": sent_event("WatchedEvent"), "example": EXAMPLE}},
    }
}


class CallerTool(BaseModel):
    """A tool that the caller runs itself. `parameters` is the JSON schema of its arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")]
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=lambda: {"type": "object", "properties": {}})


FileBodies = Annotated[tuple[FileBody, ...], Field(max_length=MAX_FILES)]


class NewMessage(RequestBody):
    """What the user says. With `wait_s`, a session that is busy is waited for.

    `tools` are tools of the server `client`, which the caller runs itself: the turn waits for their results.
    `attachments` are files that come with the message.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: str
    wait_s: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False, strict=True)] = 0
    tools: Annotated[tuple[CallerTool, ...], Field(max_length=MAX_CLIENT_TOOLS)] = ()
    reply_options: ReplyOptions | None = None
    attachments: FileBodies = ()


class Results(RequestBody):
    """What tools of the caller gave, by call id."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    results: tuple[ToolResult, ...]


class Decisions(RequestBody):
    """What a person decided, by call id."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decisions: dict[str, Decision]


class QuestionAnswer(RequestBody):
    """What the user answers to a running tool. `content` are the fields of a form that is accepted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question_id: str
    action: AnswerAction
    content: dict[str, Any] | None = None


class Draft(RequestBody):
    """A message that is not sent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: str
    attachments: FileBodies = ()


class SaidMessage(RequestBody):
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
    pane: Chatting, http: HttpRequest, session_id: Id, message: NewMessage, key: Key = None
) -> TurnView | EventStream:
    """Answer a message. The turn goes on to its end when the client goes away; its answer is in the session.

    With an `Idempotency-Key`, the same message again joins the first turn, as long as the session lives. The same key
    with another message is refused.

    With `Accept: text/event-stream` every event of the turn is sent as it happens: `id` is the sequence number of a
    stored event, `event` its type, `data` the JSON object `{seq, at, …event}`. `reply.delta` events have no id.

    A turn whose model call failed is a turn like others: the status is 200, the `outcome` is `failed`, and the last
    of its `messages` is the error with what to do next. Only a message that could not be taken is a problem.
    """
    live = pane.turn(
        session_id,
        message.content,
        key=key,
        wait_s=message.wait_s,
        tools=[Tool(CLIENT_SERVER, tool.name, tool.description, tool.parameters) for tool in message.tools],
        reply_options=message.reply_options,
        attachments=_files(message.attachments),
    )
    return await _answered(pane, http, session_id, live)


@router.post(
    "/approvals",
    summary="Decide about tool calls",
    response_model=TurnView,
    responses={**problems(*BODY, 404, 409), **FORMS},
)
async def decide(pane: Chatting, http: HttpRequest, session_id: Id, body: Decisions) -> TurnView | EventStream:
    """Decide about calls that wait: `allow_once`, `allow_session` or `deny`. The turn goes on when all are decided.

    Answered in the same two forms as a message.
    """
    return await _answered(pane, http, session_id, pane.approve(session_id, body.decisions))


@router.post("/answers", summary="Answer a running tool", responses=problems(*BODY, 404, 409))
async def answer_question(pane: Chatting, session_id: Id, body: QuestionAnswer) -> SessionView:
    """Answer what a running tool asks (`question.asked`): `accept`, `decline` or `cancel`.

    The turn goes on where it runs: follow its events, or read it again. A form that is not filled in as its `schema`
    says is refused, and the question stays.
    """
    return await pane.answer_question(session_id, body.question_id, body.action, body.content)


@router.post(
    "/results",
    summary="Give results of the caller's tools",
    response_model=TurnView,
    responses={**problems(*BODY, 404, 409), **FORMS},
)
async def answer_calls(pane: Chatting, http: HttpRequest, session_id: Id, body: Results) -> TurnView | EventStream:
    """Give the results of `tools` that came with the message. The turn goes on when there is one for every call.

    Answered in the same two forms as a message. A result that does not fit the window is cut.
    """
    return await _answered(pane, http, session_id, pane.answer_calls(session_id, body.results))


@router.post(
    "/turns/{turn}/retry",
    summary="Send a turn's message again",
    response_model=TurnView,
    responses={**problems(404, 409), **FORMS},
)
async def retry_turn(
    pane: Chatting, http: HttpRequest, session_id: Id, turn: TurnNumber, key: Key = None
) -> TurnView | EventStream:
    """Answer the message of the last turn again, in a new turn, when it failed or was stopped. The model is asked once.

    Answered in the same two forms as a message. To ask an answered question again, fork before its turn.
    """
    return await _answered(pane, http, session_id, pane.retry(session_id, turn, key=key))


@router.post(
    "/messages/record", status_code=201, summary="Add a message without a turn", responses=problems(*BODY, 404)
)
async def record_message(pane: Chatting, session_id: Id, said: SaidMessage, key: Key = None) -> SessionView:
    """Put a message into the conversation that was said elsewhere. No model is called."""
    return await pane.sessions.add_message(session_id, said.role, said.content, key=key)


@router.post("/cancel", summary="Stop the turn", responses=problems(404, 409))
async def cancel_turn(pane: Chatting, session_id: Id) -> SessionView:
    """Stop the turn that is running or waiting. What it said so far is kept."""
    return await pane.cancel(session_id)


@router.post("/preview", summary="See the request that a message would make", responses=problems(*BODY, 404))
async def preview(
    pane: Reading,
    session_id: Id,
    draft: Draft,
    texts: Annotated[bool, Query(description="False: only the context, without messages and tools.")] = True,
) -> Request:
    """Return the messages, tools and context of a request. No model is called, and no message is stored.

    Where the server has an embedding endpoint, the calls to it are recorded with the session.
    """
    found = await pane.preview(session_id, draft.content, attachments=_files(draft.attachments))
    return found if texts else replace(found, messages=(), tools=())


def _files(bodies: Sequence[FileBody]) -> list[NewFile]:
    return [NewFile(body.name, body.data) for body in bodies]


async def _answered(
    pane: LocalPane, http: HttpRequest, session_id: SessionId, live: AsyncGenerator[Live]
) -> TurnView | EventStream:
    events = await _begun(live)
    if wants_events(http):
        return EventStream(events)
    return await pane.drained(session_id, events)


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
