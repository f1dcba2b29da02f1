"""The engine: from a message to a recorded answer.

`turn()` is the whole product in one method: the message is stored, the request is built and stored, the model is
called, its tools run, and every event is yielded as it happens. Everything that a door offers is a method here, and
there is one way to do each thing.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self

import anyio
import anyio.abc

from windowpane.agents.base import Agents
from windowpane.bus.base import Bus
from windowpane.context.events import (
    CancelRequested,
    Event,
    Live,
    TurnStarted,
    WatchEvent,
)
from windowpane.context.ids import Actor, SessionId
from windowpane.context.items import Tool
from windowpane.context.messages import AnswerAction, Decision, NewFile, ToolResult
from windowpane.context.request import ReplyOptions, Request
from windowpane.context.session import SessionState, check_answerable, open_turn
from windowpane.errors import (
    KeyReusedError,
    LeaseLostError,
    SessionBusyError,
)
from windowpane.fetch.base import PageReader, SearchEngine
from windowpane.files.read import DEFAULT_LIMIT_BYTES, NO_FILES, ReadFiles, read_files
from windowpane.insight.use import used_among
from windowpane.live import SessionHubs
from windowpane.memory.memory import Memory
from windowpane.models.base import Models
from windowpane.request.build import RequestServices
from windowpane.request.catalog import Catalogs
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.request.resume import RESUME_AFTER_S
from windowpane.request.selector import NoSelector, PlacedSelector, Selector
from windowpane.request.settings import checked_changes, memory_window
from windowpane.search.base import Nearness
from windowpane.search.embedding.base import Embedder
from windowpane.search.embedding.placed import PlacedEmbedder, PlacedNearness
from windowpane.search.history import HistoryIndex
from windowpane.second_loop import SecondLoop
from windowpane.sessions.agent_items import AgentItems
from windowpane.sessions.calls.outside import OutsideCalls
from windowpane.sessions.calls.past import PastCalls
from windowpane.sessions.conversation import Conversations, check_message, check_tools
from windowpane.sessions.fetching import Fetching
from windowpane.sessions.items import SessionItems
from windowpane.sessions.lifecycle import SessionLifecycle
from windowpane.sessions.past_requests import PastRequests
from windowpane.sessions.references import SessionReferences
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.sessions.working import WorkingContext
from windowpane.stores.base import Store
from windowpane.stores.detect import refuse_sealed
from windowpane.stores.sessions import Sessions
from windowpane.supervise import supervised
from windowpane.text.tokens import load_vocabulary
from windowpane.tools.base import Toolbox
from windowpane.turn.admission import Admission
from windowpane.turn.begin import NO_SETTINGS
from windowpane.turn.costs import CostLimits, Costs
from windowpane.turn.lease import POLL_S, Leases
from windowpane.turn.patience import STORE_PATIENCE_S, StorePatience
from windowpane.turn.prepared import PreparedTurns
from windowpane.turn.requests import TurnRequests
from windowpane.turn.runner import Runner
from windowpane.turn.waiting import WaitingTurns, answer

LEASE_S = 15.0
"""How long a worker that died keeps its session busy."""
NO_CALLS: Mapping[str, Sequence[NewFile]] = MappingProxyType({})
SETTLE_S = 2.0
"""How long a turn waits for tool servers that are still connecting."""


class Engine:
    """Everything Windowpane does, behind whatever door."""

    _tasks: anyio.abc.TaskGroup

    def __init__(
        self,
        *,
        store: Store,
        agents: Agents,
        models: Models,
        toolbox: Callable[[], AbstractAsyncContextManager[Toolbox]],
        selector: Selector | None = None,
        lease_s: float = LEASE_S,
        settle_s: float = SETTLE_S,
        resume_after_s: float = RESUME_AFTER_S,
        pages: PageReader | None = None,
        search_engine: SearchEngine | None = None,
        history: HistoryIndex | None = None,
        nearness: Nearness | None = None,
        touch_every_s: float | None = None,
        store_patience_s: float = STORE_PATIENCE_S,
        cost_limits: CostLimits | None = None,
        embedder: Embedder | None = None,
        outside: OutsideCalls | None = None,
        warm: bool = False,
        max_turns: int = 0,
        max_turns_per_owner: int = 0,
        attachment_bytes: int = DEFAULT_LIMIT_BYTES,
        bus: Bus | None = None,
    ) -> None:
        self.store, self.attachment_bytes, self._warm, self._warmed = store, attachment_bytes, warm, set[str]()
        self.agents, self.models = agents, models
        self._selector, self._search_engine, self._second = selector or NoSelector(), search_engine, SecondLoop()
        # A selector of the caller's own may use what lives on the caller's loop.
        self._own_selector = not isinstance(self._selector, HybridSelector | NoSelector)
        self._select = PlacedSelector(self._selector, self._second.back if self._own_selector else self._second.run)
        self.nearness = PlacedNearness(nearness, self._second.run) if nearness is not None else None
        self.embedder = PlacedEmbedder(embedder, self._second.run) if embedder is not None else None
        self._states, self._toolboxes = Sessions(store, touch_every_s=touch_every_s), Toolboxes(toolbox)
        self._leases, self.costs = Leases(store, lease_s), Costs(store, models, cost_limits or CostLimits())
        self.outside = (outside or OutsideCalls()).in_store(self._states, self.costs.count_ended, self._second)
        self.working, self.fetched = WorkingContext(self._states), Fetching(self._states, pages, self._leases)
        self._memory = Memory(
            self._states, self.costs.open, history, partial(memory_window, models), models.window_tokens, self._second
        )
        self._own_bus, self.bus, self.admission = bus, bus or store.bus, Admission(max_turns, max_turns_per_owner)
        self._audience = SessionHubs(store, bus=self.bus)
        self._requests = self._turn_requests(search_engine, settle_s, resume_after_s)
        self._runner = self._turn_runner(store_patience_s)
        self.sessions = SessionLifecycle(
            self._states, agents, self._toolboxes, self._memory, self._runner, self._warm_agent, models.check_name
        )
        self.conversations = Conversations(self._states, agents, self._memory, self._leases)
        self.references = SessionReferences(self._states, agents, self._leases, limit_bytes=attachment_bytes)
        self.agent_items = AgentItems(self._states, agents, self._toolboxes, self._select, self._memory, self.outside)
        self.items, self.past = SessionItems(self._states, agents, self._toolboxes), PastRequests(self._states)
        self.calls = PastCalls(self._states, self.past)
        self.prepared, self._waiting = self._prepared_turns(), self._waiting_turns()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            if self._own_bus is not None:
                await opening.enter_async_context(self._own_bus)
            await opening.enter_async_context(self.store)
            await refuse_sealed(self.store)
            self._stack = opening.pop_all()
        self._stack.callback(self.agents.close)
        self._stack.push_async_callback(self.models.aclose)
        if self._search_engine is not None:
            self._stack.push_async_callback(self._search_engine.aclose)
        residents = [self._memory] if self._own_selector else [self._selector, self._memory]
        if self._own_selector:
            await self._stack.enter_async_context(self._selector)
        await self._stack.enter_async_context(self._second.holding(*residents))
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._toolboxes.open_in(self._tasks)
        self._requests.open()
        self._runner.open_in(self._tasks)
        self._audience.open_in(self._tasks)
        if self._warm:
            self._tasks.start_soon(supervised, "search.warm", self.agent_items.warm)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.end_watching()
        self._runner.close()
        self._tasks.cancel_scope.cancel()
        await self._stack.__aexit__(None, None, None)

    async def turn(
        self,
        session_id: SessionId,
        message: str,
        *,
        key: str | None = None,
        wait_s: float = 0,
        brought: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
        files: Sequence[NewFile] | ReadFiles = (),
        settings: Mapping[str, Any] = NO_SETTINGS,
    ) -> AsyncGenerator[Live]:
        """Answer a message, yielding everything as it happens.

        The turn runs on when the caller goes away; its answer is in the session. With `key`, sending the same
        message again joins the first turn instead of starting another. `brought` are tools of the server `client`,
        which the caller runs itself; `reply_options` what the answer must be; `files` come with the message, which may
        then have no words; `settings` are stored with it. The stream ends when the turn is finished, or when it waits
        for an approval or for the results of such tools (`answer_calls`).

        Raises:
            SessionNotFoundError: no such session.
            InvalidInputError: the message is empty, too long, or not valid Unicode, or a file cannot be taken.
            InvalidSettingError: a setting cannot be used.
            SessionBusyError: another turn is running and did not end within `wait_s`.
            ApprovalPendingError: the turn before waits for a decision.
            KeyReusedError: `key` was used for another message.
            RecordedSessionError: the session was recorded from another program.
            CostLimitError: the owner's model calls have cost as much as they may.
            WorkerFullError: this worker runs as many turns as it may. Nothing was stored.
            TooManyTurnsError: the owner has as many turns running in it as one may. Nothing was stored.
        """
        read = await self.read_files(files)
        check_message(message, with_files=bool(read.attachments))
        check_tools(len(brought))
        settings = checked_changes(settings)
        await load_vocabulary()
        turn: int | None = None
        while turn is None:
            # A worker that was taken over before it could store the message begins again.
            with suppress(LeaseLostError):
                turn = await self._begun(session_id, message, read, key, wait_s, brought, reply_options, settings)
        async for event in self._runner.follow(session_id, turn):
            yield event

    async def approve(
        self, session_id: SessionId, decisions: Mapping[str, Decision], *, actor: Actor = "user"
    ) -> AsyncGenerator[Live]:
        """Decide about waiting tool calls, by call id, and yield what the turn does then.

        Raises:
            SessionNotFoundError: no such session.
            NothingToApproveError: no call waits, or one of the ids is not a waiting call's.
            SessionBusyError: another caller is deciding at this moment.
            LeaseLostError: another caller decided meanwhile. Nothing was written.
            TooManyTurnsError: the owner has as many turns running in this worker as it may. Nothing was written.
        """
        turn = await self._waiting.decide(session_id, decisions, actor)
        async for event in self._runner.follow(session_id, turn):
            yield event

    async def answer_question(
        self,
        session_id: SessionId,
        question_id: str,
        action: AnswerAction,
        content: Mapping[str, Any] | None = None,
    ) -> SessionState:
        """Answer what a running tool asks. The turn goes on in the worker that runs it.

        Raises:
            NoQuestionError: it is not asked, or not any more.
            InvalidInputError: a form that is accepted is not filled in as it must be. The question stays.
        """
        changed = await self._states.change(session_id, lambda state: [answer(state, question_id, action, content)])
        return changed.state

    async def answer_calls(
        self,
        session_id: SessionId,
        results: Sequence[ToolResult],
        *,
        brought: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
        files: Mapping[str, Sequence[NewFile] | ReadFiles] = NO_CALLS,
        settings: Mapping[str, Any] = NO_SETTINGS,
    ) -> AsyncGenerator[Live]:
        """Give the results of tools that the caller brought along, and yield what the turn does then.

        A result that does not fit the window is cut. Calls without a result keep waiting. A turn that has a request
        goes on with it; `brought` and `reply_options` are for one that began elsewhere and gets its first one now,
        except that the next model call must call what `reply_options` say in any case.
        `files` came with the results, by call id; `settings` are for the turns after.

        Raises:
            SessionNotFoundError: no such session.
            NoResultAwaitedError: no call waits for one, or one of the ids is not a waiting call's.
            SessionBusyError: another caller is changing it at this moment.
            CostLimitError: the turn has no request yet, and the owner's model calls have cost as much as they may.
            TooManyTurnsError: the owner has as many turns running in this worker as it may. Nothing was stored.
        """
        check_tools(len(brought))
        settings = checked_changes(settings)
        read = {call: await self.read_files(sent) for call, sent in files.items()}
        blobs = {name: text for each in read.values() for name, text in each.blobs.items()}
        # A caller sends files, and cannot name those that the session keeps.
        results = [replace(r, attachments=read.get(r.call_id, NO_FILES).attachments, links=()) for r in results]
        turn = await self._waiting.give_results(
            session_id, results, blobs, settings, brought=brought, reply_options=reply_options
        )
        async for event in self._runner.follow(session_id, turn):
            yield event

    async def follow(self, session_id: SessionId, turn: int) -> AsyncGenerator[Live]:
        """Yield a turn's events from its beginning until it ends or waits, wherever it runs."""
        async with aclosing(self._runner.follow(session_id, turn)) as events:
            async for event in events:
                yield event

    async def cancel(self, session_id: SessionId) -> SessionState:
        """Stop the turn that is running or waiting, wherever it runs. What it said so far is kept.

        Raises:
            SessionNotFoundError: no such session.
            NoTurnRunningError: there is nothing to stop.
        """

        def ask(state: SessionState) -> list[Event]:
            return [CancelRequested(turn=open_turn(state).turn)]

        changed = await self._states.change(session_id, ask)
        await self._runner.cancel(session_id, open_turn(changed.state).turn)
        return await self.sessions.get(session_id)

    async def preview(self, session_id: SessionId, message: str, files: Sequence[NewFile] | ReadFiles = ()) -> Request:
        """Return the request that a message would make. No model is called, but an embedding endpoint may be."""
        read = await self.read_files(files)
        check_message(message, with_files=bool(read.attachments))
        await load_vocabulary()
        state = await self._states.state(session_id)
        return await self._requests.preview(state, await self.agents.look(state.agent), message, read)

    async def read_files(self, files: Sequence[NewFile] | ReadFiles) -> ReadFiles:
        """Return files as sessions keep them. Those that were read already are returned as they are.

        Raises:
            InvalidInputError: they are too many or too large, or one is nothing that can be attached.
        """
        return files if isinstance(files, ReadFiles) else await read_files(files, limit_bytes=self.attachment_bytes)

    async def watch(self, session_id: SessionId, *, after: int | None = None) -> AsyncGenerator[WatchEvent]:
        """Yield everything that happens to a session, from every caller, until it is deleted.

        First comes the log after a sequence number, then the working context as it stands, also when it is empty, then
        what happens. Without `after` only what happens from now on.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._states.state(session_id)
        self._runner.attend(state)
        watch = self._audience.watch(session_id, state.seq, state.sets, after, turn=state.open_turn)
        async with aclosing(watch) as events:
            async for event in events:
                yield event

    async def warm_agents(self) -> None:
        """Start the tool servers of the agents that are most likely used next, if this process warms.

        A turn would wait for them otherwise. Their tools are indexed once they are there.
        """
        if self._warm:
            for name in await self.sessions.likely_agents():
                self._warm_agent(name)

    async def finish_turns(self, *, within_s: float) -> None:
        """Let the turns of this process come to their end, and stop those that take longer: it is about to stop.

        What such a turn said so far is kept, it is recorded as interrupted, and any other process can go on with its
        session at once.
        """
        await self._runner.finish(within_s)

    def end_watching(self) -> None:
        """End every `watch()`, and every one that begins from now on: the process is about to stop."""
        self._audience.close()

    @property
    def ends_watching(self) -> bool:
        """Tell whether watching has ended: the process is about to stop."""
        return self._audience.closed

    @property
    def indexing(self) -> tuple[int, int] | None:
        """Return how many passages are embedded, and out of how many; None while nothing was searched."""
        return self._selector.progress if isinstance(self._selector, HybridSelector) else None

    def _turn_runner(self, store_patience_s: float) -> Runner:
        return Runner(
            sessions=self._states,
            agents=self.agents,
            open_model=self.costs.opened,
            toolboxes=self._toolboxes,
            requests=self._requests,
            working=self.working,
            memory=self._memory,
            audience=self._audience,
            leases=self._leases,
            running=self.admission.running,
            patience=StorePatience(store_patience_s),
            find_used=used_among,
        )

    def _prepared_turns(self) -> PreparedTurns:
        return PreparedTurns(
            sessions=self._states,
            agents=self.agents,
            toolboxes=self._toolboxes,
            requests=self._requests,
            working=self.working,
            leases=self._leases,
            runner=self._runner,
        )

    def _waiting_turns(self) -> WaitingTurns:
        return WaitingTurns(self._states, self._leases, self._requests, self.costs, self._runner, self.admission)

    def _warm_agent(self, name: str) -> None:
        """Have an agent's tool servers started and its search loaded in the background, once, if this process warms."""
        if self._warm and name not in self._warmed:
            self._warmed.add(name)
            self._tasks.start_soon(supervised, "search.warm", partial(self.agent_items.warm_agent, name))

    def _turn_requests(
        self, search_engine: SearchEngine | None, settle_s: float, resume_after_s: float
    ) -> TurnRequests:
        find, memory = self._select, self._memory
        services = RequestServices(
            models=self.models, selector=find, memory=memory, catalogs=Catalogs(), search_engine=search_engine
        )
        times = {"settle_s": settle_s, "resume_after_s": resume_after_s}
        return TurnRequests(self._states, services, self._toolboxes, self.costs.count_ended, self._second, **times)

    async def _begun(
        self,
        session_id: SessionId,
        message: str,
        files: ReadFiles,
        key: str | None,
        wait_s: float,
        brought: Sequence[Tool],
        reply_options: ReplyOptions | None,
        settings: Mapping[str, Any],
    ) -> int:
        """Join the turn that was started with this key before, or begin one and let it run; return its number."""
        asked_at = anyio.current_time()
        # At first this worker's own state is trusted and the lease is taken with the message. What stands in the way of
        # that is looked at with the session as it is now.
        kept = self._states.kept(session_id)
        at_once = kept is not None and kept.open_turn is None and not (key and kept.turn_keys.of(key))
        while True:
            state = kept if kept is not None and at_once else await self._states.state(session_id)
            check_answerable(state)
            if (joined := await self._joined(state, message, files, key)) is not None:
                return joined
            await self.costs.check(state.owner)
            with self.admission.beginning(state.owner):
                try:
                    wait = 0 if key else wait_s
                    lease = None if at_once else await self._leases.take(session_id, wait_s=wait)
                    begun = await self._runner.begin(state, lease, message, key, files, settings)
                except SessionBusyError:
                    if at_once:
                        at_once = False
                        continue
                    # One who has the session and no turn yet may be about to store this very message: it is joined.
                    patience_s = wait_s if state.open_turn else max(wait_s, self._leases.lease_s)
                    if not key or anyio.current_time() >= asked_at + patience_s:
                        raise
                    await anyio.sleep(POLL_S)
                    continue
                at_once = False
                if begun.recorded:
                    return self._runner.launch(
                        begun.state,
                        begun.lease,
                        begun.recorded,
                        agent=begun.agent,
                        brought=brought,
                        reply_options=reply_options,
                    )

    async def _joined(self, state: SessionState, message: str, files: ReadFiles, key: str | None) -> int | None:
        """Return the turn that was started with this key before, or None."""
        turn = state.turn_keys.of(key) if key else None
        if turn is None:
            return None
        if state.turn_starts.of(turn) is None:
            raise KeyReusedError(key or "", "a message that was erased since")
        started = (await self.past.events(state.id, turn))[0].event
        if not isinstance(started, TurnStarted) or (started.message, started.attachments) != (
            message,
            files.attachments,
        ):
            raise KeyReusedError(key or "")
        return turn
