"""A process whose clock is wrong.

Whatever Python code asks for the time of day gets a shifted one. What waits measures with another clock and is not
disturbed, as with a real clock that is wrong.
"""

import datetime as dt
import sys
import time
from typing import Any, Self

right_time = time.time


def set_clock(skew_s: float) -> None:
    """Let every module of this process see another time of day, from now on."""

    class SkewedDatetime(dt.datetime):
        """A `datetime` whose now is another."""

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Self:
            return cls.fromtimestamp(right_time() + skew_s, tz)

    instead: dict[int, Any] = {
        id(dt.datetime): SkewedDatetime,
        id(time.time): lambda: right_time() + skew_s,
        id(time.time_ns): lambda: round((right_time() + skew_s) * 1e9),
    }
    for module in list(sys.modules.values()):
        if module.__name__ == __name__:
            continue
        for name, value in list(vars(module).items()):
            if id(value) in instead:
                setattr(module, name, instead[id(value)])
