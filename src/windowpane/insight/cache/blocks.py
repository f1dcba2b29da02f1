"""Read a body as the blocks that a provider's cache keeps, in its order: tools, system, messages.

A block is told by what the provider reads: how the JSON around it is spaced and which of its texts carry a mark for
the cache makes no difference. The order of the keys within it does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, cast

from windowpane.calls.tree import JsonNode, parse

Section = Literal["setting", "tools", "system", "messages"]
Path = tuple[str | int, ...]

MARK = "cache_control"
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedBlock:
    """One block of a prompt.

    `name` is for people, `key` tells tools apart, and `path` leads to the block in the body. `mark` is set where the
    request asks the provider to keep everything up to here.
    """

    section: Section
    name: str
    text: str
    path: Path
    key: str = ""
    mark: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRule:
    """What a provider keeps of a prompt, and for how long.

    `marked`: only what a mark of the request ends is kept, and found from marks within `look_back` blocks; otherwise
    everything is, and read in steps of `step_tokens`. Beginnings shorter than `least_tokens` are not kept. `settings`
    are fields of a body that the cache depends on: those in `first` from the beginning, those in `later` from the
    messages on.
    """

    ttl: timedelta | None
    marked: bool = False
    look_back: int = 20
    step_tokens: int = 1
    least_tokens: int = 0
    first: tuple[str, ...] = ()
    later: tuple[str, ...] = ()


ANTHROPIC = PrefixRule(
    ttl=timedelta(minutes=5), marked=True, least_tokens=1024, later=("tool_choice", "thinking", "context_management")
)
OPENAI = PrefixRule(
    ttl=timedelta(minutes=10), step_tokens=128, least_tokens=1024, first=("prompt_cache_key",), later=()
)
OTHERS = PrefixRule(ttl=None)
"""Providers and servers whose rules are not known: the longest common beginning, kept until something else is."""


def rule_of(url: str, model: str = "") -> PrefixRule:
    """Return the rule of a call, by the address that it went to and its model, `provider:model`."""
    path = url.partition("?")[0].rstrip("/")
    provider = model.partition(":")[0]
    if path.endswith("/messages"):
        return ANTHROPIC
    known = provider in ("openai", "openai-chat", "openai-responses", "azure") or "api.openai.com" in url
    return OPENAI if known and path.endswith(("/chat/completions", "/responses")) else OTHERS


def blocks_of(body: str, rule: PrefixRule) -> tuple[CachedBlock, ...] | None:
    """Return the blocks of a body, or None when it is no prompt, or only the end of one that the provider keeps."""
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    fields = cast("dict[str, Any]", document)
    if fields.get("previous_response_id") or fields.get("conversation") or fields.get("cachedContent"):
        return None
    found = tuple(_blocks(fields, rule))
    if rule.marked and found and fields.get(MARK):
        # A mark beside the messages stands for one at the end of them.
        found = (*found[:-1], _marked(found[-1], fields[MARK]))
    return found or None


def place_of(body: str, block: CachedBlock) -> tuple[int, int]:
    """Return where a block stands in its body, in characters."""
    node: JsonNode = parse(body)
    for name in block.path:
        after = node.get(name) if isinstance(name, str) else _at(node.children, name)
        if after is None:
            break
        node = after
    return node.start, node.end


def _at(children: Sequence[JsonNode], place: int) -> JsonNode | None:
    return children[place] if place < len(children) else None


def _blocks(fields: Mapping[str, Any], rule: PrefixRule) -> Iterator[CachedBlock]:
    yield from _settings(fields, rule.first)
    yield from _tools(fields.get("tools"))
    for name in ("response_format", "text", "system", "instructions", "systemInstruction", "system_instruction"):
        value = fields.get(name)
        if name in ("response_format", "text"):
            yield from _settings(fields, (name,))
        elif value:
            parts, path = _parts(value, (name,))
            for place, (part, where) in enumerate(zip(parts, path, strict=True), 1):
                yield _block("system", f"system block {place}", part, where)
    yield from _settings(fields, rule.later)
    for name in ("messages", "input", "contents"):
        value = fields.get(name)
        if isinstance(value, str):
            yield _block("messages", "message 1 (user)", _text_part(value), (name,), role="user")
        elif isinstance(value, list):
            for place, message in enumerate(cast("list[Any]", value)):
                yield from _message(message, place, (name, place))


def _settings(fields: Mapping[str, Any], names: Sequence[str]) -> Iterator[CachedBlock]:
    for name in names:
        if fields.get(name) is not None:
            yield CachedBlock(
                section="setting", name=f"setting {name}", text=_written(fields[name]), path=(name,), key=name
            )


def _tools(tools: object) -> Iterator[CachedBlock]:
    for place, tool in enumerate(cast("list[Any]", tools) if isinstance(tools, list) else []):
        if not isinstance(tool, dict):
            continue
        declared = next((key for key in ("functionDeclarations", "function_declarations") if key in tool), None)
        if declared is None:
            yield _tool(cast("dict[str, Any]", tool), ("tools", place))
            continue
        for inner, each in enumerate(cast("list[dict[str, Any]]", tool[declared])):
            yield _tool(each, ("tools", place, declared, inner))


def _tool(tool: dict[str, Any], path: Path) -> CachedBlock:
    function = tool.get("function")
    named = cast("dict[str, Any]", function) if isinstance(function, dict) else tool
    name = str(named.get("name") or named.get("type") or "")
    return _block("tools", f"tool {name}", tool, path, key=name)


def _message(message: object, place: int, path: Path) -> Iterator[CachedBlock]:
    if not isinstance(message, dict):
        return
    said = cast("dict[str, Any]", message)
    role = str(said.get("role") or said.get("type") or "")
    name = f"message {place + 1} ({role})"
    section: Section = "system" if role in ("system", "developer") else "messages"
    content = "parts" if "parts" in said else "content"
    parts, paths = _parts(said.get(content), (*path, content))
    if said.get("role") is None:
        parts, paths = [], []
        rest = said
    else:
        left_out = {"role", content, *(("type", "id", "status") if said.get("type") == "message" else ())}
        rest = {key: value for key, value in said.items() if key not in left_out and value is not None}
    several = len(parts) + bool(rest) > 1
    for number, (part, where) in enumerate(zip(parts, paths, strict=True), 1):
        yield _block(section, f"{name}, block {number}" if several else name, part, where, role=role)
    if rest:
        yield _block(section, f"{name}, block {len(parts) + 1}" if several else name, rest, path, role=role)


def _parts(value: Any, path: Path) -> tuple[list[Any], list[Path]]:
    """Return the parts of a content and where each stands. A text alone is the same as a list with this text."""
    if isinstance(value, dict) and "parts" in value:
        return _parts(cast("dict[str, Any]", value)["parts"], (*path, "parts"))
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        return [_text_part(p) if isinstance(p, str) else p for p in parts], [(*path, at) for at in range(len(parts))]
    return ([_text_part(value)], [path]) if isinstance(value, str) and value else ([], [])


def _text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _block(section: Section, name: str, value: Any, path: Path, *, role: str = "", key: str = "") -> CachedBlock:
    mark: object = None
    text = _written(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        mark = fields.get(MARK)
        rest = {name: fields[name] for name in sorted(fields) if name != MARK}
        text = str(rest["text"]) if set(rest) == {"text", "type"} else _written(rest)
    text = f"{role}\n{text}" if role else text
    block = CachedBlock(section=section, name=name, text=text, path=path, key=key)
    return _marked(block, mark) if mark else block


def _marked(block: CachedBlock, mark: object) -> CachedBlock:
    hours = isinstance(mark, dict) and cast("dict[str, Any]", mark).get("ttl") == "1h"
    ttl = HOUR if hours else cast("timedelta", ANTHROPIC.ttl)
    return CachedBlock(
        section=block.section, name=block.name, text=block.text, path=block.path, key=block.key, mark=ttl
    )


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
