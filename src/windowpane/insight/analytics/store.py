"""The analytics store: roll-ups of finished turns by owner, day, agent and model, in a file or a shared database.

Nothing in it is true by itself: everything can be counted again from the sessions. It holds names and numbers, never
what was said. Several processes may add to it: what a stretch of a session's log adds is taken only if the session
stands in the analytics store where the stretch begins. So a turn is counted once, no matter how many count.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from windowpane.context.ids import SessionId, content_hash
from windowpane.context.items import ItemRef
from windowpane.errors import InvalidSettingError
from windowpane.insight.analytics.count import Counts, Lesson, Progress, item_key
from windowpane.insight.analytics.database import Database, StatementRunner
from windowpane.insight.analytics.sqlite import SQLiteDatabase
from windowpane.insight.analytics.tables import DAY, EVERYONE, MONTH, NAMES, TABLES, adding

KEPT_LESSONS = 20_000
"""How many turns are remembered one by one, over all owners: the latest."""

NAMES_AT_ONCE = 10_000
"""How many values one statement has at most; SQLite takes 32,766."""


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
    """The counts in a file, in the PostgreSQL database that a URL names, or in memory. Any thread may use it."""

    def __init__(self, place: Path | str | None = None) -> None:
        self._database = _database(place)

    def close(self) -> None:
        """Close it; the next question opens it again. What was only in memory is lost."""
        self._database.close()

    def clear(self) -> None:
        """Forget everything, as if nothing had been counted yet."""
        self._database.clear()

    def standings(self, sessions: Sequence[SessionId]) -> dict[SessionId, Standing]:
        """Return how far these sessions are counted; those that are not counted at all are not in it."""
        named = {name: session_id for session_id in sessions for name in _ids(session_id)}
        if not named:
            return {}
        rows = self.rows(
            f"""SELECT id, created, seq, turn, turn_seq, day, model, record, seen_seq
            FROM session WHERE id IN ({_places(named)})""",  # noqa: S608 – question marks
            list(named),
        )
        return {
            named[name]: Standing(
                Progress(seq=seq, turn=turn, turn_seq=turn_seq, day=day, model=model, record=record),
                seen_seq,
                _EPOCH + timedelta(microseconds=created),
            )
            for name, created, seq, turn, turn_seq, day, model, record, seen_seq in rows
        }

    def claim(self, session_id: SessionId, holder: str, until: datetime) -> bool:
        """Tell whether `holder` may count a session now: no other holder does. A claim ends by itself at `until`."""
        now = _microseconds(datetime.now(UTC))
        with self._database.writing() as db:
            return bool(
                db.execute(
                    """INSERT INTO claim (session, holder, until) VALUES (?, ?, ?)
                    ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, until = excluded.until
                        WHERE claim.holder = excluded.holder OR claim.until < ?
                    RETURNING session""",
                    (content_hash(session_id), holder, _microseconds(until), now),
                )
            )

    def release(self, session_id: SessionId, holder: str) -> None:
        """Let others count a session."""
        with self._database.writing() as db:
            db.execute("DELETE FROM claim WHERE session = ? AND holder = ?", (content_hash(session_id), holder))

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
        with self._database.writing() as db:
            found = db.execute("SELECT pk, created, seq FROM session WHERE id IN (?, ?)", _ids(session_id))
            row = found[0] if found and found[0][1] == created else None
            if (row[2] if row is not None else 0) != before.seq:
                return False
            if found and row is None:
                _forget(db, found[0][0])
            number = _numbers(db, _names_in(made))
            values = _session_values(session_id, created, number, made, seen_seq)
            session = row[0] if row is not None else _new_session(db, session_id)
            places = ", ".join(f"{column} = ?" for column in values)
            db.execute(
                f"UPDATE session SET {places}, texts_bytes = texts_bytes + ? WHERE pk = ?",  # noqa: S608 – columns of ours
                (*values.values(), made.texts_bytes, session),
            )
            _add_rows(db, number, made)
            _add_lessons(db, number, session, made)
            return True

    def forget(self, session_id: SessionId) -> None:
        """Forget a session that is gone. What it cost stays in the sums.

        A fingerprint of its id stays as well, so that nothing is counted twice when it comes back from an archive.
        """
        with self._database.writing() as db:
            db.execute("DELETE FROM lesson WHERE session IN (SELECT pk FROM session WHERE id = ?)", (session_id,))
            db.execute(
                "UPDATE session SET id = ?, gone = 1, record = NULL, texts_bytes = 0 WHERE id = ?",
                (content_hash(session_id), session_id),
            )

    def known(self) -> set[SessionId]:
        """Return every session that is counted and there, as far as is known."""
        return {SessionId(row[0]) for row in self.rows("SELECT id FROM session WHERE gone = 0")}

    def created_with(self, session_id: SessionId, created_at: datetime) -> list[SessionId]:
        """Return the other sessions that are counted and were created at the same time: copies and their origins."""
        sql = "SELECT id FROM session WHERE created = ? AND gone = 0 AND id <> ?"
        return [SessionId(row[0]) for row in self.rows(sql, (_microseconds(created_at), session_id))]

    def mark(self, name: str) -> datetime | None:
        """Return a point in time that was noted under a name."""
        rows = self.rows("SELECT value FROM mark WHERE name = ?", (name,))
        return _EPOCH + timedelta(microseconds=rows[0][0]) if rows else None

    def set_mark(self, name: str, at: datetime) -> None:
        """Note a point in time."""
        with self._database.writing() as db:
            db.execute(
                "INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, _microseconds(at)),
            )

    def lessons(self, owner: str | None, agent: str, *, limit: int) -> list[Remembered]:
        """Return what the latest turns with an agent turned out to need, the latest first."""
        own = "" if owner is None else "session.owner = (SELECT pk FROM name WHERE text = ?) AND "
        rows = self.rows(
            f"""SELECT session.id, lesson.turn, lesson.seq, lesson.day, lesson.used, lesson.added
            FROM lesson JOIN session ON session.pk = lesson.session
            WHERE {own}session.agent = (SELECT pk FROM name WHERE text = ?)
            ORDER BY lesson.pk DESC LIMIT ?""",  # noqa: S608 – a clause of ours
            (*(() if owner is None else (owner,)), agent, limit),
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
        with self._database.reading() as db:
            return db.execute(sql, values)

    def size_bytes(self) -> int:
        """Return how large the analytics store is."""
        return self._database.size_bytes()

    def _names(self, numbers: set[int]) -> dict[int, str]:
        if not numbers:
            return {}
        wanted = ",".join(map(str, numbers))
        return dict(self.rows(f"SELECT pk, text FROM name WHERE pk IN ({wanted})"))  # noqa: S608 – whole numbers


def item_ref(key: str) -> ItemRef:
    """Return the item that a name in the analytics store means; `item_key` writes it."""
    kind, server, name = key.split("\x1f", 2)
    return ItemRef(kind, name, server or None)  # pyright: ignore[reportArgumentType] – only item_key writes it


def _database(place: Path | str | None) -> Database:
    if not isinstance(place, str):
        return SQLiteDatabase(place)
    try:
        # Its driver is for those who have such a database.
        from windowpane.insight.analytics.postgres import PostgresDatabase
    except ModuleNotFoundError:
        raise InvalidSettingError(
            "analytics_url", "PostgreSQL needs its driver; install it with `pip install windowpane[postgres]`"
        ) from None
    return PostgresDatabase(place)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _ids(session_id: SessionId) -> tuple[str, str]:
    """Return what a session may be called here: its id, or the fingerprint that stays when it is gone."""
    return session_id, content_hash(session_id)


def _places(values: Iterable[object]) -> str:
    return ", ".join("?" for _ in values)


def _session_values(
    session_id: SessionId, created: int, number: dict[str, int], made: Counts, seen_seq: int
) -> dict[str, object]:
    progress = made.progress
    return {
        "id": session_id,
        "gone": 0,
        "created": created,
        "owner": number[made.owner],
        "agent": number[made.agent],
        "seq": progress.seq,
        "turn": progress.turn,
        "turn_seq": progress.turn_seq,
        "day": progress.day,
        "model": progress.model,
        "record": progress.record,
        "seen_seq": seen_seq,
    }


def _new_session(db: StatementRunner, session_id: SessionId) -> int:
    ((pk,),) = db.execute(
        """INSERT INTO session (id, gone, created, owner, agent, seq, turn, turn_seq, day, model, seen_seq, texts_bytes)
        VALUES (?, 0, 0, 0, 0, 0, 0, 0, 0, '', 0, 0) RETURNING pk""",
        (session_id,),
    )
    return pk


def _forget(db: StatementRunner, session: int) -> None:
    db.execute("DELETE FROM lesson WHERE session = ?", (session,))
    db.execute("DELETE FROM session WHERE pk = ?", (session,))


def _names_in(made: Counts) -> Iterator[str]:
    yield from (made.owner, made.agent)
    for name, owner, _, agent, model, *detail in made.rows:
        yield from (str(owner), str(agent), str(model))
        columns = TABLES[str(name)].detail
        yield from (str(value) for column, value in zip(columns, detail, strict=True) if column in NAMES)
    for lesson in made.lessons.values():
        yield from (item_key(ref) for ref in (*lesson.used, *lesson.added))


def _numbers(db: StatementRunner, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of names, which are given when they are first needed."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, int] = {}
    for start in range(0, len(wanted), NAMES_AT_ONCE):
        some = wanted[start : start + NAMES_AT_ONCE]
        asking = f"SELECT text, pk FROM name WHERE text IN ({_places(some)})"  # noqa: S608 – question marks
        known = dict(db.execute(asking, some))
        if new := [(name,) for name in some if name not in known]:
            db.executemany("INSERT INTO name (text) VALUES (?)", new)
            known = dict(db.execute(asking, some))
        found |= known
    return found


def _add_rows(db: StatementRunner, number: dict[str, int], made: Counts) -> None:
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
        db.executemany(adding(name), rows)


def _add_lessons(db: StatementRunner, number: dict[str, int], session: int, made: Counts) -> None:
    if made.cleared:
        db.execute("DELETE FROM lesson WHERE session = ? AND turn <= ?", (session, made.cleared))
    for lesson in made.lessons.values():
        used, added = (" ".join(str(number[item_key(ref)]) for ref in refs) for refs in (lesson.used, lesson.added))
        db.execute(
            """INSERT INTO lesson (session, turn, seq, day, used, added) VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (session, turn) DO UPDATE SET
                used = trim(lesson.used || ' ' || excluded.used),
                added = trim(lesson.added || ' ' || excluded.added)""",
            (session, lesson.turn, lesson.seq, lesson.day, used, added),
        )
    if made.lessons:
        db.execute("DELETE FROM lesson WHERE pk <= (SELECT max(pk) FROM lesson) - ?", (KEPT_LESSONS,))
