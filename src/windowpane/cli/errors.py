"""Print an error as one line that says what to do next."""

import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager

from windowpane.errors import (
    AgentError,
    ApprovalPendingError,
    SessionBusyError,
    SessionNotFoundError,
    StoreUnavailableError,
    TurnNotFoundError,
    UnknownItemError,
    UnknownModelError,
    WindowpaneError,
)

NEXT_STEPS: tuple[tuple[type[WindowpaneError], str], ...] = (
    (SessionNotFoundError, "`windowpane sessions` lists the sessions"),
    (TurnNotFoundError, "`windowpane sessions show SESSION` shows its turns"),
    (UnknownItemError, "`/items` in the chat lists the items"),
    (UnknownModelError, "`/model` in the chat lists the models that are set up"),
    (ApprovalPendingError, "`windowpane chat SESSION` asks for your decision"),
    (SessionBusyError, "a turn is running in another window or in the server"),
    (AgentError, "`windowpane doctor` checks everything else"),
    (StoreUnavailableError, "`windowpane doctor` looks for the cause"),
)
"""What the command line adds to the message of an error: the command that helps."""


def in_one_line(error: WindowpaneError) -> str:
    """Return what happened and what to do, without line breaks."""
    step = next((step for kind, step in NEXT_STEPS if isinstance(error, kind)), "")
    message = " ".join(str(error).split())
    return f"{message} ({step})" if step else message


@contextmanager
def explained() -> Generator[None]:
    """Print an error that escapes as one line on stderr, and exit with code 1."""
    try:
        yield
    except WindowpaneError as error:
        _stop(in_one_line(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - this is the edge: above it there is only a traceback
        if isinstance(error, OSError) and error.filename is not None:
            _stop(f"{error.filename}: {error.strerror}")
        if os.environ.get("WINDOWPANE_LOG_LEVEL", "").lower() == "debug":
            traceback.print_exc()
        text = " ".join(str(error).split())
        _stop(f"unexpected error: {type(error).__name__}: {text} (WINDOWPANE_LOG_LEVEL=debug shows where)")


def _stop(line: str) -> None:
    sys.stderr.write(f"error: {line}\n")
    sys.exit(1)
