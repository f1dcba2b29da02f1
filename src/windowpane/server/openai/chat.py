"""Chat completions: `POST /v1/chat/completions`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from time import time
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag

from windowpane.context.messages import ToolCall, Usage
from windowpane.context.request import ReplyOptions
from windowpane.server.dependencies import Asking, Chatting
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai import asking
from windowpane.server.openai.conversation import Answering, ClientMessage, ClientRequest, answering, call_named
from windowpane.server.openai.errors import Failure, OpenAIRoute, UnsupportedError
from windowpane.server.openai.files import files_of
from windowpane.server.openai.one_off import OnceSessions
from windowpane.server.openai.reply import End, FinishReason, Heard, Text, hear
from windowpane.server.openai.stream import DONE, data, first_of, until_gone
from windowpane.server.sse import ByteStream
from windowpane.sessions.conversation import MAX_CLIENT_MESSAGES, MAX_CLIENT_TOOLS

router = LazyRouter(prefix="/v1", tags=["openai"], route_class=OpenAIRoute)

ALLOWED: Mapping[str, Sequence[Any]] = {
    "n": (1,),
    "modalities": (["text"],),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "audio": (),
}
"""Parameters that would change the answer in ways that cannot be had here, and the values that ask for nothing."""


SAMPLING = ("frequency_penalty", "presence_penalty", "logit_bias", "reasoning_effort", "seed", "parallel_tool_calls")
IN_VAIN = ("logprobs", "top_logprobs", "prediction", "web_search_options")
"""Parameters that ask for something beside the answer, which is not there; the answer is the same without it."""


class CalledFunction(BaseModel):
    """The function that a past call was for."""

    model_config = ConfigDict(frozen=True)

    name: asking.FunctionName
    arguments: str


class PastCall(BaseModel):
    """A call of one of the client's functions."""

    model_config = ConfigDict(frozen=True)

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(BaseModel):
    """A message of the conversation. What else clients send back with it is passed over."""

    model_config = ConfigDict(frozen=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[asking.ContentPart] | None = None
    tool_calls: list[PastCall] | None = None
    tool_call_id: str | None = None


class ChatTool(BaseModel):
    """A tool of the client's, offered to the model beside the agent's own."""

    model_config = ConfigDict(frozen=True)

    type: Literal["function"]
    function: asking.Function


AnyTool = Annotated[
    Annotated[ChatTool, Tag("Function")] | Annotated[asking.OtherTool, Tag("Other")],
    Discriminator(asking.kind_of_tool),
]


class StreamOptions(BaseModel):
    """What is to be streamed beside the answer."""

    model_config = ConfigDict(frozen=True)

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatForm(BaseModel):
    """The form of the answer: text, any JSON object, or JSON that a schema describes."""

    model_config = ConfigDict(frozen=True)

    type: asking.FormKind
    json_schema: asking.NamedSchema | None = None


class ChatRequest(asking.AnyRequest):
    """A conversation to be carried on by an agent. Parameters that have no effect here are taken and passed over."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_CLIENT_MESSAGES)]
    stream_options: StreamOptions | None = None
    tools: Annotated[list[AnyTool], Field(max_length=MAX_CLIENT_TOOLS)] | None = None
    max_tokens: asking.OutputTokens = None
    max_completion_tokens: asking.OutputTokens = None
    n: int | None = None
    stop: asking.Stop = None
    logprobs: bool | None = None
    modalities: JsonValue = None
    response_format: ChatForm | None = None
    functions: JsonValue = None
    function_call: JsonValue = None
    audio: JsonValue = None
    prediction: JsonValue = None
    web_search_options: JsonValue = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, int] | None = None
    reasoning_effort: str | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function and what to call it with, as JSON."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCall:
    """A call that the client is to run."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMessage:
    """What the agent says, and which calls it waits for."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    tool_calls: tuple[MessageCall, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The answer. There is one."""

    index: int = 0
    message: AnswerMessage
    finish_reason: FinishReason
    logprobs: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptDetails:
    """How much of the prompt came from the provider's cache."""

    cached_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatUsage:
    """What all model calls of the answer cost together, in tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCompletion:
    """An answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: ChatUsage


FORM = "response_format"
EXAMPLE = {"model": "guide", "messages": [{"role": "user", "content": "How do I add a rule?"}]}
STREAM = asking.streamed('data: {"choices":[…]}\n\ndata: [DONE]\n\n')


@router.post(
    "/chat/completions",
    summary="Answer a conversation, as OpenAI's clients ask for it",
    response_model=ChatCompletion,
    response_model_exclude_none=False,
    responses=asking.responses_of("The answer; with `stream`, as server-sent events.", STREAM),
    openapi_extra={"requestBody": {"content": {"application/json": {"example": EXAMPLE}}}},
)
async def create_chat_completion(
    pane: Chatting,
    caller: Asking,
    once: OnceSessions,
    response: Response,
    body: Annotated[ChatRequest, asking.Storable],
    session: asking.SessionHeader = None,
    key: asking.KeyHeader = None,
) -> ChatCompletion | Response:
    """Let an agent answer. `Windowpane-Session` and `Windowpane-Turn` of the response name the recorded turn.

    In a session, the last message is what counts: the session knows the ones before. Without one, the request stands
    for itself. Functions in `tools` are offered beside the agent's own tools; a call of one ends the answer with the
    reason `tool_calls`, and the turn goes on when its result is sent. `tool_choice` and `response_format` are passed on
    to the model's provider and stand in the record.
    """
    engine = pane.engine
    asked = await anyio.to_thread.run_sync(_asked, body, session, key)
    turn = await answering(pane, caller.owner, once, asked)
    shape = ChatShape(turn, body.model, with_usage=bool(body.stream_options and body.stream_options.include_usage))
    if body.stream:
        first, answer = await first_of(hear(engine, turn))
        if isinstance(first, Failure):
            return first.response(turn.headers)
        return ByteStream(until_gone(engine, turn, _stream(answer, shape)), headers=turn.headers)
    response.headers.update(turn.headers)
    said: list[str] = []
    async for heard in hear(engine, turn):
        match heard:
            case Text(text):
                said.append(text)
            case Failure():
                return heard.response(turn.headers)
            case End():
                return shape.whole("".join(said), heard)
    raise AssertionError("an answer ends")


def _asked(body: ChatRequest, session: str | None, key: str | None) -> ClientRequest:
    asking.refuse(body.model_dump(include=set(ALLOWED)), ALLOWED)
    system = asking.joined(_text(m, i) for i, m in enumerate(body.messages) if m.role in ("system", "developer"))
    limit = body.max_completion_tokens or body.max_tokens
    settings = {"temperature": body.temperature, "top_p": body.top_p, "max_output_tokens": limit}
    given = [tool.function.tool for tool in body.tools or () if isinstance(tool, ChatTool)]
    form = body.response_format
    return ClientRequest(
        agent=body.model,
        said=tuple(
            _said(message, index)
            for index, message in enumerate(body.messages)
            if message.role not in ("system", "developer")
        ),
        brought=asking.offered(given, body.tool_choice),
        reply_options=ReplyOptions(
            must_call=asking.forced(given, body.tool_choice),
            response_format=asking.form_of(form.type, form.json_schema, f"{FORM}.json_schema") if form else None,
            stop=asking.stops(body.stop),
            sampling=asking.sampling(body, SAMPLING),
        ),
        ignored=asking.asked_in_vain(body, IN_VAIN) + asking.left_out(body.tools or ()),
        form_param=FORM,
        settings={name: value for name, value in settings.items() if value is not None}
        | ({"system_prompt": system} if system else {}),
        session=asking.session_of(session, body.metadata),
        keep=bool(body.store),
        key=key,
    )


def _said(message: ChatMessage, index: int) -> ClientMessage:
    text, files = _text(message, index), files_of(message.content, f"messages[{index}].content")
    if message.role == "tool":
        if not message.tool_call_id:
            raise UnsupportedError(
                f"messages[{index}].tool_call_id", "A tool's message names its call.", "invalid_value"
            )
        return ClientMessage(role="tool", text=text, call_id=message.tool_call_id, files=files)
    if message.role == "assistant":
        calls = [call_named(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
        return ClientMessage(role="assistant", text=text, calls=tuple(calls))
    return ClientMessage(role="user", text=text, files=files)


def _text(message: ChatMessage, index: int) -> str:
    return asking.text_of(message.content, f"messages[{index}].content")


class ChatShape:
    """The forms in which one answer is sent."""

    def __init__(self, turn: Answering, model: str, *, with_usage: bool = False, created: int | None = None) -> None:
        self.turn = turn
        self.with_usage = with_usage
        self._id = f"chatcmpl-{turn.session_id}_{turn.turn}-{turn.first_seq}"
        self._created = int(time()) if created is None else created
        self._model = model

    def whole(self, text: str, end: End) -> ChatCompletion:
        """Return the answer in one piece."""
        calls = tuple(
            MessageCall(id=id_, function=FunctionCall(name, arguments)) for id_, name, arguments in self._calls(end)
        )
        message = AnswerMessage(content=text if text or not calls else None, tool_calls=calls or None)
        choice = Choice(message=message, finish_reason=end.reason)
        return ChatCompletion(
            id=self._id, created=self._created, model=self._model, choices=(choice,), usage=_usage(end.usage)
        )

    def chunk(self, delta: Mapping[str, Any], finish_reason: FinishReason | None = None) -> bytes:
        """Return a piece of the answer."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self._chunk([choice], None)

    def calls(self, end: End) -> bytes:
        """Return the calls that the client is to run."""
        entries = [
            {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for index, (id_, name, arguments) in enumerate(self._calls(end))
        ]
        return self.chunk({"tool_calls": entries})

    def usage(self, end: End) -> bytes:
        """Return what the answer cost."""
        return self._chunk([], asdict(_usage(end.usage)))

    def _chunk(self, choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
        told = {"usage": usage} if self.with_usage else {}
        base = {"id": self._id, "object": "chat.completion.chunk", "created": self._created, "model": self._model}
        return data({**base, "choices": choices, **told})

    def _calls(self, end: End) -> list[tuple[str, str, str]]:
        return [(self.turn.client_id(call), _name(call), call.arguments) for call in end.calls]


async def _stream(heard_of: AsyncGenerator[Heard], shape: ChatShape) -> AsyncGenerator[bytes]:
    yield shape.chunk({"role": "assistant", "content": "", "refusal": None})
    async with aclosing(heard_of) as answer:
        async for heard in answer:
            match heard:
                case Text(text):
                    yield shape.chunk({"content": text})
                case Failure():
                    yield data(heard.document())
                    return
                case End():
                    if heard.calls:
                        yield shape.calls(heard)
                    yield shape.chunk({}, heard.reason)
                    if shape.with_usage:
                        yield shape.usage(heard)
    yield DONE


def _name(call: ToolCall) -> str:
    return call.ref.name if call.ref else call.offered_name


def _usage(usage: Usage) -> ChatUsage:
    return ChatUsage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        prompt_tokens_details=PromptDetails(cached_tokens=usage.cache_read_tokens),
    )
