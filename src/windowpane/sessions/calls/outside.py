"""Calls that this server makes for no session: to index what agents have, to search, to measure.

They are kept in a session of their own for each owner and day, which no list shows. It can be read, exported and
deleted as every session can, and analytics count it. What an owner asked for, such as a search, is the owner's and is
kept whole. What serves all is kept without the texts: they may be those of any session, and would outlive it. Days are
UTC, and their calls are erased after two months.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Self

from windowpane.calls.recorder import HeldCalls
from windowpane.context.calls import CallSent, ModelPrice, Origin
from windowpane.context.events import CallEnded, Event, SessionCreated
from windowpane.context.ids import BlobHash, SessionId, keyed_session_id, unlisted
from windowpane.errors import SequenceConflictError, SessionNotFoundError, WindowpaneError
from windowpane.remarks import get_logger
from windowpane.second_loop import SecondLoop
from windowpane.stores.base import COSTS_KEPT
from windowpane.stores.sessions import Sessions

SERVER = Origin(kind="server", program="windowpane")
"""Whose calls they are."""

ALL = "local"
"""Whose the calls are that serve all."""

NO_PRICES: Mapping[str, ModelPrice] = {}

CountFor = Callable[[str, Sequence[CallEnded]], Awaitable[object]]

log = get_logger()


class OutsideCalls:
    """Keeps calls that belong to no session, once it knows where."""

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._sessions: Sessions | None = None
        self._count: CountFor | None = None
        self._second = SecondLoop()
        self._clock = clock

    def in_store(self, sessions: Sessions, count: CountFor, second: SecondLoop) -> Self:
        """Keep calls in this store from now on, also those of the second loop, and count what they cost."""
        self._sessions, self._count, self._second = sessions, count, second
        return self

    def recorder(self) -> HeldCalls | None:
        """Return what keeps a call that serves all; None as long as there is no place for it."""
        return self.recorder_for(ALL, texts=False) if self._sessions is not None else None

    def recorder_for(
        self, owner: str, prices: Mapping[str, ModelPrice] = NO_PRICES, *, texts: bool = True
    ) -> HeldCalls:
        """Return what keeps calls that an owner asks for. `prices` are what the agent says that models cost."""
        count = self._second.called_back(partial(self._count, owner)) if self._count is not None else None
        keep = self._second.called_back(partial(self._keep, owner, texts))
        return HeldCalls(turn=None, prices=prices, keep=keep, count=count)

    def session_of(self, owner: str, day: date | None = None) -> SessionId:
        """Return the id of the session that has an owner's calls of a day, or of today. It may not exist."""
        return keyed_session_id(owner, SERVER.agent, (day or self._clock().date()).isoformat())

    async def _keep(self, owner: str, texts: bool, events: Sequence[Event], blobs: Mapping[BlobHash, str]) -> None:
        if self._sessions is None:
            return
        if not texts:
            heads = {event.head for event in events if isinstance(event, CallSent)}
            blobs = {name: text for name, text in blobs.items() if name in heads}
        session = self.session_of(owner)
        try:
            try:
                await self._sessions.change(session, lambda _: events, blobs=blobs, unread=True)
            except SessionNotFoundError:
                self._sessions.forget(session)
                await self._begin(self._sessions, owner, session)
                await self._sessions.change(session, lambda _: events, blobs=blobs, unread=True)
        except WindowpaneError as error:
            # What the caller wanted is worth more than the record.
            log.warning("calls.not_kept", owner=owner, code=error.code, why=str(error))

    async def _begin(self, sessions: Sessions, owner: str, session: SessionId) -> None:
        """Begin the session of a day, and erase those of days long past."""
        created = SessionCreated(
            agent=SERVER.agent, owner=unlisted(owner), name="Calls for no session", settings={}, items=(), origin=SERVER
        )
        try:
            await sessions.create(session, [created])
        except SequenceConflictError:
            return  # Another worker has begun it.
        oldest = self._clock() - COSTS_KEPT
        cursor: str | None = None
        while True:
            page = await sessions.store.sessions(unlisted(owner), agent=SERVER.agent, cursor=cursor)
            for row in page.rows:
                if row.id != session and row.touched_at < oldest:
                    await sessions.store.delete_idle(row)
            if (cursor := page.cursor) is None:
                return
