"""The analytics store: roll-ups of finished turns by owner, day, agent and model, in one SQLite file.

Each number is added up four times: for its day and for its month, for its owner and for everyone. So any stretch of
time is a few whole months and the days around them, and everyone's numbers are read as fast as one owner's.

Nothing in it is true by itself: everything can be counted again from the sessions, so a file that is damaged or of
another version is thrown away. It holds names and numbers, never what was said. Several processes may add to it: what a
stretch of a session's log adds is taken only if the session stands in the analytics store where the stretch begins.
"""

import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import Any

from windowpane.context.ids import SessionId, content_hash
from windowpane.context.items import ItemRef
from windowpane.errors import StoreUnavailableError
from windowpane.insight.analytics.count import SCORE_STEPS, Counts, Lesson, Progress, item_key
from windowpane.stores.file_lock import FileLock

VERSION = 4
BUSY_S = 30.0

KEPT_LESSONS = 20_000
"""How many turns are remembered one by one, over all owners: the latest."""


@dataclass(frozen=True, slots=True)
class Table:
    """A roll-up: what tells its rows apart beside owner, day, agent and model, and what they count.

    Of the counters in `latest` it is also kept on which day they last grew.
    """

    detail: tuple[str, ...]
    counters: tuple[str, ...]
    latest: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the columns that tell rows apart."""
        return ("owner", "span", "day", "agent", "model", *self.detail)

    @property
    def adding(self) -> str:
        """Return how a row is added, with a place for its name to stand."""
        columns = [*self.keys, *(f"n_{counter}" for counter in self.counters), *(f"d_{name}" for name in self.latest)]
        sums = [f"n_{counter} = n_{counter} + excluded.n_{counter}" for counter in self.counters]
        sums += [f"d_{name} = max(d_{name}, excluded.d_{name})" for name in self.latest]
        return (
            f"INSERT INTO {{}} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "  # noqa: S608 – names of ours
            f"ON CONFLICT DO UPDATE SET {', '.join(sums)}"
        )


TABLES: Mapping[str, Table] = {
    "turn": Table(
        (),
        (
            "turns",
            "begun",
            "active",
            "calls",
            "request_tokens",
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "cost_nano",
            "turns_without_price",
            "calls_without_usage",
            "calls_without_price",
            "tool_calls",
            "tool_errors",
            "selected",
            "selected_used",
            "selected_probably",
            "missed",
            "compared",
            "prefix_bytes",
            "kept_bytes",
            "rebases",
            "rebase_nano",
            "expected_tokens",
            "expected_read_tokens",
            "collapses",
            "missing_tokens",
            "follow_ups",
            "small_talk",
            "degraded",
        ),
    ),
    "call": Table(
        ("purpose",),
        (
            "calls",
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
            "cost_nano",
            "without_usage",
            "without_price",
        ),
    ),
    "part": Table(("kind",), ("requests", "tokens", "cost_nano", "cut")),
    "item": Table(
        ("item",),
        (
            "included",
            "always",
            "manual",
            "agent",
            "tokens",
            "cost_nano",
            "used",
            "called",
            "cited",
            "quoted",
            "drawn_upon",
            "probably",
            "no_trace",
            "no_trace_tokens",
            "unused_tokens",
            "considered",
            "selected",
            "not_sent",
            "added_by_hand",
            "removed_by_hand",
            "scores",
            *(f"{fate}_{step}" for fate in ("selected", "left_out", "used") for step in range(SCORE_STEPS)),
        ),
        ("included", "used"),
    ),
    "rebase": Table(("kind", "item"), ("rebases", "rewritten_tokens", "cost_nano")),
    "latency": Table(("stage", "step"), ("count", "total_ms")),
    "tally": Table(("kind", "tallied"), ("count",)),
    "site": Table(("site",), ("given", "used")),
}
EVERYONE = 0
"""The owner of what all owners have together."""

DAY, MONTH = 0, 1
"""What span of time a row is about. That of a month stands at its first day."""

NAMES = ("owner", "agent", "model", "kind", "item", "stage", "tallied", "site", "purpose")
"""Columns that hold the number of a name."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a session is counted, how long its log was then, and when it was created.

    A session that was created at another time is another one, under the same id.
    """

    progress: Progress
    seen_seq: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Remembered:
    """A turn that turned out to need some items."""

    session_id: SessionId
    lesson: Lesson


class AnalyticsStore:
    """The counts in a file, or, without a path, in memory as long as this object lives. Any thread may use it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock = RLock()
        self._db: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file; the next question opens it again. What was never in a file is lost."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def standings(self, sessions: Sequence[SessionId]) -> dict[SessionId, Standing]:
        """Return how far these sessions are counted; those that are not counted at all are not in it."""
        with self._open() as db:
            found = {session_id: _row(db, session_id) for session_id in sessions}
        return {
            session_id: Standing(
                Progress(seq=seq, turn=turn, turn_seq=turn_seq, day=day, model=model, record=record),
                seen_seq,
                _EPOCH + timedelta(microseconds=created),
            )
            for session_id, row in found.items()
            if row is not None
            for _, created, seq, turn, turn_seq, day, model, record, seen_seq in (row,)
        }

    def add(
        self,
        session_id: SessionId,
        before: Progress,
        made: Counts,
        *,
        seen_seq: int,
        created_at: datetime | None = None,
    ) -> bool:
        """Add what a stretch of a session's log adds, if the session stands at `before`; tell whether it was added."""
        created = _microseconds(created_at or _EPOCH)
        with self._open() as db, _transaction(db):
            row = _row(db, session_id)
            same = row is not None and row[1] == created
            if (row[2] if row is not None and same else 0) != before.seq:
                return False
            if row is not None and not same:
                _forget(db, row[0])
                row = None
            number = _Numbers(db)
            progress = made.progress
            session = row[0] if row is not None else _new_session(db)
            db.execute(
                """UPDATE session SET id = ?, gone = 0, created = ?, owner = ?, agent = ?, seq = ?, turn = ?,
                    turn_seq = ?, day = ?, model = ?, record = ?, seen_seq = ?, texts_bytes = texts_bytes + ?
                WHERE pk = ?""",
                (
                    session_id,
                    created,
                    number[made.owner],
                    number[made.agent],
                    progress.seq,
                    progress.turn,
                    progress.turn_seq,
                    progress.day,
                    progress.model,
                    progress.record,
                    seen_seq,
                    made.texts_bytes,
                    session,
                ),
            )
            _add_rows(db, number, made)
            _add_lessons(db, number, session, made)
            return True

    def forget(self, session_id: SessionId) -> None:
        """Forget a session that is gone. What it cost stays in the sums.

        A fingerprint of its id stays as well, so that nothing is counted twice when it comes back from an archive.
        """
        with self._open() as db, _transaction(db):
            db.execute("DELETE FROM lesson WHERE session IN (SELECT pk FROM session WHERE id = ?)", (session_id,))
            db.execute(
                "UPDATE session SET id = ?, gone = 1, record = NULL, texts_bytes = 0 WHERE id = ?",
                (content_hash(session_id), session_id),
            )

    def known(self) -> set[SessionId]:
        """Return every session that is counted and there, as far as is known."""
        return {SessionId(row[0]) for row in self.rows("SELECT id FROM session WHERE NOT gone")}

    def mark(self, name: str) -> datetime | None:
        """Return a point in time that was noted under a name."""
        rows = self.rows("SELECT value FROM mark WHERE name = ?", (name,))
        return _EPOCH + timedelta(microseconds=rows[0][0]) if rows else None

    def set_mark(self, name: str, at: datetime) -> None:
        """Note a point in time."""
        with self._open() as db:
            db.execute("INSERT OR REPLACE INTO mark VALUES (?, ?)", (name, _microseconds(at)))

    def lessons(self, owner: str | None, agent: str, *, limit: int) -> list[Remembered]:
        """Return what the latest turns with an agent turned out to need, the latest first."""
        rows = self.rows(
            """SELECT session.id, lesson.turn, lesson.seq, lesson.day, lesson.used, lesson.added
            FROM lesson JOIN session ON session.pk = lesson.session
            WHERE (? IS NULL OR session.owner = (SELECT pk FROM name WHERE text = ?))
                AND session.agent = (SELECT pk FROM name WHERE text = ?)
            ORDER BY lesson.pk DESC LIMIT ?""",
            (owner, owner, agent, limit),
        )
        names = self._names({int(pk) for row in rows for column in (4, 5) for pk in row[column].split()})
        return [
            Remembered(
                SessionId(row[0]),
                Lesson(
                    turn=row[1],
                    seq=row[2],
                    day=row[3],
                    used=tuple(item_ref(names[int(pk)]) for pk in row[4].split()),
                    added=tuple(item_ref(names[int(pk)]) for pk in row[5].split()),
                ),
            )
            for row in rows
        ]

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return what a query gives."""
        with self._open() as db:
            return db.execute(sql, values).fetchall()

    def size_bytes(self) -> int:
        """Return how large the analytics store is."""
        (pages,), (page_bytes,) = self.rows("PRAGMA page_count")[0], self.rows("PRAGMA page_size")[0]
        return pages * page_bytes

    def _names(self, numbers: Iterable[int]) -> dict[int, str]:
        wanted = ",".join(map(str, numbers))
        return dict(self.rows(f"SELECT pk, text FROM name WHERE pk IN ({wanted})"))  # noqa: S608 – whole numbers

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = _opened(self.path)
                yield self._db
            except sqlite3.Error as error:
                if _is_damage(error):
                    self.close()
                raise StoreUnavailableError(f"analytics store {self.path or ''}: {error}") from error
            except OSError as error:
                raise StoreUnavailableError(
                    f"the analytics store {self.path or ''}: {error.strerror or error}"
                ) from error


def item_ref(key: str) -> ItemRef:
    """Return the item that a name in the analytics store means; `item_key` writes it."""
    kind, server, name = key.split("\x1f", 2)
    return ItemRef(kind, name, server or None)  # pyright: ignore[reportArgumentType] – only item_key writes it


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _row(db: sqlite3.Connection, session_id: SessionId) -> Any:
    """Return a session's row, also one that was gone; None when it was never counted."""
    return db.execute(
        """SELECT pk, created, seq, turn, turn_seq, day, model, record, seen_seq
        FROM session WHERE id IN (?, ?)""",
        (session_id, content_hash(session_id)),
    ).fetchone()


def _new_session(db: sqlite3.Connection) -> int:
    (pk,) = db.execute("SELECT coalesce(max(pk), 0) + 1 FROM session").fetchone()
    db.execute(
        """INSERT INTO session VALUES (:pk, '', 0, 0, 0, 0, 0, 0, 0, 0, '', NULL, 0, 0)""",
        {"pk": pk},
    )
    return int(pk)


def _forget(db: sqlite3.Connection, session: int) -> None:
    db.execute("DELETE FROM lesson WHERE session = ?", (session,))
    db.execute("DELETE FROM session WHERE pk = ?", (session,))


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class _Numbers(dict[str, int]):
    """The numbers of names, given when they are first needed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, text: str) -> int:
        self._db.execute("INSERT OR IGNORE INTO name (text) VALUES (?)", (text,))
        (number,) = self._db.execute("SELECT pk FROM name WHERE text = ?", (text,)).fetchone()
        self[text] = number
        return number


def _add_rows(db: sqlite3.Connection, number: _Numbers, made: Counts) -> None:
    by_table: dict[str, list[tuple[object, ...]]] = {}
    for (name, owner, day, agent, model, *detail), counts in made.rows.items():
        table = TABLES[str(name)]
        values = [number[str(agent)], number[str(model)]]
        values += [
            number[str(value)] if column in NAMES else int(value)
            for column, value in zip(table.detail, detail, strict=True)
        ]
        values += [counts[counter] for counter in table.counters]
        values += [int(day) if counts[counter] else 0 for counter in table.latest]
        month = date.fromordinal(int(day)).replace(day=1).toordinal()
        by_table.setdefault(str(name), []).extend(
            (whose, span, start, *values)
            for whose in (number[str(owner)], EVERYONE)
            for span, start in ((DAY, day), (MONTH, month))
        )
    for name, rows in by_table.items():
        db.executemany(TABLES[name].adding.format(name), rows)


def _add_lessons(db: sqlite3.Connection, number: _Numbers, session: int, made: Counts) -> None:
    if made.cleared:
        db.execute("DELETE FROM lesson WHERE session = ? AND turn <= ?", (session, made.cleared))
    for lesson in made.lessons.values():
        used, added = (" ".join(str(number[item_key(ref)]) for ref in refs) for refs in (lesson.used, lesson.added))
        db.execute(
            """INSERT INTO lesson (session, turn, seq, day, used, added) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (session, turn) DO UPDATE SET
                used = trim(used || ' ' || excluded.used), added = trim(added || ' ' || excluded.added)""",
            (session, lesson.turn, lesson.seq, lesson.day, used, added),
        )
    if made.lessons:
        db.execute("DELETE FROM lesson WHERE pk <= (SELECT max(pk) FROM lesson) - ?", (KEPT_LESSONS,))


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
    db.execute("CREATE TABLE name (pk INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)")
    db.execute("CREATE TABLE mark (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID")
    db.execute(
        """CREATE TABLE session (
            pk INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, gone INTEGER NOT NULL, created INTEGER NOT NULL,
            owner INTEGER NOT NULL, agent INTEGER NOT NULL, seq INTEGER NOT NULL, turn INTEGER NOT NULL,
            turn_seq INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, record TEXT,
            seen_seq INTEGER NOT NULL, texts_bytes INTEGER NOT NULL)"""
    )
    db.execute("CREATE INDEX session_owner ON session (owner, agent)")
    db.execute(
        """CREATE TABLE lesson (
            pk INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, turn INTEGER NOT NULL,
            seq INTEGER NOT NULL, day INTEGER NOT NULL, used TEXT NOT NULL, added TEXT NOT NULL,
            UNIQUE (session, turn))"""
    )
    for name, table in TABLES.items():
        columns = [*table.keys, *(f"n_{counter}" for counter in table.counters), *(f"d_{c}" for c in table.latest)]
        whole = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
        db.execute(f"CREATE TABLE {name} ({whole}, PRIMARY KEY ({', '.join(table.keys)})) WITHOUT ROWID")
    db.execute(f"PRAGMA user_version = {VERSION}")
