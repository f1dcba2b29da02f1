"""The root of the error tree."""

from typing import ClassVar


class WindowpaneError(Exception):
    """Anything that Windowpane raises on purpose."""

    code: ClassVar[str] = "error"
