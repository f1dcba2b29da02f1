"""Show the progress of indexing, on one line of the terminal that is removed at the end."""

import sys

WORTH_SHOWING = 64
"""Fewer passages are indexed before the line could be read."""


def show_indexing(embedded: int, total: int) -> None:
    """Show how many passages are indexed, if stderr is a terminal."""
    if total < WORTH_SHOWING or not sys.stderr.isatty():
        return
    width = 24
    done = width * embedded // total
    bar = "█" * done + "░" * (width - done)
    text = f"\rindexing items {bar} {embedded} of {total} passages" if embedded < total else "\r\x1b[K"
    sys.stderr.write(text)
    sys.stderr.flush()
