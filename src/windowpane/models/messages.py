"""Our messages in pydantic-ai's words, and a model's reply in ours.

Text goes through as it is: nothing is stripped or escaped, and the order is the order of the request. The system
messages become one, the first: of the templates of open models some refuse a second one, and more drop it without a
word. Where templates want the roles to alternate, what stands before the user's message is joined with it. Three
things cannot be sent as they are. An assistant's text with nothing to see in it is left out, because providers
refuse it; a tool result with nothing in it says so for the same reason; a lone surrogate, which UTF-8 has no bytes
for, becomes U+FFFD, on the way back as well.

Some providers sign the thinking that led to a tool call and want it back with the result. `Replies` keeps the
model's own words for that while the turn lasts; `own_words` is how they are stored, for a turn that goes on in
another process.
"""

import json
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_core import PydanticSerializationError

from windowpane.context.ids import BlobHash
from windowpane.context.messages import SentFile, ToolCall, as_bytes
from windowpane.context.request import VOLATILE_PARTS, CallSettings, OfferedTool, RequestMessage
from windowpane.context.text import valid_unicode
from windowpane.json_codec import JsonCodec
from windowpane.models.base import NO_FILES, USER_SEPARATOR

REMEMBERED_REPLIES = 256
NO_OUTPUT = "(no output)"
SYSTEM_SEPARATOR = "\n\n"

BLOCKS_BETWEEN = 18
"""How many blocks lie between two places up to which a provider keeps what it reads; it looks back 20."""

MOST_STEP_POINTS = 2
"""Anthropic takes four: the system prompt, the end of what stays, and these."""

_REPLY = JsonCodec(ModelResponse)


class Replies:
    """The replies that asked for tools, as the provider gave them, by the ids of their calls."""

    def __init__(self) -> None:
        self._replies: OrderedDict[tuple[str, ...], tuple[str, ModelResponse]] = OrderedDict()

    def remember(self, text: str, reply: ModelResponse) -> None:
        """Keep a reply and its text until many others have come.

        One without tool calls is not needed again, and one with half a character in it cannot be sent again.
        """
        ids = tuple(call.id for call in tool_calls(reply))
        if not ids or not _as_json(reply):
            return
        self._replies[ids] = (text, reply)
        if len(self._replies) > REMEMBERED_REPLIES:
            self._replies.popitem(last=False)

    def restore(self, text: str, stored: str) -> None:
        """Take back a reply that `own_words` gave. What cannot be read is as good as forgotten."""
        if not stored:
            return
        try:
            reply = _REPLY.adapter.validate_json(stored)
        except ValidationError:
            return
        self.remember(text, reply)

    def behind(self, message: RequestMessage) -> ModelResponse | None:
        """Return the reply that a message repeats, or None when it is forgotten or says something else."""
        text, reply = self._replies.get(tuple(call.id for call in message.tool_calls), ("", None))
        if reply is None or text != message.content or tool_calls(reply) != _without_refs(message.tool_calls):
            return None
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class WireForm:
    """What a provider wants of the form of a conversation.

    `joined`: user messages that follow one another are one message. `additions`: tools are added where messages say so.
    `cache_points`: the provider is told up to where to keep what it reads.
    """

    joined: bool = False
    additions: bool = False
    cache_points: bool = False


PLAIN = WireForm()


def conversation(
    messages: Sequence[RequestMessage],
    replies: Replies,
    form: WireForm = PLAIN,
    files: Mapping[BlobHash, str] = NO_FILES,
) -> list[ModelMessage]:
    """Return the request's messages in their order, all system messages as one.

    What stands between two assistant messages becomes one pydantic-ai request with one part per message, so a
    tool's result follows its call directly.
    """
    tool_names = {call.id: call.offered_name for message in messages for call in message.tool_calls}
    turn_start = _turn_start(messages)
    points = cache_points(messages) if form.cache_points else frozenset[int]()
    found: list[ModelMessage] = []
    system = [valid_unicode(message.content) for message in messages if _is_system(message)]
    waiting: list[ModelRequestPart] = [SystemPromptPart(SYSTEM_SEPARATOR.join(system))] if system else []
    for index, message in enumerate(messages):
        if message.tools_added:
            if form.additions:
                waiting.append(ToolAvailabilityDeltaPart(tools_added=list(message.tools_added)))
        elif message.role in ("user", "tool"):
            waiting.append(_request_part(message, tool_names, files))
        elif message.role == "assistant":
            if waiting:
                found.append(ModelRequest(parts=_joined(waiting) if form.joined else waiting))
                waiting = []
            own_words = replies.behind(message) if index > turn_start else None
            reply = own_words or _rebuilt(message)
            if reply.parts:
                found.append(reply)
        if index in points:
            waiting.append(UserPromptPart([CachePoint()]))
    if waiting:
        found.append(ModelRequest(parts=_joined(waiting) if form.joined else waiting))
    return found


def cache_points(messages: Sequence[RequestMessage]) -> frozenset[int]:
    """Return behind which messages a provider keeps what it has read: the end of what stays, and of each step.

    The end of the system prompt is kept by itself. A provider that looks for what it kept looks back a few blocks only,
    so many results of tools in a row have a point among them.
    """
    message = _turn_start(messages)
    first = message
    while first > 0 and messages[first - 1].role == "user" and messages[first - 1].part in VOLATILE_PARTS:
        first -= 1
    stays = message if first == message else first - 1
    points = [stays] if stays >= 0 and messages[stays].role != "system" else []
    steps = range(message + 1, len(messages))
    results = [index for index in steps if messages[index].role == "tool"]
    points += results[BLOCKS_BETWEEN - 1 :: BLOCKS_BETWEEN]
    points += results[-1:]
    return frozenset(points[:1] + points[1:][-MOST_STEP_POINTS:])


def _is_system(message: RequestMessage) -> bool:
    return message.role == "system" and not message.tools_added


def _joined(parts: Sequence[ModelRequestPart]) -> list[ModelRequestPart]:
    """Return the parts with user messages that follow one another as one."""
    found: list[ModelRequestPart] = []
    for part in parts:
        last = found[-1] if found else None
        if not isinstance(part, UserPromptPart) or not isinstance(last, UserPromptPart):
            found.append(part)
        elif isinstance(part.content, str) and isinstance(last.content, str):
            found[-1] = UserPromptPart(USER_SEPARATOR.join((last.content, part.content)))
        elif any(isinstance(piece, CachePoint) for each in (last, part) for piece in each.content):
            found.append(part)
        else:
            found[-1] = UserPromptPart([*_contents(last), *_contents(part)])
    return found


def _contents(part: UserPromptPart) -> list[UserContent]:
    return [part.content] if isinstance(part.content, str) else list(part.content)


def own_words(reply: ModelResponse) -> str:
    """Return a reply in the provider's own words, where it asked for tools and a step cannot say all of it."""
    return "" if not tool_calls(reply) or all(map(_is_plain, reply.parts)) else _as_json(reply)


def definitions(tools: Sequence[OfferedTool], added: Collection[str] = ()) -> list[ToolDefinition]:
    """Return the tools as the model is offered them. Their schemas are not tightened on the way.

    Those that messages add, and those that are only declared, stand behind the others, by name.
    """
    later = sorted((tool for tool in tools if _comes_later(tool, added)), key=lambda tool: tool.offered_name)
    return [
        ToolDefinition(
            name=tool.offered_name,
            description=valid_unicode(tool.description),
            parameters_json_schema=dict(tool.parameters),
            strict=False,
            defer_loading=_comes_later(tool, added),
        )
        for tool in (*(tool for tool in tools if not _comes_later(tool, added)), *later)
    ]


def _comes_later(tool: OfferedTool, added: Collection[str]) -> bool:
    return tool.deferred or tool.offered_name in added


def added_tools(messages: Sequence[RequestMessage]) -> frozenset[str]:
    """Return the names of the tools that messages add."""
    return frozenset(name for message in messages for name in message.tools_added)


def model_settings(settings: CallSettings, messages: Sequence[RequestMessage], replies: Replies) -> ModelSettings:
    """Return the settings of one call. What is None is left to the provider.

    Thinking is asked for only when the provider can be given its earlier thinking of this turn: without it a
    provider that signs it would refuse the call.
    """
    chosen = ModelSettings() if settings.cache == "stable" else ModelSettings(cache=True)
    if settings.temperature is not None:
        chosen["temperature"] = settings.temperature
    if settings.top_p is not None:
        chosen["top_p"] = settings.top_p
    if settings.max_output_tokens is not None:
        chosen["max_tokens"] = settings.max_output_tokens
    if settings.mode == "thinking" and _thinking_is_whole(messages, replies):
        chosen["thinking"] = True
    return chosen


def tool_calls(reply: ModelResponse) -> tuple[ToolCall, ...]:
    """Return the calls that the model asked for, with their arguments as the model wrote them.

    A model that gives no arguments at all means an empty object.
    """
    return tuple(
        ToolCall(
            # Clients do not check what they are sent.
            id=valid_unicode(str(part.tool_call_id)),
            offered_name=valid_unicode(str(part.tool_name)),
            arguments=valid_unicode(_arguments(part)),
        )
        for part in reply.parts
        if isinstance(part, ToolCallPart)
    )


def _turn_start(messages: Sequence[RequestMessage]) -> int:
    """Return where the user's message stands: what follows it belongs to the turn that runs."""
    return max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)


def _request_part(
    message: RequestMessage, tool_names: dict[str, str], files: Mapping[BlobHash, str]
) -> ModelRequestPart:
    content = valid_unicode(message.content)
    sent = [_file(each, files) for each in message.files]
    if message.role == "tool":
        call_id = message.tool_call_id or ""
        result = content if content.strip() else NO_OUTPUT
        return ToolReturnPart(
            tool_name=tool_names.get(call_id, ""),
            content=[result, *sent] if sent else result,
            tool_call_id=call_id,
            outcome="failed" if message.is_error else "success",
        )
    if sent:
        return UserPromptPart([content, *sent] if content.strip() else sent)
    return UserPromptPart(content)


def _file(sent: SentFile, files: Mapping[BlobHash, str]) -> BinaryContent | str:
    """Return a file as the model gets it; one that was erased since is named."""
    data = files.get(sent.blob)
    if data is None:
        return f"[{sent.name} was erased]"
    return BinaryContent(as_bytes(data), media_type=sent.media_type, identifier=sent.name)


def _rebuilt(message: RequestMessage) -> ModelResponse:
    parts: list[ModelResponsePart] = []
    if message.content.strip():
        parts.append(TextPart(valid_unicode(message.content)))
    parts += [
        ToolCallPart(tool_name=call.offered_name, args=valid_unicode(call.arguments), tool_call_id=call.id)
        for call in message.tool_calls
    ]
    return ModelResponse(parts=parts)


def _is_plain(part: ModelResponsePart) -> bool:
    return isinstance(part, TextPart | ToolCallPart) and part.id is None and not part.provider_details


def _as_json(reply: ModelResponse) -> str:
    """Return a reply as JSON; empty where it holds half a character, which JSON does not carry."""
    try:
        return _REPLY.adapter.dump_json(reply).decode()
    except PydanticSerializationError:
        return ""


def _thinking_is_whole(messages: Sequence[RequestMessage], replies: Replies) -> bool:
    return all(replies.behind(message) for message in messages[_turn_start(messages) + 1 :] if message.tool_calls)


def _arguments(part: ToolCallPart) -> str:
    if not part.args:
        return "{}"
    return part.args if isinstance(part.args, str) else json.dumps(part.args, ensure_ascii=False)


def _without_refs(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call.id, call.offered_name, call.arguments) for call in calls)
