"""Write what other tools keep of a call in the form of OpenAI's chat.

Messages come as OpenAI's, as parts by the conventions of OpenTelemetry, or in a form of the program's own. What is not
known is kept as the text that it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic_core import from_json

from windowpane.calls.documents import as_map, as_maps, as_text

Message = Mapping[str, Any]
ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}
"""Other words for the roles."""


def chat_messages(value: object) -> list[Message]:
    """Return the messages that a value holds: a list, one message, a text, or anything else."""
    value = unwrapped(value)
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if isinstance(value, list):
        return [message for each in cast("list[object]", value) for message in _messages(unwrapped(each))]
    return list(_messages(value))


def chat_tools(value: object) -> list[Mapping[str, Any]]:
    """Return definitions of tools, each with its function in a field of its own."""
    found: list[Mapping[str, Any]] = []
    for tool in as_maps(unwrapped(value)):
        if tool.get("name") and not tool.get("function"):
            function = {name: part for name, part in tool.items() if name != "type"}
            found.append({"type": "function", "function": function})
        else:
            found.append(tool)
    return found


def chat_answer(value: object, *, finish: str = "", model: str = "") -> dict[str, Any]:
    """Return an answer in the form of one document."""
    value = unwrapped(value)
    fields = as_map(value)
    if fields.get("choices"):
        return {**fields, "choices": [_choice(choice) for choice in as_maps(fields["choices"])[:1]]}
    said = [message for message in chat_messages(value) if message.get("role") in ("assistant", "user")]
    if isinstance(value, str):
        said = [{"role": "assistant", "content": value}]
    finish = finish or as_text(fields.get("finish_reason"))
    message = _answered(said[-1]) if said else {"role": "assistant", "content": ""}
    return {"model": model, "choices": [{"message": message, "finish_reason": finish}]}


def unwrapped(value: object) -> Any:
    """Return a value, read where it is JSON in a text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return from_json(value, allow_inf_nan=False)
        except ValueError:
            return value
    return value


def _messages(value: object) -> Iterator[Message]:
    if not isinstance(value, dict):
        if value not in (None, ""):
            yield {"role": "user", "content": value if isinstance(value, str) else _as_json(value)}
        return
    fields = cast("dict[str, Any]", value)
    if isinstance(fields.get("messages"), list):
        yield from chat_messages(fields["messages"])
    elif isinstance(fields.get("parts"), list):
        yield from _from_parts(_role(fields.get("role")), as_maps(fields["parts"]))
    elif "role" in fields and ("content" in fields or "tool_calls" in fields):
        yield {**fields, "role": _role(fields["role"])}
    else:
        yield {"role": "user", "content": _as_json(fields)}


def _from_parts(role: str, parts: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Yield messages by the conventions of OpenTelemetry as OpenAI's: the result of a tool is a message of its own."""
    content: list[Mapping[str, Any]] = []
    thinking: list[str] = []
    calls: list[Mapping[str, Any]] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            content.append({"type": "text", "text": as_text(part.get("content")) or as_text(part.get("text"))})
        elif kind in ("reasoning", "thinking"):
            thinking.append(as_text(part.get("content")))
        elif kind == "tool_call":
            arguments = part.get("arguments")
            written = arguments if isinstance(arguments, str) else _as_json({} if arguments is None else arguments)
            function = {"name": as_text(part.get("name")), "arguments": written}
            calls.append({"id": as_text(part.get("id")), "type": "function", "function": function})
        elif kind == "tool_call_response":
            given = part.get("response", part.get("result"))
            text = given if isinstance(given, str) else _as_json(given)
            yield {"role": "tool", "tool_call_id": as_text(part.get("id")), "content": text}
        else:
            content.append(part)
    if not (content or thinking or calls):
        return
    message: dict[str, Any] = {"role": "user" if role == "tool" else role, "content": _short(content)}
    if thinking:
        message["reasoning_content"] = "\n".join(thinking)
    if calls:
        message["tool_calls"] = calls
    yield message


def _choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    return {**choice, "message": _answered(as_map(choice.get("message") or choice.get("delta")))}


def _answered(message: Message) -> dict[str, Any]:
    """Return an answer's message with its text in one piece; blocks in Anthropic's form are OpenAI's then."""
    blocks = as_maps(message.get("content"))
    if not blocks:
        return dict(message)
    texts = [as_text(block.get("text")) for block in blocks if isinstance(block.get("text"), str)]
    used = [block for block in blocks if block.get("type") == "tool_use"]
    calls = [
        {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": _as_json(block.get("input"))}}
        for block in used
    ]
    thinking = "".join(as_text(block.get("thinking")) for block in blocks)
    told = message.get("tool_calls") or calls
    extra = {"reasoning_content": thinking} if thinking else {}
    return {**message, **extra, "content": "".join(texts), **({"tool_calls": told} if told else {})}


def _short(content: Sequence[Mapping[str, Any]]) -> Any:
    if len(content) == 1 and content[0].get("type") == "text":
        return content[0]["text"]
    return list(content)


def _role(role: object) -> str:
    named = as_text(role)
    return ROLES.get(named, named) or "user"


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
