"""What a server prints: one line per event, as JSON for programs or coloured for people, on standard error.

Tracebacks are printed without the values of variables, which would be what people wrote.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Literal, TextIO, cast

from windowpane.errors import InvalidSettingError
from windowpane.remarks import set_up_with

if TYPE_CHECKING:
    from structlog.typing import Processor

LogForm = Literal["json", "console"]
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
LIBRARIES = logging.WARNING
"""Libraries log warnings and errors only, at every level: below that, many of them log headers, bodies and frames,
which hold tokens, keys and what was said. `LLM_DEBUG_LOG` shows requests to models, without secrets."""

REPEATS = 20
REPEATS_WITHIN_S = 10.0
"""How often a library may log the same thing in this time. The rest is counted. Without descriptors asyncio logs the
same error thousands of times a second."""


def configure_logging_later(level: str) -> None:
    """Set up logging for this process when it logs its first line: most commands log none.

    Raises:
        InvalidSettingError: no such level.
    """
    configure = partial(configure_logging, level)
    root = logging.getLogger()
    root.handlers[:] = [_FirstRecord(configure)]
    root.setLevel(max(_number(level), LIBRARIES))
    set_up_with(configure)


def _number(level: str) -> int:
    if level.lower() not in LEVELS:
        raise InvalidSettingError("log_level", f"must be one of {', '.join(LEVELS)}, not {level!r}")
    return LEVELS[level.lower()]


def configure_logging(level: str = "info", form: LogForm | None = None) -> None:
    """Set up logging for this process. Without a form, a terminal gets the one for people.

    Raises:
        InvalidSettingError: no such level.
    """
    number = _number(level)
    set_up_with(None)
    # Not at the top: it takes long to load, and a command that logs nothing needs none of it.
    import structlog

    people = sys.stderr.isatty() if form is None else form == "console"
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if people
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", LogStream(sys.stderr))),
        cache_logger_on_first_use=False,
    )
    _configure_libraries(number, shared, last)


def _configure_libraries(number: int, shared: "list[Processor]", last: "list[Processor]") -> None:
    import structlog

    handler = logging.StreamHandler(cast("TextIO", LogStream(sys.stderr)))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    handler.addFilter(Throttle())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, LIBRARIES))


class _FirstRecord(logging.Handler):
    """Sets up logging when a library logs something, and has that logged."""

    def __init__(self, configure: Callable[[], None]) -> None:
        super().__init__()
        self._configure = configure

    def emit(self, record: logging.LogRecord) -> None:
        self._configure()
        logging.getLogger().handle(record)


class LogStream:
    """Writes to a stream if it can: what is being done goes on when the disk of the log is full or read-only."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Write a text; where that fails, it is dropped."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        with suppress(OSError):
            self._stream.flush()


class Throttle(logging.Filter):
    """Lets the same record pass a few times, and says later how many more there were."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is logged."""
        key = (record.name, record.levelno, str(record.msg)[:200])
        now = self._clock()
        since, count = self._seen.get(key, (now, 0))
        if now - since >= REPEATS_WITHIN_S:
            if count > REPEATS:
                record.msg, record.args = f"{record.getMessage()} ({count - REPEATS:,} more like this before)", ()
            since, count = now, 0
        if len(self._seen) > 1000:
            self._seen.clear()
        self._seen[key] = (since, count + 1)
        return count < REPEATS
