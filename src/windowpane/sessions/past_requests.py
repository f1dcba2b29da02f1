"""Past requests of a session, as they were recorded."""

from windowpane.context.events import Recorded
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.request import Request, RequestContext
from windowpane.errors import BlobNotFoundError, TurnNotFoundError
from windowpane.request.record import context_of, last_built, query_in, rebuild, texts_of
from windowpane.stores.sessions import Sessions


class PastRequests:
    """What past turns were given and did."""

    def __init__(self, sessions: Sessions) -> None:
        self._states = sessions
        self._store = sessions.store

    async def context(self, session_id: SessionId, turn: int) -> RequestContext:
        """Return the record of what a turn's request contained, as it was recorded.

        Raises:
            TurnNotFoundError: no such turn, or nothing was recorded for it.
        """
        return await self._context_in(session_id, await self._record_of(session_id, turn))

    async def read_context(self, session_id: SessionId, name: BlobHash) -> RequestContext:
        """Return the record of the request that a blob of the session holds.

        Raises:
            BlobNotFoundError: it was erased.
        """
        return await self._context_in(session_id, await self._store.blob(session_id, name))

    async def request(self, session_id: SessionId, turn: int) -> Request:
        """Return a past request, byte for byte as the turn's last model call was given it.

        Raises:
            TurnNotFoundError: no such turn, or nothing was recorded for it.
        """
        return await self._rebuilt(session_id, await self._record_of(session_id, turn))

    async def read(self, session_id: SessionId, name: BlobHash) -> Request:
        """Return the request that a blob of the session holds.

        Raises:
            BlobNotFoundError: it was erased.
        """
        return await self._rebuilt(session_id, await self._store.blob(session_id, name))

    async def events(self, session_id: SessionId, turn: int) -> list[Recorded]:
        """Return everything that happened from the start of a turn to the start of the next.

        Raises:
            TurnNotFoundError: no such turn.
        """
        state = await self._states.state(session_id)
        start, end = state.turn_starts.of(turn), state.turn_starts.of(turn + 1)
        if start is None:
            raise TurnNotFoundError(session_id, turn)
        return await self._store.read(session_id, after=start - 1, limit=None if end is None else end - start)

    async def _context_in(self, session_id: SessionId, body: str) -> RequestContext:
        query = query_in(body)
        return context_of(body, await self._store.blobs(session_id, [query]) if query else {})

    async def _rebuilt(self, session_id: SessionId, body: str) -> Request:
        texts = await self._store.blobs(session_id, texts_of(body))
        try:
            return rebuild(body, texts)
        except BlobNotFoundError:
            # Of a session that was deleted meanwhile, that is said.
            await self._store.row(session_id)
            raise

    async def _record_of(self, session_id: SessionId, turn: int) -> str:
        built = last_built(await self.events(session_id, turn), turn)
        if built is None:
            raise TurnNotFoundError(session_id, turn)
        return await self._store.blob(session_id, built.request)
