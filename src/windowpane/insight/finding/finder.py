"""Find turns, messages and names in all sessions of an owner.

A store with a full-text search of its own is asked, after what is new was indexed. In any other store the sessions are
read, the last used first, some at a time. Both give the same, and every word that is found is compared with the text.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import anyio
import anyio.to_thread

from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import InvalidInputError, SessionNotFoundError
from windowpane.insight.finding.documents import SaidStretch, documents_of, name_in, stretches_of
from windowpane.insight.finding.query import FindQuery
from windowpane.insight.finding.words import has, terms_of
from windowpane.stores.base import SessionRow, Store
from windowpane.stores.finding import Behind, IndexedText, IndexHit, TextIndex, WantedTexts
from windowpane.stores.sessions import Sessions

WITHIN_S = 1.0
"""About how long a search waits for the index to catch up."""

INDEX_EVERY_S = 10.0
STEP_S = 0.5
MARGIN = timedelta(minutes=2)
"""How far clocks of several writers may be apart."""

AT_ONCE = 50
TOGETHER = 16
"""How many sessions are indexed at the same time: a store writes what waits in one go."""

EVENTS_AT_ONCE = 2_000
KNOWN_STATES = 200
LOOKED_AT = 200
"""How many documents are compared with their texts, or sessions read, for one page."""


@dataclass(frozen=True, slots=True)
class FoundText:
    """Something that was found, and what it says."""

    hit: IndexHit
    text: str


@dataclass(frozen=True, slots=True)
class FoundPage:
    """What was found. `complete` is false while some of the sessions are not indexed yet."""

    found: tuple[FoundText, ...]
    cursor: str | None
    complete: bool


class SessionFinder:
    """Finds in the sessions of a store, and keeps its index up to date."""

    def __init__(self, store: Store) -> None:
        self._states = Sessions(store, KNOWN_STATES)
        self._store = store
        self._lock = anyio.Lock()
        self._since: datetime | None = None

    async def keep_indexing(self) -> None:
        """Index what is new in the background, now and then."""
        while True:
            behind = not await self.update(within_s=STEP_S)
            await anyio.sleep(STEP_S if behind else INDEX_EVERY_S)

    async def update(self, *, within_s: float = WITHIN_S) -> bool:
        """Index what is new, for about so long, at least some sessions; tell whether all of it is indexed."""
        index = self._store.index
        if index is None or self._store.encrypted:
            return True
        async with self._lock:
            deadline = anyio.current_time() + within_s
            newest = self._since
            while True:
                left = await index.behind(since=self._since and self._since - MARGIN, limit=AT_ONCE)
                for start in range(0, len(left), TOGETHER):
                    some = left[start : start + TOGETHER]
                    newest = max(newest or some[0].touched_at, *(session.touched_at for session in some))
                    done = await asyncio.gather(*(self._index(index, one) for one in some), return_exceptions=True)
                    for error in done:
                        if error is not None:
                            raise error
                    if anyio.current_time() >= deadline:
                        return False
                if len(left) < AT_ONCE:
                    self._since = newest
                    return True

    async def find(self, query: FindQuery, *, limit: int, cursor: str | None = None) -> FoundPage:
        """Return what has all that is asked, the latest first."""
        if self._store.index is None or self._store.encrypted:
            return await self._scan(query, limit, cursor)
        complete = await self.update()
        before = _place(cursor)
        found: list[FoundText] = []
        looked_at = 0
        while looked_at < LOOKED_AT:
            hits = await self._store.index.find(query.wanted, limit=AT_ONCE, before=before)
            for hit in hits:
                before = hit.place
                looked_at += 1
                text = await self._text(hit)
                if text is not None and has(text, query.words):
                    found.append(FoundText(hit, text))
                    if len(found) == limit:
                        return FoundPage(tuple(found), str(before), complete)
            if len(hits) < AT_ONCE:
                return FoundPage(tuple(found), None, complete)
        return FoundPage(tuple(found), str(before), complete)

    async def find_sessions(self, query: FindQuery, *, limit: int, cursor: str | None = None) -> FoundPage:
        """Return one hit for each session that has what is asked, the latest first."""
        found: dict[SessionId, FoundText] = {}
        while True:
            page = await self.find(query, limit=limit - len(found), cursor=cursor)
            for one in page.found:
                if one.hit.session_id not in found and not await self._came_before(query, one.hit):
                    found[one.hit.session_id] = one
            if page.cursor is None or len(found) >= limit or not page.found:
                return replace(page, found=tuple(found.values()))
            cursor = page.cursor

    async def _came_before(self, query: FindQuery, hit: IndexHit) -> bool:
        """Tell whether a later document of the session was found already."""
        if self._store.index is None or self._store.encrypted:
            return False
        wanted = replace(query.wanted, session_id=hit.session_id)
        for other in await self._store.index.find(wanted, limit=LOOKED_AT):
            if other.place == hit.place:
                return False
            text = await self._text(other)
            if text is not None and has(text, query.words):
                return True
        return False

    async def _text(self, hit: IndexHit) -> str | None:
        """Return what a document says now; None when it is gone."""
        try:
            if hit.seq == 0:
                return (await self._states.glance(hit.session_id)).name
            events = await self._store.read(hit.session_id, after=hit.seq - 1, limit=EVENTS_AT_ONCE)
        except SessionNotFoundError:
            return None
        stretches, _ = stretches_of(events)
        return next((stretch.text for stretch in stretches if stretch.events[0].seq == hit.seq), None)

    async def _index(self, index: TextIndex, session: Behind) -> None:
        after = session.indexed_seq
        try:
            events = await self._store.read(session.id, after=after, limit=EVENTS_AT_ONCE)
            stretches, through = stretches_of(events)
            if len(events) == EVENTS_AT_ONCE and through <= after:
                # One turn is longer than what is read at once.
                events = await self._store.read(session.id, after=after)
                stretches, through = stretches_of(events)
            documents = await self._documents(session.id, stretches)
        except SessionNotFoundError:
            return
        if not events:
            return
        name = name_in(events)
        if name is not None:
            documents.append(_named(name, events[0].at))
        await index.index(session, documents, indexed_seq=through, seen_seq=events[-1].seq)

    async def _documents(self, session_id: SessionId, stretches: Sequence[SaidStretch]) -> list[IndexedText]:
        names = [stretch.record for stretch in stretches if stretch.record]
        records: Mapping[BlobHash, str] = await self._store.blobs(session_id, names)
        return await anyio.to_thread.run_sync(documents_of, stretches, records)

    async def _scan(self, query: FindQuery, limit: int, cursor: str | None) -> FoundPage:
        """Read sessions until enough is found: for stores without a full-text search of their own."""
        found: list[FoundText] = []
        looked_at = 0
        wanted = query.wanted
        while True:
            page = await self._store.sessions(wanted.owner, agent=wanted.agent, limit=1, cursor=cursor)
            cursor = page.cursor
            looked_at += 1
            for row in page.rows:
                found += await self._found_in(row, query)
            if cursor is None or len(found) >= limit or looked_at >= LOOKED_AT:
                return FoundPage(tuple(found), cursor, complete=True)

    async def _found_in(self, row: SessionRow, query: FindQuery) -> list[FoundText]:
        try:
            state = await self._states.glance(row.id)
            texts = {0: state.title if self._store.encrypted else state.name}
            documents = [_named(texts[0], row.touched_at)]
            if not self._store.encrypted:
                stretches, _ = stretches_of(await self._store.read(row.id))
                texts |= {stretch.events[0].seq: stretch.text for stretch in stretches}
                documents += await self._documents(row.id, stretches)
        except SessionNotFoundError:
            return []
        return [
            FoundText(
                IndexHit(row.id, document.turn, document.seq, document.at, document.tokens, 0), texts[document.seq]
            )
            for document in reversed(documents)
            if _fits(document, query.wanted) and has(texts[document.seq], query.words)
        ]


def _named(name: str, at: datetime) -> IndexedText:
    return IndexedText(seq=0, turn=0, at=at, terms=terms_of(name))


def _fits(document: IndexedText, wanted: WantedTexts) -> bool:
    return (
        wanted.terms <= document.terms
        and (wanted.least_tokens is None or document.tokens >= wanted.least_tokens)
        and (wanted.most_tokens is None or document.tokens <= wanted.most_tokens)
    )


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > len(str(2**63)):
        raise InvalidInputError("the cursor is not one of this list; leave it out for the first page")
    return int(cursor)
