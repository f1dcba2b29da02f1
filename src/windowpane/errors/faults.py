"""What is wrong with a value that was refused, told in one line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

MOST_FAULTS = 1000
"""Beyond so many faults only their number is told: each takes memory and time, and a body can have a million."""


def first_fault(error: "ValidationError") -> tuple[str, str]:
    """Return where the first fault is, and what it is; an empty place when there are too many to tell."""
    if error.error_count() > MOST_FAULTS:
        return "", many_faults(error.error_count())
    first = error.errors(include_url=False, include_input=False)[0]
    return ".".join(map(str, first["loc"])), first["msg"]


def many_faults(count: int) -> str:
    """Return what is said of a value with so many faults."""
    return f"{count:,} parts of it cannot be used"
