"""JSON with the place of every value, so that stretches of a body can be told apart."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_decode = json.JSONDecoder().raw_decode


@dataclass(slots=True)
class JsonNode:
    """A value of a body. `start` and `end` are its place in characters; `key_start` is where its key begins, if any."""

    value: Any
    start: int
    end: int
    key: str = ""
    key_start: int = -1
    children: list["JsonNode"] = field(default_factory=list["JsonNode"])

    @property
    def begins(self) -> int:
        """Return where the value begins, with its key."""
        return self.start if self.key_start < 0 else self.key_start

    def get(self, key: str) -> "JsonNode | None":
        """Return the value under a key of this object."""
        return next((child for child in self.children if child.key == key), None)

    def strings(self) -> Iterator["JsonNode"]:
        """Yield every string below, in order."""
        if isinstance(self.value, str):
            yield self
        for child in self.children:
            yield from child.strings()


def parse(text: str, at: int = 0) -> JsonNode:
    """Return the value that begins here.

    Raises:
        ValueError: it is not JSON.
    """
    at = _skip(text, at)
    if text[at] not in "{[":
        value, end = _decode(text, at)
        return JsonNode(value, at, end)
    node = JsonNode(None, at, at)
    close = "}" if text[at] == "{" else "]"
    at = _skip(text, at + 1)
    while text[at] != close:
        key, key_start = "", -1
        if close == "}":
            key_start = at
            key, at = _decode(text, at)
            at = _skip(text, at) + 1
        child = parse(text, at)
        child.key, child.key_start = key, key_start
        node.children.append(child)
        at = _skip(text, child.end)
        at = _skip(text, at + 1) if text[at] == "," else at
    node.end = at + 1
    node.value = (
        {child.key: child.value for child in node.children} if close == "}" else [c.value for c in node.children]
    )
    return node


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        at += 1
    return at
