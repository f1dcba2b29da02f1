"""Responses: `POST /v1/responses`, with text and function calls."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from time import time
from typing import Annotated, Any, Literal, Protocol

import anyio.to_thread
from starlette.responses import JSONResponse, Response

from windowpane.context.messages import ToolCall, Usage
from windowpane.context.request import ReplyOptions
from windowpane.errors import NotFoundError
from windowpane.local.pane import LocalPane
from windowpane.server.dependencies import Asking, Chatting
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai import asking
from windowpane.server.openai.conversation import Answering, ClientRequest, answering
from windowpane.server.openai.counting import tokens_of
from windowpane.server.openai.errors import Failure, OpenAIRoute, failures
from windowpane.server.openai.one_off import OnceSessions
from windowpane.server.openai.reply import End, Heard, Text, hear
from windowpane.server.openai.response_request import (
    ConversationName,
    Item,
    ResponseRequest,
    conversation_of,
    effort_of,
    functions_of,
)
from windowpane.server.openai.stream import data, first_of, until_gone
from windowpane.server.sse import ByteStream

INPUT = "input"


class ResponsesRoute(OpenAIRoute):
    """A route of requests that call the conversation their input."""

    said = INPUT


router = LazyRouter(prefix="/v1", tags=["openai"], route_class=ResponsesRoute)

ALLOWED: Mapping[str, Sequence[Any]] = {
    "background": (False,),
    "prompt": (),
}
"""Parameters that would change the answer in ways that cannot be had here, and the values that ask for nothing."""


SAMPLING = ("parallel_tool_calls",)
IN_VAIN = ("top_logprobs", "max_tool_calls")
"""Parameters that are taken and have no effect, and the client is told so."""


FORM = "text.format"
EXAMPLE = {"model": "guide", "input": "How do I add a rule?"}
SHAPE = {
    "type": "object",
    "title": "Response",
    "required": ["id", "object", "created_at", "status", "model", "output"],
    "properties": {
        "id": {"type": "string"},
        "object": {"const": "response"},
        "created_at": {"type": "integer"},
        "status": {"enum": ["completed", "incomplete", "failed", "in_progress", "cancelled"]},
        "model": {"type": "string"},
        "output": {"type": "array", "items": {"type": "object"}},
    },
}
CONTENT = {"application/json": {"schema": SHAPE}, **asking.streamed("event: response.created\ndata: {…}\n\n")}


@router.post(
    "/responses",
    summary="Answer, as OpenAI's clients ask for responses",
    response_model=None,
    responses=asking.responses_of("The response; with `stream`, as server-sent events.", CONTENT),
    openapi_extra={"requestBody": {"content": {"application/json": {"example": EXAMPLE}}}},
)
async def create_response(
    pane: Chatting,
    caller: Asking,
    once: OnceSessions,
    body: Annotated[ResponseRequest, asking.Storable],
    session: asking.SessionHeader = None,
    key: asking.KeyHeader = None,
) -> Response:
    """Let an agent answer. `Windowpane-Session` and `Windowpane-Turn` of the response name the recorded turn.

    `previous_response_id` carries on the session of that response, and so does a session that is named. Functions in
    `tools` are offered beside the agent's own tools; a call of one is in `output`, and the turn goes on when its result
    is sent as `function_call_output`. `tool_choice` and `text.format` are passed on to the model's provider and stand
    in the record.
    """
    engine = pane.engine
    asked = await _asked(pane, body, session, key)
    turn = await answering(pane, caller.owner, once, asked)
    written = WrittenResponse(turn, body)
    if body.stream:
        first, answer = await first_of(hear(engine, turn))
        if isinstance(first, Failure):
            return first.naming(INPUT).response(turn.headers)
        return ByteStream(until_gone(engine, turn, _stream(answer, written)), headers=turn.headers)
    async for heard in hear(engine, turn):
        written.take(heard)
        if isinstance(heard, Failure):
            return heard.naming(INPUT).response(turn.headers)
    return JSONResponse(written.response(), headers=turn.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTokens:
    """How many tokens a request would take."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int


@router.post(
    "/responses/input_tokens",
    summary="Count the tokens of a request for a response, without sending it",
    responses=failures(404, 413, 415),
    openapi_extra={"requestBody": {"content": {"application/json": {"example": EXAMPLE}}}},
)
async def count_input_tokens(
    pane: Chatting,
    caller: Asking,
    body: Annotated[ResponseRequest, asking.Storable],
    session: asking.SessionHeader = None,
) -> InputTokens:
    """Return what the whole request would take by our count: prompt, items and tools of the agent included."""
    asked = await _asked(pane, body, session, None)
    before = body.previous_response_id
    branched = before is not None and asked.session != parse_id(before).session_id
    try:
        return InputTokens(input_tokens=await tokens_of(pane, caller.owner, asked))
    finally:
        if branched and asked.session:
            await pane.sessions.delete(asked.session)


async def _asked(pane: LocalPane, body: ResponseRequest, session: str | None, key: str | None) -> ClientRequest:
    asking.refuse(body.model_dump(include=set(ALLOWED)), ALLOWED)
    items = [Item(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    system = [
        asking.text_of(item.content, f"input[{index}].content")
        for index, item in enumerate(items)
        if item.role in ("system", "developer")
    ]
    settings = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "max_output_tokens": body.max_output_tokens,
        "system_prompt": asking.joined((body.instructions or "", *system)) or None,
    }
    given = [tool.tool for tool in functions_of(body)]
    conversation = body.conversation.id if isinstance(body.conversation, ConversationName) else body.conversation
    named = asking.session_of(session if session is not None else conversation, body.metadata)
    if body.previous_response_id is not None:
        named = await _session_after(pane, body.previous_response_id)
    form = body.text.format if body.text else None
    return ClientRequest(
        agent=body.model,
        said=await anyio.to_thread.run_sync(conversation_of, items, named is not None),
        brought=asking.offered(given, body.tool_choice),
        reply_options=ReplyOptions(
            must_call=asking.forced(given, body.tool_choice),
            response_format=asking.form_of(form.type, form, FORM) if form else None,
            sampling=asking.sampling(body, SAMPLING) | effort_of(body),
        ),
        ignored=asking.asked_in_vain(body, IN_VAIN) + asking.left_out(body.tools or ()),
        form_param=FORM,
        settings={name: value for name, value in settings.items() if value is not None},
        session=named,
        keep=bool(body.store),
        key=key,
    )


async def _session_after(pane: LocalPane, response_id: str) -> str:
    """Return the session that a response was given in, or a branch of it if it has gone on since."""
    try:
        named = parse_id(response_id)
        state = await pane.engine.sessions.get(await pane.own(named.session_id))
        if named.turn == state.last_turn:
            return state.id
        branch = await pane.engine.sessions.fork(state.id, named.turn + 1, listed=state.listed)
    except NotFoundError:
        raise NotFoundError(f"Previous response with id '{response_id}' not found.") from None
    return branch.id


@dataclass(frozen=True, slots=True)
class ResponseName:
    """What the id of a response says: the turn that it is of, and where in the log it begins."""

    session_id: str
    turn: int
    first_seq: int


def parse_id(response_id: str) -> ResponseName:
    """Return what the id of a response says.

    Raises:
        NotFoundError: no response has such an id.
    """
    found = _ID.fullmatch(response_id)
    if found is None:
        raise NotFoundError(f"Response with id '{response_id}' not found.")
    return ResponseName(found[1], int(found[2]), int(found[3]))


_ID = re.compile(r"(?:resp_|chatcmpl-)(ses_\w+)_(\d{1,9})-(\d{1,12})")


class WrittenResponse:
    """A response as far as it is written."""

    def __init__(self, turn: Answering, body: ResponseRequest, created_at: int | None = None) -> None:
        self.turn = turn
        self.text = ""
        self.end: End | None = None
        self.failure: Failure | None = None
        self.cancelled = False
        self._body = body
        self._created_at = int(time()) if created_at is None else created_at
        self._id = f"{turn.session_id}_{turn.turn}-{turn.first_seq}"

    def take(self, heard: Heard) -> None:
        """Take in what was heard."""
        match heard:
            case Text(text):
                self.text += text
            case End():
                self.end = heard
            case Failure():
                self.failure = heard

    @property
    def status(self) -> Literal["completed", "incomplete", "failed", "in_progress", "cancelled"]:
        """Return how far the response is."""
        if self.cancelled:
            return "cancelled"
        if self.failure is not None:
            return "failed"
        if self.end is None:
            return "in_progress"
        return "incomplete" if self.end.reason in ("length", "content_filter") else "completed"

    def message(self, status: Literal["in_progress", "completed"]) -> dict[str, Any]:
        """Return the text as an item of the output."""
        content = [] if status == "in_progress" else [self.part()]
        return {"id": f"msg_{self._id}", "type": "message", "status": status, "role": "assistant", "content": content}

    def part(self) -> dict[str, Any]:
        """Return the text as a part of its message."""
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": []}

    def call(self, call: ToolCall, status: Literal["in_progress", "completed"]) -> dict[str, Any]:
        """Return a call as an item of the output."""
        return {
            "id": f"fc_{self._id}_{call.id}",
            "type": "function_call",
            "status": status,
            "call_id": self.turn.client_id(call),
            "name": call.ref.name if call.ref else call.offered_name,
            "arguments": call.arguments if status == "completed" else "",
        }

    def output(self) -> list[dict[str, Any]]:
        """Return every item of the output."""
        calls = [self.call(call, "completed") for call in self.end.calls] if self.end else []
        return ([self.message("completed")] if self.text or not calls else []) + calls

    def response(self) -> dict[str, Any]:
        """Return the response as it stands."""
        body, ended = self._body, self.end is not None or self.failure is not None
        cut = (
            {"length": "max_output_tokens", "content_filter": "content_filter"}.get(self.end.reason)
            if self.end
            else None
        )
        failure = self.failure.body if self.failure else None
        return {
            "id": f"resp_{self._id}",
            "object": "response",
            "created_at": self._created_at,
            "status": self.status,
            "background": False,
            "error": {"code": "server_error", "message": failure.message} if failure else None,
            "incomplete_details": {"reason": cut} if cut else None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "metadata": body.metadata or {},
            "model": body.model,
            "output": self.output() if ended and not failure else [],
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": body.previous_response_id,
            "reasoning": {"effort": body.reasoning.effort if body.reasoning else None, "summary": None},
            "store": bool(body.store),
            "temperature": body.temperature,
            "text": {"format": _form(body)},
            "tool_choice": body.tool_choice or "auto",
            "tools": [tool.model_dump() for tool in functions_of(body)],
            "top_p": body.top_p,
            "truncation": "disabled",
            "usage": _usage(self.end.usage) if self.end else None,
            "user": body.user,
        }


def _form(body: ResponseRequest) -> dict[str, Any]:
    form = body.text.format if body.text else None
    return form.model_dump(by_alias=True, exclude_unset=True) if form else {"type": "text"}


async def _stream(heard_of: AsyncGenerator[Heard], written: WrittenResponse) -> AsyncGenerator[bytes]:
    number = 0

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        body = {"type": kind, "sequence_number": number, **fields}
        number += 1
        return data(body, kind)

    yield event("response.created", response=written.response())
    yield event("response.in_progress", response=written.response())
    spoke = False
    async with aclosing(heard_of) as answer:
        async for heard in answer:
            if isinstance(heard, Text) and not spoke:
                spoke = True
                for opening in _opening(written, event):
                    yield opening
            written.take(heard)
            if isinstance(heard, Text):
                yield event("response.output_text.delta", **_at(written), delta=heard.text, logprobs=[])
    if spoke:
        for closing in _closing(written, event):
            yield closing
    elif written.end and not written.end.calls:
        for piece in (*_opening(written, event), *_closing(written, event)):
            yield piece
    for index, call in enumerate(written.end.calls if written.end else (), start=int(spoke)):
        for piece in _called(written, call, index, event):
            yield piece
    yield event(f"response.{written.status}", response=written.response())


def _at(written: WrittenResponse) -> dict[str, Any]:
    return {"item_id": written.message("in_progress")["id"], "output_index": 0, "content_index": 0}


def _opening(written: WrittenResponse, event: "_Event") -> list[bytes]:
    empty: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    return [
        event("response.output_item.added", output_index=0, item=written.message("in_progress")),
        event("response.content_part.added", **_at(written), part=empty),
    ]


def _closing(written: WrittenResponse, event: "_Event") -> list[bytes]:
    return [
        event("response.output_text.done", **_at(written), text=written.text, logprobs=[]),
        event("response.content_part.done", **_at(written), part=written.part()),
        event("response.output_item.done", output_index=0, item=written.message("completed")),
    ]


def _called(written: WrittenResponse, call: ToolCall, index: int, event: "_Event") -> list[bytes]:
    item = written.call(call, "completed")
    at = {"item_id": item["id"], "output_index": index}
    return [
        event("response.output_item.added", output_index=index, item=written.call(call, "in_progress")),
        event("response.function_call_arguments.delta", **at, delta=call.arguments),
        event("response.function_call_arguments.done", **at, name=item["name"], arguments=call.arguments),
        event("response.output_item.done", output_index=index, item=item),
    ]


class _Event(Protocol):
    """How an event of the stream is written."""

    def __call__(self, kind: str, **fields: Any) -> bytes: ...


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
