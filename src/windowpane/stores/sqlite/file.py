"""The database file: what is in it, how it is opened, and when it is refused.

A file that is damaged, belongs to another program or was written by a newer version is looked at without being
changed, and refused. Everything else is brought to the current schema by numbered migrations.

All text of conversations stands in one table, `text`. Its rows are only ever added at the end and overwritten where
they stand: SQLite leaves stray copies behind when it moves rows between pages, and what is erased must be gone. Wiped
rows are dropped by rebuilding the whole file (`compact`), once they take up more than half of it.
"""

import errno
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from windowpane.errors import (
    StoreCorruptError,
    StoreError,
    StoreReplacedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from windowpane.stores.file_lock import FileLock

Synchronous = Literal["FULL", "NORMAL"]
"""FULL survives a power cut; NORMAL may lose the last moments in one, and nothing when only the process dies."""

PAGE_BYTES = 4096
BUSY_S = 10.0

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE text (pk INTEGER PRIMARY KEY, live INTEGER NOT NULL, body BLOB NOT NULL)",
        """CREATE TABLE session (
            pk INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, agent TEXT NOT NULL,
            last_seq INTEGER NOT NULL, erased_seq INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL, touched_at INTEGER NOT NULL)""",
        "CREATE INDEX session_touched ON session (touched_at, id)",
        "CREATE INDEX session_of_owner ON session (owner, touched_at, id)",
        """CREATE TABLE event (
            session INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, text INTEGER,
            PRIMARY KEY (session, seq)) WITHOUT ROWID""",
        """CREATE TABLE append_key (
            session INTEGER NOT NULL, key TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
            at INTEGER NOT NULL, PRIMARY KEY (session, key)) WITHOUT ROWID""",
        "CREATE TABLE blob (hash TEXT NOT NULL PRIMARY KEY, text INTEGER NOT NULL) WITHOUT ROWID",
        """CREATE TABLE session_blob (
            session INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (session, hash)) WITHOUT ROWID""",
        "CREATE INDEX session_blob_hash ON session_blob (hash)",
        "CREATE TABLE snapshot (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL)",
        "CREATE TABLE lease (session INTEGER PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL)",
        "CREATE TABLE wiped (bytes INTEGER NOT NULL)",
        "INSERT INTO wiped VALUES (0)",
        """CREATE VIEW log AS
            SELECT session.id AS session, event.seq, event.at, text.body
            FROM event JOIN session ON session.pk = event.session LEFT JOIN text ON text.pk = event.text
            ORDER BY session.id, event.seq""",
    ),
    (
        """CREATE TABLE cost (
            owner TEXT NOT NULL, day INTEGER NOT NULL, nano_dollars INTEGER NOT NULL, unpriced_calls INTEGER NOT NULL,
            PRIMARY KEY (owner, day)) WITHOUT ROWID""",
    ),
    ("ALTER TABLE session ADD COLUMN fence INTEGER NOT NULL DEFAULT 0",),
    ("CREATE TABLE partial (session INTEGER PRIMARY KEY, body BLOB NOT NULL)",),
    (
        """CREATE TABLE vector (
            session INTEGER NOT NULL, seq INTEGER NOT NULL, text INTEGER NOT NULL, PRIMARY KEY (session, seq))
            WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE session ADD COLUMN indexed_seq INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE session ADD COLUMN seen_seq INTEGER NOT NULL DEFAULT 0",
        """CREATE TABLE document (
            pk INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
            turn INTEGER NOT NULL, at INTEGER NOT NULL, tokens INTEGER NOT NULL, terms TEXT NOT NULL,
            UNIQUE (session, seq))""",
        "CREATE INDEX document_tokens ON document (tokens)",
        """CREATE VIRTUAL TABLE document_terms USING fts5(
            terms, content='document', content_rowid='pk', detail=none, columnsize=0, tokenize='ascii')""",
        """CREATE TRIGGER document_added AFTER INSERT ON document BEGIN
            INSERT INTO document_terms (rowid, terms) VALUES (new.pk, new.terms);
        END""",
        """CREATE TRIGGER document_removed AFTER DELETE ON document BEGIN
            INSERT INTO document_terms (document_terms, rowid, terms) VALUES ('delete', old.pk, old.terms);
        END""",
        """CREATE TRIGGER session_erased AFTER UPDATE OF erased_seq ON session BEGIN
            DELETE FROM document WHERE session = new.pk;
            UPDATE session SET indexed_seq = 0, seen_seq = 0 WHERE pk = new.pk;
        END""",
        """CREATE TRIGGER session_removed AFTER DELETE ON session BEGIN
            DELETE FROM document WHERE session = old.pk;
        END""",
    ),
    (
        "CREATE TABLE bundle (pk INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
        """CREATE TABLE bundle_blob (
            bundle INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (bundle, hash)) WITHOUT ROWID""",
        "CREATE INDEX bundle_blob_hash ON bundle_blob (hash)",
        """CREATE TABLE session_bundle (
            session INTEGER NOT NULL, bundle INTEGER NOT NULL, PRIMARY KEY (session, bundle)) WITHOUT ROWID""",
        "CREATE INDEX session_bundle_of ON session_bundle (bundle)",
        # A process of the version before does not know of bundles, and the number of a session may be given again.
        """CREATE TRIGGER session_bundles_removed AFTER DELETE ON session BEGIN
            DELETE FROM session_bundle WHERE session = old.pk;
        END""",
    ),
)
SCHEMA = len(MIGRATIONS)

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_APPLICATION_ID = 0x57504E45
_LOOK_THROUGH_BYTES = 32 * 2**20
_WIPED_BYTES = 16 * 2**20


def open_file(path: Path, synchronous: Synchronous) -> None:
    """Make sure that the file holds the current schema.

    Raises:
        StoreCorruptError: it is damaged or not ours.
        StoreTooNewError: a newer version wrote it.
        StoreUnavailableError: it cannot be opened or written.
    """
    with translated_errors(path):
        if path.is_dir():
            raise StoreUnavailableError(f"{path} is a directory; name a file in it")
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_header(path)
        with closing(FileLock(path)) as lock, lock:
            _check_inside(path)
            with closing(connect(path, synchronous, create=True)) as db:
                _migrate(db)
                # What a killed process had erased may still stand in the write-ahead log.
                db.execute("PRAGMA busy_timeout = 100")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


class DatabaseFile:
    """The database file and its write-ahead log as they were opened.

    A connection to a file that was removed goes on as before, and what it writes is lost with it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._found = _identity(path)
        self._log_found: tuple[int, int] | None = None

    def check(self) -> None:
        """Make sure that both files are still there.

        Raises:
            StoreReplacedError: one of them is gone, or another file has its name.
        """
        if self._found != _identity(self._path) or (self._log_found and self._log_found != _identity(self._log)):
            raise StoreReplacedError(str(self._path))

    def note_log(self) -> None:
        """Remember the write-ahead log, which is there from the first commit on."""
        self._log_found = self._log_found or _identity(self._log)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def connect(path: Path, synchronous: Synchronous = "FULL", *, create: bool = False) -> sqlite3.Connection:
    """Return a connection that any one thread at a time may use. It commits each statement by itself."""
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA synchronous = NORMAL" if synchronous == "NORMAL" else "PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 1000")
    return db


def compact(db: sqlite3.Connection) -> None:
    """Rebuild the file without wiped rows, when they are most of it."""
    (wiped,) = db.execute("SELECT bytes FROM wiped").fetchone()
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    if wiped > _WIPED_BYTES and wiped * 2 > pages * PAGE_BYTES:
        db.execute("DELETE FROM text WHERE NOT live")
        db.execute("VACUUM")
        db.execute("UPDATE wiped SET bytes = 0")


@contextmanager
def translated_errors(path: Path) -> Generator[None]:
    """Turn what SQLite and the file system raise into errors of ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated_error(path, error) from error
    except OSError as error:
        hint = _WRITE_HINT if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else ""
        raise StoreUnavailableError(f"{path}: {error.strerror or error}{hint}") from error


def translated_error(path: Path, error: sqlite3.Error) -> StoreError:
    """Return the error of ours that says what SQLite says."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorruptError(str(path), str(error))
    return StoreUnavailableError(f"{path}: {error}{_HINTS.get(code, '')}")


_WRITE_HINT = "; allow this user to write the file and its directory"
_HINTS = {
    sqlite3.SQLITE_FULL: "; make room and try again",
    sqlite3.SQLITE_IOERR: "; see that its disk can be read and written",
    sqlite3.SQLITE_READONLY: _WRITE_HINT,
    sqlite3.SQLITE_CANTOPEN: _WRITE_HINT,
    sqlite3.SQLITE_BUSY: "; another program holds it open",
}


def _check_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return
    if not header:
        return
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise StoreCorruptError(str(path), "it is not an SQLite database")
    _check_version(path, int.from_bytes(header[60:64]))
    if int.from_bytes(header[68:72]) not in (0, _APPLICATION_ID):
        raise StoreCorruptError(str(path), "it is the database of another program")


def _check_inside(path: Path) -> None:
    if not path.exists() or path.stat().st_size == 0:
        return
    # Without a write-ahead log no process has it open: looking then leaves no trace, not even a file beside it.
    alone = not path.with_name(path.name + "-wal").exists()
    uri = f"{path.absolute().as_uri()}?{'immutable=1' if alone else 'mode=ro'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        _check_version(path, version)
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and version == 0:
            raise StoreCorruptError(str(path), "it is the database of another program")
        if path.stat().st_size <= _LOOK_THROUGH_BYTES:
            (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise StoreCorruptError(str(path), " ".join(verdict.split()))


def _check_version(path: Path, version: int) -> None:
    if version > SCHEMA:
        raise StoreTooNewError(str(path), version, SCHEMA)


def _migrate(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == 0:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA journal_mode = WAL")
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        db.execute("BEGIN IMMEDIATE")
        for statement in statements:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {number}")
        db.execute("COMMIT")
