"""A lock beside a SQLite file: writers of all processes go one at a time, in the order they came.

SQLite alone serves whichever writer asks first after a commit, and under load another one waits for seconds.
"""

import fcntl
from pathlib import Path


class FileLock:
    """A file lock beside a database, held inside a `with` block."""

    def __init__(self, path: Path) -> None:
        self._file = path.with_name(path.name + "-lock").open("ab")

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *exc: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the lock up for good."""
        self._file.close()
