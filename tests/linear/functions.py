"""Every function of the package that takes nothing but texts, found by machine, and how much work one call is.

Work is the number of lines that Python runs. It is the same on every machine, and it grows with the square of a text
where a loop over the text stands within another one. Expressions, which are one line each, have a test of their own.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast, get_type_hints

import windowpane

if TYPE_CHECKING:
    from types import FrameType, FunctionType

LOOKED_AT = (
    *(
        "agents.frontmatter",
        "agents.importers.texts",
        "agents.items",
        "agents.prompts",
        "agents.tree",
        "calls",
        "context",
    ),
    *("fetch", "files", "insight", "memory", "request", "search", "sessions", "text", "tools", "xray"),
    *("models.offline", "server.anthropic", "server.middleware", "server.openai", "server.otlp", "server.revisions"),
)
"""Packages and modules that read texts of users, pages, tools, programs and providers."""

TextFunction = Callable[[str], Any]


def text_functions() -> dict[str, TextFunction]:
    """Return each function that needs texts and bytes only, as one of a single text; by module and name."""
    found: dict[str, TextFunction] = {}
    for info in pkgutil.walk_packages(windowpane.__path__, "windowpane."):
        module = info.name.removeprefix("windowpane.")
        if not any(module == each or module.startswith(f"{each}.") for each in LOOKED_AT):
            continue
        for name, value in vars(importlib.import_module(info.name)).items():
            function: Any = inspect.unwrap(value) if callable(value) and not isinstance(value, type) else None
            if inspect.isfunction(function) and function.__module__ == info.name and (called := _of_one_text(function)):
                found[f"{module}.{name}"] = called
    return found


class _EnoughError(BaseException):
    pass


def lines_run(function: TextFunction, text: str, most: float = math.inf) -> int:
    """Return how many lines one call runs, here and in libraries; it is broken off beyond `most`.

    What it raises is an answer like another.
    """
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        if lines > most:
            raise _EnoughError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = function(text)
        if isinstance(result, Iterator):
            deque(cast("Iterator[object]", result), maxlen=0)
    except (Exception, _EnoughError):  # noqa: BLE001
        pass
    finally:
        sys.settrace(before)
    return lines


def _of_one_text(function: FunctionType) -> TextFunction | None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return None
    needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    try:
        hints = get_type_hints(function)
    except NameError:  # a name that only the type checker sees
        return None
    makers = {str: str, bytes: _encoded}
    if not needed or any(each.kind is each.VAR_POSITIONAL or hints.get(each.name) not in makers for each in needed):
        return None

    def called(text: str) -> Any:
        values = {each.name: makers[hints[each.name]](text) for each in needed}
        named = {each.name: values.pop(each.name) for each in needed if each.kind is each.KEYWORD_ONLY}
        return function(*values.values(), **named)

    return called


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
