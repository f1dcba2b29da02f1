"""Keep the analytics store up to date with the sessions, reading only what is new.

Sessions are listed last touched first. The list is read down to where the last update ended, and of each session only
the events after the last that was counted. Once a day the whole list is read: for sessions that came in from elsewhere
with the times that they had there, and to forget those that were deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import anyio.to_thread

from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId, owner_of
from windowpane.errors import SessionNotFoundError
from windowpane.insight.analytics.count import Counts, Progress, blobs_needed, count_events, stretches
from windowpane.insight.analytics.store import AnalyticsStore, Standing
from windowpane.request.record import texts_of
from windowpane.stores.base import SessionRow, Store

WITHIN_S = 2.0
"""How long a request waits for the analytics store to catch up."""

WHOLE_LIST_EVERY = timedelta(days=1)
MARGIN = timedelta(minutes=2)
"""How far clocks of several writers may be apart."""

PAGE = 500
TURNS_AT_ONCE = 25
"""How many turns are counted, and their texts held, at once."""

_TOUCHED, _LISTED, _COUNTED = "touched", "listed", "counted"


@dataclass(frozen=True, slots=True)
class Kept:
    """How the analytics store stands: when it was last brought up to date, and how many sessions have more to count."""

    as_of: datetime
    behind: int


class AnalyticsUpdater:
    """Counts what happens in a store's sessions into an analytics store."""

    def __init__(self, store: Store, analytics: AnalyticsStore) -> None:
        self.analytics = analytics
        self._store = store
        self._lock = anyio.Lock()

    async def update(self, *, within_s: float | None = WITHIN_S) -> Kept:
        """Count what is new, for so long at most; None: all of it."""
        async with self._lock:
            due, newest, whole = await self._due()
            left = list(due)
            with anyio.move_on_after(within_s):
                while left:
                    if not await self._count(left[0]):
                        break
                    left.pop(0)
            now = datetime.now(UTC)
            if not left:
                await _in_thread(self._note, newest, now if whole else None, now)
            counted = await _in_thread(self.analytics.mark, _COUNTED)
            return Kept(counted or now, len(left))

    def _note(self, newest: datetime | None, listed: datetime | None, now: datetime) -> None:
        if newest is not None:
            self.analytics.set_mark(_TOUCHED, newest)
        if listed is not None:
            self.analytics.set_mark(_LISTED, listed)
        self.analytics.set_mark(_COUNTED, now)

    async def _due(self) -> tuple[list[SessionRow], datetime | None, bool]:
        """Return the sessions with events that are not counted, when one was last touched, whether all were listed."""
        until = await _in_thread(self.analytics.mark, _TOUCHED)
        listed = await _in_thread(self.analytics.mark, _LISTED)
        whole = until is None or listed is None or datetime.now(UTC) - listed > WHOLE_LIST_EVERY
        due: list[SessionRow] = []
        there: set[SessionId] = set()
        newest: datetime | None = None
        cursor: str | None = None
        while True:
            page = await self._store.sessions(limit=PAGE, cursor=cursor)
            newest = newest or (page.rows[0].touched_at if page.rows else None)
            new = [row for row in page.rows if whole or until is None or row.touched_at >= until - MARGIN]
            due += await _in_thread(self._uncounted, new)
            there.update(row.id for row in page.rows)
            cursor = page.cursor
            if cursor is None or len(new) < len(page.rows):
                break
        if whole:
            await _in_thread(self._forget_others, there)
        return due, newest, whole

    def _uncounted(self, rows: Sequence[SessionRow]) -> list[SessionRow]:
        known = self.analytics.standings([row.id for row in rows])
        return [row for row in rows if not _is_counted(row, known.get(row.id))]

    def _forget_others(self, there: set[SessionId]) -> None:
        for session_id in self.analytics.known() - there:
            self.analytics.forget(session_id)

    async def _count(self, row: SessionRow) -> bool:
        """Count a session's new events, and tell whether that is done."""
        while True:
            known = (await _in_thread(self.analytics.standings, [row.id])).get(row.id)
            progress = known.progress if known and known.created_at == row.created_at else Progress()
            try:
                events = await self._store.read(row.id, after=min(progress.seq, row.last_seq))
            except SessionNotFoundError:
                await _in_thread(self.analytics.forget, row.id)
                return True
            if not events:
                return True
            batch = _first_turns(events)
            more = len(batch) < len(events)
            made = await self._counts(row, progress, batch)
            seen = made.progress.seq if more else events[-1].seq
            # Nothing is added when another process was first; then what it left is read.
            add = partial(self.analytics.add, row.id, progress, made, seen_seq=seen, created_at=row.created_at)
            await _in_thread(add)
            if not more:
                return True

    async def _counts(self, row: SessionRow, progress: Progress, events: Sequence[Recorded]) -> Counts:
        records = blobs_needed(progress, stretches(events))
        texts = await self._store.blobs(row.id, records)
        names: dict[BlobHash, None] = {}
        for body in texts.values():
            names |= dict.fromkeys(texts_of(body))
        texts |= await self._store.blobs(row.id, list(names))
        return await _in_thread(count_events, row.id, owner_of(row.owner), row.agent, progress, events, texts)


def _is_counted(row: SessionRow, known: Standing | None) -> bool:
    return known is not None and (known.created_at, known.seen_seq) == (row.created_at, row.last_seq)


def _first_turns(events: Sequence[Recorded]) -> Sequence[Recorded]:
    """Return the events of the first turns, as many as are counted at once; all when nothing settled would be left."""
    turns = stretches(events)
    if len(turns) <= TURNS_AT_ONCE:
        return events
    last = turns[TURNS_AT_ONCE - 1].events[-1].seq
    return [entry for entry in events if entry.seq <= last]


_in_thread = anyio.to_thread.run_sync
