"""Measure the bodies of a session's calls: their fields, what they have in common, and the tools that they offer."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from windowpane.api.xray import OfferedToolUse
from windowpane.calls.documents import as_map, as_maps, as_text

_decode = json.JSONDecoder().raw_decode
_SPACE = " \t\n\r"


def part_sizes(body: bytes) -> dict[str, int]:
    """Return the bytes of each field of a body, as they were sent. A body that is no JSON object has none."""
    try:
        return dict(_sizes(body.decode()))
    except (ValueError, IndexError, RecursionError):
        return {}


def shared_prefix(one: bytes, other: bytes) -> int:
    """Return how many bytes two bodies have in common at the beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def tool_uses(body: bytes, called: Iterable[str]) -> tuple[OfferedToolUse, ...]:
    """Return the tools that a body offers, the largest first, and how often each is among the calls."""
    try:
        document: Mapping[str, Any] = as_map(json.loads(body))
    except (ValueError, RecursionError):
        return ()
    counts = Counter(called)
    found = [
        OfferedToolUse(name=name, bytes=len(_written(tool)), calls=counts[name])
        for name, tool in _tools(document.get("tools"))
    ]
    return tuple(sorted(found, key=lambda tool: (-tool.bytes, tool.name)))


def _sizes(text: str) -> Iterable[tuple[str, int]]:
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        name, end = _decode(text, at)
        start = _skip(text, _skip(text, end) + 1)
        _, end = _decode(text, start)
        yield cast("str", name), len(text[start:end].encode("utf-8", "surrogatepass"))
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _tools(tools: object) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for tool in as_maps(tools):
        declared = tool.get("functionDeclarations") or tool.get("function_declarations")
        for each in as_maps(declared) if declared else [tool]:
            named = as_map(each.get("function")) or each
            yield as_text(named.get("name")) or as_text(each.get("type")), each


def _written(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
