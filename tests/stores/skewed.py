"""A process of `stores.processes` whose clock is wrong: `python -m stores.skewed SECONDS KIND PLACE WORK ARGUMENT…`.

Whatever Python code asks for the time of day gets a shifted one. What waits measures with another clock and is not
disturbed, as with a real clock that is wrong.
"""

import datetime as dt
import sys
import time
import warnings
from typing import Self

skew_s = float(sys.argv[1])
right_time = time.time


class SkewedDatetime(dt.datetime):
    """A `datetime` whose now is another."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Self:
        return cls.fromtimestamp(right_time() + skew_s, tz)


if __name__ == "__main__":
    time.time = lambda: right_time() + skew_s
    time.time_ns = lambda: round((right_time() + skew_s) * 1e9)
    setattr(dt, "datetime", SkewedDatetime)  # noqa: B010 - a type checker knows better than to assign a class

    # Compiled code looks at the class's size, finds it larger, and copes.
    warnings.filterwarnings("ignore", message="datetime.datetime size changed")

    from stores.processes import run

    run(*sys.argv[2:])
