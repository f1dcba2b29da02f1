"""Work something out once for each value.

Items, tools and messages stay the very same values from turn to turn while they are not changed, and some of them
cannot be hashed. So what follows from one is remembered with the value itself. It is for functions of values that never
change.

`cached_by_identity` keeps the values that it remembers: it is for what an agent brings. What was said in a session is
`Remembering`: it holds what follows from it itself, and both are gone together.
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


class Remembering:
    """A value with room for what was worked out of it. It is no part of what the value says, and is never copied."""

    __slots__ = ("_block", "_enclosed", "_hash", "_kept", "_part", "_past", "_sent", "_tokens")


def cached_in(slot: str) -> Callable[[Callable[[ValueT], ResultT]], Callable[[ValueT], ResultT]]:
    """Return what gives a function a memory in a slot of `Remembering`. Its result is never None."""

    def with_memory(function: Callable[[ValueT], ResultT]) -> Callable[[ValueT], ResultT]:
        @wraps(function)
        def remembered(value: ValueT) -> ResultT:
            found: ResultT | None = getattr(value, slot, None)
            if found is None:
                found = function(value)
                # The value is frozen, and this is no part of what it says.
                object.__setattr__(value, slot, found)
            return found

        return remembered

    return with_memory
