"""Keep the analytics store up to date with the sessions, reading only what is new.

Sessions are listed last touched first. The list is read down to where the last update ended, and of each session only
the events after the last that was counted. Once a day the whole list is read: for sessions that came in from elsewhere
with the times that they had there, and to forget those that were deleted.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from uuid import uuid4

import anyio
import anyio.from_thread
import anyio.to_thread

from windowpane.api.turns import ItemUse
from windowpane.context.events import Recorded, SessionCreated
from windowpane.context.ids import BlobHash, SessionId, owner_of
from windowpane.errors import SessionNotFoundError
from windowpane.insight.analytics.count import Counts, Progress, blobs_needed, count_events, stretches
from windowpane.insight.analytics.store import AnalyticsStore, Standing
from windowpane.insight.past import PastTurn
from windowpane.insight.probable import with_meaning
from windowpane.insight.use import use
from windowpane.request.record import texts_of
from windowpane.search.base import Nearness
from windowpane.stores.base import SessionRow, Store
from windowpane.supervise import supervised

WITHIN_S = 2.0
"""About how long a request waits for the analytics store to catch up."""

STEP_S = 0.5
"""About how long the background counts before a request has its turn."""

WHOLE_LIST_EVERY = timedelta(days=1)
MARGIN = timedelta(minutes=2)
"""How far clocks of several writers may be apart."""

PAGE = 500
TURNS_AT_ONCE = 25
"""How many turns are counted, and their texts held, at once. An update begins with one and doubles it up to here."""

CLAIM = timedelta(minutes=1)
"""How long a process that ended keeps others from counting a session that it had begun to count."""

ELSEWHERE_S = 0.05
"""How long to wait for what another process counts before looking again."""

FORGET_S = 1.0
"""How long a deletion waits for the analytics store."""

Progressing = Callable[[int, int], None]
"""Is told of how many sessions are counted, of how many."""

_TOUCHED, _LISTED, _COUNTED = "touched", "listed", "counted"


@dataclass(frozen=True, slots=True)
class Kept:
    """How the analytics store stands: when it was last brought up to date, and how many sessions have more to count."""

    as_of: datetime
    behind: int


@dataclass(frozen=True, slots=True)
class _Listed:
    """The sessions with events that are not counted, when one was last touched, and whether all were listed."""

    left: deque[SessionRow]
    newest: datetime | None
    whole: bool


class AnalyticsUpdater:
    """Counts what happens in a store's sessions into an analytics store.

    Without `nearness` it is not told which items were probably used.
    """

    def __init__(self, store: Store, analytics: AnalyticsStore, nearness: Nearness | None = None) -> None:
        self.analytics = analytics
        self._nearness = nearness
        self._store = store
        self._lock = anyio.Lock()
        self._listed: _Listed | None = None
        self._behind = anyio.Event()
        self._me = uuid4().hex

    async def update(self, *, within_s: float | None = WITHIN_S, on_progress: Progressing | None = None) -> Kept:
        """Count what is new, for about so long; None: all of it. At least one turn is counted each time.

        What is left is counted by the next update, or by `keep_counting`. Sessions that another process counts are
        waited for, for as long.

        Raises:
            StoreUnavailableError: the store or the analytics store cannot be reached.
        """
        async with self._lock:
            until = inf if within_s is None else anyio.current_time() + within_s
            behind = await self._count_until(until, on_progress)
            if behind:
                self._behind.set()
            counted = await _in_thread(self.analytics.mark, _COUNTED)
            return Kept(counted or datetime.now(UTC), behind)

    async def rebuild(self, on_progress: Progressing | None = None) -> None:
        """Forget all counts, and count every session again. What deleted sessions cost is lost with that."""
        async with self._lock:
            await _in_thread(self.analytics.clear)
            self._listed = None
        await self.update(within_s=None, on_progress=on_progress)

    async def forget(self, session_id: SessionId) -> None:
        """Forget what is kept of single turns of a session that was deleted.

        Where the analytics store is away, it is forgotten with the next whole list, at the latest a day later.
        """

        async def forgotten() -> None:
            with anyio.move_on_after(FORGET_S):
                await anyio.to_thread.run_sync(self.analytics.forget, session_id, abandon_on_cancel=True)

        await supervised("analytics.forget", forgotten)

    async def keep_counting(self) -> None:
        """Count in the background what updates leave. Between its steps, updates have their turn."""
        while True:
            await self._behind.wait()
            self._behind = anyio.Event()
            await self.update(within_s=STEP_S)

    async def _count_until(self, deadline: float, on_progress: Progressing | None = None) -> int:
        """Count what was left and what is new until a deadline has passed; return how many sessions are left."""
        turns = 1
        new = False
        while self._listed or not new:
            if self._listed is None:
                self._listed, new = await self._list_uncounted(), True
            left = self._listed.left
            total, elsewhere = len(left), 0
            while left:
                done = await self._count_alone(left[0], turns)
                if done is None:
                    left.rotate(-1)
                    elsewhere += 1
                elif done:
                    left.popleft()
                if on_progress is not None:
                    on_progress(total - len(left), total)
                if left and anyio.current_time() >= deadline:
                    return len(left)
                if elsewhere >= len(left) > 0:
                    await anyio.sleep(ELSEWHERE_S)
                    elsewhere = 0
                turns = min(2 * turns, TURNS_AT_ONCE)
            await _in_thread(self._note, self._listed, datetime.now(UTC))
            self._listed = None
        return 0

    def _note(self, listed: _Listed, now: datetime) -> None:
        if listed.newest is not None:
            self.analytics.set_mark(_TOUCHED, listed.newest)
        if listed.whole:
            self.analytics.set_mark(_LISTED, now)
        self.analytics.set_mark(_COUNTED, now)

    async def _list_uncounted(self) -> _Listed:
        until = await _in_thread(self.analytics.mark, _TOUCHED)
        listed = await _in_thread(self.analytics.mark, _LISTED)
        whole = until is None or listed is None or datetime.now(UTC) - listed > WHOLE_LIST_EVERY
        left: deque[SessionRow] = deque()
        there: set[SessionId] = set()
        newest: datetime | None = None
        cursor: str | None = None
        while True:
            page = await self._store.sessions(limit=PAGE, cursor=cursor)
            newest = newest or (page.rows[0].touched_at if page.rows else None)
            new = [row for row in page.rows if whole or until is None or row.touched_at >= until - MARGIN]
            left += await _in_thread(self._uncounted, new)
            there.update(row.id for row in page.rows)
            cursor = page.cursor
            if cursor is None or len(new) < len(page.rows):
                break
        if whole:
            await _in_thread(self._forget_others, there)
        return _Listed(left, newest, whole)

    def _uncounted(self, rows: Sequence[SessionRow]) -> list[SessionRow]:
        known = self.analytics.standings([row.id for row in rows])
        return [row for row in rows if not _is_counted(row, known.get(row.id))]

    def _forget_others(self, there: set[SessionId]) -> None:
        for session_id in self.analytics.known() - there:
            self.analytics.forget(session_id)

    async def _count_alone(self, row: SessionRow, turns: int) -> bool | None:
        """Count so many of a session's new turns, and tell whether no more are left; None: another process counts it.

        Without the claim nothing would be counted twice either, but the work would be done twice.
        """
        if not await _in_thread(self.analytics.claim, row.id, self._me, datetime.now(UTC) + CLAIM):
            return None
        try:
            return await self._count(row, turns)
        finally:
            with anyio.CancelScope(shield=True):
                await _in_thread(self.analytics.release, row.id, self._me)

    async def _count(self, row: SessionRow, turns: int) -> bool:
        """Count so many of a session's new turns, and tell whether no more are left."""
        known = (await _in_thread(self.analytics.standings, [row.id])).get(row.id)
        progress = known.progress if known and known.created_at == row.created_at else Progress()
        try:
            events = await self._store.read(row.id, after=min(progress.seq, row.last_seq))
        except SessionNotFoundError:
            await _in_thread(self.analytics.forget, row.id)
            return True
        if not events:
            return True
        begins = progress if progress.seq else Progress(seq=await self._copied(row, events))
        own = [entry for entry in events if entry.seq > begins.seq]
        batch = _first_turns(own, turns)
        more = len(batch) < len(own)
        made = await self._counts(row, begins, batch)
        seen = made.progress.seq if more else events[-1].seq
        # Nothing is added when another process was first; then what it left is read.
        add = partial(self.analytics.add, row.id, progress, made, seen_seq=seen, created_at=row.created_at)
        await _in_thread(add)
        return not more

    async def _copied(self, row: SessionRow, events: Sequence[Recorded]) -> int:
        """Return how many of a session's events are counted in another one: what a fork or an import has from it.

        A copy was created when its origin was. Whichever of them is counted first counts what they have in common.
        """
        copied = _forked(events)
        for session_id in await _in_thread(self.analytics.created_with, row.id, row.created_at):
            try:
                other = await self._store.read(session_id)
            except SessionNotFoundError:
                continue
            # What that one has from its own origin is not counted in it.
            copied = max(copied, _in_common(events, other)) if other and _forked(other) <= copied else copied
        return copied

    async def _counts(self, row: SessionRow, progress: Progress, events: Sequence[Recorded]) -> Counts:
        records = blobs_needed(progress, stretches(events))
        texts = await self._store.blobs(row.id, records)
        names: dict[BlobHash, None] = {}
        for body in texts.values():
            names |= dict.fromkeys(texts_of(body))
        texts |= await self._store.blobs(row.id, list(names))
        owner = owner_of(row.owner)
        return await _in_thread(count_events, row.id, owner, row.agent, progress, events, texts, self._judged)

    def _judged(self, past: PastTurn) -> Sequence[ItemUse]:
        # Counting runs in a thread; the embedding model is awaited where everything else is.
        return anyio.from_thread.run(with_meaning, self._nearness, past, use(past))


def _is_counted(row: SessionRow, known: Standing | None) -> bool:
    return known is not None and (known.created_at, known.seen_seq) == (row.created_at, row.last_seq)


def _forked(events: Sequence[Recorded]) -> int:
    """Return how many events a fork has from its origin."""
    first = events[0].event
    return first.branch_of.seq if isinstance(first, SessionCreated) and first.branch_of is not None else 0


def _in_common(one: Sequence[Recorded], other: Sequence[Recorded]) -> int:
    """Return how many events two logs have in common at the beginning. A copy happened at the times of its origin."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine.at != theirs.at), min(len(one), len(other)))


def _first_turns(events: Sequence[Recorded], how_many: int) -> Sequence[Recorded]:
    """Return the events of the first turns; all when nothing settled would be left."""
    turns = stretches(events)
    if len(turns) <= how_many:
        return events
    last = turns[how_many - 1].events[-1].seq
    return [entry for entry in events if entry.seq <= last]


_in_thread = anyio.to_thread.run_sync
