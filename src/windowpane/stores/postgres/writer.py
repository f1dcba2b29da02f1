"""One writer per process: everything that waits to be appended goes to the server in one statement.

While the server stores one batch, more appends queue up; the next batch takes all of them, so a hundred callers wait
for one commit, not for a hundred. Each append succeeds or fails by itself.

A batch has a number. When the connection is lost in the middle, the same batch is sent again with the same number, and
the server, which keeps the number and the answers of the writer's last batch, stores it once. A request that comes
late, after its writer has gone on, is refused.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from windowpane.context.ids import SessionId
from windowpane.errors import (
    LeaseLostError,
    SequenceConflictError,
    SessionBusyError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from windowpane.stores.append import Append
from windowpane.stores.base import Appended
from windowpane.stores.clock import from_us
from windowpane.stores.packing import pack
from windowpane.stores.postgres.bundles import PackedBundles
from windowpane.stores.postgres.connections import (
    REFUSED,
    ConnectionPool,
    DriverConnection,
    ask,
    close_connection,
)
from windowpane.stores.postgres.log import name_in_sql, within_bigint
from windowpane.supervise import keep_running

_MOST_AT_ONCE = 256
_MOST_BYTES_AT_ONCE = 4 * 2**20

_APPEND = """SELECT outcomes, first_seqs, last_seqs, ats, taken FROM windowpane.append(
    $1::uuid, $2::bigint, $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::integer[],
    $9::timestamptz[], $10::timestamptz[], $11::timestamptz[],
    $12::text[], $13::integer[], $14::integer[], $15::timestamptz[],
    $16::integer[], $17::text[], $18::bytea[], $19::bigint[],
    $20::text[], $21::double precision[], $22::text[], $23::boolean,
    $24::integer[], $25::text[], $26::text[], $27::text[], $28::bytea[])"""

Answers = tuple[list[str], list[int], list[int], list[datetime], list[int | None]]
"""For each append what became of it, where it went and when, and the fence of the lease that was taken with it."""


@dataclass(slots=True, eq=False)
class PendingAppend:
    """One append that waits."""

    append: Append
    future: asyncio.Future[Appended]
    deadline: float

    @property
    def size(self) -> int:
        """Return about how many bytes are sent for it."""
        return sum(map(len, self.append.bodies)) + sum(map(len, self.append.blobs.values()))


class PostgresWriter:
    """Appends through one connection of its own.

    `stored` is called for each append that was stored.
    """

    def __init__(
        self, connections: ConnectionPool, writer_id: UUID, stored: Callable[[Append, Appended], None]
    ) -> None:
        self._connections = connections
        self._id = writer_id
        self._stored = stored
        self._number = 0
        self._loop = asyncio.get_running_loop()
        # As long as there are callers: each waits for its own job, so the queue needs no size.
        self._queue: deque[PendingAppend] = deque()
        self._taken: Sequence[PendingAppend] = ()
        self._filled = asyncio.Event()
        self._settled = asyncio.Event()
        self._bundles = PackedBundles()
        self._closing = False
        self._connection: DriverConnection | None = None
        self._task = asyncio.create_task(self._serve())

    async def append(self, append: Append) -> Appended:
        """Append in the next batch and return once that is durable.

        When the caller is cancelled, the append is stored either wholly or not at all.

        Raises:
            SessionNotFoundError: the session does not exist and this append does not begin it.
            LeaseLostError: another took the session's lease since.
            SequenceConflictError: the log does not stand where it was expected to.
            StoreUnavailableError: no answer came in time.
        """
        if self._closing:
            raise StoreUnavailableError("the store is closed")
        deadline = self._loop.time() + self._connections.url.timeout_s
        job = PendingAppend(append, self._loop.create_future(), deadline)
        self._queue.append(job)
        self._filled.set()
        return await job.future

    async def settled(self, session_id: SessionId) -> None:
        """Wait until nothing is on its way to this session, also nothing whose caller was cancelled."""
        if any(job.append.session_id == session_id for job in self._taken):
            await self._settled.wait()

    async def close(self) -> None:
        """Finish what waits and disconnect."""
        self._closing = True
        self._filled.set()
        await asyncio.wait([self._task])

    async def _serve(self) -> None:
        try:
            await keep_running("postgres.write", self._store_waiting)
        finally:
            # However it ends, no caller waits for an answer that cannot come.
            self._closing = True
            self._settled.set()
            for job in (*self._taken, *self._queue):
                if not job.future.done():
                    job.future.set_exception(StoreUnavailableError("the store was closed before it could answer"))
            if self._connection is not None:
                await close_connection(self._connection)

    async def _store_waiting(self) -> None:
        while not (self._closing and not self._queue):
            await self._filled.wait()
            while jobs := self._waiting():
                self._taken = jobs
                self._settled.clear()
                await self._store(jobs)
                self._taken = ()
                self._settled.set()
            if not self._closing:
                self._filled.clear()

    def _waiting(self) -> list[PendingAppend]:
        """Take what waits, in order; what has no caller any more, or has waited too long, is left out."""
        jobs: list[PendingAppend] = []
        room = _MOST_BYTES_AT_ONCE
        while self._queue and len(jobs) < _MOST_AT_ONCE and (room > 0 or not jobs):
            job = self._queue.popleft()
            if job.future.done():
                continue
            if job.deadline < self._loop.time():
                why = f"{self._connections.url.shown} gave no answer for too long; nothing was stored"
                job.future.set_exception(StoreUnavailableError(why))
                continue
            jobs.append(job)
            room -= job.size
        return jobs

    async def _store(self, jobs: Sequence[PendingAppend]) -> None:
        """Store jobs together; when a text in them is refused, one by one, so that only that one fails."""
        try:
            await self._store_together(jobs)
        except Exception as error:  # noqa: BLE001 - whatever it is, a caller is told and the writer goes on
            if len(jobs) > 1 and isinstance(error.__cause__ or error, REFUSED):
                for job in jobs:
                    if not job.future.done():
                        await self._store([job])
                return
            for job in jobs:
                if not job.future.done():
                    job.future.set_exception(error)

    async def _store_together(self, jobs: Sequence[PendingAppend]) -> None:
        self._number += 1
        # All writers lock sessions in the same order. Sorting is stable: a caller's appends stay in theirs.
        ordered = sorted(jobs, key=lambda job: job.append.session_id)
        lasting = any(job.append.lasting for job in ordered)
        arguments = (
            self._id,
            self._number,
            *_arrays(ordered),
            lasting,
            *self._bundles.arrays([job.append for job in ordered]),
        )
        found = await self._connections.retry(lambda: self._ask(arguments))
        for job, *answer in zip(ordered, *found, strict=True):
            self._settle(job, *answer)

    async def _ask(self, arguments: tuple[object, ...]) -> Answers:
        # After a failure it is not known what the server has done: the next attempt asks on another connection, with
        # the same number, so that a batch that was stored is not stored again.
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connections.connect()
        return await ask(self._connection, self._connection.fetchrow(_APPEND, *arguments))

    def _settle(
        self, job: PendingAppend, outcome: str, first_seq: int, last_seq: int, at: datetime, fence: int | None
    ) -> None:
        if outcome == "stored":
            self._stored(job.append, Appended(first_seq, last_seq, at))
        if job.future.done():
            return
        match outcome:
            case "missing":
                job.future.set_exception(SessionNotFoundError(job.append.session_id))
            case "fenced":
                job.future.set_exception(LeaseLostError(job.append.session_id))
            case "busy":
                job.future.set_exception(SessionBusyError(job.append.session_id))
            case "conflict":
                expected = job.append.expected_seq or 0
                job.future.set_exception(SequenceConflictError(job.append.session_id, expected, last_seq))
            case _:
                job.future.set_result(Appended(first_seq, last_seq, at, outcome == "repeated", fence))


def _arrays(jobs: Sequence[PendingAppend]) -> tuple[list[object], ...]:
    """Return the appends as the server's function takes them, column by column. Places are counted from 1."""
    appends = [job.append for job in jobs]
    placed = list(enumerate(appends, 1))
    bodies = [(of, part, append) for of, append in placed for part in range(len(append.bodies))]
    blobs = [(of, blob_hash, text) for of, append in placed for blob_hash, text in append.blobs.items()]
    return (
        [name_in_sql(append.session_id) for append in appends],
        [None if append.expected_seq is None else within_bigint(append.expected_seq) for append in appends],
        [None if append.key is None else name_in_sql(append.key) for append in appends],
        [append.begins and name_in_sql(append.begins.owner) for append in appends],
        [append.begins and name_in_sql(append.begins.agent) for append in appends],
        [len(append.bodies) for append in appends],
        [append.original_times and append.original_times.times[0] for append in appends],
        [append.original_times and append.original_times.times[-1] for append in appends],
        [from_us(append.touched(0)) if append.original_times or append.quiet else None for append in appends],
        [append.bodies[part].decode() for _, part, append in bodies],
        [of for of, _, _ in bodies],
        [part for _, part, _ in bodies],
        [append.original_times and append.original_times.times[part] for _, part, append in bodies],
        [of for of, _, _ in blobs],
        [blob_hash for _, blob_hash, _ in blobs],
        [pack(text.encode("utf-8", "surrogatepass")) for _, _, text in blobs],
        [append.fence for append in appends],
        [append.take and name_in_sql(append.take.holder) for append in appends],
        [append.take and float(append.take.ttl_s) for append in appends],
        [None if append.release is None else name_in_sql(append.release) for append in appends],
    )
