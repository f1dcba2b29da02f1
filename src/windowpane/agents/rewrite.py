"""Change single values of a file that people wrote, and leave everything else as they wrote it.

A value is found by its path and only its own characters are replaced, so comments, order and quotes around it stay.
What comes out is read again and must say exactly what it said before, but for the change; a file that is written in a
way that this cannot do is refused rather than guessed at.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import yaml

from windowpane.agents.frontmatter import split_document
from windowpane.agents.items import dumped
from windowpane.agents.tree import TableNode, TreeError, read_json, read_yaml, value_of

Path = tuple[str, ...]
Value = str | int | float | bool | Sequence[str] | None
"""What a value becomes. None takes it away, and with it a table that it was the last entry of."""

_COMPOSE: Callable[[str], Any] = partial(getattr(yaml, "compose"), Loader=yaml.SafeLoader)  # noqa: B009 - untyped
_INDENT = re.compile(r'^\{\s*?\n([ \t]+)"')


def rewritten_front(content: str, changes: Mapping[str, Value], text: str | None = None) -> str:
    """Return a Markdown file with other front matter and, when `text` is given, another text.

    Raises:
        TreeError: the front matter cannot be read, or not be changed without rewriting it.
    """
    opening, front, closing, body = split_document(content)
    changed = rewritten_yaml(front, {(key,): value for key, value in changes.items()})
    if not opening and changed:
        opening, closing = "---\n", "---\n"
    return f"{opening}{changed}{closing}{body if text is None else text}"


def rewritten_yaml(content: str, changes: Mapping[Path, Value]) -> str:
    """Return a YAML text with other values at these paths.

    Raises:
        TreeError: the text cannot be read, or not be changed without rewriting it.
    """
    wanted = _plain(read_yaml(content))
    changed = content
    for path, value in changes.items():
        _set(wanted, path, value)
        changed = _replaced(changed, path, value)
    if _plain(read_yaml(changed)) != wanted:
        raise TreeError(None, "this cannot be changed without rewriting the whole file; edit the file by hand")
    return changed


def rewritten_json(content: str, changes: Mapping[Path, Value]) -> str:
    """Return a JSON text with other values at these paths, indented as it was.

    Raises:
        TreeError: the text cannot be read.
    """
    read_json(content)
    body: dict[str, Any] = json.loads(content)
    for path, value in changes.items():
        _set(body, path, value)
    indent = _INDENT.match(content)
    return json.dumps(body, indent=indent.group(1) if indent else 2, ensure_ascii=False) + "\n"


def _plain(node: Any) -> dict[str, Any]:
    if not isinstance(node, TableNode):
        raise TreeError(getattr(node, "line", None), "the file must be a table of names and values")
    return value_of(node)


def _set(body: dict[str, Any], path: Path, value: Value) -> None:
    key, rest = path[0], path[1:]
    if not rest:
        if value is None:
            body.pop(key, None)
        else:
            body[key] = value if isinstance(value, str | int | float) else list(value)
        return
    below: Any = body.get(key)
    if not isinstance(below, dict):
        if value is None:
            return
        below = body[key] = {}
    table = cast("dict[str, Any]", below)
    _set(table, rest, value)
    if not table:
        del body[key]


def _replaced(content: str, path: Path, value: Value) -> str:
    root = _COMPOSE(content)
    if not isinstance(root, yaml.MappingNode):
        return content if value is None else _ended(content) + _written(path, value, 0)
    chain: list[tuple[Any, Any, Any]] = []
    node: Any = root
    for depth, key in enumerate(path):
        entry = next(((name, below) for name, below in node.value if name.value == key), None)
        if entry is None:
            return content if value is None else _inserted(content, node, path[depth:], value)
        chain.append((node, *entry))
        if depth < len(path) - 1 and not isinstance(entry[1], yaml.MappingNode):
            if value is None:
                return content
            return _exchanged(content, entry[1], _flow(_nested(path[depth + 1 :], value)))
        node = entry[1]
    if value is not None:
        return _exchanged(content, chain[-1][2], _flow(value))
    while len(chain) > 1 and len(chain[-1][0].value) == 1:
        chain.pop()
    return _removed(content, *chain[-1])


def _inserted(content: str, table: Any, path: Path, value: Value) -> str:
    if table.flow_style:
        at = table.end_mark.index - 1
        written = f"{_flow(path[0])}: {_flow(_nested(path[1:], value))}"
        return f"{content[:at].rstrip()}{', ' if table.value else ''}{written}{content[at:]}"
    at = _line_end(content, _end(table))
    return _ended(content[:at]) + _written(path, value, table.start_mark.column) + content[at:]


def _exchanged(content: str, node: Any, written: str) -> str:
    start, end = node.start_mark.index, _end(node)
    if content[start:end].endswith("\n"):
        written += "\n"
    space = "" if content[:start].endswith((" ", "\t")) else " "
    return f"{content[:start]}{space}{written}{content[end:]}"


def _removed(content: str, table: Any, key: Any, value: Any) -> str:
    start, end = key.start_mark.index, _end(value)
    if not table.flow_style:
        return content[: content.rfind("\n", 0, start) + 1] + content[_line_end(content, end) :]
    after = re.compile(r"\s*+,\s*+").match(content, end)
    if after:
        return content[:start] + content[after.end() :]
    before = content[:start].rstrip()
    return (before[:-1].rstrip() if before.endswith(",") else content[:start]) + content[end:]


def _end(node: Any) -> int:
    """Return where what a node says ends: its own mark lies behind the comments that follow it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return node.end_mark.index
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _line_end(content: str, at: int) -> int:
    if content[at - 1 : at] == "\n":
        return at
    found = content.find("\n", at)
    return len(content) if found < 0 else found + 1


def _ended(content: str) -> str:
    return content if not content or content.endswith("\n") else f"{content}\n"


def _written(path: Path, value: Value, column: int) -> str:
    *above, last = path
    lines = [f"{' ' * (column + 2 * depth)}{_flow(key)}:" for depth, key in enumerate(above)]
    lines.append(f"{' ' * (column + 2 * len(above))}{_flow(last)}: {_flow(value)}")
    return "".join(f"{line}\n" for line in lines)


def _nested(path: Path, value: Value) -> Any:
    return {path[0]: _nested(path[1:], value)} if path else value


def _flow(value: Any) -> str:
    plain: Any = list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
    return dumped(plain, flow=True).removesuffix("\n").removesuffix("...").rstrip("\n")
