"""Sessions of a server."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from windowpane.api.comparison import CacheReport, CallComparison
from windowpane.api.export import EXPORT, SessionExport, read_export
from windowpane.api.pane import Role
from windowpane.api.sessions import (
    ChangedSession,
    ErasedSession,
    FetchedList,
    FindView,
    ItemsChange,
    ItemsView,
    MessagePage,
    ReferencesView,
    SessionListView,
    SessionView,
    SetWish,
    Statistics,
    SummaryView,
)
from windowpane.api.turns import CallList, CallRecord
from windowpane.api.xray import XrayReport
from windowpane.client.connection import Connection, item_path, keyed, matching, session_path
from windowpane.context.events import SessionItem
from windowpane.context.fetched import Fetched, FetchedKind
from windowpane.context.items import ItemRef, as_ref
from windowpane.context.messages import NewFile, as_text
from windowpane.context.sets import ChangeMode, ContextSets
from windowpane.context.summary import Summary


class RemoteSessions:
    """Sessions: begin, list, read, change, delete."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    async def create(
        self,
        agent: str | None = None,
        *,
        name: str = "",
        settings: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> SessionView:
        """Begin a session with every `always` item of its agent."""
        body = {"agent": agent, "name": name, "settings": settings}
        return await self._server.send(SessionView, "POST", "/api/sessions", body, headers=keyed(key))

    async def list(
        self, *, agent: str | None = None, query: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionListView:
        """Return sessions, last used first."""
        params = {"agent": agent, "q": query, "limit": limit, "cursor": cursor}
        return await self._server.get(SessionListView, "/api/sessions", params)

    async def find(
        self, query: str, *, agent: str | None = None, limit: int = 20, cursor: str | None = None
    ) -> FindView:
        """Return turns, messages, names and items that have all words of a line."""
        params = {"q": query, "agent": agent, "limit": limit, "cursor": cursor}
        return await self._server.get(FindView, "/api/search", params)

    async def calls(self, session_id: str) -> CallList:
        """Return every call that was made for a session, also those for summaries."""
        return await self._server.get(CallList, f"{session_path(session_id)}/calls")

    async def call(self, session_id: str, number: int) -> CallRecord:
        """Return one of those calls, as built and as sent."""
        return await self._server.get(CallRecord, f"{session_path(session_id)}/calls/{number}")

    async def compare_calls(self, session_id: str, before: int, after: int) -> CallComparison:
        """Return what is different between two of those calls, part by part."""
        path = f"{session_path(session_id)}/calls/{before}/compare"
        return await self._server.get(CallComparison, path, {"with": after})

    async def cache(self, session_id: str) -> CacheReport:
        """Return what each call read from the provider's cache, what was expected, and what broke the prefix."""
        return await self._server.get(CacheReport, f"{session_path(session_id)}/cache")

    async def xray(self, session_id: str) -> XrayReport:
        """Return a session as its calls tell it."""
        return await self._server.get(XrayReport, f"{session_path(session_id)}/xray")

    async def share(self, session_id: str, *, redacted: bool = False) -> Mapping[str, Any]:
        """Return a session as a share file."""
        params = {"redacted": redacted}
        return (await self._server.request("GET", f"{session_path(session_id)}/share", params=params)).json()

    async def get(self, session_id: str) -> SessionView:
        """Return a session as it is now."""
        return await self._server.get(SessionView, session_path(session_id))

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
        settings = dict(changes)
        body: dict[str, Any] = {name: settings.pop(name) for name in ("name", "agent") if name in settings}
        body["settings"] = settings
        if context is not None:
            body["context"] = {name: list(items) for name, items in context.items()}
        if set_context is not None:
            body["set_context"] = asdict(set_context)
        headers = {} if expected_seq is None else matching(str(expected_seq))
        return await self._server.send(ChangedSession, "PATCH", session_path(session_id), body, headers=headers)

    async def delete(self, session_id: str) -> None:
        """Delete a session so that nothing of it is left."""
        await self._server.request("DELETE", session_path(session_id))

    async def clear_history(self, session_id: str) -> SessionView:
        """Erase every message and request for good."""
        return await self._server.send(SessionView, "DELETE", f"{session_path(session_id)}/history")

    async def fork(
        self, session_id: str, turn: int | None = None, *, name: str | None = None, key: str | None = None
    ) -> SessionView:
        """Begin a new session that is this one as it was before a turn."""
        body = {"turn": turn, "name": name}
        return await self._server.send(
            SessionView, "POST", f"{session_path(session_id)}/fork", body, headers=keyed(key)
        )

    async def export(self, session_id: str) -> SessionExport:
        """Return a session as one document."""
        return read_export((await self._server.request("GET", f"{session_path(session_id)}/export")).json())

    async def import_(self, document: SessionExport, *, name: str | None = None, key: str | None = None) -> SessionView:
        """Store an exported session as a new one."""
        body = EXPORT.adapter.dump_python(document, mode="json")
        return await self._server.send(
            SessionView, "POST", "/api/sessions/import", body, headers=keyed(key), params={"name": name}
        )

    async def messages(self, session_id: str, *, before: int | None = None, limit: int = 50) -> MessagePage:
        """Return the latest messages before a sequence number, oldest first."""
        params = {"before": before, "limit": limit}
        return await self._server.get(MessagePage, f"{session_path(session_id)}/messages", params)

    async def attachment(self, session_id: str, blob: str) -> bytes:
        """Return the bytes of a file that came with a message or from a tool."""
        return (await self._server.request("GET", f"{session_path(session_id)}/attachments/{quote(blob)}")).content

    async def add_message(self, session_id: str, role: Role, content: str, *, key: str | None = None) -> SessionView:
        """Add a message that was said elsewhere."""
        path = f"{session_path(session_id)}/messages/record"
        body = {"role": role, "content": content}
        return await self._server.send(SessionView, "POST", path, body, headers=keyed(key))

    async def remove_message(self, session_id: str, seq: int) -> ErasedSession:
        """Take back, and erase, a message that was added a short while ago."""
        return await self._server.send(ErasedSession, "DELETE", f"{session_path(session_id)}/messages/{seq}")

    async def items(self, session_id: str) -> tuple[SessionItem, ...]:
        """Return the items of a session, in the order in which they came."""
        return (await self._server.get(ItemsView, f"{session_path(session_id)}/items")).items

    async def add_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Add an item by hand."""
        return await self._server.send(ItemsChange, "POST", f"{session_path(session_id)}/items", asdict(as_ref(item)))

    async def remove_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Take an item out."""
        ref = as_ref(item)
        path = f"{session_path(session_id)}/items/{item_path(ref)}"
        return await self._server.send(ItemsChange, "DELETE", path, params={"server": ref.server})

    async def exclude_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Never let an item into this session."""
        path = f"{session_path(session_id)}/excluded"
        return await self._server.send(ItemsChange, "POST", path, asdict(as_ref(item)))

    async def readmit_item(self, session_id: str, item: ItemRef | str) -> ItemsChange:
        """Let an item that was removed or excluded be selected again."""
        ref = as_ref(item)
        path = f"{session_path(session_id)}/excluded/{item_path(ref)}"
        return await self._server.send(ItemsChange, "DELETE", path, params={"server": ref.server})

    async def own_references(self, session_id: str) -> ReferencesView:
        """Return the references that a session made from files."""
        return await self._server.get(ReferencesView, f"{session_path(session_id)}/references")

    async def add_reference(self, session_id: str, file: NewFile) -> ReferencesView:
        """Make a reference from a file."""
        body = {"name": file.name, "data": as_text(file.data)}
        return await self._server.send(ReferencesView, "POST", f"{session_path(session_id)}/references", body)

    async def remove_reference(self, session_id: str, name: str) -> ReferencesView:
        """Take such a reference out."""
        path = f"{session_path(session_id)}/references/{quote(name, safe='')}"
        return await self._server.send(ReferencesView, "DELETE", path)

    async def context(self, session_id: str) -> ContextSets:
        """Return the working context."""
        return (await self.get(session_id)).context

    async def set_context(
        self, session_id: str, set_name: str, items: Sequence[str], mode: ChangeMode = "replace"
    ) -> ChangedSession:
        """Change one set of the working context."""
        return await self.update(session_id, {}, set_context=SetWish(set_name, tuple(items), mode))

    async def replace_context(self, session_id: str, sets: Mapping[str, Sequence[str]]) -> ChangedSession:
        """Make these sets the whole working context."""
        return await self.update(session_id, {}, context=sets)

    async def promote(self, session_id: str, paths: Sequence[str]) -> ChangedSession:
        """Take files that tools were seen to touch into the set `files`."""
        body = {"paths": list(paths)}
        return await self._server.send(ChangedSession, "POST", f"{session_path(session_id)}/observed", body)

    async def fetched(self, session_id: str) -> FetchedList:
        """Return the pages and search results that a session holds."""
        return await self._server.get(FetchedList, f"{session_path(session_id)}/fetched")

    async def fetch_page(self, session_id: str, url: str) -> FetchedList:
        """Fetch a page from the public web."""
        return await self._server.send(FetchedList, "POST", f"{session_path(session_id)}/pages/fetch", {"url": url})

    async def push_page(
        self, session_id: str, url: str, *, title: str = "", text: str = "", html: str = ""
    ) -> FetchedList:
        """Take in a page that was read elsewhere."""
        body = {"url": url, "title": title, "text": text, "html": html}
        return await self._server.send(FetchedList, "POST", f"{session_path(session_id)}/pages", body)

    async def add_fetched(self, session_id: str, items: Sequence[Fetched]) -> FetchedList:
        """Take in pages or search results that were fetched elsewhere."""
        body = {"items": [asdict(item) for item in items]}
        return await self._server.send(FetchedList, "POST", f"{session_path(session_id)}/fetched", body)

    async def clear_fetched(self, session_id: str, kind: FetchedKind | None = None) -> FetchedList:
        """Erase what was fetched."""
        return await self._server.send(
            FetchedList, "DELETE", f"{session_path(session_id)}/fetched", params={"kind": kind}
        )

    async def statistics(self, session_id: str) -> Statistics:
        """Count what a session holds, and what its turns cost."""
        return await self._server.get(Statistics, f"{session_path(session_id)}/statistics")

    async def summary(self, session_id: str) -> Summary | None:
        """Return the summary of the messages that are not sent whole any more."""
        return (await self._server.get(SummaryView, f"{session_path(session_id)}/summary")).summary

    async def sum_up(self, session_id: str) -> Summary | None:
        """Make the summary that is due, if one is."""
        return (await self._server.send(SummaryView, "POST", f"{session_path(session_id)}/summary")).summary
