"""Work something out once for each value.

Items and tools stay the very same values from turn to turn while they are not changed, and some of them cannot be
hashed. So what follows from one is remembered with the value itself. It is for functions of values that never change.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

MOST = 4096
"""How many values are remembered with a function, unless it says otherwise; beyond that it starts afresh."""

ValueT = TypeVar("ValueT")
ResultT = TypeVar("ResultT")


def cached_by_identity(function: Callable[[ValueT], ResultT], most: int = MOST) -> Callable[[ValueT], ResultT]:
    """Return the function with a memory: the same object gives the same result again."""
    known: dict[int, tuple[ValueT, ResultT]] = {}

    @wraps(function)
    def remembered(value: ValueT) -> ResultT:
        found = known.get(id(value))
        # An id comes again when its object is gone; what is remembered here is not gone.
        if found is not None and found[0] is value:
            return found[1]
        result = function(value)
        if len(known) >= most:
            known.clear()
        known[id(value)] = (value, result)
        return result

    return remembered
