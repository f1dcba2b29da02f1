"""Analytics in a SQLite file, or, without a path, in memory as long as the object lives.

Everything in it can be counted again, so a file that is damaged or of another version is thrown away.
"""

import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from windowpane.errors import StoreUnavailableError
from windowpane.insight.analytics.tables import VERSION, Dialect, creating
from windowpane.stores.file_lock import FileLock

BUSY_S = 30.0
DIALECT = Dialect("INTEGER", "INTEGER PRIMARY KEY AUTOINCREMENT", "TEXT", keyed=" WITHOUT ROWID")


class SQLiteDatabase:
    """A file, or memory. Any thread may use it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = RLock()
        self._db: sqlite3.Connection | None = None

    @contextmanager
    def reading(self) -> Generator["_Connection"]:
        """Open for statements that belong to no transaction."""
        with self._open() as db:
            yield _Connection(db)

    @contextmanager
    def writing(self) -> Generator["_Connection"]:
        """Open a transaction."""
        with self._open() as db, _transaction(db):
            yield _Connection(db)

    def clear(self) -> None:
        """Make every table empty."""
        with self._open() as db, _transaction(db):
            _create(db)

    def size_bytes(self) -> int:
        """Return how large the file is."""
        with self._open() as db:
            ((pages,),) = db.execute("PRAGMA page_count").fetchall()
            ((page_bytes,),) = db.execute("PRAGMA page_size").fetchall()
        return pages * page_bytes

    def close(self) -> None:
        """Close the file. What was never in a file is lost."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = _opened(self._path)
                yield self._db
            except sqlite3.Error as error:
                if _is_damage(error):
                    self.close()
                raise StoreUnavailableError(f"analytics store {self._path or ''}: {error}") from error
            except OSError as error:
                raise StoreUnavailableError(
                    f"the analytics store {self._path or ''}: {error.strerror or error}"
                ) from error


class _Connection:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> list[Any]:
        return self._db.execute(sql, values).fetchall()

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        self._db.executemany(sql, rows)


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _opened(path: Path | None) -> sqlite3.Connection:
    if path is None:
        db = _connected(":memory:")
        _create(db)
        return db
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(FileLock(path)) as lock, lock:
        try:
            return _current(_connected(path))
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
        # Everything in it can be counted again.
        for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
            file.unlink(missing_ok=True)
        return _current(_connected(path))


def _connected(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _current(db: sqlite3.Connection) -> sqlite3.Connection:
    """Return a file's connection when the file has the present form, which it is given if it has not."""
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        with _transaction(db):
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version != VERSION:
                _create(db)
    except BaseException:
        db.close()
        raise
    return db


def _create(db: sqlite3.Connection) -> None:
    for (table,) in db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall():
        db.execute(f'DROP TABLE IF EXISTS "{table}"')
    for statement in creating(DIALECT):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {VERSION}")
