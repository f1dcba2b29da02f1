"""What a server prints: one line per event, as JSON for programs or coloured for people, on standard error.

Tracebacks are printed without the values of variables, which would be what people wrote.
"""

import logging
import sys
from typing import Literal

import structlog

from windowpane.errors import InvalidSettingError

LogForm = Literal["json", "console"]
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
LOUD = ("httpx2", "httpcore2", "mcp", "anthropic", "openai", "google_genai")
"""Libraries that say at `info` what only `debug` should."""


def configure_logging(level: str = "info", form: LogForm | None = None) -> None:
    """Set up logging for this process. Without a form, a terminal gets the one for people.

    Raises:
        InvalidSettingError: no such level.
    """
    if level.lower() not in LEVELS:
        raise InvalidSettingError("log_level", f"must be one of {', '.join(LEVELS)}, not {level!r}")
    number = LEVELS[level.lower()]
    people = sys.stderr.isatty() if form is None else form == "console"
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if people
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    _configure_libraries(number, shared, last)


def _configure_libraries(
    number: int, shared: list[structlog.typing.Processor], last: list[structlog.typing.Processor]
) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for name in LOUD:
        logging.getLogger(name).setLevel(max(number, logging.WARNING) if number > LEVELS["debug"] else number)
