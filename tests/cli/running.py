"""Run the real command: to its end, or in a terminal of its own."""

import codecs
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60.0
ATTEMPTS = 6
_TAKE_TERMINAL = (
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from windowpane.cli import main; main()"
)
"""Makes the terminal the one whose Ctrl-C reaches the process."""

_TOKENIZER = "ignore:open_binary is deprecated:DeprecationWarning"
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(data: Path, **more: str) -> dict[str, str]:
    """Return an environment in which only this data folder exists."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return kept | {"WINDOWPANE_DATA": str(data), "COLUMNS": "200", "TERM": "dumb"} | more


def windowpane(data: Path, *arguments: str, piped: bytes = b"", **more: str) -> Done:
    """Run a command to its end, without a terminal."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-W", _TOKENIZER, "-m", "windowpane", *arguments],
        input=piped,
        capture_output=True,
        env=environment(data, **more),
        timeout=PATIENCE_S,
        check=False,
    )
    return Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


class Terminal:
    """A command that runs in a terminal, and everything that it has printed."""

    def __init__(self, handle: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._handle = handle
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._read = 0

    def expect(self, text: str) -> str:
        """Wait until a text is printed; return what came before it, since the last text that was waited for."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self._text.find(text, self._read)) < 0:
            if not self._more(deadline - time.monotonic()):
                raise AssertionError(f"{text!r} did not come; since then came:\n{self._text[self._read :]}")
        before = self._text[self._read : found]
        self._read = found + len(text)
        return before

    def send(self, line: str) -> None:
        """Type a line."""
        os.write(self._handle, line.encode() + b"\n")

    def press(self, key: bytes) -> None:
        """Press a key, such as Ctrl-C."""
        os.write(self._handle, key)

    def insist(self, key: bytes, text: str) -> None:
        """Press a key at a prompt until a text comes. Python's line editor misses a Ctrl-C just before it waits."""
        for _ in range(ATTEMPTS):
            self.press(key)
            deadline = time.monotonic() + PATIENCE_S / ATTEMPTS
            while text not in self._text[self._read :] and self._more(deadline - time.monotonic()):
                pass
            if text in self._text[self._read :]:
                break
        self.expect(text)

    def rest(self) -> str:
        """Wait for the end of the command and return what it printed last."""
        deadline = time.monotonic() + PATIENCE_S
        while self._more(deadline - time.monotonic()):
            pass
        self.process.wait(PATIENCE_S)
        return self._text[self._read :]

    def _more(self, patience_s: float) -> bool:
        ready, _, _ = select.select([self._handle], [], [], max(patience_s, 0))
        if not ready:
            return False
        try:
            data = os.read(self._handle, 65536)
        except OSError:
            # A terminal whose other end is closed reads as an error.
            return False
        self._text += _COLOUR.sub("", self._decoder.decode(data)).replace("\r", "")
        return bool(data)


@contextmanager
def terminal(data: Path, *arguments: str, **more: str) -> Generator[Terminal]:
    """Run a command in a terminal of its own, where Ctrl-C works."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(data, **more),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
