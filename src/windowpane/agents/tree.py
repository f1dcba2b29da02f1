"""Read YAML and JSON as a tree that remembers lines.

Nothing is given a type here: a scalar is the text that was written, so `version: 1.10` keeps its zero, and the
code that reads the tree says what a value should be and can name the line where it is not. Files may come from
anywhere, so the tree has a greatest depth and size, and what could make it larger than its text (aliases) or run code
(tags) is refused.

JSON has a reader of its own although it looks like YAML: a YAML parser refuses some valid JSON, such as an emoji in
escapes (`\\ud83d\\ude00`), a key of more than 1,024 characters or a tab before the first brace.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

MAX_CHARS = 64 * 1024
"""No YAML or JSON text is read beyond this length."""

MAX_DEPTH = 32
"""How deep lists and tables may be nested."""

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value as written. Quoted text is always text."""

    line: int
    text: str
    quoted: bool = False

    @property
    def empty(self) -> bool:
        """Tell whether this stands for no value."""
        return not self.quoted and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class ListNode:
    """Values in order."""

    line: int
    values: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class TableNode:
    """Values by key, each with the line of its key."""

    line: int
    entries: "dict[str, tuple[int, Node]]"


Node = ScalarNode | ListNode | TableNode


class TreeError(Exception):
    """The text is not a tree that can be read. Never leaves this package: it becomes a `Problem`."""

    def __init__(self, line: int | None, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def read_yaml(text: str, first_line: int = 1) -> Node:
    """Return the tree of a YAML text whose first line is `first_line` of its file. An empty text is an empty table.

    Raises:
        TreeError: the text is not YAML, or is more than is read here.
    """
    _refuse_length(text)
    offset = first_line - 1
    try:
        nodes = list(_documents(_events(text), offset))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = ", ".join(part for part in (error.context, error.problem) if part)
        raise TreeError(mark.line + 1 + offset if mark else None, f"not valid YAML: {why}") from None
    except yaml.YAMLError as error:
        raise TreeError(_line_of_refused(text, offset), f"not valid YAML: {_first_line(error)}") from None
    if len(nodes) > 1:
        raise TreeError(nodes[1].line, "a second YAML document begins here; only one is read")
    return nodes[0] if nodes and not _is_empty(nodes[0]) else TableNode(first_line, {})


def read_json(text: str) -> Node:
    """Return the tree of a JSON text.

    Raises:
        TreeError: the text is not JSON, or is more than is read here.
    """
    _refuse_length(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise TreeError(error.lineno, f"not valid JSON: {error.msg}") from None
    except RecursionError:
        raise TreeError(None, f"nested deeper than {MAX_DEPTH} levels") from None
    tokens = _json_tokens(text)
    return _json_node(next(tokens), tokens, 0)


def value_of(node: Node) -> Any:
    """Return a tree as plain Python values, for settings that are passed on as they are."""
    match node:
        case TableNode():
            return {key: value_of(value) for key, (_, value) in node.entries.items()}
        case ListNode():
            return [value_of(value) for value in node.values]
        case ScalarNode():
            return _scalar_value(node)


def boolean(scalar: ScalarNode) -> bool | None:
    """Return the boolean that a scalar stands for, or None."""
    return None if scalar.quoted else _BOOLEANS.get(scalar.text.lower())


def integer(scalar: ScalarNode) -> int | None:
    """Return the whole number that a scalar stands for, or None. Leading zeros are just zeros."""
    return int(scalar.text) if not scalar.quoted and _INTEGER.fullmatch(scalar.text) else None


def number(scalar: ScalarNode) -> float | None:
    """Return the finite number that a scalar stands for, or None."""
    return float(scalar.text) if not scalar.quoted and _NUMBER.fullmatch(scalar.text) else None


_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,2})?")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\],:]|[^\s{}\[\],:"]+|\n', re.DOTALL)


def _refuse_length(text: str) -> None:
    if len(text) > MAX_CHARS:
        raise TreeError(None, f"{len(text):,} characters; no more than {MAX_CHARS:,} are read")


def _events(text: str) -> Iterator[Any]:
    # The parser's own steps do not nest, so depth can be refused before it costs anything.
    loader = _LOADER(text)
    try:
        while loader.check_event():
            yield loader.get_event()
    finally:
        loader.dispose()


def _documents(events: Iterator[Any], offset: int) -> Iterator[Node]:
    for event in events:
        if isinstance(event, yaml.NodeEvent):
            yield _yaml_node(event, events, offset, 0)


def _yaml_node(event: Any, events: Iterator[Any], offset: int, depth: int) -> Node:
    line = event.start_mark.line + 1 + offset
    if isinstance(event, yaml.AliasEvent):
        raise TreeError(line, f"the alias *{event.anchor} is not followed; write the value out")
    if event.tag is not None:
        raise TreeError(line, f"the tag {event.tag} is not read; write a plain value")
    if isinstance(event, yaml.ScalarEvent):
        return ScalarNode(line, event.value, quoted=bool(event.style))
    if depth == MAX_DEPTH:
        raise TreeError(line, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(event, yaml.SequenceStartEvent):
        return ListNode(line, tuple(_yaml_values(events, offset, depth + 1)))
    entries: dict[str, tuple[int, Node]] = {}
    values = _yaml_values(events, offset, depth + 1)
    for key in values:
        if not isinstance(key, ScalarNode):
            raise TreeError(key.line, "a key must be a plain word")
        _add(entries, key, next(values))
    return TableNode(line, entries)


def _yaml_values(events: Iterator[Any], offset: int, depth: int) -> Iterator[Node]:
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            return
        yield _yaml_node(event, events, offset, depth)


def _add(entries: dict[str, tuple[int, Node]], key: ScalarNode, value: Node) -> None:
    if key.text in entries:
        raise TreeError(key.line, f"{key.text!r} is set twice; the first time on line {entries[key.text][0]}")
    entries[key.text] = (key.line, value)


def _line_of_refused(text: str, offset: int) -> int | None:
    refused = yaml.reader.Reader.NON_PRINTABLE.search(text)
    return text.count("\n", 0, refused.start()) + 1 + offset if refused else None


def _first_line(error: yaml.YAMLError) -> str:
    return str(error).partition("\n")[0]


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.empty


def _json_tokens(text: str) -> Iterator[ScalarNode]:
    line = 1
    for match in _JSON_TOKEN.finditer(text):
        written = match.group()
        if written == "\n":
            line += 1
        elif written.startswith('"'):
            yield ScalarNode(line, json.loads(written), quoted=True)
        else:
            yield ScalarNode(line, written)


def _json_node(token: ScalarNode, tokens: Iterator[ScalarNode], depth: int) -> Node:
    """Return the value that begins with this token. The text is known to be JSON, so only its shape is followed."""
    if token.quoted or token.text not in ("{", "["):
        return token
    if depth == MAX_DEPTH:
        raise TreeError(token.line, f"nested deeper than {MAX_DEPTH} levels")
    values = _json_values(tokens, depth + 1)
    if token.text == "[":
        return ListNode(token.line, tuple(values))
    entries: dict[str, tuple[int, Node]] = {}
    for key in values:
        if isinstance(key, ScalarNode):
            _add(entries, key, next(values))
    return TableNode(token.line, entries)


def _json_values(tokens: Iterator[ScalarNode], depth: int) -> Iterator[Node]:
    for token in tokens:
        if token.quoted or token.text not in ("]", "}", ",", ":"):
            yield _json_node(token, tokens, depth)
        elif token.text in ("]", "}"):
            return


def _scalar_value(scalar: ScalarNode) -> str | int | float | bool | None:
    if scalar.empty:
        return None
    for meaning in (boolean(scalar), integer(scalar), number(scalar)):
        if meaning is not None:
            return meaning
    return scalar.text
