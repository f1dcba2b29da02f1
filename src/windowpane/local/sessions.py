"""Sessions of one owner, in this process."""

from collections.abc import Mapping, Sequence
from typing import Any

from windowpane.api.comparison import CacheReport, CallComparison
from windowpane.api.export import SessionExport
from windowpane.api.pane import Role
from windowpane.api.sessions import (
    ChangedSession,
    ErasedSession,
    FetchedList,
    FindView,
    ItemsChange,
    MessagePage,
    ReferencesView,
    SessionListView,
    SessionView,
    SetWish,
    Statistics,
)
from windowpane.api.turns import CallList, CallRecord
from windowpane.api.xray import XrayReport
from windowpane.context.events import MessageAdded, SessionCreated, SessionItem
from windowpane.context.fetched import Fetched, FetchedKind
from windowpane.context.ids import BlobHash, SessionId, keyed_session_id
from windowpane.context.items import ItemRef, as_ref
from windowpane.context.messages import NewFile
from windowpane.context.session import SessionState
from windowpane.context.sets import ChangeMode, ContextSets
from windowpane.context.summary import Summary
from windowpane.errors import FetchFailedError, InvalidInputError, KeyReusedError, SequenceConflictError
from windowpane.local.bound import Bound
from windowpane.local.cache import cache_of_session
from windowpane.local.calls import call_of_session, calls_compared, calls_of_session
from windowpane.local.finding import find, find_sessions
from windowpane.local.share import share_file
from windowpane.local.statistics import statistics_of
from windowpane.local.views import (
    changed_session,
    erased_session,
    fetched_list,
    items_change,
    references_view,
    session_view,
)
from windowpane.local.xray import xray_report
from windowpane.sessions.attachments import read_attachment


class LocalSessions:
    """Sessions: begin, list, read, change, delete."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._engine = bound.engine

    async def create(
        self,
        agent: str | None = None,
        *,
        name: str = "",
        settings: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> SessionView:
        """Begin a session with every `always` item of its agent."""
        owner = self._bound.creator
        new_id = keyed_session_id(owner, "create", key) if key else None
        try:
            state = await self._engine.sessions.create(
                agent, owner=owner, name=name, settings=settings, session_id=new_id
            )
        except SequenceConflictError:
            if new_id is None or key is None:
                raise
            state = await self._made_before(new_id, agent, name, settings or {}, key)
        return session_view(state)

    async def list(
        self, *, agent: str | None = None, query: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionListView:
        """Return sessions, last used first."""
        if query is None or not query.strip():
            page = await self._engine.sessions.list(self._bound.owner, agent=agent, limit=limit, cursor=cursor)
        else:
            page = await find_sessions(self._bound, query, agent, limit, cursor)
        return SessionListView(
            tuple(map(session_view, page.sessions)), page.cursor, names_only=self._engine.store.encrypted
        )

    async def find(
        self, query: str, *, agent: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> FindView:
        """Return turns, messages, names and items that have all words of a line."""
        return await find(self._bound, query, agent, limit, cursor)

    async def calls(self, session_id: str) -> CallList:
        """Return every call that was made for a session, also those for summaries."""
        return await calls_of_session(self._bound.engine, await self._bound.own(session_id))

    async def call(self, session_id: str, number: int) -> CallRecord:
        """Return one of those calls, as built and as sent."""
        return await call_of_session(self._engine, await self._bound.own(session_id), number)

    async def compare_calls(self, session_id: str, before: int, after: int) -> CallComparison:
        """Return what is different between two of those calls, part by part."""
        return await calls_compared(self._engine, await self._bound.own(session_id), before, after)

    async def cache(self, session_id: str) -> CacheReport:
        """Return what each call read from the provider's cache, what was expected, and what broke the prefix."""
        return await cache_of_session(self._bound.engine, await self._bound.own(session_id))

    async def xray(self, session_id: str) -> XrayReport:
        """Return a session as its calls tell it."""
        return await xray_report(self._engine, await self._bound.own(session_id))

    async def share(self, session_id: str, *, redacted: bool = False) -> Mapping[str, Any]:
        """Return a session as a share file."""
        own = await self._bound.own(session_id)
        return await share_file(self._engine, own, self.messages, redacted=redacted)

    async def get(self, session_id: str) -> SessionView:
        """Return a session as it is now."""
        return session_view(await self._engine.sessions.get(await self._bound.to_read(session_id)))

    async def update(
        self,
        session_id: str,
        changes: Mapping[str, Any],
        *,
        context: Mapping[str, Sequence[str]] | None = None,
        set_context: SetWish | None = None,
        expected_seq: int | None = None,
    ) -> ChangedSession:
        """Change `name`, `agent`, settings and working context in one step."""
        own = await self._bound.own(session_id)
        state, made = await self._engine.sessions.change(
            own, changes, context=context, set_context=set_context, expected_seq=expected_seq
        )
        return changed_session(state, made)

    async def delete(self, session_id: str) -> None:
        """Delete a session so that nothing of it is left."""
        own = await self._bound.own(session_id)
        await self._engine.sessions.delete(own)
        await self._bound.updater.forget(own)

    async def clear_history(self, session_id: str) -> SessionView:
        """Erase every message and request for good."""
        return session_view(await self._engine.conversations.clear(await self._bound.own(session_id)))

    async def fork(
        self, session_id: str, turn: int | None = None, *, name: str | None = None, key: str | None = None
    ) -> SessionView:
        """Begin a new session that is this one as it was before a turn."""
        own = await self._bound.own(session_id)
        new_id = keyed_session_id(self._bound.creator, "fork", own, str(turn), key) if key else None
        try:
            return session_view(await self._engine.sessions.fork(own, turn, name=name, new_id=new_id))
        except SequenceConflictError:
            if new_id is None:
                raise
            return session_view(await self._engine.sessions.get(new_id))

    async def export(self, session_id: str) -> SessionExport:
        """Return a session as one document."""
        return await self._engine.sessions.export(await self._bound.to_read(session_id))

    async def import_(self, document: SessionExport, *, name: str | None = None, key: str | None = None) -> SessionView:
        """Store an exported session as a new one."""
        owner = self._bound.creator
        new_id = keyed_session_id(owner, "import", key) if key else None
        try:
            state = await self._engine.sessions.import_(document, owner=owner, name=name, session_id=new_id)
        except SequenceConflictError:
            if new_id is None or key is None:
                raise
            state = await self._engine.sessions.get(new_id)
            first = await self._engine.store.read(new_id, limit=1)
            if not document.events or first[0].at != document.events[0].at or state.seq < len(document.events):
                raise KeyReusedError(key, "another request") from None
        return session_view(state)

    async def messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> MessagePage:
        """Return the latest messages before a sequence number, oldest first."""
        own = await self._bound.to_read(session_id)
        found = await self._engine.conversations.messages(own, before=before, limit=limit + 1)
        page = found[-limit:]
        # A failed turn can end in two messages with one sequence number; a page must not part them.
        if len(found) > limit and found[-limit - 1].seq == page[0].seq:
            page = found[-limit - 1 :]
            more = bool(await self._engine.conversations.messages(own, before=page[0].seq, limit=1))
        else:
            more = len(found) > limit
        return MessagePage(tuple(page), page[0].seq if more else None)

    async def attachment(self, session_id: str, blob: str) -> bytes:
        """Return the bytes of a file of a session."""
        own = await self._bound.own(session_id)
        return (await read_attachment(self._engine.store, own, BlobHash(blob)))[1]

    async def add_message(self, session_id: str, role: Role, content: str, *, key: str | None = None) -> SessionView:
        """Add a message that was said elsewhere."""
        own = await self._bound.own(session_id)
        added = MessageAdded(role=role, content=content)
        return session_view(await self._engine.conversations.add(own, added, key=key))

    async def remove_message(self, session_id: str, seq: int) -> ErasedSession:
        """Take back, and erase, a message that was added a short while ago."""
        return erased_session(await self._engine.conversations.remove(await self._bound.own(session_id), seq))

    async def items(self, session_id: str) -> tuple[SessionItem, ...]:
        """Return the items of a session, in the order in which they came."""
        return (await self._state(session_id)).context_items

    async def add_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Add an item by hand."""
        return items_change(await self._engine.items.add(await self._bound.own(session_id), as_ref(item)))

    async def remove_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Take an item out."""
        return items_change(await self._engine.items.remove(await self._bound.own(session_id), as_ref(item)))

    async def exclude_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Never let an item into this session."""
        return items_change(await self._engine.items.exclude(await self._bound.own(session_id), as_ref(item)))

    async def readmit_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Let an item that was removed or excluded be selected again."""
        return items_change(await self._engine.items.readmit(await self._bound.own(session_id), as_ref(item)))

    async def own_references(self, session_id: str) -> ReferencesView:
        """Return the references that a session made from files."""
        return await self._references_view(await self._state(session_id))

    async def add_reference(self, session_id: str, file: NewFile) -> ReferencesView:
        """Make a reference from a file."""
        state = await self._engine.references.add(await self._bound.own(session_id), file)
        return await self._references_view(state)

    async def remove_reference(self, session_id: str, name: str) -> ReferencesView:
        """Take such a reference out."""
        erasure = await self._engine.references.remove(await self._bound.own(session_id), name)
        return await self._references_view(erasure.state, erasure.remains)

    async def _references_view(self, state: SessionState, remains: tuple[str, ...] = ()) -> ReferencesView:
        return references_view(state, await self._engine.references.read(state), remains)

    async def context(self, session_id: str) -> ContextSets:
        """Return the working context."""
        return (await self._state(session_id)).sets

    async def set_context(
        self, session_id: str, set_name: str, items: Sequence[str], mode: ChangeMode = "replace"
    ) -> ChangedSession:
        """Change one set of the working context."""
        return await self.update(session_id, {}, set_context=SetWish(set_name, items, mode))

    async def replace_context(self, session_id: str, sets: Mapping[str, Sequence[str]]) -> ChangedSession:
        """Make these sets the whole working context."""
        return await self.update(session_id, {}, context=sets)

    async def promote(self, session_id: str, paths: Sequence[str]) -> ChangedSession:
        """Take files that tools were seen to touch into the set `files`."""
        own = await self._bound.own(session_id)
        made = await self._engine.working.promote(own, paths)
        return changed_session(await self._engine.sessions.get(own), made)

    async def fetched(self, session_id: str) -> FetchedList:
        """Return the pages and search results that a session holds."""
        return fetched_list(await self._state(session_id))

    async def fetch_page(self, session_id: str, url: str) -> FetchedList:
        """Fetch a page from the public web."""
        return fetched_list(await self._engine.fetched.fetch(await self._bound.own(session_id), url))

    async def push_page(
        self, session_id: str, url: str, *, title: str = "", text: str = "", html: str = ""
    ) -> FetchedList:
        """Take in a page that was read elsewhere."""
        own = await self._bound.own(session_id)
        try:
            return fetched_list(await self._engine.fetched.push(own, url, title=title, text=text, html=html))
        except FetchFailedError as error:
            # The page was not fetched: what is wrong with it is the sender's to correct.
            raise InvalidInputError(str(error)) from None

    async def add_fetched(self, session_id: str, items: Sequence[Fetched]) -> FetchedList:
        """Take in pages or search results that were fetched elsewhere."""
        return fetched_list(await self._engine.fetched.add(await self._bound.own(session_id), items))

    async def clear_fetched(self, session_id: str, kind: FetchedKind | None = None) -> FetchedList:
        """Erase what was fetched."""
        erasure = await self._engine.fetched.clear(await self._bound.own(session_id), kind)
        return fetched_list(erasure.state, erasure.remains)

    async def statistics(self, session_id: str) -> Statistics:
        """Count what a session holds, and what its turns cost."""
        return await statistics_of(self._engine, await self._state(session_id))

    async def summary(self, session_id: str) -> Summary | None:
        """Return the summary of the messages that are not sent whole any more."""
        return (await self._state(session_id)).summary

    async def sum_up(self, session_id: str) -> Summary | None:
        """Make the summary that is due, if one is."""
        return (await self._engine.conversations.sum_up(await self._bound.own(session_id))).summary

    async def _state(self, session_id: str) -> SessionState:
        return await self._engine.sessions.get(await self._bound.own(session_id))

    async def _made_before(
        self, session_id: SessionId, agent: str | None, name: str, settings: Mapping[str, Any], key: str
    ) -> SessionState:
        """Return the session that was made with this key, if it was made with this wish."""
        began = (await self._engine.store.read(session_id, limit=1))[0].event
        if (
            not isinstance(began, SessionCreated)
            or agent not in (None, began.agent)
            or name.strip() != began.name
            or set(settings) != set(began.settings)
        ):
            raise KeyReusedError(key, "another request")
        return await self._engine.sessions.get(session_id)
