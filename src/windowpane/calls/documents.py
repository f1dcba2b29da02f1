"""The JSON documents of an answer: the events of a stream, the lines of one, or all of it.

Providers' documents are read leniently: a value of another kind than expected counts as absent.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic_core import from_json

MOST_TOKENS = 10**9
"""A count above this is no count: no model takes as much."""

_CONTINUES = (b",\ndata:", b",\r\ndata:", b"\ndata: }", b"\ndata:}")
"""One of these is in a stream whose documents go over several lines."""

_CONTINUED = re.compile(rb"(?<=[,{\[:])\r?\ndata:|\r?\ndata:(?=[ \t]*[}\],:])")


def with_whole_lines(body: bytes) -> bytes:
    """Return a stream with each document in one line, also where its event has several lines of data."""
    return _CONTINUED.sub(b" ", body) if any(mark in body for mark in _CONTINUES) else body


def documents(body: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield every JSON object of an answer, in order. What is not JSON, or broke off, is passed over."""
    if body.lstrip()[:1] in (b"{", b"["):
        whole = list(objects(body))
        if whole:
            yield from whole
            return
    for line in with_whole_lines(body).splitlines():
        text = line.removeprefix(b"data:").strip()
        if text[:1] in (b"{", b"["):
            yield from objects(text.rstrip(b","))


def objects(text: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the object that a text is, or the objects of the list that it is."""
    try:
        value = from_json(text)
    except ValueError:
        return
    for each in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield cast("dict[str, Any]", each)


def as_text(value: object) -> str:
    """Return a text, or an empty one in place of anything else."""
    return value if isinstance(value, str) else ""


def as_map(value: object) -> Mapping[str, Any]:
    """Return an object, or an empty one in place of anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_tokens(value: object) -> int | None:
    """Return a count of tokens; None in place of anything else. Servers in some languages write it with a point."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def as_maps(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list, or none in place of anything else."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
