"""Begin no more turns than this worker can carry.

A worker that takes every message slows down until its turns fail in the middle. A full one refuses a new turn before
anything is stored, and says when to come again. A turn that goes on after an approval, or with the results of the
caller's tools, is never refused, and counts like the others while it runs.
"""

from collections.abc import Generator
from contextlib import contextmanager

from windowpane import telemetry
from windowpane.context.ids import SessionId
from windowpane.errors import WorkerFullError
from windowpane.turn.runner import TurnTask

RETRY_AFTER_S = 2
"""When a message that was refused may be sent again, in seconds."""


class Admission:
    """The places for turns of this worker; `max_turns` 0 is any number. `running` are the turns that have one."""

    def __init__(self, max_turns: int = 0) -> None:
        self.running: dict[SessionId, TurnTask] = {}
        self._max_turns = max_turns
        self._beginning = 0

    def check(self) -> None:
        """Make sure that there is a place for one more turn.

        Raises:
            WorkerFullError: there is none.
        """
        if self._max_turns and len(self.running) + self._beginning >= self._max_turns:
            telemetry.refused_turn(WorkerFullError.code)
            raise WorkerFullError(self._max_turns, RETRY_AFTER_S)

    @contextmanager
    def beginning(self) -> Generator[None]:
        """Hold a place for a turn until it runs.

        Raises:
            WorkerFullError: there is none.
        """
        self.check()
        self._beginning += 1
        try:
            yield
        finally:
            self._beginning -= 1
