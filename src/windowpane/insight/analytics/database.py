"""What an analytics store needs of a database, in the part of SQL that SQLite and PostgreSQL have in common.

Values stand where `?` stands. One statement or transaction at a time is run; other threads wait for it.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class StatementRunner(Protocol):
    """Runs statements."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        """Run a statement and return its rows."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement once for each row of values."""
        ...


class Database(Protocol):
    """A place for tables. It is opened when it is first used, and tables that are not there are created."""

    def reading(self) -> AbstractContextManager[StatementRunner]:
        """Open for statements that belong to no transaction.

        Raises:
            StoreUnavailableError: the database cannot be reached, or failed.
        """
        ...

    def writing(self) -> AbstractContextManager[StatementRunner]:
        """Open a transaction. No other process writes until it ends.

        Raises:
            StoreUnavailableError: the database cannot be reached, or failed; then nothing was written.
        """
        ...

    def clear(self) -> None:
        """Make every table empty."""
        ...

    def size_bytes(self) -> int:
        """Return how much room it takes."""
        ...

    def close(self) -> None:
        """Close it; the next use opens it again."""
        ...
