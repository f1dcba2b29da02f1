"""The store's operations as SQL: plain functions over one connection. Appending is in `writer.py`.

Each is one statement, so it needs no transaction of its own and works through a pooler; each comes to the same when it
is done twice (see `connections.py`), except `add_cost`. A session that does not exist is None here.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Literal

from windowpane.context.events import Erased, Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.stores.base import COSTS_KEPT, Cost, SessionPage, SessionRow, Snapshot, Tail
from windowpane.stores.clock import from_us, to_us
from windowpane.stores.codec import decode_event
from windowpane.stores.cursor import ListPosition, page
from windowpane.stores.packing import pack, unpack
from windowpane.stores.postgres.connections import DriverConnection

Row = tuple[str, str, str, int, datetime, datetime]

_COLUMNS = "id, owner, agent, last_seq, created_at, touched_at"
_LARGEST = 2**63 - 1
_LATEST_US = to_us(datetime.max.replace(tzinfo=UTC))


def name_in_sql(name: str) -> str:
    """Return a name as it is kept: PostgreSQL's text cannot hold NUL."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def name_from_sql(kept: str) -> str:
    """Return a name as it was given."""
    return "\\".join(part.replace("\\0", "\0") for part in kept.split("\\\\"))


def within_bigint(number: int) -> int:
    """Return the nearest number that a bigint holds. No log is so long that it makes a difference."""
    return max(-_LARGEST, min(number, _LARGEST))


async def read(db: DriverConnection, session_id: SessionId, after: int, limit: int | None) -> list[Recorded] | None:
    """Return the events after a sequence number, in order."""
    # Also where nothing is new there is a row, of nulls: so one look tells both that and whether there is a session.
    found: list[tuple[int | None, datetime, str | None]] = await db.fetch(
        """SELECT event.seq, event.at, event.body
           FROM windowpane.session LEFT JOIN windowpane.event ON event.session = session.id AND event.seq > $2
           WHERE session.id = $1 ORDER BY event.seq LIMIT $3""",
        name_in_sql(session_id),
        within_bigint(after),
        None if limit is None else within_bigint(limit),
    )
    if not found:
        return None
    return [
        Recorded(seq, at, Erased() if body is None else decode_event(body))
        for seq, at, body in found
        if seq is not None
    ]


async def tails(db: DriverConnection, after: Mapping[SessionId, int | None]) -> dict[SessionId, Tail]:
    """Return the ends of several logs."""
    # Every session has a row of its own, with the snapshot if one is wanted and there is one; events come after it.
    found: list[tuple[str, int | None, datetime | None, str | None, int | None, bytes | None]] = await db.fetch(
        """WITH known AS (
               SELECT session.id, snapshot.seq, snapshot.body, coalesce(given.seq::bigint, snapshot.seq, 0) AS start
               FROM unnest($1::text[], $2::text[]) AS given (id, seq) JOIN windowpane.session USING (id)
               LEFT JOIN windowpane.snapshot ON snapshot.session = session.id AND given.seq IS NULL
           )
           SELECT id, NULL AS seq, NULL AS at, NULL AS body, seq AS of_snapshot, body AS snapshot FROM known
           UNION ALL SELECT id, event.seq, event.at, event.body, NULL, NULL
           FROM known JOIN windowpane.event ON event.session = id AND event.seq > start
           ORDER BY id, seq NULLS FIRST""",
        [name_in_sql(session_id) for session_id in after],
        # As text: the driver asks the server about other lists before it sends the first.
        [None if seq is None else str(within_bigint(seq)) for seq in after.values()],
    )
    ends: dict[SessionId, Tail] = {}
    for name, seq, at, body, of_snapshot, kept in found:
        session_id = SessionId(name_from_sql(name))
        if seq is None or at is None:
            snapshot = None if of_snapshot is None or kept is None else Snapshot(of_snapshot, unpack(kept))
            ends[session_id] = Tail(snapshot, [])
        else:
            ends[session_id].events.append(Recorded(seq, at, Erased() if body is None else decode_event(body)))
    return ends


async def now(db: DriverConnection) -> datetime:
    """Return what time it is on the server."""
    told: datetime = await db.fetchval("SELECT clock_timestamp()")
    return told


async def row(db: DriverConnection, session_id: SessionId) -> SessionRow | None:
    """Return what is known about a session."""
    found: Row | None = await db.fetchrow(
        f"SELECT {_COLUMNS} FROM windowpane.session WHERE id = $1",  # noqa: S608
        name_in_sql(session_id),
    )
    return found and _session_row(found)


async def sessions(
    db: DriverConnection, owner: str | None, agent: str | None, limit: int, before: ListPosition | None
) -> SessionPage:
    """Return sessions, last touched first."""
    asked: dict[str, tuple[object, ...]] = {}
    if owner is not None:
        asked["owner = ${}"] = (name_in_sql(owner),)
    if agent is not None:
        asked["agent = ${}"] = (name_in_sql(agent),)
    if before is not None:
        asked["(touched_at, id) < (${}, ${})"] = (from_us(min(before[0], _LATEST_US)), name_in_sql(before[1]))
    values = [value for values in asked.values() for value in values]
    where = " AND ".join(asked).format(*range(1, len(values) + 1)) or "true"
    found: list[Row] = await db.fetch(
        f"SELECT {_COLUMNS} FROM windowpane.session WHERE {where} "  # noqa: S608
        f"ORDER BY touched_at DESC, id DESC LIMIT ${len(values) + 1}",
        *values,
        within_bigint(limit + 1),
    )
    return page([_session_row(one) for one in found], limit)


async def last_seqs(db: DriverConnection, session_ids: Collection[SessionId]) -> Mapping[SessionId, int]:
    """Return where the logs of those sessions stand that exist."""
    found: list[tuple[str, int]] = await db.fetch(
        "SELECT id, last_seq FROM windowpane.session WHERE id = ANY ($1::text[])",
        [name_in_sql(session_id) for session_id in session_ids],
    )
    return {SessionId(name_from_sql(session_id)): last_seq for session_id, last_seq in found}


async def touch(db: DriverConnection, session_id: SessionId) -> bool | None:
    """Note that the session was used now, by the server's clock."""
    return await db.fetchval(
        """UPDATE windowpane.session SET touched_at = greatest(touched_at, clock_timestamp())
           WHERE id = $1 RETURNING true""",
        name_in_sql(session_id),
    )


async def delete(db: DriverConnection, session_id: SessionId) -> bool | None:
    """Remove everything of a session."""
    return await db.fetchval("SELECT windowpane.forget($1)", name_in_sql(session_id))


async def delete_idle(db: DriverConnection, idle: SessionRow, holder: str | None) -> bool | None:
    """Remove everything of a session that is as this row says and that no other than `holder` holds."""
    return await db.fetchval(
        "SELECT windowpane.forget($1, $2, $3, $4)",
        name_in_sql(idle.id),
        idle.last_seq,
        idle.touched_at,
        None if holder is None else name_in_sql(holder),
    )


async def erase(
    db: DriverConnection,
    session_id: SessionId,
    seqs: Sequence[int],
    blobs: Sequence[BlobHash],
    fence: int | None,
) -> Literal["erased", "fenced", "missing"]:
    """Empty events; forget blobs and the snapshot. Return what became of that."""
    return await db.fetchval(
        """WITH known AS (SELECT fence FROM windowpane.session WHERE id = $1 FOR UPDATE)
           SELECT CASE
               WHEN (SELECT fence FROM known) > $4::bigint THEN 'fenced'
               WHEN windowpane.erase($1, $2, $3) THEN 'erased'
               ELSE 'missing'
           END""",
        name_in_sql(session_id),
        [within_bigint(seq) for seq in seqs],
        [name_in_sql(blob_hash) for blob_hash in blobs],
        fence,
    )


async def blobs(db: DriverConnection, session_id: SessionId, hashes: Sequence[BlobHash]) -> dict[BlobHash, str]:
    """Return those of the texts that are stored with the session."""
    found: list[tuple[BlobHash, bytes]] = await db.fetch(
        """SELECT hash, body FROM windowpane.blob WHERE session = $1 AND hash = ANY ($2::text[])
           UNION ALL SELECT hash, body FROM windowpane.session_bundle JOIN windowpane.bundle_text USING (bundle)
           WHERE session = $1 AND hash = ANY ($2::text[])""",
        name_in_sql(session_id),
        [name_in_sql(blob_hash) for blob_hash in hashes],
    )
    return {blob_hash: unpack(body).decode("utf-8", "surrogatepass") for blob_hash, body in found}


async def blob_hashes(db: DriverConnection, session_id: SessionId) -> list[BlobHash] | None:
    """Return the hashes of all texts that are stored with the session."""
    return await db.fetchval(
        """SELECT ARRAY(
               SELECT hash FROM windowpane.blob WHERE session = $1
               UNION SELECT hash FROM windowpane.session_bundle JOIN windowpane.bundle_text USING (bundle)
               WHERE session = $1 ORDER BY hash
           ) FROM windowpane.session WHERE id = $1""",
        name_in_sql(session_id),
    )


async def put_snapshot(db: DriverConnection, session_id: SessionId, snapshot: Snapshot) -> None:
    """Keep a folded state, unless a later one is kept or the text in it may have been erased since."""
    await db.execute(
        """INSERT INTO windowpane.snapshot AS kept
           SELECT id, $2, $3 FROM windowpane.session WHERE id = $1 AND erased_seq < $2 FOR SHARE
           ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, body = excluded.body
           WHERE kept.seq < excluded.seq""",
        name_in_sql(session_id),
        snapshot.seq,
        pack(snapshot.body),
    )


async def snapshot(db: DriverConnection, session_id: SessionId) -> Snapshot | None:
    """Return the latest folded state, or None."""
    found: tuple[int, bytes] | None = await db.fetchrow(
        "SELECT seq, body FROM windowpane.snapshot WHERE session = $1", name_in_sql(session_id)
    )
    return found and Snapshot(found[0], unpack(found[1]))


async def put_partial(db: DriverConnection, session_id: SessionId, body: bytes, fence: int) -> None:
    """Keep the words of a reply that is not complete, unless another took the lease since."""
    await db.execute(
        """INSERT INTO windowpane.partial
           SELECT id, $2 FROM windowpane.session WHERE id = $1 AND fence <= $3 FOR SHARE
           ON CONFLICT (session) DO UPDATE SET body = excluded.body""",
        name_in_sql(session_id),
        pack(body),
        fence,
    )


async def partial(db: DriverConnection, session_id: SessionId) -> bytes | None:
    """Return the words of a reply that is not complete, or None."""
    found: bytes | None = await db.fetchval(
        "SELECT body FROM windowpane.partial WHERE session = $1", name_in_sql(session_id)
    )
    return None if found is None else unpack(found)


async def put_vectors(db: DriverConnection, session_id: SessionId, vectors: Mapping[int, bytes], as_of: int) -> None:
    """Keep the vectors of messages, unless something was erased since the log stood at `as_of`."""
    await db.execute(
        "SELECT windowpane.put_vectors($1, $2, $3, $4)",
        name_in_sql(session_id),
        within_bigint(as_of),
        [*vectors.keys()],
        [*vectors.values()],
    )


async def vectors(db: DriverConnection, session_id: SessionId, seqs: Sequence[int] | None) -> dict[int, bytes]:
    """Return the vectors of messages that are kept."""
    found: list[tuple[int, bytes]] = await db.fetch(
        "SELECT seq, body FROM windowpane.vector WHERE session = $1 AND ($2::bigint[] IS NULL OR seq = ANY($2))",
        name_in_sql(session_id),
        seqs,
    )
    return {seq: body for seq, body in found}  # noqa: C416 - rows are records


async def acquire(db: DriverConnection, session_id: SessionId, holder: str, ttl_s: float) -> int | None:
    """Take or renew the session's lease and return its fence; 0 when another has it."""
    return await db.fetchval(
        "SELECT windowpane.take_lease($1, $2, $3)", name_in_sql(session_id), name_in_sql(holder), float(ttl_s)
    )


async def renew(db: DriverConnection, holders: Mapping[SessionId, str], ttl_s: float) -> set[SessionId]:
    """Renew those of these leases that their holders have, and return their sessions."""
    renewed: list[tuple[str]] = await db.fetch(
        "SELECT * FROM windowpane.renew_leases($1, $2, $3)",
        [name_in_sql(session_id) for session_id in holders],
        [name_in_sql(holder) for holder in holders.values()],
        float(ttl_s),
    )
    return {SessionId(name_from_sql(session)) for (session,) in renewed}


async def release(db: DriverConnection, session_id: SessionId, holder: str) -> None:
    """Give the lease back."""
    await db.execute("SELECT windowpane.release_lease($1, $2)", name_in_sql(session_id), name_in_sql(holder))


async def add_cost(db: DriverConnection, owner: str, day: date, cost: Cost) -> None:
    """Add to what an owner's model calls cost on a day."""
    await db.execute(
        """WITH old AS (DELETE FROM windowpane.cost WHERE owner = $1 AND day < $5)
           INSERT INTO windowpane.cost AS kept VALUES ($1, $2, $3, $4)
           ON CONFLICT (owner, day) DO UPDATE SET nano_dollars = kept.nano_dollars + excluded.nano_dollars,
               unpriced_calls = kept.unpriced_calls + excluded.unpriced_calls""",
        name_in_sql(owner),
        day,
        cost.nano_dollars,
        cost.unpriced_calls,
        day - COSTS_KEPT,
    )


async def costs(db: DriverConnection, owner: str, since: date) -> dict[date, Cost]:
    """Return what an owner's model calls cost, by day."""
    found: list[tuple[date, int, int]] = await db.fetch(
        "SELECT day, nano_dollars, unpriced_calls FROM windowpane.cost WHERE owner = $1 AND day >= $2",
        name_in_sql(owner),
        since,
    )
    return {day: Cost(nano_dollars, unpriced_calls) for day, nano_dollars, unpriced_calls in found}


def _session_row(found: Row) -> SessionRow:
    session_id, owner, agent, last_seq, created_at, touched_at = found
    return SessionRow(
        SessionId(name_from_sql(session_id)),
        name_from_sql(owner),
        name_from_sql(agent),
        last_seq,
        created_at,
        touched_at,
    )
