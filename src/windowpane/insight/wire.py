"""Whose bytes they are: every stretch of a body that was sent gets an owner.

A body is compared with the request as it was built. The client library maps one to the other: it joins messages,
rewrites schemas, adds fields of the protocol. What it made different is told as a change. Nothing is guessed from
positions alone: a stretch belongs to a message when it holds the message's text or the id of its call.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from windowpane.api.turns import OwnerKind, WireChange, WireSpan
from windowpane.calls.body import file_hash
from windowpane.calls.tree import JsonNode, parse
from windowpane.context.items import ItemRef
from windowpane.context.request import OfferedTool, RequestMessage
from windowpane.context.text import valid_unicode
from windowpane.models.base import USER_SEPARATOR

ENVELOPE = "the protocol's own JSON"
SUMMARY_TASK, SUMMARY_FRAME = "the task", "the frame of the conversation"
CONVERSATION = frozenset(("messages", "input", "contents"))
SYSTEM = frozenset(("system", "instructions", "systemInstruction", "system_instruction"))
THINKING = frozenset(("thinking", "signature", "thoughtSignature", "thought_signature", "encrypted_content", "data"))
"""Fields in which a provider is given back what its model thought."""

NOT_TEXT = frozenset(("role", "type", "name", "status", "model"))
ADDITIONS = frozenset(("tool_addition", "additional_tools"))
"""How protocols call tools that are added in the middle of a conversation."""

LOOK_AHEAD = 3
"""How many messages may be left out on the way to the wire, such as an answer without a word."""


@dataclass(frozen=True, slots=True)
class BuiltCall:
    """A call as it was built. The first `before` messages are the request; those after it are this turn's steps."""

    messages: Sequence[RequestMessage]
    tools: Sequence[OfferedTool]
    before: int
    texts: Mapping[ItemRef, str]


def spans_of(body: str, built: BuiltCall) -> tuple[WireSpan, ...]:
    """Return whose each stretch of a body is, without a gap."""
    try:
        root = parse(body)
    except (ValueError, IndexError, RecursionError):
        return (WireSpan(start=0, end=len(body), kind="mapping", owner="a body that is not JSON"),) if body else ()
    painter = _Painter(body)
    _Owners(built, painter).paint(root)
    return painter.spans()


def summary_spans(body: str, said: Sequence[tuple[str, str]]) -> tuple[WireSpan, ...]:
    """Return whose each stretch of the body of a summary call is. `said` are the owners and beginnings of lines.

    It has a task, the tool that records the summary, and the conversation, line by line.
    """
    try:
        root = parse(body)
    except (ValueError, IndexError, RecursionError):
        return spans_of(body, BuiltCall((), (), 0, {}))
    painter = _Painter(body)
    for entry in root.children:
        if entry.key in SYSTEM:
            painter.paint(entry.begins, entry.end, "message", SUMMARY_TASK)
        elif entry.key in CONVERSATION:
            _paint_transcript(painter, entry, said)
        elif entry.key == "tools":
            painter.paint(entry.begins, entry.end, "tool", "windowpane:record_summary")
        else:
            painter.paint(entry.begins, entry.end, "setting", entry.key)
    return painter.spans()


def _paint_transcript(painter: "_Painter", entry: JsonNode, said: Sequence[tuple[str, str]]) -> None:
    # A protocol may take one text for a conversation.
    for element in entry.children or [entry]:
        role = element.get("role") if entry.children else None
        is_task = role is not None and role.value in ("system", "developer")
        painter.paint(element.begins, element.end, "message", SUMMARY_TASK if is_task else SUMMARY_FRAME)
        for node in () if is_task else element.strings():
            at = 0
            for owner, beginning in said:
                start = node.value.find(f"\n{beginning}", at)
                if start < 0:
                    continue
                at = start + 1
                # The next line that is found, and the frame's own last line, are painted over this.
                painter.paint(painter.place_in(node, at), painter.place_in(node, len(node.value)), "message", owner)
            if at:
                end = node.value.rfind("\n")
                painter.paint(painter.place_in(node, end), element.end, "message", SUMMARY_FRAME)


def changes_of(body: str, built: BuiltCall) -> tuple[WireChange, ...]:
    """Return what the client library made different between what was built and what was sent."""
    try:
        root = parse(body)
    except (ValueError, IndexError, RecursionError):
        return ()
    return (*_tool_changes(root, built), *_text_changes(root, built), *_added_fields(root))


class _Painter:
    """A body whose characters are given owners; what comes later wins."""

    def __init__(self, body: str) -> None:
        self._body = body
        self._strokes: list[tuple[int, int, OwnerKind, str]] = []

    def paint(self, start: int, end: int, kind: OwnerKind, owner: str) -> None:
        if end > start:
            self._strokes.append((start, end, kind, owner))

    def inside(self, node: JsonNode, text: str) -> tuple[int, int] | None:
        """Return where a text stands in a string of the body, as it is escaped there."""
        said: str = node.value
        at = said.find(text)
        if at < 0 or not text:
            return None
        for escape in (False, True):
            whole = json.dumps(said, ensure_ascii=escape)
            if whole == self._body[node.start : node.end]:
                start = node.start + len(json.dumps(said[:at], ensure_ascii=escape)) - 1
                return start, start + len(json.dumps(text, ensure_ascii=escape)) - 2
        return node.start, node.end

    def place_in(self, node: JsonNode, at: int) -> int:
        """Return where a character of a string stands in the body, as it is escaped there."""
        for escape in (False, True):
            if json.dumps(node.value, ensure_ascii=escape) == self._body[node.start : node.end]:
                return node.start + len(json.dumps(node.value[:at], ensure_ascii=escape)) - 1
        return node.end

    def spans(self) -> tuple[WireSpan, ...]:
        """Return the stretches, neighbours of one owner joined."""
        edges = sorted({0, len(self._body), *(edge for stroke in self._strokes for edge in stroke[:2])})
        found: list[WireSpan] = []
        index = {edge: place for place, edge in enumerate(edges)}
        owners: list[tuple[OwnerKind, str]] = [("mapping", ENVELOPE)] * (len(edges) - 1)
        for start, end, *owned in self._strokes:
            painted = cast("tuple[OwnerKind, str]", tuple(owned))
            owners[index[start] : index[end]] = [painted] * (index[end] - index[start])
        for place, (kind, owner) in enumerate(owners):
            if found and (found[-1].kind, found[-1].owner) == (kind, owner):
                found[-1] = WireSpan(start=found[-1].start, end=edges[place + 1], kind=kind, owner=owner)
            else:
                found.append(WireSpan(start=edges[place], end=edges[place + 1], kind=kind, owner=owner))
        return tuple(found)


@dataclass(slots=True)
class _Queue:
    """Messages that were not found in the body yet, and the one that was found last."""

    waiting: list[int]
    last: int | None = None

    def advance(self, place: int) -> None:
        """Go on behind a message that was found."""
        self.waiting = self.waiting[self.waiting.index(place) + 1 :]
        self.last = place


class _Owners:
    """Finds the owner of each part of a body."""

    def __init__(self, built: BuiltCall, painter: _Painter) -> None:
        self._built = built
        self._painter = painter
        places = [(place, message.role) for place, message in enumerate(built.messages) if not message.tools_added]
        system = [place for place, role in places if role == "system"]
        said = [place for place, role in places if role != "system"]
        self._files = {file.blob: file.name for message in built.messages for file in message.files}
        # Some protocols send the system messages apart, before or after the others.
        self._system, self._said = _Queue(system), _Queue(said)

    def paint(self, root: JsonNode) -> None:
        for entry in root.children:
            if entry.key in SYSTEM:
                self._conversation([entry])
            elif entry.key in CONVERSATION and isinstance(entry.value, list):
                self._conversation(entry.children)
            elif entry.key == "tools" and isinstance(entry.value, list):
                self._tools(entry)
            else:
                self._painter.paint(entry.begins, entry.end, "setting", entry.key)

    def _conversation(self, elements: Sequence[JsonNode]) -> None:
        last: tuple[OwnerKind, str] = ("mapping", ENVELOPE)
        for element in elements:
            found = list(self._found(element))
            first = found[0][1:] if found else last
            self._painter.paint(element.begins, element.end, *first)
            at = element.begins
            for node, kind, owner in found:
                # What leads up to a text, such as its role, belongs to it.
                self._painter.paint(at, element.end, kind, owner)
                at = node.end
                last = (kind, owner)
            for node, kind, owner in found:
                self._items(node, kind, owner)
            self._extras(element)
            self._added(element)
            self._painted_files(element)

    def _found(self, element: JsonNode) -> Iterator[tuple[JsonNode, OwnerKind, str]]:
        """Yield the strings of an element that tell whose it is. One that joins messages belongs to each in turn."""
        for node in element.strings():
            places = list(self._places(node))
            texts = [valid_unicode(self._built.messages[place].content) for place in places]
            if len(places) > 1 and all(text in node.value for text in texts):
                yield from zip(self._cut(node, texts), *zip(*map(self._owner, places), strict=True), strict=True)
            else:
                for place in places:
                    yield node, *self._owner(place)

    def _cut(self, node: JsonNode, texts: Sequence[str]) -> Iterator[JsonNode]:
        """Yield the stretches of a string that several messages were joined to, each up to the end of its text."""
        start, end, at = node.start, node.end, 0
        for text in texts[:-1]:
            at = node.value.find(text, at) + len(text)
            end = self._painter.place_in(node, at)
            yield replace(node, start=start, end=end, children=[node])
            start = end
        yield replace(node, start=start, children=[node])

    def _joined(self, node: JsonNode, queue: "_Queue") -> list[int]:
        """Return the user messages that a string joins, or nothing."""
        places: list[int] = []
        for place in queue.waiting:
            message = self._built.messages[place]
            if message.role != "user":
                break
            places.append(place)
            texts = [valid_unicode(self._built.messages[each].content) for each in places]
            if len(places) > 1 and USER_SEPARATOR.join(texts) == node.value:
                return places
        return []

    def _added(self, element: JsonNode) -> None:
        """Paint tools that are added in the middle of the conversation."""
        kinds = {child.value for child in _objects_types(element)}
        if not kinds & ADDITIONS:
            return
        self._painter.paint(element.begins, element.end, "message", "additions")
        tools = element.get("tools")
        if tools is not None:
            self._tools(tools)

    def _places(self, node: JsonNode) -> Iterator[int]:
        """Yield the messages that a string speaks for: the last one again, or the next whose text or call it holds."""
        if node.key in NOT_TEXT:
            return
        if joined := self._joined(node, self._said):
            for place in joined:
                self._said.advance(place)
            yield from joined
            return
        for queue in (self._system, self._said):
            if queue.last is not None and self._speaks(node, queue.last):
                yield queue.last
            while (place := self._next(node, queue)) is not None:
                queue.advance(place)
                yield place
                if node.value == self._built.messages[place].content:
                    return

    def _next(self, node: JsonNode, queue: "_Queue") -> int | None:
        return next((place for place in queue.waiting[:LOOK_AHEAD] if self._speaks(node, place)), None)

    def _speaks(self, node: JsonNode, place: int) -> bool:
        message = self._built.messages[place]
        said: str = node.value
        if said and (said == message.tool_call_id or any(said == call.id for call in message.tool_calls)):
            return True
        text = valid_unicode(message.content)
        return bool(text.strip()) and (text in said if message.role in ("system", "tool") else text == said)

    def _owner(self, place: int) -> tuple[OwnerKind, str]:
        message = self._built.messages[place]
        if place >= self._built.before:
            return "step", f"step {self._step(place)}: {message.role}"
        name = f"{message.part} {message.name}".strip()
        return "message", name if message.part != "history" else f"history {place + 1}: {message.role}"

    def _step(self, place: int) -> int:
        later = self._built.messages[self._built.before : place + 1]
        return sum(message.role == "assistant" for message in later)

    def _items(self, node: JsonNode, kind: OwnerKind, owner: str) -> None:
        """Paint the items whose texts stand in a string."""
        if kind != "message":
            return
        # A stretch of a joined string knows the whole.
        whole = node.children[0] if node.children else node
        for ref, text in self._built.texts.items():
            if (place := self._painter.inside(whole, text.strip())) is not None and text.strip():
                self._painter.paint(*place, "item", str(ref))

    def _extras(self, element: JsonNode) -> None:
        """Paint what the model wants back, and settings that stand within a message."""
        for child in element.children:
            if child.key == "cache_control":
                self._painter.paint(child.begins, child.end, "setting", child.key)
            elif child.key in THINKING or (child.key == "type" and child.value in ("reasoning", "thinking")):
                self._painter.paint(child.begins, child.end, "model", "its thinking")
            else:
                self._extras(child)

    def _painted_files(self, element: JsonNode) -> None:
        """Paint the bytes of files, by their hash: each belongs to the file, whatever stands around it."""
        for node in element.strings() if self._files else ():
            name = self._files.get(file_hash(node.value))
            if name is not None:
                self._painter.paint(node.begins, node.end, "message", f"file {name}")

    def _tools(self, entry: JsonNode) -> None:
        by_name = {tool.offered_name: tool for tool in self._built.tools}
        for node in _tool_nodes(entry):
            name = _tool_name(node)
            if name in by_name:
                self._painter.paint(node.begins, node.end, "tool", str(by_name[name].ref))
            for child in node.children:
                if child.key == "cache_control":
                    self._painter.paint(child.begins, child.end, "setting", child.key)


def _objects_types(node: JsonNode) -> Iterator[JsonNode]:
    """Yield what an element and what stands in its content say that they are."""
    content = node.get("content")
    for each in (node, *(content.children if content is not None else ())):
        said = each.get("type") if isinstance(each.value, dict) else None
        if said is not None and isinstance(said.value, str):
            yield said


def _tool_nodes(entry: JsonNode) -> Iterator[JsonNode]:
    for element in entry.children:
        declared = element.get("functionDeclarations") or element.get("function_declarations")
        yield from declared.children if declared is not None else [element]


def _tool_name(node: JsonNode) -> str:
    function = node.get("function") or node
    name = function.get("name")
    return name.value if name is not None and isinstance(name.value, str) else ""


def _tool_changes(root: JsonNode, built: BuiltCall) -> Iterator[WireChange]:
    by_name = {tool.offered_name: tool for tool in built.tools}
    entry = root.get("tools")
    for node in _tool_nodes(entry) if entry is not None else ():
        tool = by_name.get(_tool_name(node))
        function = node.get("function") or node
        schema = next(
            (found for key in ("parameters", "input_schema", "parametersJsonSchema") if (found := function.get(key))),
            None,
        )
        if tool is None or schema is None:
            continue
        for path, before, after in _differences(tool.parameters, schema.value, ""):
            yield WireChange(
                where=f"{tool.ref} schema{path}", built=before, sent=after, why="schema rewritten by the client library"
            )


def _differences(built: Any, sent: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(built, Mapping) and isinstance(sent, Mapping):
        before, after = cast("Mapping[str, Any]", built), cast("Mapping[str, Any]", sent)
        for key in dict.fromkeys((*before, *after)):
            yield from _differences(before.get(key, _MISSING), after.get(key, _MISSING), f"{path}.{key}")
    elif built != sent:
        yield path, _shown(cast("Any", built)), _shown(sent)


_MISSING = object()


def _shown(value: object) -> str:
    return "" if value is _MISSING else json.dumps(value, ensure_ascii=False)


def _text_changes(root: JsonNode, built: BuiltCall) -> Iterator[WireChange]:
    """Yield the results of tools whose text was sent in another form."""
    strings = [node for entry in root.children if entry.key in CONVERSATION for node in entry.strings()]
    sent = {node.value for node in strings}
    for message in built.messages:
        if message.role == "tool" and message.content not in sent:
            after = _after(strings, message.tool_call_id or "")
            yield WireChange(
                where=f"result of {message.tool_call_id}",
                built=message.content,
                sent=after,
                why="an empty result says so"
                if not message.content.strip()
                else "result wrapped by the client library",
            )
        for call in message.tool_calls:
            if call.arguments not in sent and (other := _arguments(root, call.id)) is not None:
                yield WireChange(
                    where=f"arguments of {call.id}", built=call.arguments, sent=other, why="arguments written again"
                )


def _after(strings: Sequence[JsonNode], call_id: str) -> str:
    """Return the text that stands beside a call's id."""
    for place, node in enumerate(strings):
        if node.value == call_id:
            near = [other.value for other in strings[max(place - 2, 0) : place + 3] if other.key in _RESULT_KEYS]
            if near:
                return near[-1]
    return ""


_RESULT_KEYS = frozenset(("content", "output", "text", "result", "error"))


def _arguments(root: JsonNode, call_id: str) -> str | None:
    for node in _objects(root):
        if node.value.get("id") == call_id or node.value.get("call_id") == call_id:
            for key in ("input", "args", "arguments"):
                if key in node.value:
                    value = node.value[key]
                    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return None


def _objects(node: JsonNode) -> Iterator[JsonNode]:
    if isinstance(node.value, dict):
        yield node
    for child in node.children:
        yield from _objects(child)


def _added_fields(root: JsonNode) -> Iterator[WireChange]:
    for entry in root.children:
        if entry.key not in CONVERSATION | SYSTEM | {"tools"}:
            yield WireChange(where=entry.key, built="", sent=_shown(entry.value), why="setting of the protocol")
