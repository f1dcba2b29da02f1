"""Show how far indexing is, on one line of the terminal that goes away again."""

import sys

WORTH_SHOWING = 64
"""Fewer passages are indexed before anybody could read the line."""


def show_indexing(embedded: int, total: int) -> None:
    """Tell a person that items are being indexed, and how far that is."""
    if total < WORTH_SHOWING or not sys.stderr.isatty():
        return
    width = 24
    done = width * embedded // total
    bar = "█" * done + "░" * (width - done)
    text = f"\rindexing items {bar} {embedded} of {total} passages" if embedded < total else "\r\x1b[K"
    sys.stderr.write(text)
    sys.stderr.flush()
