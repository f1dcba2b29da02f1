"""How much two texts have in common at the beginning."""

from typing import AnyStr


def shared_prefix(one: AnyStr, other: AnyStr) -> int:
    """Return how many characters, or bytes, two texts have in common at the beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
