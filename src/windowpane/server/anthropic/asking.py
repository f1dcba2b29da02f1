"""What Anthropic's clients send, and the same as a request of any client."""

import json
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, ValidationError

from windowpane.context.messages import NewFile
from windowpane.context.request import ReplyOptions, ResponseFormat
from windowpane.server.openai import asking
from windowpane.server.openai.conversation import ClientMessage, ClientRequest, call_named
from windowpane.server.openai.errors import UnsupportedError
from windowpane.server.openai.files import from_base64
from windowpane.server.parameters import RequestBody
from windowpane.sessions.conversation import MAX_CLIENT_MESSAGES, MAX_CLIENT_TOOLS

FILE_BLOCKS = ("image", "document")
FORM = "output_config.format"


class BlockSource(BaseModel):
    """The bytes of an image or a document, in base64, or the words of a document."""

    model_config = ConfigDict(frozen=True)

    type: str
    media_type: str | None = None
    data: str | None = None


class ContentBlock(BaseModel):
    """A block of a message: text, an image, a document, a call, a result, or thinking, which is not needed again."""

    model_config = ConfigDict(frozen=True)

    type: str
    text: str | None = None
    id: str | None = None
    name: asking.FunctionName | None = None
    input: dict[str, JsonValue] | None = None
    tool_use_id: str | None = None
    content: str | list[dict[str, JsonValue]] | None = None
    is_error: bool | None = None
    source: BlockSource | None = None
    title: str | None = None


class AnthropicMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(frozen=True)

    role: Literal["user", "assistant", "system"]
    content: str | list[ContentBlock]


class AnthropicTool(BaseModel):
    """A tool of the client's, offered to the model beside the agent's own."""

    model_config = ConfigDict(frozen=True)

    name: asking.FunctionName
    description: str | None = None
    input_schema: asking.Schema
    type: Literal["custom"] | None = None


def _kind(tool: Any) -> str:
    kind = cast("Mapping[str, Any]", tool).get("type") if isinstance(tool, Mapping) else getattr(tool, "type", None)
    return "Other" if isinstance(kind, str) and kind != "custom" else "Function"


AnyTool = Annotated[
    Annotated[AnthropicTool, Tag("Function")] | Annotated[asking.OtherTool, Tag("Other")], Discriminator(_kind)
]


class AnthropicToolChoice(BaseModel):
    """Which tools may or must be called. It is about the tools in `tools`."""

    model_config = ConfigDict(frozen=True)

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class OutputForm(BaseModel):
    """JSON that a schema describes."""

    model_config = ConfigDict(frozen=True)

    type: Literal["json_schema"]
    described: Annotated[asking.Schema, Field(alias="schema")]


class OutputConfig(BaseModel):
    """How the answer is to be."""

    model_config = ConfigDict(frozen=True)

    format: OutputForm | None = None
    effort: str | None = None


class CountRequest(RequestBody):
    """A conversation to be carried on by an agent. Parameters that are not known here are named as ignored."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model: Annotated[str, Field(description="An agent's name.")]
    messages: Annotated[list[AnthropicMessage], Field(min_length=1, max_length=MAX_CLIENT_MESSAGES)]
    system: str | list[ContentBlock] | None = None
    tools: Annotated[list[AnyTool], Field(max_length=MAX_CLIENT_TOOLS)] | None = None
    tool_choice: AnthropicToolChoice | None = None
    output_config: OutputConfig | None = None


class MessageRequest(CountRequest):
    """The same, to be answered."""

    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)]
    stream: bool | None = None
    temperature: Annotated[float | None, Field(ge=0, le=1)] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    top_k: Annotated[int | None, Field(ge=0)] = None
    stop_sequences: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=16)] | None = None
    metadata: JsonValue = None
    service_tier: str | None = None


def asked(body: CountRequest, session: str | None, key: str | None) -> ClientRequest:
    """Return what a client asks for.

    Raises:
        UnsupportedError: it asks for something that cannot be done here.
    """
    given = [
        asking.tool_of(tool.name, tool.description, tool.input_schema)
        for tool in body.tools or ()
        if isinstance(tool, AnthropicTool)
    ]
    choice = _choice(body.tool_choice)
    options, settings = _options(body)
    extras = body.model_extra or {}
    system = asking.joined((_system(body), *(_text(m.content) for m in body.messages if m.role == "system")))
    return ClientRequest(
        agent=body.model,
        said=tuple(said for index, message in enumerate(body.messages) for said in _said(message, index)),
        brought=asking.offered(given, choice),
        reply_options=ReplyOptions(must_call=asking.forced(given, choice), **options),
        form_param=FORM,
        settings=settings | ({"system_prompt": system} if system else {}),
        session=session,
        key=key,
        ignored=tuple(name for name, value in extras.items() if value is not None) + asking.left_out(body.tools or ()),
    )


def _options(body: CountRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(body, MessageRequest):
        return {}, {}
    sampling: dict[str, Any] = {"top_k": body.top_k} if body.top_k is not None else {}
    if body.tool_choice and body.tool_choice.disable_parallel_tool_use is not None:
        sampling["parallel_tool_calls"] = not body.tool_choice.disable_parallel_tool_use
    settings = {"temperature": body.temperature, "top_p": body.top_p, "max_output_tokens": body.max_tokens}
    output = body.output_config or OutputConfig()
    if output.effort is not None:
        sampling["reasoning_effort"] = output.effort
    form = ResponseFormat(schema=output.format.described) if output.format else None
    options = {"stop": tuple(body.stop_sequences or ()), "sampling": sampling, "response_format": form}
    return options, {name: value for name, value in settings.items() if value is not None}


def _choice(choice: AnthropicToolChoice | None) -> JsonValue:
    """Return a choice of tools in OpenAI's words, which the rest of the way knows."""
    match choice:
        case None:
            return None
        case AnthropicToolChoice(type="any"):
            return "required"
        case AnthropicToolChoice(type="tool"):
            return {"type": "function", "name": choice.name or ""}
        case _:
            return choice.type


def _system(body: CountRequest) -> str:
    return _text(body.system or "")


def _text(content: str | Sequence[ContentBlock]) -> str:
    return content if isinstance(content, str) else "\n\n".join(block.text or "" for block in content if block.text)


def _said(message: AnthropicMessage, index: int) -> Iterator[ClientMessage]:
    """Yield what a message says: the results of tools first, because they answer the message before."""
    if message.role == "system":
        return
    blocks = [ContentBlock(type="text", text=message.content)] if isinstance(message.content, str) else message.content
    for place, block in enumerate(blocks):
        where = f"messages.{index}.content.{place}"
        if block.type not in ("text", "tool_use", "tool_result", "thinking", "redacted_thinking", *FILE_BLOCKS):
            raise UnsupportedError(where, f"{where}: only text, files and tools can be sent here, not {block.type!r}.")
        if block.type == "tool_result":
            yield ClientMessage(
                role="tool",
                text=_result(block, where),
                files=_result_files(block, where),
                call_id=_needed(block.tool_use_id, f"{where}.tool_use_id"),
                is_error=bool(block.is_error),
            )
    text = "\n\n".join(block.text for block in blocks if block.type == "text" and block.text)
    calls = tuple(
        call_named(_needed(b.id, "tool_use.id"), _needed(b.name, "tool_use.name"), json.dumps(b.input or {}))
        for b in blocks
        if b.type == "tool_use"
    )
    files = tuple(
        _file(block.source, block.title or "", f"messages.{index}.content.{place}")
        for place, block in enumerate(blocks)
        if block.type in FILE_BLOCKS
    )
    if message.role == "assistant":
        yield ClientMessage(role="assistant", text=text, calls=calls)
    elif text or files or not any(block.type == "tool_result" for block in blocks):
        yield ClientMessage(role="user", text=text, files=files)


def _result(block: ContentBlock, where: str) -> str:
    if not isinstance(block.content, list):
        return block.content or ""
    parts: Sequence[Mapping[str, JsonValue]] = block.content
    if wrong := next((part for part in parts if part.get("type") not in ("text", *FILE_BLOCKS)), None):
        raise UnsupportedError(where, f"{where}: only text and files can be a result, not {wrong.get('type')!r}.")
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _result_files(block: ContentBlock, where: str) -> tuple[NewFile, ...]:
    parts = (
        [part for part in block.content if part.get("type") in FILE_BLOCKS] if isinstance(block.content, list) else []
    )
    try:
        sources = [BlockSource.model_validate(part.get("source")) for part in parts]
    except ValidationError:
        raise UnsupportedError(where, f"{where}: a file needs a source.", "invalid_value") from None
    return tuple(_file(source, "", where) for source in sources)


def _file(source: BlockSource | None, title: str, where: str) -> NewFile:
    """Return the file of a block.

    Raises:
        UnsupportedError: its bytes are not there.
    """
    if source is None or source.data is None or source.type not in ("base64", "text"):
        why = (
            f"{where}: send the bytes as a source of type base64: other addresses and uploaded files are not read here."
        )
        raise UnsupportedError(where, why, "invalid_value")
    ending = mimetypes.guess_extension(source.media_type or "") or ""
    name = title or f"file{ending}"
    return NewFile(name, source.data.encode()) if source.type == "text" else from_base64(source.data, where, name)


def _needed(value: str | None, where: str) -> str:
    if not value:
        raise UnsupportedError(where, f"{where}: Field required", "missing_required_parameter")
    return value
