"""Print to the terminal: in colour for people, as plain text for programs, and never a control code from outside.

What was asked for goes to stdout; remarks go to stderr when a program may be reading stdout.
"""

import re
import signal
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Screen:
    """Where a command prints. With `remarks_aside`, remarks go to stderr."""

    def __init__(self, *, remarks_aside: bool = False) -> None:
        self._file = sys.stdout
        self._remarks = sys.stderr if remarks_aside else sys.stdout

    @cached_property
    def _out(self) -> "Console":
        return _console(self._file)

    @cached_property
    def _aside(self) -> "Console":
        return _console(self._remarks) if self._remarks is not self._file else self._out

    @property
    def is_terminal(self) -> bool:
        """Tell whether stdout is a terminal."""
        return self._out.is_terminal

    def write(self, text: str, style: str = "") -> None:
        """Print text without a line break. It is unchanged unless stdout is a terminal."""
        if self.is_terminal:
            self._out.print(styled(text, style), end="", soft_wrap=True)
        else:
            self._file.write(text)
            self._file.flush()

    def json(self, value: Any, *, leave_out: set[str] | None = None) -> None:
        """Print a value as JSON."""
        # Not at the top: most commands do without it.
        from pydantic_core import to_json

        self.write(to_json(value, indent=2, exclude=leave_out, inf_nan_mode="null").decode() + "\n")

    def line(self, text: "str | Text" = "", style: str = "") -> None:
        """Print a line."""
        if isinstance(text, str) and not style and "\t" not in text:
            # As it would come out of a console, which takes longer to load than many a command takes to run.
            self._file.write(f"{visible(text)}\n")
            self._file.flush()
            return
        self._out.print(styled(text, style) if isinstance(text, str) else text, soft_wrap=True)

    def remark(self, text: "str | Text" = "", style: str = "dim") -> None:
        """Print a line about what the command is doing."""
        self._aside.print(styled(text, style) if isinstance(text, str) else text, soft_wrap=True)

    def fail(self, text: str) -> None:
        """Print an error."""
        self.remark(f"error: {text}", "red")


def styled(text: str, style: str = "") -> "Text":
    """Return a text to print, without control codes."""
    # Not at the top: help is printed without it.
    from rich.text import Text

    return Text(visible(text), style)


def visible(text: str) -> str:
    """Return a text with control codes and direction marks written as escapes, so that they have no effect."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def confirmed(question: str) -> bool:
    """Ask a yes-or-no question. Ctrl-C ends the command, also while an event loop is running."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return typer.confirm(question)
    finally:
        signal.signal(signal.SIGINT, before)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 rule`, `1,200 rules`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _console(file: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=file, highlight=False)
