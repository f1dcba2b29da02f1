"""Run the real command: to its end in this process or in one of its own, or in a terminal."""

import codecs
import fcntl
import logging
import os
import pty
import re
import select
import sys
import tempfile
import termios
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import structlog
from typer.testing import CliRunner

from forked import Forked, forked
from patience import PATIENCE_S
from windowpane.cli import main
from windowpane.remarks import set_up_with

MISSED_S = 0.5
_NEW = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(data: Path, **more: str) -> dict[str, str]:
    """Return an environment in which only this data folder exists."""
    kept = {
        name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME", "LANG", "TMPDIR")
    }
    return kept | {"WINDOWPANE_DATA": str(data), "COLUMNS": "200", "TERM": "dumb"} | more


def windowpane(data: Path, *arguments: str, piped: bytes = b"", **more: str) -> Done:
    """Run a command to its end in this process, which takes a tenth of the time of one of its own."""
    with (
        logging_restored(),
        mock.patch.dict(os.environ, environment(data, **more), clear=True),
        mock.patch.object(sys, "argv", ["windowpane", *arguments]),
        CliRunner().isolation(input=piped) as (out, err, _),
    ):
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(code, out.getvalue().decode(), err.getvalue().decode())


@contextmanager
def logging_restored() -> Generator[None]:
    """Leave logging as it was found: a command sets it up for a whole process."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        set_up_with(lambda: None)
        structlog.configure(**before)
        root.handlers[:] = handlers
        root.setLevel(level)


def process(data: Path, *arguments: str, piped: bytes = b"", **more: str) -> Done:
    """Run a command to its end as a process, without a terminal."""
    return process_in(environment(data, **more), *arguments, piped=piped)


def process_in(env: Mapping[str, str], *arguments: str, piped: bytes = b"") -> Done:
    """Run a command to its end as a process, without a terminal, in an environment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").write_bytes(piped)
        with (
            mock.patch.dict(os.environ, env, clear=True),
            forked(_without_terminal, folder, arguments, log=Path(os.devnull)) as running,
        ):
            code = running.wait()
        return Done(code, (folder / "out").read_text(), (folder / "err").read_text())


def _without_terminal(folder: Path, arguments: Sequence[str], say: Callable[[str], None]) -> None:
    """Run a command that reads and writes files. A warning is an error."""
    for stream, name, how in ((0, "in", os.O_RDONLY), (1, "out", _NEW), (2, "err", _NEW)):
        os.dup2(os.open(folder / name, how), stream)
    _reopen_streams()
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message="open_binary is deprecated", category=DeprecationWarning)
    sys.argv = ["windowpane", *arguments]
    say("begun")
    main()


def _reopen_streams() -> None:
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end


class Terminal:
    """A command that runs in a terminal, and everything that it has printed."""

    def __init__(self, handle: int, process: Forked) -> None:
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
        """Press a key at a prompt and wait for a text.

        Python's line editor sees a Ctrl-C that comes just before it waits only when the line is ended.
        """
        self.press(key)
        deadline = time.monotonic() + MISSED_S
        while text not in self._text[self._read :] and self._more(deadline - time.monotonic()):
            pass
        if text not in self._text[self._read :]:
            self.send("")
        self.expect(text)

    def rest(self) -> str:
        """Wait for the end of the command and return what it printed last."""
        deadline = time.monotonic() + PATIENCE_S
        while self._more(deadline - time.monotonic()):
            pass
        self.process.wait()
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
    try:
        with (
            mock.patch.dict(os.environ, environment(data, **more), clear=True),
            forked(_in_terminal, os.ttyname(theirs), arguments, log=Path(os.devnull)) as process,
        ):
            os.close(theirs)
            yield Terminal(ours, process)
    finally:
        os.close(ours)


def _in_terminal(name: str, arguments: Sequence[str], say: Callable[[str], None]) -> None:
    """Take a terminal for one's own, so that its Ctrl-C comes here, and run a command in it."""
    os.setsid()
    handle = os.open(name, os.O_RDWR)
    fcntl.ioctl(handle, termios.TIOCSCTTY, 0)
    for stream in range(3):
        os.dup2(handle, stream)
    _reopen_streams()
    sys.argv = ["windowpane", *arguments]
    say("begun")
    main()
