"""A pipe by which one thread wakes another, or an event loop."""

import os
from contextlib import suppress


class Bell:
    """Rings for the thread that waits at the other end. One that rings already rings on until it is heard."""

    def __init__(self, *, waits: bool) -> None:
        """Tell whether the listener waits by itself: an event loop is told when it rings, and must not."""
        self.listener, self._ringer = os.pipe()
        os.set_blocking(self.listener, waits)
        # Who rings never waits: a full pipe is one that rings.
        os.set_blocking(self._ringer, False)

    def ring(self) -> bool:
        """Wake the other end. False: it was closed."""
        try:
            os.write(self._ringer, b"!")
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return True

    def hear(self) -> None:
        """Wait until it rings, if the listener waits, and silence it."""
        with suppress(BlockingIOError):
            os.read(self.listener, 65536)

    def close_listener(self) -> None:
        """Listen no longer."""
        os.close(self.listener)

    def close_ringer(self) -> None:
        """Ring no longer. A listener that waits is woken."""
        os.close(self._ringer)
