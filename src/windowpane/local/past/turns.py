"""What past turns were given and sent, and why: answered from a store alone, or by an engine that has one.

What explains and compares is imported where it is used: it loads what searches, and other answers need none of it.
"""

from collections.abc import Awaitable, Callable

import anyio.to_thread

from windowpane.api.comparison import Comparison
from windowpane.api.explanation import Explanation
from windowpane.api.turns import CallList, CallRecord
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef, as_ref
from windowpane.context.request import Request
from windowpane.insight.past import PastRecords, past_turn
from windowpane.local.calls import call_of_session, call_of_turn, calls_of_session, calls_of_turn
from windowpane.local.past.sessions import PastSessions
from windowpane.stores.sessions import Sessions


class PastTurns:
    """Requests and calls of past turns. `own` returns the id of a session, if it is the owner's."""

    def __init__(self, records: PastRecords, own: Callable[[str], Awaitable[SessionId]]) -> None:
        self._records = records
        self._own = own

    async def request(self, session_id: str, turn: int) -> Request:
        """Return a turn's request, byte for byte as it was sent."""
        return await self._records.past.request(await self._own(session_id), turn)

    async def calls(self, session_id: str, turn: int) -> CallList:
        """Return the calls of a turn, retries included, in the order in which they were sent."""
        return await calls_of_turn(self._records, await self._own(session_id), turn)

    async def call(self, session_id: str, turn: int, number: int) -> CallRecord:
        """Return a call of a turn, counted from 1: as built, as sent, and whose each byte is."""
        return await call_of_turn(self._records, await self._own(session_id), turn, number)

    async def explain(self, session_id: str, turn: int, item: ItemRef | str) -> Explanation:
        """Return why an item was in a turn's request or not."""
        from windowpane.insight.explain import explain

        ref = as_ref(item)
        return explain(await past_turn(self._records, await self._own(session_id), turn), ref)

    async def explanations(self, session_id: str, turn: int) -> tuple[Explanation, ...]:
        """Return for each item that the agent had then why it was in the turn's request or not."""
        from windowpane.insight.explain import explain_all

        past = await past_turn(self._records, await self._own(session_id), turn)
        return await anyio.to_thread.run_sync(explain_all, past)

    async def compare(
        self, session_id: str, turn: int, other: int, *, other_session_id: str | None = None
    ) -> Comparison:
        """Return what changed from a turn's request to another's."""
        from windowpane.insight.compare import compare

        first = await self._own(session_id)
        second = first if other_session_id is None else await self._own(other_session_id)
        before = await past_turn(self._records, first, turn, with_catalog=False)
        after = await past_turn(self._records, second, other, with_catalog=False)
        return await anyio.to_thread.run_sync(compare, before, after)


class PastSessionCalls(PastSessions):
    """Lists and reads sessions of every owner, and their calls."""

    def __init__(self, states: Sessions, records: PastRecords) -> None:
        super().__init__(states)
        self._records = records

    async def calls(self, session_id: str) -> CallList:
        """Return every call that was made for a session, also those for summaries."""
        return await calls_of_session(self._records, SessionId(session_id))

    async def call(self, session_id: str, number: int) -> CallRecord:
        """Return one of those calls, as built and as sent."""
        return await call_of_session(self._records, SessionId(session_id), number)
