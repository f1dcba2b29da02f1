"""Begin no more turns than this worker can carry, and no more of one owner than leave room for the others.

A worker that takes every message slows down until its turns fail in the middle. A full one refuses a new turn before
anything is stored, and says when to come again. A turn that goes on after an approval, or with the results of the
caller's tools, is not refused by a full worker, and counts like the others while it runs.

An owner's bound holds for all of its turns, also for those that go on: otherwise many waiting turns, decided about at
once, would fill the worker. The owner `local`, who needs no token, is not bound.
"""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from windowpane import telemetry
from windowpane.callers import LOCAL_OWNER
from windowpane.context.ids import SessionId, owner_of
from windowpane.errors import TooManyTurnsError, WorkerFullError
from windowpane.turn.runner import TurnTask

RETRY_AFTER_S = 2
"""When a message that was refused may be sent again, in seconds."""


class Admission:
    """The places for turns of this worker; 0 is any number. `running` are the turns that have one."""

    def __init__(self, max_turns: int = 0, max_turns_per_owner: int = 0) -> None:
        self.running: dict[SessionId, TurnTask] = {}
        self._max_turns, self._per_owner = max_turns, max_turns_per_owner
        self._beginning = Counter[str]()

    def check(self, owner: str) -> None:
        """Make sure that there is a place for one more turn of this owner.

        Raises:
            WorkerFullError: the worker has none.
            TooManyTurnsError: the owner has none.
        """
        if self._max_turns and len(self.running) + self._beginning.total() >= self._max_turns:
            telemetry.refused_turn(WorkerFullError.code)
            raise WorkerFullError(self._max_turns, RETRY_AFTER_S)
        self._check_owner(owner_of(owner))

    @contextmanager
    def beginning(self, owner: str, *, goes_on: bool = False) -> Generator[None]:
        """Hold a place for a turn until it runs. One that `goes_on` needs none of the worker's.

        Raises:
            WorkerFullError: the worker has none.
            TooManyTurnsError: the owner has none.
        """
        owner = owner_of(owner)
        if goes_on:
            self._check_owner(owner)
        else:
            self.check(owner)
        self._beginning[owner] += 1
        try:
            yield
        finally:
            self._beginning[owner] -= 1
            self._beginning += Counter()

    def _check_owner(self, owner: str) -> None:
        if not self._per_owner or owner == LOCAL_OWNER:
            return
        running = sum(owner_of(task.state.owner) == owner for task in self.running.values())
        if running + self._beginning[owner] >= self._per_owner:
            telemetry.refused_turn(TooManyTurnsError.code)
            raise TooManyTurnsError(self._per_owner, RETRY_AFTER_S)
