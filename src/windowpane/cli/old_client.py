"""A typed client of the HTTP API: the same values that the server sends, over a connection of your own.

    async with Client("http://127.0.0.1:8470") as client:
        session = await client.create_session()
        turn = await client.send(session.id, "How do I add a rule?")
        print(turn.text)

What the server refuses is a `RemoteError` with the server's own words and the `code` that it has there.
"""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote

import httpx2
from pydantic import TypeAdapter

from windowpane.api.agents import AgentList, AgentView, FoundItems, ItemDetail, ItemList, ProblemList, ServerList
from windowpane.api.analytics import Dashboard
from windowpane.api.comparison import Comparison
from windowpane.api.context_tests import ContextTest, Report, SavedTest
from windowpane.api.evaluation import Evaluation, Proposal, Tuning
from windowpane.api.explanation import Explanation
from windowpane.api.export import EXPORT, SessionExport, read_export
from windowpane.api.replay import Rebuilt, Rerun, WhatIf
from windowpane.api.sessions import (
    ChangedSession,
    FetchedList,
    ItemsChange,
    ItemsView,
    MessagePage,
    SessionListView,
    SessionView,
    Statistics,
    SummaryView,
)
from windowpane.api.suggestions import Applied, Edit, SuggestionList
from windowpane.api.turns import ContextDebug, ItemUse, TurnRecord, TurnUsage, TurnUse, TurnView
from windowpane.api.wire import unflat
from windowpane.context.events import Delta, Recorded
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef
from windowpane.context.messages import Decision
from windowpane.context.request import Request, RequestContext
from windowpane.context.sets import ChangeMode
from windowpane.errors import RemoteError, UnreachableError

T = TypeVar("T")

TIMEOUT_S = 600.0
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


class Client:
    """The API of a server. Use it inside `async with`."""

    def __init__(
        self, url: str, *, token: str | None = None, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_S, transport=transport)

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    # Agents

    async def agents(self) -> AgentList:
        """Return every agent."""
        return await self._get(AgentList, "/api/agents")

    async def agent(self, agent: str) -> AgentView:
        """Return an agent's settings, how much it has, its tool servers and what is wrong with it."""
        return await self._get(AgentView, f"/api/agents/{_part(agent)}")

    async def items(self, agent: str, **filters: str | int | None) -> ItemList:
        """Return what an agent makes available. Filters: `type`, `include`, `server`, `q`, `limit`, `cursor`."""
        return await self._get(ItemList, f"/api/agents/{_part(agent)}/items", filters)

    async def item(self, agent: str, ref: ItemRef) -> ItemDetail:
        """Return an item with all it says, and the revision that a change of it names."""
        path = f"/api/agents/{_part(agent)}/items/{ref.type}/{_part(ref.name)}"
        return await self._get(ItemDetail, path, {"server": ref.server})

    async def create_item(self, agent: str, item: Mapping[str, Any], *, key: str | None = None) -> ItemDetail:
        """Write a new rule or reference."""
        return await self._send(ItemDetail, "POST", f"/api/agents/{_part(agent)}/items", item, _keyed(key))

    async def change_item(self, agent: str, ref: ItemRef, changes: Mapping[str, Any], *, revision: str) -> ItemDetail:
        """Change settings of a rule or a reference, or its text, if it is still the one of this revision."""
        path = f"/api/agents/{_part(agent)}/items/{ref.type}/{_part(ref.name)}"
        return await self._send(ItemDetail, "PATCH", path, changes, _matching(revision))

    async def delete_item(self, agent: str, ref: ItemRef, *, revision: str) -> None:
        """Delete the file of a rule or a reference, if it is still the one of this revision."""
        path = f"/api/agents/{_part(agent)}/items/{ref.type}/{_part(ref.name)}"
        await self._request("DELETE", path, headers=_matching(revision))

    async def problems(self, agent: str) -> ProblemList:
        """Return what is wrong in an agent's folder."""
        return await self._get(ProblemList, f"/api/agents/{_part(agent)}/problems")

    async def servers(self, agent: str, *, settle_s: float = 0) -> ServerList:
        """Return an agent's tool servers as they are now, or when they have settled."""
        return await self._get(ServerList, f"/api/agents/{_part(agent)}/servers", {"settle_s": settle_s})

    async def search(self, agent: str, query: str, **settings: Any) -> FoundItems:
        """Return which of an agent's items a query needs."""
        body = {"query": query, **settings}
        return await self._send(FoundItems, "POST", f"/api/agents/{_part(agent)}/search", body)

    # Sessions

    async def sessions(self, **filters: str | int | None) -> SessionListView:
        """Return sessions, last used first. Filters: `agent`, `q`, `limit`, `cursor`."""
        return await self._get(SessionListView, "/api/sessions", filters)

    async def create_session(
        self,
        agent: str | None = None,
        *,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> SessionView:
        """Begin a session."""
        body = {"agent": agent, "name": name, "settings": settings}
        return await self._send(SessionView, "POST", "/api/sessions", body, _keyed(key))

    async def session(self, session: str) -> SessionView:
        """Return a session as it is now."""
        return await self._get(SessionView, _session(session))

    async def update_session(self, session: str, changes: Mapping[str, Any]) -> ChangedSession:
        """Change name, settings and working context, as in `PATCH /api/sessions/{id}`."""
        return await self._send(ChangedSession, "PATCH", _session(session), changes)

    async def set_context(
        self, session: str, set_name: str, items: Sequence[str], mode: ChangeMode = "replace"
    ) -> ChangedSession:
        """Change one set of the working context; no items clear it."""
        return await self.update_session(
            session, {"set_context": {"set_name": set_name, "items": list(items), "mode": mode}}
        )

    async def delete_session(self, session: str) -> None:
        """Delete a session so that nothing of it is left."""
        await self._request("DELETE", _session(session))

    async def clear_history(self, session: str) -> SessionView:
        """Erase the conversation."""
        return await self._send(SessionView, "DELETE", f"{_session(session)}/history")

    async def fork(self, session: str, turn: int | None = None, *, name: str | None = None) -> SessionView:
        """Begin a new session that is this one as it was before a turn."""
        return await self._send(SessionView, "POST", f"{_session(session)}/fork", {"turn": turn, "name": name})

    async def export_session(self, session: str) -> SessionExport:
        """Return a whole session."""
        return read_export((await self._request("GET", f"{_session(session)}/export")).json())

    async def import_session(
        self, document: SessionExport, *, name: str | None = None, key: str | None = None
    ) -> SessionView:
        """Store an exported session as a new one."""
        body = EXPORT.dump_python(document, mode="json")
        params = {} if name is None else {"name": name}
        return await self._send(SessionView, "POST", "/api/sessions/import", body, _keyed(key), params)

    async def add_item(self, session: str, ref: ItemRef) -> ItemsChange:
        """Add an item to a session by hand."""
        body = {"type": ref.type, "name": ref.name, "server": ref.server}
        return await self._send(ItemsChange, "POST", f"{_session(session)}/items", body)

    async def remove_item(self, session: str, ref: ItemRef) -> ItemsChange:
        """Take an item out of a session."""
        path = f"{_session(session)}/items/{ref.type}/{_part(ref.name)}"
        params = {"server": ref.server} if ref.server else {}
        return await self._send(ItemsChange, "DELETE", path, params=params)

    async def session_items(self, session: str) -> ItemsView:
        """Return what is in a session."""
        return await self._get(ItemsView, f"{_session(session)}/items")

    async def push_page(self, session: str, url: str, **page: str) -> FetchedList:
        """Send a page in: its `title`, and its `text` or `html`."""
        return await self._send(FetchedList, "POST", f"{_session(session)}/pages", {"url": url, **page})

    async def fetched(self, session: str) -> FetchedList:
        """Return what a session holds from outside."""
        return await self._get(FetchedList, f"{_session(session)}/fetched")

    async def summary(self, session: str) -> SummaryView:
        """Return the rolling summary."""
        return await self._get(SummaryView, f"{_session(session)}/summary")

    async def statistics(self, session: str) -> Statistics:
        """Count what a session holds."""
        return await self._get(Statistics, f"{_session(session)}/statistics")

    # Turns

    async def send(self, session: str, content: str, *, key: str | None = None, wait_s: float = 0) -> TurnView:
        """Send a message and return the turn at its end, or at the approval that it waits for."""
        body = {"content": content, "wait_s": wait_s}
        return await self._send(TurnView, "POST", f"{_session(session)}/messages", body, _keyed(key))

    async def stream(
        self, session: str, content: str, *, key: str | None = None, wait_s: float = 0
    ) -> AsyncGenerator[Recorded | Delta]:
        """Send a message and yield everything as it happens."""
        body = {"content": content, "wait_s": wait_s}
        async with self._events(f"{_session(session)}/messages", body, _keyed(key)) as events:
            async for event in events:
                yield event

    async def decide(self, session: str, decisions: Mapping[str, Decision]) -> AsyncGenerator[Recorded | Delta]:
        """Decide about waiting tool calls and yield what the turn does then."""
        async with self._events(f"{_session(session)}/approvals", {"decisions": dict(decisions)}, {}) as events:
            async for event in events:
                yield event

    async def cancel(self, session: str) -> SessionView:
        """Stop the turn that is running or waiting."""
        return await self._send(SessionView, "POST", f"{_session(session)}/cancel")

    async def preview(self, session: str, content: str) -> Request:
        """Return the request that a message would make."""
        return await self._send(Request, "POST", f"{_session(session)}/preview", {"content": content})

    async def messages(self, session: str, *, before: int | None = None, limit: int = 50) -> MessagePage:
        """Return the latest messages before a sequence number."""
        return await self._get(MessagePage, f"{_session(session)}/messages", {"before": before, "limit": limit})

    async def turn(self, session: str, turn: int) -> TurnRecord:
        """Return a turn with everything that happened in it."""
        return await self._get(TurnRecord, f"{_session(session)}/turns/{turn}")

    async def context(self, session: str, turn: int) -> RequestContext:
        """Return the record of what a turn's request contained."""
        return await self._get(RequestContext, f"{_session(session)}/turns/{turn}/context")

    async def request(self, session: str, turn: int) -> Request:
        """Return a past request, byte for byte as it was sent."""
        return await self._get(Request, f"{_session(session)}/turns/{turn}/request")

    async def debug(self, session: str, turn: int, *, topic: str | None = None) -> ContextDebug:
        """Return what a turn's model was told of the conversation."""
        return await self._get(ContextDebug, f"{_session(session)}/turns/{turn}/debug", {"topic": topic})

    async def usage(self, session: str, turn: int) -> TurnUsage:
        """Return what a turn cost."""
        return await self._get(TurnUsage, f"{_session(session)}/turns/{turn}/usage")

    # Looking back

    async def explain(self, session: str, turn: int) -> tuple[Explanation, ...]:
        """Return why each item that the agent had was in a turn's request or not."""
        return (await self._get(_Explanations, f"{_session(session)}/turns/{turn}/explain")).items

    async def explain_item(self, session: str, turn: int, ref: ItemRef) -> Explanation:
        """Return why an item was in a turn's request or not."""
        path = f"{_session(session)}/turns/{turn}/explain/{ref.type}/{_part(ref.name)}"
        return await self._get(Explanation, path, {"server": ref.server})

    async def compare(self, session: str, turn: int, other: int, *, other_session: str | None = None) -> Comparison:
        """Return what changed from one turn's request to another's, which may be of another session."""
        query = {"with": other, "session": other_session}
        return await self._get(Comparison, f"{_session(session)}/turns/{turn}/compare", query)

    async def rebuild(self, session: str, turn: int) -> Rebuilt:
        """Return whether a turn's request can be rebuilt byte for byte."""
        return await self._get(Rebuilt, f"{_session(session)}/turns/{turn}/replay")

    async def replay(self, session: str, turn: int, difference: WhatIf) -> Rerun:
        """Run a turn's selection again with something different about it."""
        items = [{"ref": asdict(ref), "text": text} for ref, text in difference.texts.items()]
        body = {"search": dict(difference.search), "query": difference.query, "items": items}
        return await self._send(Rerun, "POST", f"{_session(session)}/turns/{turn}/replay", body)

    async def keep_test(self, session: str, turn: int, *, name: str = "") -> SavedTest:
        """Write a context test that a turn passes into its agent's folder."""
        return await self._send(SavedTest, "POST", f"{_session(session)}/turns/{turn}/test", {"name": name})

    async def run_tests(self, agent: str) -> Report:
        """Run an agent's context tests."""
        return await self._send(Report, "POST", f"/api/agents/{_part(agent)}/tests/run")

    async def use(self, session: str, turn: int) -> tuple[ItemUse, ...]:
        """Return which items of a turn's request the answer made use of."""
        return (await self._get(TurnUse, f"{_session(session)}/turns/{turn}/use")).items

    async def analytics(self, **filters: str | bool | None) -> Dashboard:
        """Return what turns cost and whether it was used. Filters: `since`, `until`, `agent`, `model`, `everyone`."""
        return await self._get(Dashboard, "/api/analytics", filters)

    async def suggestions(self, agent: str) -> SuggestionList:
        """Return what could be better about an agent."""
        return await self._get(SuggestionList, f"/api/agents/{_part(agent)}/suggestions")

    async def apply_suggestion(self, agent: str, edit: Edit, *, revision: str) -> Applied:
        """Change an item's settings as a suggestion says, or back again."""
        body = {"ref": asdict(edit.ref), "settings": dict(edit.settings)}
        path = f"/api/agents/{_part(agent)}/suggestions"
        return await self._send(Applied, "POST", path, body, _matching(revision))

    async def evaluate(self, agent: str, labels: Sequence[ContextTest] = ()) -> Evaluation:
        """Return how well an agent's selection does on labelled questions, or on past turns."""
        return await self._send(Evaluation, "POST", f"/api/agents/{_part(agent)}/evaluation", _labels(labels))

    async def tune(self, agent: str, labels: Sequence[ContextTest] = ()) -> tuple[Proposal, ...]:
        """Return search settings that would choose better."""
        return (await self._send(Tuning, "POST", f"/api/agents/{_part(agent)}/tuning", _labels(labels))).proposals

    async def _get(self, kind: type[T], path: str, params: Mapping[str, Any] | None = None) -> T:
        given = {name: value for name, value in (params or {}).items() if value is not None}
        return _read(kind, await self._request("GET", path, params=given))

    async def _send(
        self,
        kind: type[T],
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> T:
        content = None if body is None else json.dumps(body)
        told = {**(headers or {}), **({} if content is None else {"Content-Type": "application/json"})}
        return _read(kind, await self._request(method, path, content=content, headers=told, params=params))

    async def _request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        try:
            response = await self._http.request(method, path, **options)
        except httpx2.TransportError as error:
            raise UnreachableError(str(self._http.base_url), str(error) or type(error).__name__) from None
        if not response.is_success:
            raise _refused(response.status_code, response.content)
        return response

    @asynccontextmanager
    async def _events(
        self, path: str, body: Any, headers: Mapping[str, str]
    ) -> AsyncGenerator[AsyncGenerator[Recorded | Delta]]:
        told = {**headers, "Accept": "text/event-stream", "Content-Type": "application/json"}
        try:
            async with self._http.stream("POST", path, content=json.dumps(body), headers=told) as response:
                if not response.is_success:
                    raise _refused(response.status_code, await response.aread())
                yield _events_in(response)
        except httpx2.TransportError as error:
            raise UnreachableError(str(self._http.base_url), str(error) or type(error).__name__) from None


@dataclass(frozen=True, slots=True)
class _Explanations:
    items: tuple[Explanation, ...]


async def _events_in(response: httpx2.Response) -> AsyncGenerator[Recorded | Delta]:
    kind = ""
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data" and kind == "problem":
            raise _refused(0, value.encode())
        elif name == "data":
            yield _event(json.loads(value))


def _event(body: dict[str, Any]) -> Recorded | Delta:
    if body["type"] == "reply.delta":
        return Delta(body["turn"], body["text"], body["kind"])
    return unflat(body)


def _refused(status: int, content: bytes) -> RemoteError:
    try:
        problem = cast("dict[str, Any]", json.loads(content))
        return RemoteError(int(problem["status"]), str(problem["code"]), str(problem["detail"]))
    except (ValueError, KeyError, TypeError):
        return RemoteError(status, "unknown", f"the server answered {status} and gave no reason")


def _read(kind: type[T], response: httpx2.Response) -> T:
    adapter = _ADAPTERS.setdefault(kind, TypeAdapter(kind))
    return cast("T", adapter.validate_json(response.content))


def _session(session: str) -> str:
    return f"/api/sessions/{_part(SessionId(session))}"


def _part(name: str) -> str:
    return quote(name, safe="")


def _labels(labels: Sequence[ContextTest]) -> dict[str, Any]:
    return {
        "labels": [
            {
                "message": label.message,
                "must": [asdict(ref) for ref in label.must],
                "may": [asdict(ref) for ref in label.may or ()],
            }
            for label in labels
        ]
    }


def _keyed(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key} if key else {}


def _matching(revision: str) -> dict[str, str]:
    return {"If-Match": revision if revision == "*" else f'"{revision}"'}
