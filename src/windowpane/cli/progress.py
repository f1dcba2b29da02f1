"""Show the progress of long work, on one line of the terminal that is removed at the end."""

import sys

WORTH_SHOWING = 64
"""Fewer passages are indexed before the line could be read."""


def show_indexing(embedded: int, total: int) -> None:
    """Show how many passages are indexed, if stderr is a terminal."""
    if total >= WORTH_SHOWING:
        show("indexing items", embedded, total, "passages")


def show(doing: str, done: int, total: int, nouns: str) -> None:
    """Show how much of something is done, if stderr is a terminal."""
    if not sys.stderr.isatty() or not total:
        return
    width = 24
    full = width * done // total
    bar = "█" * full + "░" * (width - full)
    sys.stderr.write(f"\r{doing} {bar} {done} of {total} {nouns}" if done < total else "\r\x1b[K")
    sys.stderr.flush()
