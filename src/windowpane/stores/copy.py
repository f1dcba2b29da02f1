"""Copy every session of a store to another, while it is being used, and make sure of it.

Sessions are copied one by one (`session_copy.py`), so a copy that was stopped goes on where it was. Then the source is
looked through again for what has changed meanwhile, until nothing has; and in the end every session is read in both
stores and compared by digest. What the owners of the sessions have spent comes along, so that cost limits go on.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import anyio

from windowpane.context.ids import SessionId, owner_of
from windowpane.errors import DifferentSessionError, SessionNotFoundError
from windowpane.stores.base import COSTS_KEPT, Cost, SessionRow, Store
from windowpane.stores.session_copy import copy_session, find_row, session_digest

PASSES = 20
"""How often a source that keeps changing is looked through before the rest is left for another time."""

_AT_ONCE = 8
_PAGE = 500

Step = Literal["copy", "verify"]
OnProgress = Callable[[Step, int, int], None]
"""Is told what is being done, how many sessions are done, and out of how many."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did. `copied` sessions were added to or changed; all the others were the same already.

    `verified` sessions are the same in both stores. `refused` ones were left alone, each with the reason; `behind`
    went on in the source after they were copied. `others` are sessions that only the target has.
    """

    sessions: int
    copied: int
    events: int
    verified: int
    refused: tuple[DifferentSessionError, ...] = ()
    behind: tuple[SessionId, ...] = ()
    others: int = 0

    @property
    def complete(self) -> bool:
        """Tell whether the target has everything."""
        return self.verified == self.sessions


async def copy_store(source: Store, target: Store, on_progress: OnProgress = lambda step, done, total: None) -> Copied:
    """Make the target have every session of the source. Other sessions of the target are left alone.

    Raises:
        StoreError: one of them cannot do its work; what was copied stays, and another copy goes on from there.
    """
    copying = _Copying(source, target, on_progress)
    rows = await copying.catch_up()
    verified, behind = await copying.verify(rows)
    for owner in copying.owners:
        await _copy_costs(source, target, owner)
    return Copied(
        sessions=len(rows),
        copied=len(copying.copied),
        events=copying.events,
        verified=verified,
        refused=tuple(copying.refused.values()),
        behind=behind,
        others=sum([row.id not in rows async for row in _rows(target)]),
    )


class _Copying:
    """One run: what it has brought so far."""

    def __init__(self, source: Store, target: Store, on_progress: OnProgress) -> None:
        self._source = source
        self._target = target
        self._on_progress = on_progress
        self._seen: dict[SessionId, int] = {}
        self.owners: set[str] = set()
        self.copied: set[SessionId] = set()
        self.refused: dict[SessionId, DifferentSessionError] = {}
        self.events = 0

    async def catch_up(self) -> dict[SessionId, int]:
        """Bring every session until the source stands still; return where each of its sessions stands."""
        rows: dict[SessionId, int] = {}
        for _ in range(PASSES):
            rows = {}
            async for row in _rows(self._source):
                rows[row.id] = row.last_seq
                self.owners.add(owner_of(row.owner))
            for gone in self._seen.keys() - rows.keys():
                await self._drop(gone)
            changed = [session_id for session_id, seq in rows.items() if self._seen.get(session_id) != seq]
            if not changed:
                break
            self._seen |= {session_id: rows[session_id] for session_id in changed}
            await self._each("copy", changed, self._copy)
        return rows

    async def verify(self, rows: dict[SessionId, int]) -> tuple[int, tuple[SessionId, ...]]:
        """Return how many sessions are the same in both stores, and which have gone on in the source."""
        same: set[SessionId] = set()
        behind: list[SessionId] = []

        async def compare(session_id: SessionId) -> None:
            ours = await _digest(self._source, session_id)
            if ours == await _digest(self._target, session_id):
                same.add(session_id)
            elif (row := await find_row(self._source, session_id)) and row.last_seq != rows[session_id]:
                behind.append(session_id)
            elif session_id not in self.refused:
                self.refused[session_id] = DifferentSessionError(session_id, "it has another digest")

        await self._each("verify", [session_id for session_id in rows if session_id not in self.refused], compare)
        return len(same), tuple(sorted(behind))

    async def _each(self, step: Step, ids: Sequence[SessionId], do: Callable[[SessionId], Awaitable[None]]) -> None:
        done = 0
        waiting = iter(ids)
        self._on_progress(step, 0, len(ids))

        async def work() -> None:
            nonlocal done
            for session_id in waiting:
                await do(session_id)
                done += 1
                self._on_progress(step, done, len(ids))

        try:
            async with anyio.create_task_group() as workers:
                for _ in range(_AT_ONCE):
                    workers.start_soon(work)
        except ExceptionGroup as errors:
            # One is enough to know: they all speak of the same two stores.
            raise errors.exceptions[0] from None

    async def _copy(self, session_id: SessionId) -> None:
        try:
            added = await copy_session(self._source, self._target, session_id)
        except DifferentSessionError as error:
            self.refused[session_id] = error
            return
        except SessionNotFoundError:
            # Deleted meanwhile: the next look finds it gone.
            return
        if added:
            self.copied.add(session_id)
            self.events += added

    async def _drop(self, session_id: SessionId) -> None:
        """Delete what this run has copied and that was deleted from the source since."""
        del self._seen[session_id]
        if session_id in self.copied:
            self.copied.discard(session_id)
            await self._target.delete(session_id)


async def _copy_costs(source: Store, target: Store, owner: str) -> None:
    """Make the target know at least what an owner has spent by the source. Done again, it adds nothing."""
    since = datetime.now(UTC).date() - COSTS_KEPT
    known = await target.costs(owner, since=since)
    for day, spent in (await source.costs(owner, since=since)).items():
        there = known.get(day, Cost())
        missing = Cost(
            max(spent.nano_dollars - there.nano_dollars, 0), max(spent.unpriced_calls - there.unpriced_calls, 0)
        )
        if missing != Cost():
            await target.add_cost(owner, day, missing)


async def _rows(store: Store) -> AsyncGenerator[SessionRow]:
    cursor = None
    while True:
        page = await store.sessions(limit=_PAGE, cursor=cursor)
        for row in page.rows:
            yield row
        cursor = page.cursor
        if cursor is None:
            return


async def _digest(store: Store, session_id: SessionId) -> str | None:
    try:
        return await session_digest(store, session_id)
    except SessionNotFoundError:
        return None
