"""The log of a module. The library that writes it is loaded at the first line: most commands log nothing."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_set_up: list[Callable[[], None]] = []


def set_up_with(configure: Callable[[], None]) -> None:
    """Have logging configured when the first line is written."""
    _set_up[:] = [configure]


def get_logger() -> Any:
    """Return a logger: `log.warning("task.failed", name=…)`."""
    return _Log()


class _Log:
    """Has the methods of a structlog logger, and finds them when one is called."""

    def __getattr__(self, method: str) -> Any:
        while _set_up:
            _set_up.pop()()
        return getattr(import_module("structlog").get_logger(), method)
