"""Let a worker stop when the process that started it has ended, also if that was killed.

Without it, workers of a killed `windowpane serve --workers` would hold the port, and no process could stop them.
"""

import os
import signal
from multiprocessing import parent_process
from multiprocessing.connection import wait
from threading import Thread


class Lifeline:
    """A pipe of which only the parent keeps the end to write to: the other end tells when the parent is gone.

    The sentinel that `multiprocessing` gives to forked children is kept open by those that are forked later.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def hold(self) -> None:
        """Take the worker's end, in a worker that was just forked."""
        global _sentinel  # noqa: PLW0603 -- one process has one parent
        os.close(self._write)
        _sentinel = self._read


_sentinel: int | None = None


def stop_with_parent() -> None:
    """Ask this process to stop when the one that started it has ended."""
    parent = parent_process()
    sentinel = _sentinel if _sentinel is not None else parent and parent.sentinel
    if sentinel is not None:
        Thread(target=_stop_after, args=(sentinel,), name="windowpane-parent", daemon=True).start()


def _stop_after(sentinel: int) -> None:
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
