"""The root of the error tree."""

from typing import ClassVar


class WindowpaneError(Exception):
    """Anything that Windowpane raises on purpose."""

    code: ClassVar[str] = "error"


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a text file could not be read, without its path and the number of the error."""
    return str(error.strerror) if isinstance(error, OSError) else "it is not UTF-8 text"
