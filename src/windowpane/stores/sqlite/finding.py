"""The index of an SQLite file: FTS5 over the fingerprints of words."""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from windowpane.context.ids import SessionId
from windowpane.stores.clock import from_us, to_us
from windowpane.stores.finding import Behind, IndexedText, IndexHit, TextIndex, WantedTexts

T = TypeVar("T")


class _Runs(Protocol):
    def __call__(self, work: Callable[[sqlite3.Connection], T], /) -> Awaitable[T]: ...


class SQLiteIndex(TextIndex):
    """The index of one file; `read` and `write` run work on it."""

    def __init__(self, read: _Runs, write: _Runs) -> None:
        self._read = read
        self._write = write

    async def behind(self, *, since: datetime | None = None, limit: int) -> list[Behind]:
        """Return sessions with events that were not looked at; see `TextIndex.behind`."""
        return await self._read(lambda db: _behind(db, since, limit))

    async def index(
        self, session: Behind, documents: Sequence[IndexedText], *, indexed_seq: int, seen_seq: int
    ) -> bool:
        """Keep documents; see `TextIndex.index`."""
        return await self._write(lambda db: _index(db, session, documents, indexed_seq, seen_seq))

    async def find(self, wanted: WantedTexts, *, limit: int, before: int | None = None) -> list[IndexHit]:
        """Return what is found; see `TextIndex.find`."""
        return await self._read(lambda db: _find(db, wanted, limit, before))


def _behind(db: sqlite3.Connection, since: datetime | None, limit: int) -> list[Behind]:
    found: list[tuple[str, int, int, int]] = db.execute(
        """SELECT id, touched_at, indexed_seq, erased_seq FROM session
           WHERE touched_at >= ? AND seen_seq < last_seq ORDER BY touched_at DESC, id DESC LIMIT ?""",
        (to_us(since) if since else 0, limit),
    ).fetchall()
    return [Behind(SessionId(name), from_us(touched), indexed, erased) for name, touched, indexed, erased in found]


def _index(
    db: sqlite3.Connection, session: Behind, documents: Sequence[IndexedText], indexed_seq: int, seen_seq: int
) -> bool:
    found: tuple[int] | None = db.execute(
        "SELECT pk FROM session WHERE id = ? AND erased_seq = ?", (session.id, session.erased_seq)
    ).fetchone()
    if found is None:
        return False
    places = _Places(db)
    for document in documents:
        db.execute("DELETE FROM document WHERE session = ? AND seq = ?", (found[0], document.seq))
        db.execute(
            "INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                places.free(document.place),
                found[0],
                document.seq,
                document.turn,
                to_us(document.at),
                document.tokens,
                " ".join(sorted(document.terms)),
            ),
        )
    db.execute("UPDATE session SET indexed_seq = ?, seen_seq = ? WHERE pk = ?", (indexed_seq, seen_seq, found[0]))
    return True


class _Places:
    """Finds places where no document stands.

    Thousands of documents of one moment, as an import or a client brings them, want the same few places. So it is kept
    where the row of taken places ends that the last document stands in: to walk along it for each of them would hold up
    all who write for minutes.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._first, self._last = 0, -1

    def free(self, place: int) -> int:
        """Return a place that is about to be taken: this one, or the next where no document stands."""
        in_row = self._first <= place <= self._last
        start = self._last + 1 if in_row else place
        found = self._next_free(start)
        if not in_row and place != self._last + 1:
            self._first = place
        self._last = found
        return found

    def _next_free(self, place: int) -> int:
        if self._db.execute("SELECT 1 FROM document WHERE pk = ?", (place,)).fetchone() is None:
            return place
        ends: tuple[int] = self._db.execute(
            """SELECT pk + 1 FROM document AS taken
               WHERE pk >= ? AND NOT EXISTS (SELECT 1 FROM document WHERE pk = taken.pk + 1) ORDER BY pk LIMIT 1""",
            (place,),
        ).fetchone()
        return ends[0]


def _find(db: sqlite3.Connection, wanted: WantedTexts, limit: int, before: int | None) -> list[IndexHit]:
    asked: dict[str, Any] = {
        # The places that FTS5 gives come in their order, so that a page is found without sorting all of them.
        "document_terms MATCH ?": " ".join(sorted(wanted.terms)) or None,
        "session.id = ?": wanted.session_id,
        "session.owner = ?": wanted.owner,
        "session.agent = ?": wanted.agent,
        "document.tokens >= ?": wanted.least_tokens,
        "document.tokens <= ?": wanted.most_tokens,
        f"{'document_terms.rowid' if wanted.terms else 'document.pk'} < ?": before,
    }
    asked = {condition: value for condition, value in asked.items() if value is not None}
    source = "document_terms JOIN document ON document.pk = document_terms.rowid" if wanted.terms else "document"
    order = "document_terms.rowid" if wanted.terms else "document.pk"
    found: list[tuple[str, int, int, int, int, int]] = db.execute(
        f"""SELECT session.id, document.turn, document.seq, document.at, document.tokens, document.pk
            FROM {source} JOIN session ON session.pk = document.session
            WHERE {" AND ".join(asked) or "true"} ORDER BY {order} DESC LIMIT ?""",  # noqa: S608 – conditions of ours
        (*asked.values(), limit),
    ).fetchall()
    return [IndexHit(SessionId(name), turn, seq, from_us(at), tokens, pk) for name, turn, seq, at, tokens, pk in found]
