"""One writer thread per process: everything that waits goes into one transaction.

A commit that survives a power cut costs a wait for the disk. While the thread waits for its turn and for the disk,
more work queues up; the next transaction takes all of it, so a hundred callers wait for the disk once, not a hundred
times. Each piece of work succeeds or fails by itself.

The thread and the event loop wake each other through pipes (`Bell`). A queue or `call_soon_threadsafe` wakes a thread
that then has to wait for the GIL and is woken once more: with a pipe an append of one caller takes a tenth less time.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Generic, TypeVar

import anyio.to_thread

from windowpane.errors import StoreUnavailableError, WindowpaneError
from windowpane.stores.file_lock import FileLock
from windowpane.stores.sqlite.bell import Bell
from windowpane.stores.sqlite.file import BUSY_S, DatabaseFile, Synchronous, compact, connect, translated_error

T = TypeVar("T")

_MOST_AT_ONCE = 256
_PATIENCE_S = 120.0


@dataclass(slots=True, eq=False)
class WriteJob(Generic[T]):
    """Work for one caller. `erases`: it is done when the old bytes are gone from the files.

    Work that is not `lasting` need not survive a power cut, as leases need not: their holders are gone then.
    """

    work: Callable[[sqlite3.Connection], T]
    future: asyncio.Future[T]
    changed: Callable[[T], None] | None
    erases: bool
    lasting: bool


Outcome = tuple[WriteJob[Any], Any, Exception | None]
"""A job with its result, or with the error that its caller gets."""


class SQLiteWriter:
    """Runs work on the one connection that writes."""

    def __init__(self, path: Path, synchronous: Synchronous) -> None:
        self._path = path
        self._synchronous: Synchronous = synchronous
        self._loop = asyncio.get_running_loop()
        self._lock = FileLock(path)
        self._db = connect(path, synchronous)
        self._set: Synchronous = synchronous
        self.file = DatabaseFile(path)
        # As long as there are callers: each waits for its own job, so neither needs a size.
        self._jobs: deque[WriteJob[Any]] = deque()
        self._outcomes: deque[list[Outcome]] = deque()
        self._has_work, self._has_outcomes = Bell(waits=True), Bell(waits=False)
        self._loop.add_reader(self._has_outcomes.listener, self._settle)
        self._asked: dict[asyncio.Future[Any], float] = {}
        self._patience: asyncio.TimerHandle | None = None
        self._closing = False
        self._erasure_due = False
        self._thread = Thread(target=self._serve, name="windowpane-writer", daemon=True)
        self._thread.start()

    async def run(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        changed: Callable[[T], None] | None = None,
        erases: bool = False,
        lasting: bool = True,
    ) -> T:
        """Run work in the next transaction and return its result once that is durable, if it is to be `lasting`.

        `changed` is called in the event loop with the result, after the commit. When the caller is cancelled, the work
        is done either wholly or not at all.
        """
        if self._closing:
            raise StoreUnavailableError("the store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._asked[future] = self._loop.time()
        if self._patience is None:
            self._patience = self._loop.call_later(_PATIENCE_S, self._lose_patience)
        self._jobs.append(WriteJob(work, future, changed, erases, lasting))
        # After it was added: of several, the first has rung, and the thread does not wait before it took all of them.
        if len(self._jobs) == 1:
            self._has_work.ring()
        try:
            return await future
        finally:
            del self._asked[future]

    async def close(self) -> None:
        """Finish what waits and end the thread."""
        self._closing = True
        self._has_work.ring()
        await anyio.to_thread.run_sync(self._thread.join, _PATIENCE_S)
        self._loop.remove_reader(self._has_outcomes.listener)
        self._settle()
        if self._patience is not None:
            self._patience.cancel()
        self._has_work.close_ringer()
        self._has_outcomes.close_listener()

    def _lose_patience(self) -> None:
        """Fail those who have waited too long. One timer is for all of them: there are several jobs in every turn."""
        enough = self._loop.time() - _PATIENCE_S
        away = (
            f"{self._path}: nothing could be written for {_PATIENCE_S:g} s; "
            f"does another process hold {self._path.name}-lock?"
        )
        waiting = [since for since in self._asked.values() if since > enough]
        for future, since in self._asked.items():
            if since <= enough and not future.done():
                future.set_exception(StoreUnavailableError(away))
        self._patience = self._loop.call_at(min(waiting) + _PATIENCE_S, self._lose_patience) if waiting else None

    def _serve(self) -> None:
        while self._jobs or not self._closing:
            if not self._jobs:
                self._has_work.hear()
                continue
            self._outcomes.append(self._commit_alone(self._waiting()))
            if not self._has_outcomes.ring():
                break  # The store was given up, and so are all tasks that waited.
        with self._lock:
            # The last connection to close writes the log back into the database, as a writer does.
            self._db.close()
        self._lock.close()
        self._has_work.close_listener()
        self._has_outcomes.close_ringer()

    def _commit_alone(self, jobs: list[WriteJob[Any]]) -> list[Outcome]:
        """Commit while no other process writes. A lock that cannot be had fails these jobs, and not the thread."""
        try:
            with self._lock:
                return self._commit(jobs)
        except OSError as error:
            away = StoreUnavailableError(f"{self._path}-lock: {error.strerror or error}")
            return [(job, None, away) for job in jobs]

    def _waiting(self) -> list[WriteJob[Any]]:
        return [self._jobs.popleft() for _ in range(min(len(self._jobs), _MOST_AT_ONCE))]

    def _commit(self, jobs: list[WriteJob[Any]]) -> list[Outcome]:
        try:
            return self._erased(self._transaction(jobs))
        except Exception as error:  # noqa: BLE001 - whatever it is, a caller is told and the thread goes on
            if len(jobs) == 1:
                return [(jobs[0], None, self._told(error))]
            return [outcome for job in jobs for outcome in self._commit([job])]

    def _transaction(self, jobs: list[WriteJob[Any]]) -> list[Outcome]:
        self.file.check()
        self._wait_for_disk(any(job.lasting for job in jobs))
        self._db.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._attempt(job) for job in jobs if not job.future.done()]
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        # No caller is told that something is stored in a file that has gone meanwhile.
        self.file.check()
        self.file.note_log()
        return outcomes

    def _wait_for_disk(self, wanted: bool) -> None:
        """Choose whether the next commit waits for the disk. One that did not is on it when a later one has."""
        synchronous: Synchronous = "FULL" if wanted and self._synchronous == "FULL" else "NORMAL"
        if synchronous != self._set:
            self._db.execute(f"PRAGMA synchronous = {synchronous}")
            self._set = synchronous

    def _attempt(self, job: WriteJob[Any]) -> Outcome:
        try:
            return job, job.work(self._db), None
        except WindowpaneError as error:
            return job, None, error

    def _erased(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Empty the write-ahead log, where old bytes stand, when something was erased."""
        asked = any(job.erases and error is None for job, _, error in outcomes)
        self._erasure_due = self._erasure_due or asked
        if not self._erasure_due:
            return outcomes
        try:
            if asked:
                compact(self._db)
            # A job that erases waits for readers to let go of the old bytes; jobs after it only try.
            self._db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000) if asked else 0}")
            (self._erasure_due, _, _) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
            why = "another program still reads them"
        except sqlite3.Error as error:
            why = str(error)
        if not self._erasure_due:
            return outcomes
        left = StoreUnavailableError(f"{self._path}: erased, but old bytes remain in the file for now: {why}")
        return [(job, result, error or (left if job.erases else None)) for job, result, error in outcomes]

    def _told(self, error: Exception) -> Exception:
        return translated_error(self._path, error) if isinstance(error, sqlite3.Error) else error

    def _settle(self) -> None:
        """Tell callers what became of their work."""
        self._has_outcomes.hear()
        while self._outcomes:
            for job, result, error in self._outcomes.popleft():
                if error is None and job.changed is not None:
                    job.changed(result)
                if job.future.done():
                    continue
                if error is None:
                    job.future.set_result(result)
                else:
                    job.future.set_exception(error)
