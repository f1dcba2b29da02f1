"""The store's operations as SQL: plain functions over one connection.

Functions that write run inside a transaction that others share (`writer.py`). Each therefore looks before it
writes: when it raises one of our errors, it has changed nothing.
"""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from windowpane.context.events import Erased, Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import LeaseLostError, SequenceConflictError, SessionBusyError, SessionNotFoundError
from windowpane.stores.append import Append
from windowpane.stores.base import COSTS_KEPT, Appended, Cost, SessionPage, SessionRow, Snapshot
from windowpane.stores.clock import from_us, next_fence, now_us, to_us
from windowpane.stores.codec import decode_event
from windowpane.stores.cursor import ListPosition, page
from windowpane.stores.packing import pack, unpack
from windowpane.stores.sqlite import texts
from windowpane.stores.sqlite.file import PAGE_BYTES

Row = tuple[str, str, str, int, int, int]


class _Held(NamedTuple):
    """Where the log of a session stands, and who holds its lease."""

    session: int
    last_seq: int
    fence: int
    holder: str | None
    until: int | None


_COLUMNS = "id, owner, agent, last_seq, created_at, touched_at"
LONGEST_LEASE_US = 3_600_000_000
"""A lease that seems to last longer was given before the clock was set back, and counts as over."""

_CUSHION = bytes(PAGE_BYTES)
"""Stands before a snapshot and a partial reply, so that their text lies in pages of its own. SQLite zeroes these when
they are freed."""


def append(db: sqlite3.Connection, append: Append) -> Appended:
    """Add events to a log, with their key and their blobs."""
    now = now_us()
    times, touched_at = append.times(now), append.touched(now)
    held = _held(db, append.session_id)
    if held is None:
        session, before = _begin(db, append, times[0], touched_at), 0
        held = _Held(session, before, fence=0, holder=None, until=None)
    else:
        session, before = held.session, held.last_seq
        if append.key is not None and (earlier := _appended_before(db, session, append.key)):
            return earlier
        if append.fence is not None and append.fence < held.fence:
            raise LeaseLostError(append.session_id)
        if append.expected_seq is not None and append.expected_seq != before:
            raise SequenceConflictError(append.session_id, append.expected_seq, before)
    taken = None if append.take is None else _taken(db, held, append.take.holder, append.take.ttl_s)
    if append.take is not None and taken is None:
        raise SessionBusyError(append.session_id)
    last = before + len(append.bodies)
    events = [
        (session, seq, at, texts.add_text(db, body.decode()))
        for seq, at, body in zip(range(before + 1, last + 1), times, append.bodies, strict=True)
    ]
    db.executemany("INSERT INTO event VALUES (?, ?, ?, ?)", events)
    db.execute(
        "UPDATE session SET last_seq = ?, touched_at = max(touched_at, ?) WHERE pk = ?",
        (last, touched_at, session),
    )
    if append.key is not None:
        db.execute("INSERT INTO append_key VALUES (?, ?, ?, ?, ?)", (session, append.key, before + 1, last, times[-1]))
    texts.add(db, session, append)
    if append.release is not None:
        release(db, append.session_id, append.release)
    return Appended(before + 1, last, from_us(times[-1]), fence=taken)


def _begin(db: sqlite3.Connection, append: Append, created_at: int, touched_at: int) -> int:
    if append.begins is None:
        raise SessionNotFoundError(append.session_id)
    added = db.execute(
        "INSERT INTO session (id, owner, agent, last_seq, created_at, touched_at) VALUES (?, ?, ?, 0, ?, ?)",
        (append.session_id, append.begins.owner, append.begins.agent, created_at, touched_at),
    )
    return added.lastrowid or 0


def _appended_before(db: sqlite3.Connection, session: int, key: str) -> Appended | None:
    found: tuple[int, int, int] | None = db.execute(
        "SELECT first_seq, last_seq, at FROM append_key WHERE session = ? AND key = ?", (session, key)
    ).fetchone()
    return found and Appended(found[0], found[1], from_us(found[2]), repeated=True)


def read(db: sqlite3.Connection, session_id: SessionId, after: int, limit: int | None) -> list[Recorded]:
    """Return the events after a sequence number, in order."""
    found: list[tuple[int, int, str | None]] = db.execute(
        """SELECT event.seq, event.at, text.body
           FROM session JOIN event ON event.session = session.pk LEFT JOIN text ON text.pk = event.text
           WHERE session.id = ? AND event.seq > ? ORDER BY event.seq LIMIT ?""",
        (session_id, after, -1 if limit is None else limit),
    ).fetchall()
    if not found and row(db, session_id).last_seq > after:
        # It came between the two looks.
        return read(db, session_id, after, limit)
    return [Recorded(seq, from_us(at), Erased() if body is None else decode_event(body)) for seq, at, body in found]


def row(db: sqlite3.Connection, session_id: SessionId) -> SessionRow:
    """Return what is known about a session."""
    found: Row | None = db.execute(f"SELECT {_COLUMNS} FROM session WHERE id = ?", (session_id,)).fetchone()  # noqa: S608
    if found is None:
        raise SessionNotFoundError(session_id)
    return _session_row(found)


def sessions(
    db: sqlite3.Connection, owner: str | None, agent: str | None, limit: int, before: ListPosition | None
) -> SessionPage:
    """Return sessions, last touched first."""
    conditions = {
        "owner = ?": None if owner is None else (owner,),
        "agent = ?": None if agent is None else (agent,),
        "(touched_at, id) < (?, ?)": before,
    }
    asked = {condition: values for condition, values in conditions.items() if values is not None}
    where = " AND ".join(asked) or "true"
    found: list[Row] = db.execute(
        f"SELECT {_COLUMNS} FROM session WHERE {where} ORDER BY touched_at DESC, id DESC LIMIT ?",  # noqa: S608
        (*(value for values in asked.values() for value in values), limit + 1),
    ).fetchall()
    return page([_session_row(one) for one in found], limit)


def last_seqs(db: sqlite3.Connection, session_ids: Collection[SessionId]) -> dict[SessionId, int]:
    """Return where the logs of these sessions stand. A session that does not exist is left out."""
    stand: dict[SessionId, int] = {}
    for session_id in session_ids:
        found: tuple[int] | None = db.execute("SELECT last_seq FROM session WHERE id = ?", (session_id,)).fetchone()
        if found is not None:
            stand[session_id] = found[0]
    return stand


def write_again(db: sqlite3.Connection) -> None:
    """Write something that is there already."""
    # What is the same at once is not written.
    db.execute("UPDATE wiped SET bytes = bytes + 1")
    db.execute("UPDATE wiped SET bytes = bytes - 1")


def touch(db: sqlite3.Connection, session_id: SessionId) -> None:
    """Note that the session was used now."""
    session = _session(db, session_id)
    db.execute("UPDATE session SET touched_at = max(touched_at, ?) WHERE pk = ?", (now_us(), session))


def delete(db: sqlite3.Connection, session_id: SessionId) -> None:
    """Remove everything of a session."""
    session = _session(db, session_id)
    texts.wipe(db, "SELECT text FROM event WHERE session = ?", session)
    texts.forget_all(db, session)
    _forget_vectors(db, session)
    for statement in (
        "DELETE FROM event WHERE session = ?",
        "DELETE FROM append_key WHERE session = ?",
        "DELETE FROM snapshot WHERE session = ?",
        "DELETE FROM partial WHERE session = ?",
        "DELETE FROM lease WHERE session = ?",
        "DELETE FROM session WHERE pk = ?",
    ):
        db.execute(statement, (session,))


def delete_idle(db: sqlite3.Connection, row: SessionRow, holder: str | None) -> bool:
    """Remove everything of a session that is as this row says and that no other than `holder` holds."""
    now = now_us()
    idle = db.execute(
        """SELECT 1 FROM session LEFT JOIN lease
               ON lease.session = pk AND lease.until > ? AND lease.until <= ? AND lease.holder IS NOT ?
           WHERE id = ? AND last_seq = ? AND touched_at = ? AND lease.session IS NULL""",
        (now, now + LONGEST_LEASE_US, holder, row.id, row.last_seq, to_us(row.touched_at)),
    ).fetchone()
    if idle is not None:
        delete(db, row.id)
    return idle is not None


def erase(
    db: sqlite3.Connection,
    session_id: SessionId,
    seqs: Sequence[int],
    blobs: Sequence[BlobHash],
    fence: int | None,
) -> None:
    """Replace events with `Erased`; forget blobs and the snapshot."""
    session = _session(db, session_id)
    (held,) = db.execute("SELECT fence FROM session WHERE pk = ?", (session,)).fetchone()
    if fence is not None and fence < held:
        raise LeaseLostError(session_id)
    kept: set[int] = {seq for (seq,) in db.execute("SELECT seq FROM event WHERE session = ?", (session,))}
    for seq in kept.intersection(seqs):
        texts.wipe(db, "SELECT text FROM event WHERE session = ? AND seq = ?", session, seq)
        db.execute("UPDATE event SET text = NULL WHERE session = ? AND seq = ?", (session, seq))
    texts.forget(db, session, blobs)
    _forget_vectors(db, session)
    db.execute("DELETE FROM snapshot WHERE session = ?", (session,))
    db.execute("DELETE FROM partial WHERE session = ?", (session,))
    db.execute("UPDATE session SET erased_seq = last_seq WHERE pk = ?", (session,))


def _forget_vectors(db: sqlite3.Connection, session: int) -> None:
    texts.wipe(db, "SELECT text FROM vector WHERE session = ?", session)
    db.execute("DELETE FROM vector WHERE session = ?", (session,))


def blob_hashes(db: sqlite3.Connection, session_id: SessionId) -> list[BlobHash]:
    """Return the hashes of all texts that are stored with the session."""
    return texts.blob_hashes(db, _session(db, session_id))


def put_snapshot(db: sqlite3.Connection, session_id: SessionId, snapshot: Snapshot) -> None:
    """Keep a folded state, unless a later one is kept or the text in it may have been erased since."""
    db.execute(
        """INSERT INTO snapshot SELECT pk, ?1, ?2 FROM session WHERE id = ?3 AND erased_seq < ?1
           ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body WHERE seq < excluded.seq""",
        (snapshot.seq, _CUSHION + pack(snapshot.body), session_id),
    )


def snapshot(db: sqlite3.Connection, session_id: SessionId) -> Snapshot | None:
    """Return the latest folded state, or None."""
    found: tuple[int, bytes] | None = db.execute(
        "SELECT seq, body FROM snapshot JOIN session ON session.pk = snapshot.session WHERE id = ?", (session_id,)
    ).fetchone()
    return found and Snapshot(found[0], unpack(found[1][len(_CUSHION) :]))


def put_partial(db: sqlite3.Connection, session_id: SessionId, body: bytes, fence: int) -> None:
    """Keep the words of a reply that is not complete, unless another took the lease since."""
    db.execute(
        """INSERT INTO partial SELECT pk, ? FROM session WHERE id = ? AND fence <= ?
           ON CONFLICT (session) DO UPDATE SET body = excluded.body""",
        (_CUSHION + pack(body), session_id, fence),
    )


def partial(db: sqlite3.Connection, session_id: SessionId) -> bytes | None:
    """Return the words of a reply that is not complete, or None."""
    found: tuple[bytes] | None = db.execute(
        "SELECT body FROM partial JOIN session ON session.pk = partial.session WHERE id = ?", (session_id,)
    ).fetchone()
    return found and unpack(found[0][len(_CUSHION) :])


def put_vectors(db: sqlite3.Connection, session_id: SessionId, vectors: Mapping[int, bytes], as_of: int) -> None:
    """Keep the vectors of messages, unless something was erased since the log stood at `as_of`."""
    found: tuple[int] | None = db.execute(
        "SELECT pk FROM session WHERE id = ? AND erased_seq < ?", (session_id, as_of)
    ).fetchone()
    for seq, body in vectors.items() if found else ():
        place = (*(found or ()), seq)
        old = "SELECT text FROM vector WHERE session = ? AND seq = ?"
        if db.execute(old, place).fetchone() is not None:
            texts.wipe(db, old, *place)
        db.execute("REPLACE INTO vector VALUES (?, ?, ?)", (*place, texts.add_text(db, body)))


def vectors(db: sqlite3.Connection, session_id: SessionId, seqs: Sequence[int] | None) -> dict[int, bytes]:
    """Return the vectors of messages that are kept."""
    found: list[tuple[int, bytes]] = db.execute(
        """SELECT vector.seq, text.body
           FROM session JOIN vector ON vector.session = session.pk JOIN text ON text.pk = vector.text
           WHERE session.id = ?1 AND (?2 IS NULL OR vector.seq IN (SELECT value FROM json_each(?2)))""",
        (session_id, None if seqs is None else json.dumps([*seqs])),
    ).fetchall()
    return dict(found)


def acquire(db: sqlite3.Connection, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
    """Take or renew the session's lease, and return its fence."""
    held = _held(db, session_id)
    if held is None:
        raise SessionNotFoundError(session_id)
    return _taken(db, held, holder, ttl_s)


def _held(db: sqlite3.Connection, session_id: SessionId) -> _Held | None:
    found: tuple[int, int, int, str | None, int | None] | None = db.execute(
        """SELECT pk, last_seq, fence, holder, until
           FROM session LEFT JOIN lease ON lease.session = pk WHERE id = ?""",
        (session_id,),
    ).fetchone()
    return found and _Held(*found)


def _taken(db: sqlite3.Connection, held: _Held, holder: str, ttl_s: float) -> int | None:
    session, _, fence, held_by, held_until = held
    now = now_us()
    until = now + min(round(ttl_s * 1_000_000), LONGEST_LEASE_US)
    if held_by == holder:
        db.execute("UPDATE lease SET until = ? WHERE session = ?", (until, session))
        return fence
    if held_until is not None and now < held_until <= now + LONGEST_LEASE_US:
        return None
    fence = next_fence(fence, now)
    db.execute("UPDATE session SET fence = ? WHERE pk = ?", (fence, session))
    db.execute("REPLACE INTO lease VALUES (?, ?, ?)", (session, holder, until))
    return fence


def renew(db: sqlite3.Connection, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
    """Renew those of these leases that their holders have, and return their sessions."""
    until = now_us() + min(round(ttl_s * 1_000_000), LONGEST_LEASE_US)
    renewed: set[SessionId] = set()
    for session_id, holder in holders.items():
        found = db.execute(
            "UPDATE lease SET until = ? WHERE session = (SELECT pk FROM session WHERE id = ?) AND holder = ?",
            (until, session_id, holder),
        )
        if found.rowcount:
            renewed.add(session_id)
    return renewed


def release(db: sqlite3.Connection, session_id: SessionId, holder: str) -> None:
    """Give the lease back."""
    db.execute(
        "DELETE FROM lease WHERE session = (SELECT pk FROM session WHERE id = ?) AND holder = ?", (session_id, holder)
    )


def add_cost(db: sqlite3.Connection, owner: str, day: date, cost: Cost) -> None:
    """Add to what an owner's model calls cost on a day."""
    db.execute("DELETE FROM cost WHERE day < ?", ((day - COSTS_KEPT).toordinal(),))
    db.execute(
        """INSERT INTO cost VALUES (?, ?, ?, ?)
           ON CONFLICT (owner, day) DO UPDATE SET nano_dollars = nano_dollars + excluded.nano_dollars,
               unpriced_calls = unpriced_calls + excluded.unpriced_calls""",
        (owner, day.toordinal(), cost.nano_dollars, cost.unpriced_calls),
    )


def costs(db: sqlite3.Connection, owner: str, since: date) -> dict[date, Cost]:
    """Return what an owner's model calls cost, by day."""
    found: list[tuple[int, int, int]] = db.execute(
        "SELECT day, nano_dollars, unpriced_calls FROM cost WHERE owner = ? AND day >= ?", (owner, since.toordinal())
    ).fetchall()
    return {date.fromordinal(day): Cost(nano_dollars, unpriced) for day, nano_dollars, unpriced in found}


def _session(db: sqlite3.Connection, session_id: SessionId) -> int:
    found: tuple[int] | None = db.execute("SELECT pk FROM session WHERE id = ?", (session_id,)).fetchone()
    if found is None:
        raise SessionNotFoundError(session_id)
    return found[0]


def _session_row(found: Row) -> SessionRow:
    session_id, owner, agent, last_seq, created_at, touched_at = found
    return SessionRow(SessionId(session_id), owner, agent, last_seq, from_us(created_at), from_us(touched_at))
