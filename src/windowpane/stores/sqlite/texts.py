"""Texts in the file: each hash once, for all sessions and bundles that have it. The last one that goes wipes it.

A session has texts of its own and bundles, which it shares with others: one row for each, however many texts are in it.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windowpane.context.ids import BlobHash, SessionId
from windowpane.stores.append import Append
from windowpane.stores.packing import pack, unpack


def add(db: sqlite3.Connection, session: int, append: Append) -> None:
    """Keep the texts and bundles of an append."""
    # A turn brings all texts of its request, and the session has nearly all of them since earlier turns.
    if append.blobs:
        new = _lacking(db, "SELECT 1 FROM session_blob WHERE session = ?2 AND hash = value", append.blobs, session)
        _add_blobs(db, new, append.blobs)
        db.executemany("INSERT INTO session_blob VALUES (?, ?)", [(session, blob_hash) for blob_hash in new])
    for name, texts in append.bundles.items():
        db.execute("INSERT OR IGNORE INTO session_bundle VALUES (?, ?)", (session, _bundle(db, name, texts)))


def _bundle(db: sqlite3.Connection, name: str, texts: Mapping[BlobHash, str]) -> int:
    found: tuple[int] | None = db.execute("SELECT pk FROM bundle WHERE name = ?", (name,)).fetchone()
    if found is not None:
        return found[0]
    bundle = db.execute("INSERT INTO bundle (name) VALUES (?)", (name,)).lastrowid or 0
    _add_blobs(db, texts, texts)
    db.executemany("INSERT INTO bundle_blob VALUES (?, ?)", [(bundle, blob_hash) for blob_hash in texts])
    return bundle


def _add_blobs(db: sqlite3.Connection, hashes: Iterable[BlobHash], texts: Mapping[BlobHash, str]) -> None:
    """Keep those of these texts that the file does not have yet."""
    new = _lacking(db, "SELECT 1 FROM blob WHERE hash = value", hashes)
    kept = [(name, add_text(db, pack(texts[name].encode("utf-8", "surrogatepass")))) for name in new]
    db.executemany("INSERT INTO blob VALUES (?, ?)", kept)


def _lacking(db: sqlite3.Connection, which: str, hashes: Iterable[BlobHash], *values: int) -> list[BlobHash]:
    """Return those of these hashes, each called `value`, for which there is no such row. It is one look for all."""
    select = f"SELECT value FROM json_each(?1) WHERE NOT EXISTS ({which})"  # noqa: S608
    return _column(db, select, json.dumps([*hashes]), *values)


def add_text(db: sqlite3.Connection, body: str | bytes) -> int:
    """Add a text at the end of the table that has them all, and return its place."""
    return db.execute("INSERT INTO text (live, body) VALUES (1, ?)", (body,)).lastrowid or 0


def wipe(db: sqlite3.Connection, which: str, *values: int | str) -> None:
    """Overwrite texts where they stand: the new body has the size of the old one, so the row does not move."""
    texts = f"FROM text WHERE pk IN ({which})"
    db.execute(f"UPDATE wiped SET bytes = bytes + (SELECT total(length(CAST(body AS BLOB))) {texts})", values)  # noqa: S608
    db.execute(
        f"UPDATE text SET live = 0, body = zeroblob(length(CAST(body AS BLOB))) WHERE pk IN ({which})",  # noqa: S608
        values,
    )


def forget_all(db: sqlite3.Connection, session: int) -> None:
    """Take all texts from a session."""
    _drop_bundles(db, session, _column(db, "SELECT bundle FROM session_bundle WHERE session = ?", session))
    _drop(db, session, _column(db, "SELECT hash FROM session_blob WHERE session = ?", session))


def forget(db: sqlite3.Connection, session: int, hashes: Sequence[BlobHash]) -> None:
    """Take texts from a session. Of a bundle that has one of them it keeps the others as its own."""
    gone = set(hashes)
    for bundle in _column(db, "SELECT bundle FROM session_bundle WHERE session = ?", session):
        inside: list[str] = _column(db, "SELECT hash FROM bundle_blob WHERE bundle = ?", bundle)
        if gone.isdisjoint(inside):
            continue
        for blob_hash in inside:
            db.execute("INSERT OR IGNORE INTO session_blob VALUES (?, ?)", (session, blob_hash))
        _drop_bundles(db, session, [bundle])
    _drop(db, session, hashes)


def _drop_bundles(db: sqlite3.Connection, session: int, bundles: Iterable[int]) -> None:
    for bundle in bundles:
        db.execute("DELETE FROM session_bundle WHERE session = ? AND bundle = ?", (session, bundle))
        if db.execute("SELECT 1 FROM session_bundle WHERE bundle = ?", (bundle,)).fetchone() is None:
            inside: list[str] = _column(db, "SELECT hash FROM bundle_blob WHERE bundle = ?", bundle)
            db.execute("DELETE FROM bundle_blob WHERE bundle = ?", (bundle,))
            db.execute("DELETE FROM bundle WHERE pk = ?", (bundle,))
            _wipe_unused(db, inside)


def _drop(db: sqlite3.Connection, session: int, hashes: Sequence[str]) -> None:
    for blob_hash in hashes:
        db.execute("DELETE FROM session_blob WHERE session = ? AND hash = ?", (session, blob_hash))
    _wipe_unused(db, hashes)


def _wipe_unused(db: sqlite3.Connection, hashes: Iterable[str]) -> None:
    """Wipe those of the texts that no session and no bundle has any more."""
    for blob_hash in hashes:
        used = db.execute(
            "SELECT 1 FROM session_blob WHERE hash = ?1 UNION ALL SELECT 1 FROM bundle_blob WHERE hash = ?1 LIMIT 1",
            (blob_hash,),
        ).fetchone()
        if used is None:
            wipe(db, "SELECT text FROM blob WHERE hash = ?", blob_hash)
            db.execute("DELETE FROM blob WHERE hash = ?", (blob_hash,))


def blobs(db: sqlite3.Connection, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
    """Return those of the texts that are stored with the session."""
    found: dict[BlobHash, str] = {}
    for blob_hash in hashes:
        kept: tuple[bytes] | None = db.execute(
            """SELECT text.body FROM session JOIN blob ON blob.hash = ?2 JOIN text ON text.pk = blob.text
               WHERE session.id = ?1 AND (
                   EXISTS (SELECT 1 FROM session_blob WHERE session = session.pk AND hash = ?2)
                   OR EXISTS (SELECT 1 FROM session_bundle JOIN bundle_blob USING (bundle)
                              WHERE session = session.pk AND hash = ?2))""",
            (session_id, blob_hash),
        ).fetchone()
        if kept is not None:
            found[blob_hash] = unpack(kept[0]).decode("utf-8", "surrogatepass")
    return found


def blob_hashes(db: sqlite3.Connection, session: int) -> list[BlobHash]:
    """Return the hashes of all texts that are stored with the session."""
    return _column(
        db,
        """SELECT hash FROM session_blob WHERE session = ?1
           UNION SELECT hash FROM session_bundle JOIN bundle_blob USING (bundle) WHERE session = ?1 ORDER BY hash""",
        session,
    )


def _column(db: sqlite3.Connection, select: str, *values: int | str) -> list[Any]:
    return [found for (found,) in db.execute(select, values).fetchall()]
