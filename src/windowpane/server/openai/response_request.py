"""What is asked for with `POST /v1/responses`, and what its items tell an agent."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag

from windowpane.server.openai import asking
from windowpane.server.openai.conversation import ClientMessage, call_named
from windowpane.server.openai.errors import UnsupportedError
from windowpane.server.openai.files import files_of
from windowpane.sessions.conversation import MAX_CLIENT_MESSAGES, MAX_CLIENT_TOOLS


class Item(BaseModel):
    """Something that was said or called. What else clients send back with it is passed over."""

    model_config = ConfigDict(frozen=True)

    type: Literal["message", "function_call", "function_call_output", "reasoning", "item_reference"] = "message"
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | list[asking.ContentPart] | None = None
    call_id: str | None = None
    name: asking.FunctionName | None = None
    arguments: str | None = None
    output: str | list[asking.ContentPart] | None = None


class ResponseTool(asking.Function):
    """A function, as one of the tools."""

    type: Literal["function"]


AnyTool = Annotated[
    Annotated[ResponseTool, Tag("Function")] | Annotated[asking.OtherTool, Tag("Other")],
    Discriminator(asking.kind_of_tool),
]


class ConversationName(BaseModel):
    """A conversation, by its id."""

    model_config = ConfigDict(frozen=True)

    id: str


class TextForm(asking.NamedSchema):
    """The form of the answer: text, any JSON object, or JSON that a schema describes."""

    type: asking.FormKind


class TextOptions(BaseModel):
    """How the text is to be. What only advises is passed over."""

    model_config = ConfigDict(frozen=True)

    format: TextForm | None = None
    verbosity: str | None = None


class ReasoningOptions(BaseModel):
    """How much the model is to think. What only advises is passed over."""

    model_config = ConfigDict(frozen=True)

    effort: str | None = None


class ResponseRequest(asking.AnyRequest):
    """Something to be answered by an agent. Parameters that have no effect here are taken and passed over."""

    input: str | Annotated[list[Item], Field(min_length=1, max_length=MAX_CLIENT_MESSAGES)]
    instructions: str | None = None
    tools: Annotated[list[AnyTool], Field(max_length=MAX_CLIENT_TOOLS)] | None = None
    previous_response_id: Annotated[
        str | None, Field(description="A response of a session; an earlier one begins a branch.")
    ] = None
    conversation: Annotated[
        str | ConversationName | None, Field(description="A session, as in `Windowpane-Session`.")
    ] = None
    max_output_tokens: asking.OutputTokens = None
    background: bool | None = None
    prompt: JsonValue = None
    text: TextOptions | None = None
    max_tool_calls: int | None = None
    include: JsonValue = None
    reasoning: ReasoningOptions | None = None
    stream_options: JsonValue = None
    truncation: str | None = None


NO_REFERENCE = (
    "Without a session an item cannot be named by its id: send the item itself, or name its session with "
    "'previous_response_id' or 'conversation'."
)


def functions_of(body: ResponseRequest) -> list[ResponseTool]:
    """Return the functions among the tools."""
    return [tool for tool in body.tools or () if isinstance(tool, ResponseTool)]


def conversation_of(items: Sequence[Item], in_session: bool) -> tuple[ClientMessage, ...]:
    """Return what the items tell an agent. A session knows its items: there a reference to one tells nothing new.

    Raises:
        UnsupportedError: an item cannot be used, or one is only named and no session knows it.
    """
    for index, item in enumerate(items):
        if item.type == "item_reference" and not in_session:
            raise UnsupportedError(f"input[{index}]", NO_REFERENCE)
    return tuple(said for index, item in enumerate(items) if (said := _said(item, index)) is not None)


def effort_of(body: ResponseRequest) -> dict[str, Any]:
    """Return how much the model is to think, as a sampling parameter."""
    return {"reasoning_effort": body.reasoning.effort} if body.reasoning and body.reasoning.effort else {}


def _said(item: Item, index: int) -> ClientMessage | None:
    """Return what an item tells, or None for one that tells nothing to an agent."""
    if item.type == "function_call":
        call = call_named(
            _needed(item.call_id, index, "call_id"), _needed(item.name, index, "name"), item.arguments or ""
        )
        return ClientMessage(role="assistant", calls=(call,))
    if item.type == "function_call_output":
        return ClientMessage(
            role="tool",
            text=asking.text_of(item.output, f"input[{index}].output"),
            files=files_of(item.output, f"input[{index}].output"),
            call_id=_needed(item.call_id, index, "call_id"),
        )
    if item.type in ("reasoning", "item_reference") or item.role in ("system", "developer"):
        return None
    return ClientMessage(
        role="assistant" if item.role == "assistant" else "user",
        text=asking.text_of(item.content, f"input[{index}].content"),
        files=files_of(item.content, f"input[{index}].content"),
    )


def _needed(value: str | None, index: int, name: str) -> str:
    if not value:
        where = f"input[{index}].{name}"
        raise UnsupportedError(where, f"Missing required parameter: '{where}'.", "missing_required_parameter")
    return value
