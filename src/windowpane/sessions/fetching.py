"""Bring pages and search results into a session, and take them out again.

Whatever is fetched is stored first and sent later, framed as data. Clearing erases the texts from the log, and from the
requests and calls that they were sent in.
"""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from windowpane.context.events import Event, FetchedAdded, FetchedCleared, Recorded
from windowpane.context.fetched import Fetched, FetchedKind, capped
from windowpane.context.ids import SessionId
from windowpane.context.session import SessionState
from windowpane.errors import FetchFailedError, InvalidInputError
from windowpane.fetch.base import PageReader
from windowpane.sessions.erasing import Erasing, Erasure, Removal, SessionLeases, Traces
from windowpane.stores.sessions import Sessions
from windowpane.text.blocks import fetched_name

MAX_URL_CHARACTERS = 8000


class Fetching:
    """Fetched context of sessions."""

    def __init__(self, sessions: Sessions, pages: PageReader | None, leases: SessionLeases) -> None:
        self._sessions = sessions
        self._erasing = Erasing(sessions, leases)
        self._pages = pages

    async def fetch(self, session_id: SessionId, url: str) -> SessionState:
        """Fetch a web page into a session. Private and local addresses are refused.

        Raises:
            SessionNotFoundError: no such session.
            FetchError: the page may not or cannot be fetched; nothing is changed.
        """
        await self._sessions.state(session_id)
        return await self.add(session_id, [await self._reader(url).fetch_page(url)])

    async def push(
        self,
        session_id: SessionId,
        url: str,
        *,
        title: str = "",
        text: str = "",
        html: str = "",
    ) -> SessionState:
        """Take in a page that another program has read, such as the user's browser. Nothing is fetched.

        Raises:
            SessionNotFoundError: no such session.
            FetchError: there is no text in it; nothing is changed.
        """
        await self._sessions.state(session_id)
        page = await self._reader(url).read_page(url, title=title, text=text, html=html)
        return await self.add(session_id, [page])

    async def add(self, session_id: SessionId, items: Sequence[Fetched]) -> SessionState:
        """Take in pages or search results that the caller has fetched. One that is there already is replaced.

        Raises:
            SessionNotFoundError: no such session.
            InvalidInputError: one of them has an address that no page can have; nothing is changed.
        """
        held = tuple(checked_page(item) for item in items)
        events = [FetchedAdded(items=held, actor="user")] if held else []
        return (await self._sessions.change(session_id, lambda _: events)).state

    async def clear(self, session_id: SessionId, kind: FetchedKind | None = None) -> Erasure:
        """Erase fetched context: of one kind, or all of it. The conversation stays.

        Requests and calls lose the texts too. What a model or a user said of them stays: the answer tells of it.

        Raises:
            SessionNotFoundError: no such session.
            SessionBusyError: a turn is running, or one that waits was given a page.
        """

        def choose(state: SessionState, log: Sequence[Recorded]) -> Removal | None:
            gone = [item for entry in log for item in _fetched(entry) if kind in (None, item.kind)]
            seqs = tuple(entry.seq for entry in log if any(kind in (None, item.kind) for item in _fetched(entry)))
            names = frozenset(fetched_name(item) for item in gone)
            return Removal(seqs=seqs, texts=tuple(item.content for item in gone), pages=names) if seqs else None

        def tell(state: SessionState, log: Sequence[Recorded], traces: Traces) -> list[Event]:
            cleared = FetchedCleared(kind=kind, erased=traces.blobs)
            if not any(kind in (None, held.item.kind) for held in state.fetched):
                return [cleared] if traces.blobs else []
            # What came in together with a page that goes, and stays, comes in again by itself.
            mixed = {entry.seq for entry in log if len({item.kind for item in _fetched(entry)}) > 1}
            stays = [held.item for held in state.fetched if held.seq in mixed and kind not in (None, held.item.kind)]
            return [cleared, *([FetchedAdded(items=tuple(stays), actor="system")] if stays else [])]

        return await self._erasing.erase(session_id, choose, tell)

    def _reader(self, url: str) -> PageReader:
        if self._pages is None:
            raise FetchFailedError(url, "this program was built without a page reader")
        return self._pages


def _fetched(entry: Recorded) -> tuple[Fetched, ...]:
    return entry.event.items if isinstance(entry.event, FetchedAdded) else ()


def checked_page(item: Fetched) -> Fetched:
    """Return what may be kept of a page: its address leads to the web, and its text is no longer than the limit.

    Raises:
        InvalidInputError: it has an address that no page can have.
    """
    if urlsplit(item.url).scheme.lower() not in ("http", "https", "") or len(item.url) > MAX_URL_CHARACTERS:
        raise InvalidInputError(f"the fetched page {item.title[:80]!r} has no web address")
    return replace(item, content=capped(item.content))
