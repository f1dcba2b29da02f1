"""Give up on a model that says nothing for too long: one timer for a whole answer, not one for each word.

Only the time counts in which the model is waited for. A caller may take as long as it likes with a word.
"""

import asyncio
from types import TracebackType
from typing import Self

import anyio


class Silence:
    """Ends the block that it guards when a wait between `begin` and `end` takes more than `limit_s`.

    The block ends without an error, and `broken` tells that it ended so. Enter and leave it in the same task.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._waits_since: float | None = None
        self._scope = anyio.CancelScope()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(limit_s, self._look)

    @property
    def broken(self) -> bool:
        """Tell whether the model was silent for too long."""
        return self._scope.cancelled_caught

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._timer.cancel()
        return bool(self._scope.__exit__(kind, error, trace))

    def allow(self, limit_s: float) -> None:
        """Wait no longer than this from now on."""
        if limit_s != self._limit_s:
            self._limit_s = limit_s
            self._timer.cancel()
            self._timer = self._loop.call_later(limit_s, self._look)

    def begin(self) -> None:
        """Count from now: the model is waited for."""
        self._waits_since = self._loop.time()

    def end(self) -> None:
        """Count no more: something has come, or the stream is over."""
        self._waits_since = None

    def _look(self) -> None:
        """End the block if it is time, else look again when it may be."""
        now = self._loop.time()
        due = (now if self._waits_since is None else self._waits_since) + self._limit_s
        if due <= now:
            self._scope.cancel()
        else:
            self._timer = self._loop.call_at(due, self._look)
