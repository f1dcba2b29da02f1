"""The log of a module. The library that writes it is loaded at the first line: most commands log nothing."""

import logging
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

BELOW_WARNINGS = ("debug", "info")

_set_up: list[Callable[[], None]] = []


def set_up_with(configure: Callable[[], None] | None) -> None:
    """Have logging configured when the first line is written. None: it is configured now."""
    _set_up[:] = [configure] if configure is not None else []


def get_logger() -> Any:
    """Return a logger: `log.warning("task.failed", name=…)`."""
    return _Log()


class _Log:
    """Has the methods of a structlog logger, and finds them when one is called."""

    def __getattr__(self, method: str) -> Any:
        while _set_up:
            _set_up.pop()()
        if method in BELOW_WARNINGS and "structlog" not in sys.modules:
            # No program has set it up, so the line would not be written: it takes a tenth of a second to load.
            return _say_nothing
        structlog = import_module("structlog")
        return getattr(structlog.get_logger() if structlog.is_configured() else _of_a_library(), method)


def _say_nothing(*args: object, **values: object) -> None:
    """Take a line that is not written."""


def _of_a_library() -> Any:
    """Return what logs where no program has set that up: warnings and errors, on stderr, as structlog writes them.

    But without the values of variables. A traceback would show them, and they are what people wrote.
    """
    structlog = import_module("structlog")
    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        _without_values(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    )


@lru_cache(maxsize=1)
def _without_values() -> list[Any]:
    structlog = import_module("structlog")
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return [*structlog.get_config()["processors"][:-1], plain]
