"""Cut a body into its parts: tools, the sections of the system prompt, messages and what they hold, settings.

A part begins where its JSON begins and goes on to the next one, so parts cover the whole body. Bodies of Anthropic,
OpenAI (chat and responses), Google and Ollama are read by their fields, which do not contradict one another.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from windowpane.api.turns import SentKind
from windowpane.calls.documents import as_map, as_text
from windowpane.calls.parts.sections import LONGEST_NAME, Voice, sections_of
from windowpane.calls.tree import JsonNode, parse

SYSTEM = frozenset(("system", "instructions", "systemInstruction", "system_instruction"))
CONVERSATION = frozenset(("messages", "input", "contents"))
FORMATS = frozenset(("response_format", "text", "output_config"))
"""Settings that the provider writes into the prompt. Other settings cost no tokens."""

DECLARED = ("functionDeclarations", "function_declarations", "tools")
THINKING = frozenset(("thinking", "redacted_thinking", "reasoning"))
ATTACHED = frozenset(
    ("image", "document", "file", "image_url", "input_image", "input_file", "input_audio", "audio", "video_url")
)
PATHS = ("file_path", "path", "filePath", "filename", "file", "notebook_path", "absolute_path", "target_file", "uri")
COMMANDS = ("command", "cmd")
RANGES = frozenset(
    ("offset", "limit", "start", "end", "start_line", "end_line", "view_range", "pages", "cwd", "workdir")
)
WRITTEN = frozenset(
    ("content", "contents", "new_string", "new_str", "old_string", "old_str", "patch", "edits", "file_text")
)
"""Arguments of tools that change a file. Writing one twice is not reading it twice."""

_RANKS: Mapping[str, int] = {"tools": 0, **dict.fromkeys(SYSTEM, 1), **dict.fromkeys(CONVERSATION, 2), "prompt": 2}
"""In which order a provider reads the fields of a body, however they are written. Settings come last."""

_ESCAPES = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """The call that a result answers: which tool read what. `again` is equal for calls that ask for the same."""

    id: str
    tool: str
    subject: str
    again: str


@dataclass(frozen=True, slots=True)
class CutPart:
    """A part of a body. `text` is what the model is given of it.

    `rank` is which of the provider's sections it stands in. Of a result, `answers` is the call.
    """

    kind: SentKind
    name: str
    start: int
    text: str
    end: int = 0
    rank: int = 3
    answers: AnsweredCall | None = None


def cut(body: str) -> tuple[CutPart, ...]:
    """Return the parts of a body, in the order in which they are written. A body that is not JSON is one part."""
    try:
        root = parse(body)
    except (ValueError, IndexError, RecursionError):
        return (CutPart("setting", "a body that is not JSON", 0, body, len(body)),) if body else ()
    found = sorted(_Cutter(body).cut(root), key=lambda part: part.start)
    if not found:
        return (CutPart("setting", "an empty body", 0, "", len(body)),)
    ends = [*(part.start for part in found[1:]), len(body)]
    found[0] = replace(found[0], start=0)
    return tuple(replace(part, end=end) for part, end in zip(found, ends, strict=True))


@dataclass(slots=True)
class _Cutter:
    """Walks through a body. Calls are remembered, because a result only says which call it answers."""

    body: str
    _calls: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict[str, tuple[str, Mapping[str, Any]]])
    _unanswered: dict[str, list[str]] = field(default_factory=lambda: defaultdict[str, list[str]](list))

    def cut(self, root: JsonNode) -> Iterator[CutPart]:
        for child in root.children:
            rank = _RANKS.get(child.key, 3)
            if child.key == "tools":
                parts = list(self._tools(child))
            elif child.key in SYSTEM:
                parts = [part for node in _texts(child) for part in self._text(node, "system")]
            elif child.key in CONVERSATION or (child.key == "prompt" and isinstance(child.value, str)):
                parts = list(self._conversation(child))
            else:
                text = self.body[child.start : child.end] if child.key in FORMATS else ""
                parts = [CutPart("setting", child.key, child.begins, text)]
            yield from _from(child.begins, parts, CutPart("setting", child.key, child.begins, ""), rank)

    def _tools(self, tools: JsonNode) -> Iterator[CutPart]:
        for tool in tools.children:
            fields = as_map(tool.value)
            inner = next((node for name in DECLARED if (node := tool.get(name)) and node.children), None)
            if inner is not None and as_map(fields.get("function")) == {}:
                parts = [self._tool(each, as_text(fields.get("name"))) for each in inner.children]
                yield from _from(tool.start, parts, self._tool(tool), 0)
            else:
                yield self._tool(tool)

    def _tool(self, tool: JsonNode, namespace: str = "") -> CutPart:
        fields = as_map(tool.value)
        named = as_map(fields.get("function")) or fields
        name = as_text(named.get("name")) or as_text(fields.get("type")) or next(iter(fields), "")
        name = f"{namespace}.{name}" if namespace else name
        return CutPart("tool", name, tool.start, self.body[tool.start : tool.end])

    def _conversation(self, messages: JsonNode) -> Iterator[CutPart]:
        if isinstance(messages.value, str):
            yield from self._text(messages, "user")
        elif as_map(messages.value):
            yield from self._message(messages)
        for message in messages.children if self.body[messages.start] == "[" else ():
            if isinstance(message.value, str):
                yield from self._text(message, "user")
            else:
                yield from _from(message.start, list(self._message(message)), self._whole(message, ""), 2)

    def _message(self, message: JsonNode) -> Iterator[CutPart]:
        fields = as_map(message.value)
        role = as_text(fields.get("role"))
        if not role and "type" in fields and fields["type"] != "message":
            yield from self._block(message, "assistant")
            return
        if role in ("tool", "function"):
            answered = fields.get("tool_call_id") or fields.get("name") or fields.get("tool_name")
            yield from self._result(message, as_text(answered))
            return
        for child in message.children:
            if child.key in ("content", "parts"):
                yield from self._content(child, role)
            elif child.key == "tool_calls":
                for call in child.children:
                    yield self._call(call)
            elif child.key in ("reasoning_content", "reasoning", "thinking") and child.value:
                yield CutPart("thinking", "", child.begins, _written(child.value))
            elif child.key == "images":
                yield from (CutPart("attachment", "image", image.start, "") for image in child.children)

    def _content(self, content: JsonNode, role: str) -> Iterator[CutPart]:
        if isinstance(content.value, str):
            yield from self._said(content, role)
        for block in content.children if isinstance(content.value, list) else ():
            if isinstance(block.value, str):
                yield from self._said(block, role)
            else:
                yield from _from(block.start, list(self._block(block, role)), self._whole(block, role), 2)

    def _block(self, block: JsonNode, role: str) -> Iterator[CutPart]:
        fields = as_map(block.value)
        kind = as_text(fields.get("type"))
        text = block.get("text") or block.get("refusal")
        if kind in THINKING or fields.get("thought") is True:
            yield CutPart("thinking", "", block.start, _thought(fields))
        elif kind in ATTACHED or "inlineData" in fields or "fileData" in fields or "inline_data" in fields:
            yield CutPart("attachment", kind or "file", block.start, _attached_text(fields))
        elif kind.endswith(("_result", "_output")) or "functionResponse" in fields:
            yield from self._result(block, as_text(fields.get("tool_use_id")) or as_text(fields.get("call_id")))
        elif kind.endswith(("tool_use", "_call")) or "functionCall" in fields:
            yield self._call(block)
        elif text is not None and isinstance(text.value, str):
            yield from self._said(text, role)

    def _said(self, node: JsonNode, role: str) -> Iterator[CutPart]:
        if role in ("assistant", "model"):
            yield CutPart("reply", "", node.begins, node.value)
        else:
            yield from self._text(node, "system" if role in ("system", "developer") else "user")

    def _call(self, node: JsonNode) -> CutPart:
        fields = as_map(node.value)
        named = as_map(fields.get("function")) or as_map(fields.get("functionCall")) or fields
        name = as_text(named.get("name")) or as_text(fields.get("type"))
        given: object = next((named[key] for key in ("input", "arguments", "args", "action") if key in named), None)
        id_ = as_text(fields.get("call_id")) or as_text(fields.get("id")) or as_text(named.get("id"))
        if not id_:
            id_ = f"{name}\0{node.start}"
            self._unanswered[name].append(id_)
        self._calls[id_] = (name, _arguments(given))
        return CutPart("call", name, node.start, f"{name} {_written(given or {})}")

    def _result(self, node: JsonNode, call: str) -> Iterator[CutPart]:
        response = as_map(as_map(node.value).get("functionResponse"))
        name = as_text(response.get("name"))
        call = call or as_text(response.get("id"))
        if call not in self._calls:
            waiting = self._unanswered[call or name]
            call = waiting.pop(0) if waiting else call
        tool, arguments = self._calls.get(call, (name, {}))
        subject, again = _question(tool, arguments)
        answers = AnsweredCall(call, tool, subject, again)
        label = f"{tool} {subject}".strip()[:LONGEST_NAME]
        content = next((found for key in ("content", "output") if (found := node.get(key))), None)
        found = list(self._returned(content, label)) if content is not None else []
        if not found:
            text = _written(response.get("response", node.value if content is None else content.value))
            found = [CutPart("result", label, node.start, text)]
        for part in found:
            # What the program added to a result is not the tool's.
            yield part if part.kind not in ("result", "attachment") else replace(part, answers=answers)

    def _returned(self, content: JsonNode, label: str) -> Iterator[CutPart]:
        """Yield what a tool returned: a text, or blocks of text and pictures."""
        if isinstance(content.value, str):
            yield from (replace(part, name=part.name or label) for part in self._text(content, "tool"))
        for leaf in content.children if isinstance(content.value, list) else ():
            fields = as_map(leaf.value)
            text = leaf.get("text")
            if as_text(fields.get("type")) in ATTACHED:
                yield CutPart("attachment", label or "result", leaf.start, _attached_text(fields))
            elif text is not None and isinstance(text.value, str):
                yield from (replace(part, name=part.name or label) for part in self._text(text, "tool"))

    def _text(self, node: JsonNode, voice: Voice) -> Iterator[CutPart]:
        """Yield the sections of a text, each where it is written in the body."""
        text: str = node.value
        sections = sections_of(text, voice)
        raw = self.body[node.start + 1 : node.end - 1]
        places = _raw_places(raw, [section.start for section in sections])
        ends = [*(section.start for section in sections[1:]), len(text)]
        for number, (section, place, end) in enumerate(zip(sections, places, ends, strict=True)):
            start = node.begins if number == 0 else node.start + 1 + place
            yield CutPart(section.kind, section.name, start, text[section.start : end])

    def _whole(self, node: JsonNode, role: str) -> CutPart:
        """Return an element of no known kind as it is written."""
        fields = as_map(node.value)
        role = role or as_text(fields.get("role"))
        kind: SentKind = "reply" if role in ("assistant", "model") or "role" not in fields else "message"
        kind = "system" if role in ("system", "developer") else kind
        return CutPart(kind, as_text(fields.get("type")), node.start, "" if not fields else _written(node.value))


def _from(start: int, parts: Sequence[CutPart], otherwise: CutPart, rank: int) -> Iterator[CutPart]:
    """Yield parts, the first of them from `start` on; where there are none, the other one."""
    ordered = sorted(parts, key=lambda part: part.start) or [otherwise]
    for number, part in enumerate(ordered):
        yield replace(part, start=start if number == 0 else part.start, rank=rank)


def _texts(node: JsonNode) -> Iterator[JsonNode]:
    """Yield the texts of a system prompt: a string, a list of blocks, or Google's parts."""
    if isinstance(node.value, str):
        yield node
    elif isinstance(node.value, dict):
        inner = node.get("parts") or node.get("text")
        if inner is not None:
            yield from _texts(inner)
    else:
        for block in node.children:
            first = next(_texts(block), None)
            if first is not None:
                yield _begun_at(first, block.start)


def _begun_at(node: JsonNode, start: int) -> JsonNode:
    """Return a text that belongs to the block around it."""
    return JsonNode(node.value, node.start, node.end, node.key, start)


def _raw_places(raw: str, places: Sequence[int]) -> list[int]:
    """Return where characters of a text stand in its JSON, where some are written as escapes."""
    found: list[int] = []
    shift, escapes = 0, _ESCAPES.finditer(raw)
    escape = next(escapes, None)
    for place in places:
        while escape is not None and escape.start() < place + shift:
            shift += len(escape[0]) - 1
            escape = next(escapes, None)
        found.append(place + shift)
    return found


def _arguments(given: object) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            return as_map(json.loads(given))
        except (ValueError, RecursionError):
            return {}
    return as_map(given)


def _question(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a call read, a file or a command, and what is equal for calls that ask for the same."""
    if WRITTEN & arguments.keys():
        return "", ""
    for name in (*PATHS, *COMMANDS):
        given = arguments.get(name)
        if isinstance(given, list):
            given = " ".join(str(word) for word in cast("list[object]", given))
        if isinstance(given, str) and given:
            ranges = {key: arguments[key] for key in sorted(RANGES & arguments.keys())}
            return given, json.dumps([tool, name, given, ranges], default=str)
    return "", ""


def _thought(fields: Mapping[str, Any]) -> str:
    told = fields.get("thinking") or fields.get("text") or fields.get("summary") or ""
    return _written(told) + as_text(fields.get("encrypted_content")) + as_text(fields.get("data"))


def _attached_text(fields: Mapping[str, Any]) -> str:
    """Return what an attachment says in words. Pictures and other data have none."""
    source = as_map(fields.get("source"))
    return as_text(source.get("data")) if source.get("type") == "text" else ""


def _written(value: object) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    )
