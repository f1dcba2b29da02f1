"""Bring pages and search results into a session, and take them out again.

Whatever is fetched is stored first and sent later, framed as data. Clearing erases the texts from the log; what a past
request already contained stays in that request's record until the history is cleared.
"""

from collections.abc import Sequence

from windowpane.context.events import Event, FetchedAdded, FetchedCleared
from windowpane.context.fetched import Fetched, FetchedKind
from windowpane.context.ids import Actor, SessionId
from windowpane.context.session import SessionState
from windowpane.errors import FetchFailedError
from windowpane.fetch.base import PageReader
from windowpane.stores.sessions import Changed, Sessions


class Fetching:
    """Fetched context of sessions."""

    def __init__(self, sessions: Sessions, pages: PageReader | None) -> None:
        self._sessions = sessions
        self._pages = pages

    async def fetch(self, session_id: SessionId, url: str, *, actor: Actor) -> Changed:
        """Fetch a page into a session.

        Raises:
            FetchError: the page may not or cannot be fetched; nothing is changed.
        """
        await self._sessions.state(session_id)
        return await self.add(session_id, [await self._reader(url).fetch_page(url)], actor=actor)

    async def push(self, session_id: SessionId, url: str, *, title: str, text: str, html: str, actor: Actor) -> Changed:
        """Take in a page that somebody else has read, such as a browser.

        Raises:
            FetchError: there is no text in it; nothing is changed.
        """
        await self._sessions.state(session_id)
        page = await self._reader(url).read_page(url, title=title, text=text, html=html)
        return await self.add(session_id, [page], actor=actor)

    async def add(self, session_id: SessionId, items: Sequence[Fetched], *, actor: Actor) -> Changed:
        """Put what was fetched into a session. A page that is there already is replaced."""
        events = [FetchedAdded(items=tuple(items), actor=actor)] if items else []
        return await self._sessions.change(session_id, lambda _: events)

    async def clear(self, session_id: SessionId, kind: FetchedKind | None, *, actor: Actor) -> SessionState:
        """Erase fetched context: of one kind, or all of it. The conversation stays."""

        def clear(state: SessionState) -> list[Event]:
            return [FetchedCleared(kind=kind, actor=actor)] if state.fetched else []

        changed = await self._sessions.change(session_id, clear)
        gone = [
            entry.seq
            for entry in await self._sessions.store.read(session_id)
            if isinstance(entry.event, FetchedAdded)
            and entry.seq < changed.state.seq
            and all(kind in (None, item.kind) for item in entry.event.items)
        ]
        if gone:
            await self._sessions.store.erase(session_id, gone)
            self._sessions.forget(session_id)
        return await self._sessions.state(session_id)

    def _reader(self, url: str) -> PageReader:
        if self._pages is None:
            raise FetchFailedError(url, "this program was built without a page reader")
        return self._pages
