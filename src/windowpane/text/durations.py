"""Say how long something takes, for people."""

import math


def in_units(seconds: float) -> str:
    """Return a time in the unit that suits it: `7 s`, `12 min`, `2 h 5 min`. Begun minutes count."""
    if seconds < 120:
        return f"{seconds:g} s" if seconds < 10 else f"{math.ceil(seconds)} s"
    hours, minutes = divmod(math.ceil(seconds / 60), 60)
    if hours < 2:
        return f"{60 * hours + minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
