"""Print for people: colour on a terminal, plain text elsewhere, and never a control code that somebody else wrote.

What was asked for goes to stdout; remarks go to stderr when a program may be reading stdout.
"""

import re
import sys
from typing import TextIO

from rich.console import Console
from rich.text import Text

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Screen:
    """Where a command prints. With `remarks_aside`, remarks go to stderr."""

    def __init__(self, *, remarks_aside: bool = False) -> None:
        self._out = _console(sys.stdout)
        self._aside = _console(sys.stderr) if remarks_aside else self._out

    @property
    def is_terminal(self) -> bool:
        """Tell whether somebody sees stdout."""
        return self._out.is_terminal

    def write(self, text: str, style: str = "") -> None:
        """Print a stretch of text as it comes, without a line break. It is kept to the letter where nobody sees it."""
        if self.is_terminal:
            self._out.print(Text(visible(text), style), end="", soft_wrap=True)
        else:
            self._out.file.write(text)
            self._out.file.flush()

    def line(self, text: str | Text = "", style: str = "") -> None:
        """Print a line."""
        self._out.print(text if isinstance(text, Text) else Text(visible(text), style), soft_wrap=True)

    def remark(self, text: str | Text = "", style: str = "dim") -> None:
        """Print a line about what is going on."""
        self._aside.print(text if isinstance(text, Text) else Text(visible(text), style), soft_wrap=True)

    def fail(self, text: str) -> None:
        """Print a line about what went wrong."""
        self.remark(f"error: {text}", "red")


def visible(text: str) -> str:
    """Return a text whose control codes and direction marks are written out, so that they can do nothing."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 rule`, `1,200 rules`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _console(file: TextIO) -> Console:
    return Console(file=file, highlight=False)
