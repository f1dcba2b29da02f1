"""Messages: `POST /anthropic/v1/messages`, and how many tokens one would take."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any

import anyio.to_thread
from starlette.responses import JSONResponse, Response

from windowpane.context.messages import ToolCall, Usage
from windowpane.server.anthropic.asking import CountRequest, MessageRequest, asked
from windowpane.server.anthropic.errors import AnthropicRoute, anthropic_failures, document_of, response_of
from windowpane.server.dependencies import Asking, Chatting
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai import asking
from windowpane.server.openai.conversation import Answering, answering
from windowpane.server.openai.counting import tokens_of
from windowpane.server.openai.errors import Failure
from windowpane.server.openai.one_off import OnceSessions
from windowpane.server.openai.reply import End, Heard, Text, hear
from windowpane.server.openai.stream import data, first_of, until_gone
from windowpane.server.sse import ByteStream

router = LazyRouter(prefix="/anthropic/v1", tags=["anthropic"], route_class=AnthropicRoute)

REASONS: Mapping[str, str] = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
EXAMPLE = {"model": "guide", "max_tokens": 1024, "messages": [{"role": "user", "content": "How do I add a rule?"}]}
SHAPE = {
    "type": "object",
    "title": "AnthropicAnswer",
    "required": ["id", "type", "role", "model", "content", "stop_reason", "usage"],
    "properties": {
        "id": {"type": "string"},
        "type": {"const": "message"},
        "role": {"const": "assistant"},
        "model": {"type": "string"},
        "content": {"type": "array", "items": {"type": "object"}},
        "stop_reason": {"type": ["string", "null"]},
        "usage": {"type": "object"},
    },
}
CONTENT = {"application/json": {"schema": SHAPE}, **asking.streamed("event: message_start\ndata: {…}\n\n")}
ANSWERS = {
    **asking.responses_of("The answer; with `stream`, as server-sent events.", CONTENT),
    **anthropic_failures(404, 409, 413, 415),
}


@router.post(
    "/messages",
    summary="Answer a conversation, as Anthropic's clients ask for it",
    response_model=None,
    responses=ANSWERS,
    openapi_extra={"requestBody": {"content": {"application/json": {"example": EXAMPLE}}}},
)
async def create_message(
    pane: Chatting,
    caller: Asking,
    once: OnceSessions,
    body: Annotated[MessageRequest, asking.Storable],
    session: asking.SessionHeader = None,
    key: asking.KeyHeader = None,
) -> Response:
    """Let an agent answer. `Windowpane-Session` and `Windowpane-Turn` of the response name the recorded turn.

    In a session, the last message is what counts: the session knows the ones before. Tools are offered beside the
    agent's own; a call of one ends the answer with the reason `tool_use`, and the turn goes on when its result is sent.
    """
    engine = pane.engine
    wanted = await anyio.to_thread.run_sync(asked, body, session, key)
    turn = await answering(pane, caller.owner, once, wanted)
    first, answer = await first_of(hear(engine, turn))
    if isinstance(first, Failure):
        return response_of(first, turn.headers)
    shape = _Shape(turn, body)
    if body.stream:
        return ByteStream(until_gone(engine, turn, _stream(answer, shape)), headers=turn.headers)
    said: list[str] = []
    async for heard in answer:
        match heard:
            case Text(text):
                said.append(text)
            case Failure():
                return response_of(heard, turn.headers)
            case End():
                return JSONResponse(shape.whole("".join(said), heard), headers=turn.headers)
    raise AssertionError("an answer ends")


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens a request would take."""

    input_tokens: int


@router.post(
    "/messages/count_tokens",
    summary="Count the tokens of a request, without sending it",
    responses=anthropic_failures(404, 413, 415),
)
async def count_message_tokens(
    pane: Chatting, caller: Asking, body: Annotated[CountRequest, asking.Storable], session: asking.SessionHeader = None
) -> TokenCount:
    """Return what the whole request would take by our count: prompt, items and tools of the agent included."""
    wanted = await anyio.to_thread.run_sync(asked, body, session, None)
    return TokenCount(await tokens_of(pane, caller.owner, wanted))


class _Shape:
    """The forms in which one answer is sent."""

    def __init__(self, turn: Answering, body: MessageRequest) -> None:
        self.turn = turn
        self._body = body
        self._id = f"msg_{turn.session_id}_{turn.turn}-{turn.first_seq}"

    def whole(self, text: str, end: End) -> dict[str, Any]:
        """Return the answer in one piece."""
        content = [{"type": "text", "text": text}] if text else []
        content += [self.call(call, json.loads(_object(call.arguments))) for call in end.calls]
        return self.begun() | {"content": content, **self.reason(end), "usage": _usage(end.usage)}

    def begun(self) -> dict[str, Any]:
        """Return the answer before its first word."""
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._body.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(Usage()),
        }

    def reason(self, end: End) -> dict[str, Any]:
        """Return why the answer ended."""
        stops = self._body.stop_sequences or []
        if end.stopped and stops:
            return {"stop_reason": "stop_sequence", "stop_sequence": stops[0] if len(stops) == 1 else None}
        return {"stop_reason": REASONS.get(end.reason, "end_turn"), "stop_sequence": None}

    def call(self, call: ToolCall, arguments: Any) -> dict[str, Any]:
        """Return a call as a block."""
        name = call.ref.name if call.ref else call.offered_name
        return {"type": "tool_use", "id": self.turn.client_id(call), "name": name, "input": arguments}


def _event(kind: str, **fields: Any) -> bytes:
    return data({"type": kind, **fields}, kind)


def _opening(index: int, block: Mapping[str, Any]) -> bytes:
    return _event("content_block_start", index=index, content_block=block)


async def _stream(answer: AsyncGenerator[Heard], shape: _Shape) -> AsyncGenerator[bytes]:
    yield _event("message_start", message=shape.begun())
    spoke = 0
    async with aclosing(answer) as heard_of:
        async for heard in heard_of:
            match heard:
                case Text(text):
                    if not spoke:
                        spoke = 1
                        yield _opening(0, {"type": "text", "text": ""})
                    yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
                case Failure():
                    yield data(document_of(heard), "error")
                    return
                case End():
                    if spoke:
                        yield _event("content_block_stop", index=0)
                    for index, call in enumerate(heard.calls, start=spoke):
                        for piece in _called(shape, call, index):
                            yield piece
                    yield _event("message_delta", delta=shape.reason(heard), usage=_usage(heard.usage))
    yield _event("message_stop")


def _called(shape: _Shape, call: ToolCall, index: int) -> list[bytes]:
    delta = {"type": "input_json_delta", "partial_json": _object(call.arguments)}
    return [
        _opening(index, shape.call(call, {})),
        _event("content_block_delta", index=index, delta=delta),
        _event("content_block_stop", index=index),
    ]


def _object(arguments: str) -> str:
    """Return arguments as the JSON object that clients rely on. What is none comes in one, as Anthropic advises."""
    try:
        whole = isinstance(json.loads(arguments or "{}"), dict)
    except (ValueError, RecursionError):
        whole = False
    return (arguments or "{}") if whole else json.dumps({"INVALID_JSON": arguments}, ensure_ascii=False)


def _usage(usage: Usage) -> dict[str, int]:
    """Return the usage with what was cached apart, as Anthropic counts it."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": max(usage.input_tokens - cached, 0),
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
