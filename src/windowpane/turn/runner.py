"""Run turns in the background: begin them, run them to their end, stop them, and let any client follow.

One worker runs a session's turn at a time; it holds the session's lease and renews it while it works. A client that
goes away changes nothing. A turn whose worker died is closed as interrupted by the next worker that looks at it.

Nothing that a turn raises leaves its task. While the store is away a turn keeps what it has and tries again
(`patience.py`); a turn that must give up tells those who follow it, and is closed like one whose worker died.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import anyio
import anyio.abc

from windowpane import telemetry
from windowpane.agents.base import Agent, Agents
from windowpane.bus.feed import Feed
from windowpane.calls.last_bodies import LastBodies
from windowpane.calls.recorder import CallRecorder, recording
from windowpane.context.calls import ModelPrice, SmallerWindow
from windowpane.context.events import (
    CancelRequested,
    Event,
    Live,
    ModelReplied,
    QuestionAnswered,
    Recorded,
    TurnFinished,
)
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import ItemRef, Tool
from windowpane.context.messages import Outcome, Step
from windowpane.context.request import ReplyOptions
from windowpane.context.session import SessionState, open_turn
from windowpane.errors import (
    LeaseLostError,
    RequestTooLongError,
    SessionBusyError,
    SessionNotFoundError,
    StoreRolledBackError,
    StoreUnavailableError,
    WindowpaneError,
)
from windowpane.files.read import NO_FILES, ReadFiles
from windowpane.live import SessionHubs
from windowpane.memory.memory import Memory
from windowpane.models.base import ChatModel
from windowpane.remarks import get_logger
from windowpane.request.gather import item_of
from windowpane.request.settings import call_settings, max_model_calls, tool_permission
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.sessions.working import WorkingContext
from windowpane.stores.base import Lease
from windowpane.stores.sessions import Sessions
from windowpane.supervise import Later, beside, keep_running, supervised
from windowpane.text.tokens import count
from windowpane.tools.base import Toolbox
from windowpane.tools.context_tools import WithContextTools
from windowpane.tools.finder_tools import FINDER_REFS
from windowpane.tools.permissions import Verdict, decide
from windowpane.turn.begin import NO_SETTINGS, BegunTurn, closing_events, opening_events, setting_events
from windowpane.turn.follow import Follower
from windowpane.turn.lease import Leases
from windowpane.turn.log import append_patiently, crashed, failed
from windowpane.turn.patience import PatientSets, StorePatience
from windowpane.turn.requests import TurnRequests
from windowpane.turn.run import TurnRun, run
from windowpane.turn.shrink import smaller_window
from windowpane.turn.sources import FindUsed, TurnEnd
from windowpane.turn.task import TurnTask
from windowpane.turn.words import KEEP_EVERY_S, keep_said, kept_words

log = get_logger()

HEED_AFTER_S = 0.25
"""A turn that takes longer looks whether another process asks it to stop. This one tells it at once."""


class Runner:
    """Runs the turns of this worker."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        agents: Agents,
        open_model: Callable[[str, str], Awaitable[ChatModel]],
        toolboxes: Toolboxes,
        requests: TurnRequests,
        working: WorkingContext,
        memory: Memory,
        audience: SessionHubs,
        leases: Leases,
        running: dict[SessionId, TurnTask],
        patience: StorePatience,
        find_used: FindUsed,
    ) -> None:
        self._sessions, self._agents = sessions, agents
        self._open_model = open_model
        self._toolboxes = toolboxes
        self._requests = requests
        self._working = working
        self._memory = memory
        self._audience = audience
        self._leases = leases
        self._patience = patience
        self._find_used = find_used
        self._last_bodies = LastBodies()
        self._follower = Follower(sessions, leases, patience, audience)
        self._running = running
        self._tasks: anyio.abc.TaskGroup

    def open_in(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run turns in this task group."""
        self._tasks = tasks
        self._patience.begin()
        self._follower.open_in(tasks)
        tasks.start_soon(keep_running, "turn.leases", self._leases.renew_kept)

    def close(self) -> None:
        """Stop every turn; each is recorded as interrupted. A store that is away is not waited for any more."""
        self._patience.end()
        for task in self._running.values():
            task.scope.cancel()

    async def finish(self, within_s: float) -> None:
        """Let turns come to their end, and stop those that take longer; each of these is recorded as interrupted."""
        with anyio.move_on_after(within_s):
            while self._running:
                with suppress(WindowpaneError):
                    async for _ in next(iter(self._running.values())).feed.listen():
                        pass
        self.close()

    async def begin(
        self,
        state: SessionState,
        lease: Lease | None,
        message: str,
        key: str | None = None,
        files: ReadFiles = NO_FILES,
        settings: Mapping[str, Any] = NO_SETTINGS,
    ) -> BegunTurn:
        """Store the user's message, its files and settings; the lease is given back if that fails or is not needed.

        Without a `lease` it is taken together with that. `state` may then be old: if another turn came into the session
        since, nothing is stored.

        Raises:
            AgentNotFoundError: the session's agent is gone.
            SessionBusyError: the lease is to be taken, and another worker has it. Nothing was stored.
            ApprovalPendingError: the turn before waits for a decision.
            LeaseLostError: another worker has taken the session over. Nothing was stored.
        """
        said: list[Event] = []
        take = self._leases.new() if lease is None else None

        def begin(now: SessionState) -> list[Event]:
            is_old = take is not None and (now.last_turn, now.open_turn) != (state.last_turn, state.open_turn)
            if is_old or (key and now.turn_keys.of(key) is not None):
                return []
            return [
                *(said if now.open_turn == state.open_turn else ()),
                *closing_events(now),
                *setting_events(now, settings),
                *opening_events(now, message, files.attachments, resumed=self._requests.resumes(now), key=key),
            ]

        try:
            agent = await self._agents.look(state.agent)
            said = await kept_words(self._sessions.store, state)
            # The request is stored before anything else happens, and waits for the disk for both.
            fence, blobs = lease and lease.fence, files.blobs or None
            changed = await self._sessions.change(
                state.id, begin, blobs=blobs, unread=True, fence=fence, take=take, lasting=False
            )
        except SessionBusyError:
            raise
        except BaseException:
            await self._leases.release(state.id, lease or Lease(take.holder if take else "", 0))
            raise
        held = lease or Lease(take.holder if take else "", changed.fence or 0)
        if changed.recorded:
            return BegunTurn(changed.state.last_turn, changed.state, agent, held, changed.recorded)
        if lease is not None:
            await self._leases.release(state.id, lease)
        return BegunTurn(changed.state.turn_keys.of(key or "") or 0, changed.state, agent, held)

    def launch(
        self,
        state: SessionState,
        lease: Lease,
        recorded: Iterable[Recorded] = (),
        *,
        agent: Agent | None = None,
        brought: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
    ) -> int:
        """Run the session's open turn in the background from wherever it stands; return its number.

        `recorded` is what has just been stored of it. `agent` None: as its folder says it now. `brought` are tools that
        the client runs itself, `reply_options` what it asks of the answer.
        """
        feed = Feed(self._audience.relay(state.id))
        task = TurnTask(open_turn(state).turn, state, lease, agent, brought, reply_options, feed)
        self._running[state.id] = task
        task.publish(recorded)
        self._tasks.start_soon(supervised, "turn.run", partial(self._run_measured, task))
        return task.turn

    async def follow(self, session_id: SessionId, turn: int) -> AsyncGenerator[Live]:
        """Yield a turn's events from its beginning until it ends or waits, wherever it runs."""
        task = self._running.get(session_id)
        if task is not None and task.turn == turn:
            seen = task.state.seq
            async for event in task.feed.listen():
                seen = event.seq if isinstance(event, Recorded) else seen
                yield event
            if task.taken_over:
                # A session that was deleted has no more to tell.
                with suppress(SessionNotFoundError):
                    async with aclosing(self._follower.follow(session_id, turn, after=seen)) as events:
                        async for event in events:
                            yield event
            return
        async with aclosing(self._follower.follow(session_id, turn)) as events:
            async for event in events:
                yield event

    def attend(self, state: SessionState) -> None:
        """Close the session's open turn when its worker is gone, also if no client follows it."""
        if state.id not in self._running:
            self._follower.attend(state)

    async def close_now(self, state: SessionState) -> None:
        """Close the session's open turn if its worker is gone by now."""
        if state.id not in self._running:
            await self._follower.close_now(state)

    async def cancel(self, session_id: SessionId, turn: int) -> None:
        """Stop a turn that was asked to stop: here, or, when no worker runs it, by closing it."""
        task = self._running.get(session_id)
        if task is not None and task.turn == turn:
            task.cancel(by_user=True)
            async for _ in task.feed.listen():
                pass
            return
        await self._follower.cancel(session_id, turn)

    def drop(self, session_id: SessionId) -> None:
        """Stop running a turn of a session that is about to be deleted."""
        if task := self._running.get(session_id):
            task.scope.cancel()

    def verdict_with(self, agent: Agent, toolbox: Toolbox) -> Callable[[SessionState, ItemRef], Verdict]:
        """Return what decides about calls of these tools."""

        def verdict(state: SessionState, ref: ItemRef) -> Verdict:
            tool = FINDER_REFS.get(ref) or item_of(agent, toolbox.servers(), ref)
            permission = tool.permission if isinstance(tool, Tool) else "required"
            allowed = ref in state.allowed_tools
            return decide(permission, tool_permission(agent, state), allowed_for_session=allowed)

        return verdict

    async def _run_measured(self, task: TurnTask) -> None:
        """Run a turn to its end, measure it, and sum the conversation up afterwards."""
        with telemetry.turn(task.state.id, task.turn) as measured:
            try:
                await self._run_watched(task)
            finally:
                telemetry.describe_turn(
                    measured,
                    agent=task.agent.name if task.agent else "",
                    model=task.model,
                    outcome=task.outcome,
                    error=task.error,
                    usage=task.calls.usage if task.calls else None,
                )
        if not task.lost:
            await self._sum_up(task)
            await self._prepare(task)

    async def _prepare(self, task: TurnTask) -> None:
        """Have what lies behind ready for the next turn. The calls that this takes belong to this one."""
        prices: Mapping[str, ModelPrice] = task.agent.settings.prices if task.agent else {}
        step = task.calls.step if task.calls else 0
        with recording(self._requests.embeddings(task.state, task.turn, prices, step)):
            await self._memory.prepare(task.state)

    async def _run_watched(self, task: TurnTask) -> None:
        """Run a turn under its lease until it ends, waits or is stopped, and record how."""
        session_id = task.state.id
        try:
            with task.scope, self._leases.kept(session_id, task.lease, task.lose_lease):
                async with beside(
                    Later(HEED_AFTER_S, "turn.cancel", partial(self._heed_cancel, task)),
                    Later(KEEP_EVERY_S, "turn.words", partial(self._keep_words, task)),
                ):
                    await self._run(task)
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    if task.scope.cancel_called and not task.lost:
                        await self._record_stop(task)
                    self._last_bodies.put(task.state, task.calls.last if task.calls else None)
                    if not task.released:
                        await self._leases.release(session_id, task.lease)
                finally:
                    if self._running.get(session_id) is task:
                        del self._running[session_id]
                    task.feed.close(task.unrecorded)

    async def _run(self, task: TurnTask) -> None:
        """Run a turn; whatever it fails with is recorded as its end, if that is possible."""
        session_id = task.state.id
        try:
            state = await self._run_once_or_smaller(task)
            task.lost = task.outcome == "waiting" and not _waits(state, task.turn)
        except LeaseLostError as error:
            task.lose(error)
        except StoreRolledBackError as error:
            # The store has lost what the turn stands on, so there is nothing to record an end in.
            task.give_up(error)
        except WindowpaneError as error:
            log.info("turn.failed", session=session_id, turn=task.turn, code=error.code)
            if task.unrecorded is None:
                await self._record_end(task, [failed(task.turn, error)])
        except Exception as error:
            # A background task is an edge: an unexpected error is logged here, once, and the user is told.
            log.exception("turn.crashed", session=session_id, turn=task.turn)
            await self._record_end(task, [crashed(task.turn, error)])

    async def _run_once_or_smaller(self, task: TurnTask) -> SessionState:
        """Run a turn. A request that the model refuses as too long is made smaller, once."""
        prepared = await self._prepared(task)
        try:
            return await run(prepared, task.state)
        except RequestTooLongError as error:
            smaller = smaller_window(prepared.request, open_turn(task.state), error)
            log.info("turn.too_long", session=task.state.id, turn=task.turn, model=task.model, window=smaller.tokens)
        return await run(await self._prepared(task, smaller), task.state)

    async def _prepared(self, task: TurnTask, smaller: SmallerWindow | None = None) -> TurnRun:
        """Return what the turn works with: its request, stored, and then the model that it is for.

        With `smaller` the turn's request was refused as too long, and another is made for that window.
        """
        agent = task.agent = task.agent or await self._agents.look(task.state.agent)
        request = None if smaller else await self._patience.retry(partial(self._requests.read, task.state))
        if request is None:
            request, stored = await self._requests.build_and_store(
                task.state,
                agent,
                task.brought,
                task.reply_options,
                patience=self._patience,
                fence=task.lease.fence,
                smaller=smaller,
            )
            task.state = stored.state
            task.publish(stored.recorded)
            task.heed_cancel()
        sets = self._working.of(task.state.id, actor="model", tell=task.publish, fence=task.lease.fence)
        tools = await self._toolboxes.of(agent)
        toolbox = WithContextTools(tools, PatientSets(sets, self._patience))
        agent = await self._patience.retry(partial(self._requests.agent_with, agent, task.state))
        task.model = request.context.settings.model
        task.calls = task.calls or CallRecorder(
            partial(self._append, task), purpose="answer", turn=task.turn, last=self._last_bodies.of(task.state)
        )
        return TurnRun(
            number=task.turn,
            end=TurnEnd(task.turn, {each.name: each for each in agent.references}, task.state.fetched, self._find_used),
            request=request,
            must_call=task.reply_options.must_call if task.reply_options else (),
            finders=self._requests.finders(agent, tools),
            model=await self._open_model(task.state.owner, task.model),
            toolbox=toolbox,
            max_model_calls=max_model_calls(agent, task.state),
            calls=task.calls,
            embeddings=partial(self._requests.embeddings, task.state, task.turn, agent.settings.prices),
            verdict=self.verdict_with(agent, toolbox),
            append=partial(self._append, task),
            files=partial(self._requests.files, task.state.id),
            publish=task.speak,
            answer=partial(self._answer, task),
        )

    async def _answer(self, task: TurnTask, question_id: str, after: int) -> QuestionAnswered:
        """Wait until any caller answers a question of the turn, in whichever process, and tell those who follow."""
        while True:
            with suppress(StoreUnavailableError):
                async with aclosing(self._sessions.store.subscribe(task.state.id, after=after)) as entries:
                    async for entry in entries:
                        if isinstance(entry.event, QuestionAnswered) and entry.event.question_id == question_id:
                            task.publish([entry])
                            return entry.event
            # The store was away, or the session is gone.
            await self._patience.retry(partial(self._sessions.state, task.state.id))

    async def _append(
        self, task: TurnTask, events: Sequence[Event], blobs: Mapping[BlobHash, str] | None = None
    ) -> SessionState:
        task.storing = True
        task.ends = any(isinstance(event, TurnFinished) for event in events)
        try:
            release, fence = task.lease.holder if task.ends else None, task.lease.fence
            changed = await append_patiently(
                self._sessions, task.state, task.turn, events, self._patience, blobs, fence=fence, release=release
            )
        except StoreUnavailableError as error:
            task.give_up(error)
            raise
        task.storing = False
        task.released = task.ends and bool(changed.recorded)
        task.said.clear()
        task.state = changed.state
        task.publish(changed.recorded)
        task.heed_cancel()
        return changed.state

    async def _record_stop(self, task: TurnTask) -> None:
        """Record that a turn was stopped, with what it had said so far."""
        if task.storing:
            with suppress(WindowpaneError):
                await self._patience.retry(partial(self._catch_up, task))
        outcome: Outcome = "cancelled" if task.cancelled_by_user else "interrupted"
        events: list[Event] = [TurnFinished(turn=task.turn, outcome=outcome)]
        if said := "".join(task.said):
            step = Step(text=said, finish_reason=outcome)
            events.insert(0, ModelReplied(turn=task.turn, step=step, tokens=count(said)))
        await self._record_end(task, events)

    async def _catch_up(self, task: TurnTask) -> None:
        """Find out whether the store has what it was given when the turn was stopped."""
        news = await self._sessions.store.read(task.state.id, after=task.state.seq)
        task.state = await self._sessions.state(task.state.id)
        if any(isinstance(entry.event, ModelReplied) and entry.event.turn == task.turn for entry in news):
            task.said.clear()
        task.publish(entry for entry in news if not isinstance(entry.event, CancelRequested))
        task.storing = False

    async def _record_end(self, task: TurnTask, events: Sequence[Event]) -> None:
        """Record the end of a turn. Where that is not possible, those who follow the turn are told."""
        ended = task.calls.take() if task.calls else []
        try:
            await self._append(task, [*ended, *events])
        except SessionNotFoundError as error:
            # Deleted: there is nothing left to record it in.
            log.info("turn.unfinished", session=task.state.id, turn=task.turn, code=error.code)
        except LeaseLostError as error:
            task.lose(error)
        except WindowpaneError as error:
            log.warning("turn.unfinished", session=task.state.id, turn=task.turn, code=error.code, why=str(error))
            task.give_up(error)
        except Exception:
            log.exception("turn.unfinished", session=task.state.id, turn=task.turn)
            task.give_up(StoreUnavailableError("the end of the turn could not be recorded; the server log says why"))

    async def _sum_up(self, task: TurnTask) -> None:
        """Sum the conversation up when that is due, now that no client waits."""
        try:
            agent = task.agent or await self._agents.look(task.state.agent)
            model = task.model or call_settings(agent, task.state).model
            changed = await self._memory.sum_up(task.state, agent, model)
            task.state = changed.state if changed else task.state
        except WindowpaneError as error:
            # Deleted meanwhile, or the store is gone: the next turn tries again.
            log.info("summary.not_made", session=task.state.id, code=error.code)

    async def _keep_words(self, task: TurnTask) -> None:
        """Keep what the turn says while it says it. The stream does not wait for that."""
        await keep_said(self._sessions.store, lambda: (task.state, "".join(task.said)), task.lease.fence)

    async def _heed_cancel(self, task: TurnTask) -> None:
        """Stop the turn when any process asks for that in the log."""
        async with aclosing(self._sessions.store.subscribe(task.state.id, after=task.state.seq)) as entries:
            async for entry in entries:
                if isinstance(entry.event, CancelRequested) and entry.event.turn == task.turn:
                    task.cancel(by_user=True)
                    return


def _waits(state: SessionState, turn: int) -> bool:
    return state.open_turn is not None and state.open_turn.turn == turn and state.open_turn.waits
