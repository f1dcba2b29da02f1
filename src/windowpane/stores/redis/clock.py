"""What time it is on the server, by what it said last. Never later than it really is."""

import time


class ServerClock:
    """Follows the server's clock between two answers."""

    def __init__(self) -> None:
        self._said_us = 0
        self._when = time.monotonic()

    def heard(self, at_us: int) -> None:
        """Note that the server said a time just now."""
        if at_us > self.now():
            self._said_us, self._when = at_us, time.monotonic()

    def now(self) -> int:
        """Return the time in microseconds."""
        return self._said_us + int((time.monotonic() - self._when) * 1_000_000)
