"""A pane over HTTP."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

import httpx2

from windowpane.api.explanation import Explanation
from windowpane.api.sessions import SessionView
from windowpane.api.turns import TurnView
from windowpane.client.agents import RemoteAgents, RemoteModels
from windowpane.client.analytics import RemoteAnalytics
from windowpane.client.connection import Connection, keyed, session_path
from windowpane.client.sessions import RemoteSessions
from windowpane.client.turns import RemoteTurns
from windowpane.context.events import Delta, Live, Recorded, ToolProgress, WatchEvent
from windowpane.context.items import ItemRef, Tool
from windowpane.context.messages import AnswerAction, Decision, NewFile, ToolResult, as_text
from windowpane.context.request import ReplyOptions, Request


class Client:
    """Windowpane on a server. Use it inside `async with`.

    What the server refuses is raised as the error that it was there, such as `SessionNotFoundError`, and is also a
    `RemoteError` with the HTTP `status`.
    """

    def __init__(
        self, url: str, *, token: str | None = None, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._server = Connection(url, token, transport)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    @property
    def sessions(self) -> RemoteSessions:
        """Sessions: begin, list, read, change, delete."""
        return RemoteSessions(self._server)

    @property
    def turns(self) -> RemoteTurns:
        """Past turns."""
        return RemoteTurns(self._server)

    @property
    def agents(self) -> RemoteAgents:
        """Agents and their files."""
        return RemoteAgents(self._server)

    @property
    def models(self) -> RemoteModels:
        """Models that turns can use."""
        return RemoteModels(self._server)

    @property
    def analytics(self) -> RemoteAnalytics:
        """Many turns together."""
        return RemoteAnalytics(self._server)

    async def turn(
        self,
        session_id: str,
        message: str,
        *,
        key: str | None = None,
        wait_s: float = 0,
        tools: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
        attachments: Sequence[NewFile] = (),
    ) -> AsyncGenerator[Live]:
        """Answer a message, yielding everything as it happens."""
        body: dict[str, Any] = {"content": message, "wait_s": wait_s, **_files(attachments)}
        if tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
                for tool in tools
            ]
        if reply_options is not None:
            body["reply_options"] = asdict(reply_options)
        async with aclosing(self._live(f"{session_path(session_id)}/messages", body, key)) as live:
            async for event in live:
                yield event

    async def ask(
        self,
        session_id: str,
        message: str,
        *,
        key: str | None = None,
        wait_s: float = 0,
        attachments: Sequence[NewFile] = (),
    ) -> TurnView:
        """Answer a message, and return the turn at its end or at the approval that it waits for."""
        body = {"content": message, "wait_s": wait_s, **_files(attachments)}
        path = f"{session_path(session_id)}/messages"
        return await self._server.send(TurnView, "POST", path, body, headers=keyed(key))

    async def retry(self, session_id: str, turn: int, *, key: str | None = None) -> AsyncGenerator[Live]:
        """Answer the message of the last turn again, in a new turn, when it failed or was stopped."""
        async with aclosing(self._live(f"{session_path(session_id)}/turns/{turn}/retry", None, key)) as live:
            async for event in live:
                yield event

    async def approve(self, session_id: str, decisions: Mapping[str, Decision]) -> AsyncGenerator[Live]:
        """Decide about waiting tool calls, by call id, and yield what the turn does then."""
        body = {"decisions": dict(decisions)}
        async with aclosing(self._live(f"{session_path(session_id)}/approvals", body)) as live:
            async for event in live:
                yield event

    async def answer_question(
        self, session_id: str, question_id: str, action: AnswerAction, content: Mapping[str, Any] | None = None
    ) -> SessionView:
        """Answer what a running tool asks (`question.asked`); the turn goes on."""
        body = {"question_id": question_id, "action": action, "content": None if content is None else dict(content)}
        return await self._server.send(SessionView, "POST", f"{session_path(session_id)}/answers", body)

    async def answer_calls(self, session_id: str, results: Sequence[ToolResult]) -> AsyncGenerator[Live]:
        """Give the results of tools that the caller runs itself, and yield what the turn does then."""
        body = {"results": [asdict(result) for result in results]}
        async with aclosing(self._live(f"{session_path(session_id)}/results", body)) as live:
            async for event in live:
                yield event

    async def cancel(self, session_id: str) -> SessionView:
        """Stop the turn that is running or waiting, wherever it runs."""
        return await self._server.send(SessionView, "POST", f"{session_path(session_id)}/cancel")

    async def preview(self, session_id: str, message: str, *, attachments: Sequence[NewFile] = ()) -> Request:
        """Return the request that a message would make, without storing anything or calling a model."""
        body = {"content": message, **_files(attachments)}
        return await self._server.send(Request, "POST", f"{session_path(session_id)}/preview", body)

    async def watch(self, session_id: str, *, after: int | None = None) -> AsyncGenerator[WatchEvent]:
        """Yield everything that happens to a session, until it is deleted."""
        path = f"{session_path(session_id)}/events"
        async with aclosing(self._server.events("GET", path, params={"after": after})) as events:
            async for event in events:
                yield event

    async def explain(self, session_id: str, turn: int, item: ItemRef | str) -> Explanation:
        """Return why an item was in a turn's request or not."""
        return await self.turns.explain(session_id, turn, item)

    async def _live(self, path: str, body: Any, key: str | None = None) -> AsyncGenerator[Live]:
        async with aclosing(self._server.events("POST", path, body, headers=keyed(key))) as events:
            async for event in events:
                if isinstance(event, Recorded | Delta | ToolProgress):
                    yield event


def _files(files: Sequence[NewFile]) -> dict[str, Any]:
    """Return the field that brings files along, if there are any."""
    sent = [{"name": file.name, "data": as_text(file.data)} for file in files]
    return {"attachments": sent} if sent else {}
