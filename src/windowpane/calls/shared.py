"""How much two bodies have in common."""


def shared_prefix(one: bytes, other: bytes) -> int:
    """Return how many bytes two bodies have in common at the beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
