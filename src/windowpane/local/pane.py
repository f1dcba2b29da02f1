"""A pane in this process: the engine for one owner.

Doors make one for each caller: it checks that a session is the caller's, and has everything that they parse requests
for and render answers of. `windowpane.open()` gives one to a program.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio.to_thread

from windowpane.api.explanation import Explanation
from windowpane.api.models import ProviderView
from windowpane.api.sessions import SessionView
from windowpane.api.turns import TurnView
from windowpane.context.events import ApprovalDecided, Live, QuestionAsked, Recorded, TurnStarted, WatchEvent
from windowpane.context.ids import SessionId
from windowpane.context.items import CLIENT_SERVER, ItemRef, Tool
from windowpane.context.messages import AnswerAction, Decision, NewFile, Step, ToolResult, UserMessage
from windowpane.context.request import ReplyOptions, Request
from windowpane.engine import Engine
from windowpane.errors import ConflictError
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.insight.finding.finder import SessionFinder
from windowpane.local.agents import LocalAgents
from windowpane.local.analytics import LocalAnalytics
from windowpane.local.bound import LOCAL_OWNER, Bound
from windowpane.local.sessions import LocalSessions
from windowpane.local.turns import LocalTurns
from windowpane.local.views import session_view
from windowpane.sessions.attachments import read_attachment
from windowpane.tools.base import ToolOutput
from windowpane.turn.prepared import Prepared


class LocalModels:
    """Models that turns can use."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self) -> tuple[str, ...]:
        """Return the names of models that are known to work here."""
        return await anyio.to_thread.run_sync(self._engine.models.known)

    async def providers(self) -> tuple[ProviderView, ...]:
        """Return every provider, with what is missing before it can be used."""
        return await anyio.to_thread.run_sync(self._engine.models.providers)

    async def keep_key(self, provider: str, key: str) -> None:
        """Keep a key for a provider."""
        await anyio.to_thread.run_sync(self._engine.models.keep_key, provider, key)

    async def remove_key(self, provider: str) -> None:
        """Forget the key that was given for a provider."""
        await anyio.to_thread.run_sync(self._engine.models.remove_key, provider)

    async def check(self, model: str) -> None:
        """Make sure that a model can be used."""
        await anyio.to_thread.run_sync(self._engine.models.open, model)


class LocalPane:
    """Windowpane for one owner, in this process.

    An owner of None sees the sessions of every owner. `updater` counts turns; without it they are counted in memory.
    With `start_s`, the first message of a session waits so long for tool servers and the search to start, so that the
    first request of a process lacks nothing.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        owner: str | None = LOCAL_OWNER,
        updater: AnalyticsUpdater | None = None,
        finder: SessionFinder | None = None,
        start_s: float = 0,
    ) -> None:
        self.engine = engine
        counted = updater or AnalyticsUpdater(engine.store, AnalyticsStore(), engine.nearness)
        self._bound = Bound(engine, owner, counted, finder or SessionFinder(engine.store))
        self._start_s = start_s
        self._started: set[SessionId] = set()

    @property
    def sessions(self) -> LocalSessions:
        """Sessions: begin, list, read, change, delete."""
        return LocalSessions(self._bound)

    @property
    def turns(self) -> LocalTurns:
        """Past turns."""
        return LocalTurns(self._bound)

    @property
    def agents(self) -> LocalAgents:
        """Agents and their files."""
        return LocalAgents(self._bound)

    @property
    def models(self) -> LocalModels:
        """Models that turns can use."""
        return LocalModels(self.engine)

    @property
    def analytics(self) -> LocalAnalytics:
        """Many turns together."""
        return LocalAnalytics(self._bound)

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
        own = await self._bound.own(session_id)
        await self._get_ready(own, message)
        # The caller runs them, so the caller decides about each call.
        brought = [replace(tool, server=CLIENT_SERVER, include="manual", permission="not_required") for tool in tools]
        live = self.engine.turn(
            own, message, key=key, wait_s=wait_s, brought=brought, reply_options=reply_options, files=attachments
        )
        async with aclosing(live):
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
        live = self.turn(session_id, message, key=key, wait_s=wait_s, attachments=attachments)
        return await self.drained(session_id, live)

    async def retry(self, session_id: str, turn: int, *, key: str | None = None) -> AsyncGenerator[Live]:
        """Answer the message of the last turn again, in a new turn, when it failed or was stopped."""
        own = await self._bound.own(session_id)
        view = await self.turns.view(own, turn)
        state = await self.engine.sessions.get(own)
        started = next((message for message in view.messages if isinstance(message, UserMessage)), None)
        if turn != state.last_turn or view.outcome in ("completed", "running", "waiting") or started is None:
            raise ConflictError(f"turn {turn} cannot be sent again: only the last one can, if it failed or was stopped")
        files = [
            NewFile(each.name, (await read_attachment(self.engine.store, own, each.blob))[1])
            for each in started.attachments
        ]
        async with aclosing(self.engine.turn(own, started.content, key=key, files=files)) as live:
            async for event in live:
                yield event

    async def approve(self, session_id: str, decisions: Mapping[str, Decision]) -> AsyncGenerator[Live]:
        """Decide about waiting tool calls, by call id, and yield what the turn does then."""
        async with aclosing(self.engine.approve(await self._bound.own(session_id), decisions)) as live:
            async for event in live:
                yield event

    async def answer_question(
        self, session_id: str, question_id: str, action: AnswerAction, content: Mapping[str, Any] | None = None
    ) -> SessionView:
        """Answer what a running tool asks (`question.asked`); the turn goes on."""
        own = await self._bound.own(session_id)
        return session_view(await self.engine.answer_question(own, question_id, action, content))

    async def answer_calls(self, session_id: str, results: Sequence[ToolResult]) -> AsyncGenerator[Live]:
        """Give the results of tools that the caller runs itself, and yield what the turn does then."""
        async with aclosing(self.engine.answer_calls(await self._bound.own(session_id), results)) as live:
            async for event in live:
                yield event

    async def cancel(self, session_id: str) -> SessionView:
        """Stop the turn that is running or waiting, wherever it runs."""
        return session_view(await self.engine.cancel(await self._bound.own(session_id)))

    async def preview(self, session_id: str, message: str, *, attachments: Sequence[NewFile] = ()) -> Request:
        """Return the request that a message would make, without storing anything or calling a model."""
        own = await self._bound.own(session_id)
        await self._get_ready(own, message)
        return await self.engine.preview(own, message, attachments)

    async def watch(self, session_id: str, *, after: int | None = None) -> AsyncGenerator[WatchEvent]:
        """Yield everything that happens to a session, until it is deleted."""
        async with aclosing(self.engine.watch(await self._bound.own(session_id), after=after)) as events:
            async for event in events:
                yield event

    async def explain(self, session_id: str, turn: int, item: ItemRef | str) -> Explanation:
        """Return why an item was in a turn's request or not."""
        return await self.turns.explain(session_id, turn, item)

    @property
    def ends_watching(self) -> bool:
        """Tell whether every `watch()` ends now: the process is about to stop."""
        return self.engine.ends_watching

    @property
    def indexing(self) -> tuple[int, int] | None:
        """Return how many passages are embedded, and out of how many; None before the first search."""
        return self.engine.indexing

    async def own(self, session_id: str) -> SessionId:
        """Return a session's id, if it is the owner's.

        Raises:
            SessionNotFoundError: there is no such session, or it is another owner's; the error does not tell which.
        """
        return await self._bound.own(session_id)

    async def prepare(
        self,
        session_id: str,
        message: str,
        *,
        key: str | None = None,
        wait_s: float = 0,
        attachments: Sequence[NewFile] = (),
    ) -> Prepared:
        """Store a message and build its request, for a model call of your own. Then call `record()` or `abandon()`."""
        own = await self._bound.own(session_id)
        await self._get_ready(own, message)
        files = await self.engine.read_files(attachments)
        return await self.engine.prepared.begin(own, message, files, key=key, wait_s=wait_s)

    async def record(self, prepared: Prepared, reply: str | Sequence[Step]) -> SessionView:
        """Store what your model answered to a prepared request: a text, or every step with its tool calls."""
        return session_view(await self.engine.prepared.record(prepared, reply))

    async def abandon(self, prepared: Prepared, why: str) -> SessionView:
        """Store that your model call failed. The message and the request stay, with an error message."""
        return session_view(await self.engine.prepared.abandon(prepared, why))

    async def call_tool(self, session_id: str, tool: ItemRef, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool of a prepared request for your model. One that needs approval is denied."""
        return await self.engine.prepared.call_tool(await self._bound.own(session_id), tool, arguments)

    async def drained(self, session_id: str, live: AsyncGenerator[Live]) -> TurnView:
        """Return the turn that a stream is about when nothing more happens in it for now."""
        turn = 0
        recorded: list[Recorded] = []
        async with aclosing(live):
            async for event in live:
                if not isinstance(event, Recorded):
                    continue
                # The first events may still close the turn before, which its worker left behind.
                if not turn and isinstance(event.event, TurnStarted | ApprovalDecided):
                    turn = event.event.turn
                if recorded or isinstance(event.event, TurnStarted):
                    recorded.append(event)
                if isinstance(event.event, QuestionAsked) and await self._asks(session_id):
                    break
        own = await self._bound.own(session_id)
        turn = turn or (await self.engine.sessions.get(own)).last_turn
        view = await self.turns.view(own, turn, recorded)
        while view.outcome == "running":
            # It waited, and another caller has let it go on since.
            async with aclosing(self.engine.follow(own, turn)) as more:
                async for _ in more:
                    pass
            view = await self.turns.view(own, turn)
        return view

    async def _asks(self, session_id: str) -> bool:
        """Tell whether a running tool waits for an answer."""
        turn = (await self.engine.sessions.get(await self._bound.own(session_id))).open_turn
        return turn is not None and bool(turn.questions)

    async def _get_ready(self, session_id: SessionId, message: str) -> None:
        if self._start_s and session_id not in self._started:
            self._started.add(session_id)
            await self.engine.agent_items.get_ready(session_id, message, within_s=self._start_s)
