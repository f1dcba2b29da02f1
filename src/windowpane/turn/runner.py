"""Carry turns: begin them, run them in the background, stop them, and let anybody watch.

One worker carries a session's turn at a time; it holds the session's lease and renews it while it works. A listener
that goes away changes nothing. A turn whose worker died is closed as interrupted by whoever comes next.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Literal

import anyio
import anyio.abc
import structlog

from windowpane import telemetry
from windowpane.agents.base import Agent, Agents
from windowpane.context.events import (
    CancelRequested,
    Delta,
    Event,
    Live,
    ModelReplied,
    Recorded,
    RequestBuilt,
    SessionContext,
    TurnError,
    TurnFinished,
    TurnStarted,
)
from windowpane.context.ids import BlobHash, SessionId, new_holder_id
from windowpane.context.items import ItemRef, Tool
from windowpane.context.messages import Outcome, Step
from windowpane.context.request import ReplyOptions, Request
from windowpane.context.session import OpenTurn, SessionState
from windowpane.errors import (
    ApprovalPendingError,
    ModelError,
    NoTurnRunningError,
    SearchEngineError,
    SessionBusyError,
    SessionNotFoundError,
    StoreUnavailableError,
    WindowpaneError,
)
from windowpane.live import Audience, Feed
from windowpane.memory.memory import Memory
from windowpane.models.base import Models
from windowpane.request.build import arrivals, build, mentioned
from windowpane.request.catalog import Catalogs
from windowpane.request.gather import item_of
from windowpane.request.record import rebuild, record, texts_of
from windowpane.request.resume import is_taken_up_again
from windowpane.request.selector import Selector
from windowpane.request.settings import call_settings, max_model_calls, tool_permission
from windowpane.sessions.fetching import Fetching
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.sessions.working import WorkingContext
from windowpane.stores.sessions import Changed, Sessions
from windowpane.text.tokens import count
from windowpane.tools.base import Toolbox
from windowpane.tools.context_tools import WithContextTools
from windowpane.tools.permissions import Verdict, decide
from windowpane.turn.run import Turn, run
from windowpane.turn.sources import sources_of

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that was begun, or, with nothing recorded, one that the same key had begun before."""

    turn: int
    recorded: tuple[Recorded, ...] = ()


@dataclass(slots=True)
class _Running:
    turn: int
    brought: Sequence[Tool] = ()
    reply_options: ReplyOptions | None = None
    feed: Feed = field(default_factory=Feed)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    cancelled_by_user: bool = False
    agent: str = ""
    model: str = ""
    outcome: Outcome | Literal["waiting"] = "waiting"
    error: str = ""


class Carrier:
    """The turns that this worker carries."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        agents: Agents,
        models: Models,
        toolboxes: Toolboxes,
        selector: Selector,
        working: WorkingContext,
        fetching: Fetching,
        memory: Memory,
        audience: Audience,
        lease_s: float,
        settle_s: float,
        resume_after_s: float,
    ) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._agents = agents
        self._models = models
        self._toolboxes = toolboxes
        self._selector = selector
        self._working = working
        self._fetching = fetching
        self._memory = memory
        self._audience = audience
        self._catalogs = Catalogs()
        self._lease_s = lease_s
        self._settle_s = settle_s
        self._resume_after_s = resume_after_s
        self._started_at = datetime.now(UTC)
        self._running: dict[SessionId, _Running] = {}
        self._attended: set[SessionId] = set()
        self._tasks: anyio.abc.TaskGroup

    def open_in(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run turns in this task group."""
        self._tasks = tasks
        self._started_at = datetime.now(UTC)

    def close(self) -> None:
        """Stop every turn; each is recorded as interrupted."""
        for running in self._running.values():
            running.scope.cancel()

    async def finish(self, within_s: float) -> None:
        """Let turns come to their end, and stop those that take longer; each of these is recorded as interrupted."""
        with anyio.move_on_after(within_s):
            while self._running:
                async for _ in next(iter(self._running.values())).feed.listen():
                    pass
        self.close()

    async def lease(self, session_id: SessionId, *, wait_s: float = 0, ttl_s: float | None = None) -> str:
        """Take the session for this worker and return the holder's name.

        Raises:
            SessionBusyError: somebody else has it and did not give it back within `wait_s`.
        """
        holder = new_holder_id()
        deadline = anyio.current_time() + wait_s
        while not await self._store.acquire(session_id, holder, ttl_s or self._lease_s):
            if anyio.current_time() >= deadline:
                raise SessionBusyError(session_id)
            await anyio.sleep(0.05)
        return holder

    async def release(self, session_id: SessionId, holder: str) -> None:
        """Give the session back, also while being cancelled."""
        with anyio.CancelScope(shield=True):
            await self._store.release(session_id, holder)

    async def begin(self, session_id: SessionId, holder: str, message: str, key: str | None) -> Begun:
        """Store the user's message; the lease is given back if that fails or is not needed.

        Raises:
            ApprovalPendingError: the turn before waits for a decision.
        """
        try:
            agent = self._agents.current((await self._sessions.state(session_id)).agent)

            def begin(state: SessionState) -> list[Event]:
                if key and key in dict(state.turn_keys):
                    return []
                resumed = self.resumes(state)
                number, tokens = state.turn_count + 1, count(message)
                started = TurnStarted(turn=number, message=message, key=key, tokens=tokens, resumed=resumed)
                shown = [SessionContext(reason="resume", context=state.sets, actor="system")] if resumed else []
                return [*_leftover(state), started, *shown, *mentioned(agent, state, message)]

            changed = await self._sessions.change(session_id, begin)
        except BaseException:
            await self.release(session_id, holder)
            raise
        if changed.recorded:
            return Begun(changed.state.turn_count, changed.recorded)
        await self.release(session_id, holder)
        return Begun(dict(changed.state.turn_keys)[key or ""])

    def resumes(self, state: SessionState) -> bool:
        """Tell whether a message that comes now takes the session up again."""
        return is_taken_up_again(
            state, now=datetime.now(UTC), started_at=self._started_at, resume_after_s=self._resume_after_s
        )

    def launch(
        self,
        session_id: SessionId,
        turn: int,
        holder: str,
        recorded: Iterable[Recorded],
        brought: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
    ) -> None:
        """Run a turn in the background from wherever it stands.

        `brought` are tools that the client runs itself, `reply_options` what it asks of the answer.
        """
        running = _Running(turn, brought, reply_options)
        self._running[session_id] = running
        _publish(running, recorded)
        self._tasks.start_soon(self._audience.relay, session_id, running.feed.listen())
        self._tasks.start_soon(self._take_on, session_id, holder, running)

    async def follow(self, session_id: SessionId, turn: int) -> AsyncGenerator[Live]:
        """Yield a turn's events from its beginning until it ends or waits, wherever it runs."""
        running = self._running.get(session_id)
        if running is not None and running.turn == turn:
            async for event in running.feed.listen():
                yield event
            return
        seen = ((await self._sessions.state(session_id)).turn_starts.of(turn) or 1) - 1
        while True:
            for entry in await self._store.read(session_id, after=seen):
                seen = entry.seq
                yield entry
                if isinstance(entry.event, TurnFinished) and entry.event.turn == turn:
                    return
            state = await self._sessions.state(session_id)
            if state.open_turn is None or state.open_turn.turn != turn or state.open_turn.waits:
                return
            if not await self._news(session_id, seen):
                await self._close_abandoned(session_id, turn)

    def attend(self, state: SessionState) -> None:
        """See to it that an open turn that somebody watches is closed when its worker is gone."""
        turn = state.open_turn
        if turn is None or turn.waits or state.id in self._running or state.id in self._attended:
            return
        self._attended.add(state.id)
        self._tasks.start_soon(self._attend, state.id, turn.turn)

    async def _attend(self, session_id: SessionId, turn: int) -> None:
        # A session that is deleted meanwhile has no turn to close; a store that fails is somebody else's to report.
        with suppress(SessionNotFoundError, StoreUnavailableError):
            async with aclosing(self.follow(session_id, turn)) as events:
                async for _ in events:
                    pass
        self._attended.discard(session_id)

    async def _news(self, session_id: SessionId, after: int) -> bool:
        """Wait for something new in the log, but not longer than a lease lasts; tell whether there is."""
        with anyio.move_on_after(self._lease_s):
            async with aclosing(self._store.subscribe(session_id, after=after)) as entries:
                async for _ in entries:
                    return True
        return False

    async def _close_abandoned(self, session_id: SessionId, turn: int) -> None:
        """Close a turn if its worker is gone."""
        holder = new_holder_id()
        if await self._store.acquire(session_id, holder, self._lease_s):
            await self.change_open(session_id, turn, [_interrupted(turn)])
            await self.release(session_id, holder)

    async def cancel(self, session_id: SessionId, turn: int) -> None:
        """Stop a turn that was asked to stop: here, or, when nobody carries it, by closing it."""
        running = self._running.get(session_id)
        if running is not None and running.turn == turn:
            running.cancelled_by_user = True
            running.scope.cancel()
            async for _ in running.feed.listen():
                pass
            return
        holder = new_holder_id()
        if await self._store.acquire(session_id, holder, self._lease_s):
            await self.change_open(session_id, turn, [TurnFinished(turn=turn, outcome="cancelled")])
            await self.release(session_id, holder)

    def drop(self, session_id: SessionId) -> None:
        """Stop carrying a session that is about to be deleted."""
        if running := self._running.get(session_id):
            running.scope.cancel()

    async def request(
        self, session_id: SessionId, turn: int, brought: Sequence[Tool] = (), reply_options: ReplyOptions | None = None
    ) -> tuple[Request, tuple[Recorded, ...]]:
        """Return the open turn's request: the one it began with, or a new one, stored before it is used."""
        state = await self._sessions.state(session_id)
        if state.open_turn is not None and state.open_turn.request is not None:
            body = await self._store.blob(session_id, state.open_turn.request)
            return rebuild(body, await self._store.blobs(session_id, texts_of(body))), ()
        agent = self._agents.current(state.agent)
        toolbox = await self._toolboxes.of(agent)
        await toolbox.settled(self._settle_s)
        servers = toolbox.servers()
        arrived = await self._sessions.change(session_id, lambda now: arrivals(now, servers))
        found, notes = await self._research(session_id, agent, arrived.state)
        catalog = self._catalogs.of(agent, servers)
        built = await build(
            models=self._models,
            selector=self._selector,
            memory=self._memory,
            agent=agent,
            servers=servers,
            session=found.state,
            turn=turn,
            message=open_turn(found.state).message,
            notes=notes,
            brought=brought,
            reply_options=reply_options,
            catalog=catalog.name,
        )
        name, blobs = record(built.request, built.items)
        if found.state.catalog != catalog.name:
            blobs |= catalog.blobs
        stored = await self.change_open(
            session_id, turn, [RequestBuilt(turn=turn, request=name, catalog=catalog.name)], blobs
        )
        return built.request, arrived.recorded + found.recorded + stored.recorded

    async def _research(
        self, session_id: SessionId, agent: Agent, state: SessionState
    ) -> tuple[Changed, tuple[str, ...]]:
        """Search the web for the message of a research turn; return what was found, and a note when that failed."""
        if call_settings(agent, state).mode != "research":
            return Changed(state), ()
        try:
            results = await self._fetching.search(open_turn(state).message)
        except SearchEngineError as error:
            return Changed(state), (f"research without the web: {error}",)
        return await self._fetching.add(session_id, results, actor="system"), ()

    async def change_open(
        self, session_id: SessionId, turn: int, events: Sequence[Event], blobs: Mapping[BlobHash, str] | None = None
    ) -> Changed:
        """Append events of a turn, unless the turn is no longer the open one."""

        def still_open(state: SessionState) -> Sequence[Event]:
            return events if state.open_turn is not None and state.open_turn.turn == turn else ()

        return await self._sessions.change(session_id, still_open, blobs=blobs)

    async def _take_on(self, session_id: SessionId, holder: str, running: _Running) -> None:
        """Run a turn to its end, measure it, and sum the conversation up afterwards."""
        with telemetry.turn(session_id, running.turn) as measured:
            try:
                await self._carry(session_id, holder, running)
            finally:
                telemetry.describe_turn(
                    measured, agent=running.agent, model=running.model, outcome=running.outcome, error=running.error
                )
        await self._sum_up(session_id, running.model)

    async def _carry(self, session_id: SessionId, holder: str, running: _Running) -> None:
        """Run a turn to its end, whatever happens on the way."""
        said: list[str] = []
        try:
            with running.scope:
                async with anyio.create_task_group() as watch:
                    watch.start_soon(self._keep_lease, session_id, holder, running)
                    watch.start_soon(self._heed_cancel, session_id, running)
                    await self._run(session_id, running, said)
                    watch.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if running.scope.cancel_called:
                    await self._stopped(session_id, running, "".join(said))
                await self.release(session_id, holder)
                if self._running.get(session_id) is running:
                    del self._running[session_id]
                running.feed.close()

    async def _sum_up(self, session_id: SessionId, model: str) -> None:
        """Sum the conversation up when that is due, now that nobody waits; without a model, with the session's."""
        try:
            if not model:
                state = await self._sessions.state(session_id)
                model = call_settings(self._agents.current(state.agent), state).model
            await self._memory.sum_up(session_id, model)
        except WindowpaneError as error:
            # Deleted meanwhile, or the store is gone: the next turn tries again.
            log.info("summary.not_made", session=session_id, code=error.code)

    async def _run(self, session_id: SessionId, running: _Running, said: list[str]) -> None:
        async def append(events: Sequence[Event]) -> SessionState:
            changed = await self.change_open(session_id, running.turn, events)
            said.clear()
            _publish(running, changed.recorded)
            return changed.state

        def publish(delta: Delta) -> None:
            if delta.kind == "text":
                said.append(delta.text)
            running.feed.publish(delta)

        try:
            request, recorded = await self.request(session_id, running.turn, running.brought, running.reply_options)
            _publish(running, recorded)
            state = await self._sessions.state(session_id)
            agent = self._agents.current(state.agent)
            sets = self._working.of(session_id, actor="model", tell=partial(_publish, running))
            toolbox = WithContextTools(await self._toolboxes.of(agent), sets)
            sources, related = sources_of(
                request, {reference.name: reference for reference in agent.references}, fetched=state.fetched
            )
            running.agent, running.model = agent.name, request.context.settings.model
            turn = Turn(
                number=running.turn,
                finished=TurnFinished(turn=running.turn, outcome="completed", sources=sources, related=related),
                request=request,
                model=self._models.open(request.context.settings.model),
                toolbox=toolbox,
                max_model_calls=max_model_calls(agent, state),
                verdict=self.verdict_with(toolbox),
                append=append,
                publish=publish,
            )
            await run(turn, state)
        except WindowpaneError as error:
            log.info("turn.failed", session=session_id, turn=running.turn, code=error.code)
            await append([TurnFinished(turn=running.turn, outcome="failed", error=turn_error(error))])
        except Exception:
            # A background task is an edge: what nobody foresaw is logged here, once, and told to the user.
            log.exception("turn.crashed", session=session_id, turn=running.turn)
            error = TurnError(code="internal", message="something unforeseen went wrong; the server's log says what")
            await append([TurnFinished(turn=running.turn, outcome="failed", error=error)])

    def verdict_with(self, toolbox: Toolbox) -> Callable[[SessionState, ItemRef], Verdict]:
        """Return what decides about calls of these tools."""

        def verdict(state: SessionState, ref: ItemRef) -> Verdict:
            agent = self._agents.current(state.agent)
            tool = item_of(agent, toolbox.servers(), ref)
            permission = tool.permission if isinstance(tool, Tool) else "required"
            allowed = ref in state.allowed_tools
            return decide(permission, tool_permission(agent, state), allowed_for_session=allowed)

        return verdict

    async def _stopped(self, session_id: SessionId, running: _Running, said: str) -> None:
        """Record that a turn was stopped, with what it had said so far."""
        outcome: Outcome = "cancelled" if running.cancelled_by_user else "interrupted"
        partial = [_partial(running.turn, said, outcome)] if said else []
        try:
            finished = TurnFinished(turn=running.turn, outcome=outcome)
            changed = await self.change_open(session_id, running.turn, [*partial, finished])
        except WindowpaneError as error:
            # The session was deleted, or the store is gone: there is nothing left to note it in.
            log.info("turn.unfinished", session=session_id, turn=running.turn, code=error.code)
        else:
            _publish(running, changed.recorded)

    async def _keep_lease(self, session_id: SessionId, holder: str, running: _Running) -> None:
        while True:
            await anyio.sleep(self._lease_s / 3)
            try:
                held = await self._store.acquire(session_id, holder, self._lease_s)
            except WindowpaneError:
                held = False
            if not held:
                running.scope.cancel()
                return

    async def _heed_cancel(self, session_id: SessionId, running: _Running) -> None:
        state = await self._sessions.state(session_id)
        if state.open_turn is not None and state.open_turn.cancel_requested:
            running.cancelled_by_user = True
            running.scope.cancel()
            return
        async with aclosing(self._store.subscribe(session_id, after=state.seq)) as entries:
            async for entry in entries:
                if isinstance(entry.event, CancelRequested) and entry.event.turn == running.turn:
                    running.cancelled_by_user = True
                    running.scope.cancel()
                    return


def open_turn(state: SessionState) -> OpenTurn:
    """Return the turn that is running or waiting.

    Raises:
        NoTurnRunningError: there is none.
    """
    if state.open_turn is None:
        raise NoTurnRunningError
    return state.open_turn


def turn_error(error: WindowpaneError) -> TurnError:
    """Return an error as the log keeps it."""
    partial = error.partial if isinstance(error, ModelError) else ""
    return TurnError(code=error.code, message=str(error), partial=partial)


def _leftover(state: SessionState) -> list[Event]:
    """Return what closes a turn that its worker left behind.

    Raises:
        ApprovalPendingError: the turn was not left behind; it waits for a person.
    """
    if state.open_turn is None:
        return []
    if state.open_turn.undecided:
        waiting = tuple(str(call.ref or call.offered_name) for call in state.open_turn.undecided)
        raise ApprovalPendingError(state.open_turn.turn, waiting)
    if state.open_turn.for_client:
        # The client sends something else instead of the results it owes: it has given the turn up.
        return [TurnFinished(turn=state.open_turn.turn, outcome="cancelled")]
    return [_interrupted(state.open_turn.turn)]


def _interrupted(turn: int) -> TurnFinished:
    error = TurnError(code="interrupted", message="the server stopped in the middle of this turn; send it again")
    return TurnFinished(turn=turn, outcome="interrupted", error=error)


def _partial(turn: int, said: str, outcome: Outcome) -> ModelReplied:
    return ModelReplied(turn=turn, step=Step(text=said, finish_reason=outcome), tokens=count(said))


def _publish(running: _Running, recorded: Iterable[Recorded]) -> None:
    for entry in recorded:
        running.feed.publish(entry)
        if isinstance(entry.event, TurnFinished) and entry.event.turn == running.turn:
            running.outcome = entry.event.outcome
            running.error = entry.event.error.code if entry.event.error else ""
