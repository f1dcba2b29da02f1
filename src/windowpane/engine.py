"""The engine: from a message to a recorded answer.

`turn()` is the whole product in one method: the message is stored, the request is built and stored, the model is
called, its tools run, and every event is yielded as it happens. Everything that a door offers is a method here, and
there is one way to do each thing.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Self

import anyio
import anyio.abc

from windowpane.agents.base import Agents
from windowpane.api.export import SessionExport
from windowpane.api.sessions import SetWish
from windowpane.context.events import (
    ApprovalDecided,
    CancelRequested,
    Erased,
    Event,
    FetchedAdded,
    FetchedCleared,
    HistoryCleared,
    ItemAdded,
    ItemRemoved,
    Live,
    MessageAdded,
    MessageRemoved,
    ModelReplied,
    Recorded,
    RequestBuilt,
    ServerArrived,
    SessionContext,
    SessionCreated,
    SessionItem,
    SessionUpdated,
    ToolReturned,
    TurnError,
    TurnFinished,
    TurnStarted,
    WatchEvent,
)
from windowpane.context.fetched import Fetched, FetchedKind, capped
from windowpane.context.fold import messages_of
from windowpane.context.ids import Actor, BlobHash, SessionId, new_session_id, unlisted
from windowpane.context.items import Item, ItemRef, Tool, item_hash
from windowpane.context.messages import Decision, Message, Source, Step, ToolResult, Usage
from windowpane.context.request import ContextItem, ReplyOptions, Request, RequestContext
from windowpane.context.session import SessionState, open_turn
from windowpane.context.sets import ChangeMode, ContextSets, SetChange, change_set, replace_all
from windowpane.errors import (
    AgentNotFoundError,
    InvalidInputError,
    KeyReusedError,
    NoResultAwaitedError,
    NothingToApproveError,
    SessionNotFoundError,
    StaleRevisionError,
    TurnNotFoundError,
    UnknownItemError,
    WindowpaneError,
)
from windowpane.fetch.base import PageReader, SearchEngine
from windowpane.live import SessionHubs
from windowpane.memory.memory import Memory
from windowpane.models.base import Models
from windowpane.request.build import RequestServices
from windowpane.request.catalog import Catalogs, read_catalog
from windowpane.request.file_marks import read_marks
from windowpane.request.gather import always_items, always_tools, item_of
from windowpane.request.hybrid_selector import HybridSelector
from windowpane.request.prompt.sections import build_prompt
from windowpane.request.record import context_of, rebuild, texts_of
from windowpane.request.resume import RESUME_AFTER_S
from windowpane.request.selector import NoSelector, Selection, Selector
from windowpane.request.settings import call_settings, checked_changes, search_settings
from windowpane.search.history import HistoryIndex
from windowpane.sessions.export import before_turn, export, own_copy
from windowpane.sessions.fetching import Fetching
from windowpane.sessions.past import Exchange, past_events
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.sessions.working import WorkingContext, change_events, warn_of_unknown
from windowpane.stores.append import OriginalTimes
from windowpane.stores.base import Store
from windowpane.stores.sessions import Changed, Sessions
from windowpane.text.tokens import count
from windowpane.tools.base import ServerStatus, Toolbox, ToolOutput
from windowpane.tools.context_tools import WithContextTools
from windowpane.turn.lease import Leases
from windowpane.turn.log import append_to_turn, failed
from windowpane.turn.requests import TurnRequests
from windowpane.turn.run import fitted
from windowpane.turn.runner import Runner

LEASE_S = 15.0
"""How long a worker that died keeps its session busy."""

PREPARED_LEASE_S = 600.0
"""How long a prepared request may wait for its reply before another turn may begin."""

SETTLE_S = 2.0
"""How long a turn waits for tool servers that are still connecting."""

MAX_MESSAGE_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class SessionList:
    """Some sessions, last used first, and the cursor of the next page."""

    sessions: tuple[SessionState, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that waits for somebody else's model call. Give it to `record()` or to `abandon()`."""

    session_id: SessionId
    turn: int
    request: Request
    holder: str


class Engine:
    """Everything Windowpane does, behind whatever door."""

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
        touch_every_s: float | None = None,
    ) -> None:
        self.store = store
        self.agents = agents
        self.models = models
        self._selector = selector or NoSelector()
        self._sessions = Sessions(store, touch_every_s=touch_every_s)
        self._toolboxes = Toolboxes(toolbox)
        self._working = WorkingContext(self._sessions)
        self._fetching = Fetching(self._sessions, pages)
        self._memory = Memory(self._sessions, models, history)
        self._search_engine = search_engine
        self._audience = SessionHubs(store)
        self._leases = Leases(store, lease_s)
        services = RequestServices(
            models=models,
            selector=self._selector,
            memory=self._memory,
            catalogs=Catalogs(),
            search_engine=search_engine,
        )
        self._requests = TurnRequests(
            self._sessions, services, self._toolboxes, settle_s=settle_s, resume_after_s=resume_after_s
        )
        self._runner = Runner(
            sessions=self._sessions,
            agents=agents,
            models=models,
            toolboxes=self._toolboxes,
            requests=self._requests,
            working=self._working,
            memory=self._memory,
            audience=self._audience,
            leases=self._leases,
        )
        self._stack = AsyncExitStack()
        self._tasks: anyio.abc.TaskGroup

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.store)
        self._stack.push_async_callback(self.models.aclose)
        if self._search_engine is not None:
            self._stack.push_async_callback(self._search_engine.aclose)
        await self._stack.enter_async_context(self._selector)
        await self._stack.enter_async_context(self._memory)
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._toolboxes.open_in(self._tasks)
        self._requests.open()
        self._runner.open_in(self._tasks)
        self._audience.open_in(self._tasks)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.end_watching()
        self._runner.close()
        self._tasks.cancel_scope.cancel()
        await self._stack.__aexit__(None, None, None)

    # Turns

    async def turn(
        self,
        session_id: SessionId,
        message: str,
        *,
        key: str | None = None,
        wait_s: float = 0,
        brought: Sequence[Tool] = (),
        reply_options: ReplyOptions | None = None,
    ) -> AsyncGenerator[Live]:
        """Answer a message, yielding everything as it happens.

        The turn runs on when the caller goes away; its answer is in the session. With `key`, sending the same
        message again joins the first turn instead of starting another. `brought` are tools of the server `client`,
        which the caller runs itself; `reply_options` what the answer must be. The stream ends when the turn is
        finished, or when it waits for an approval or for the results of such tools (`answer_calls`).

        Raises:
            SessionNotFoundError: no such session.
            InvalidInputError: the message is empty, too long, or not valid Unicode.
            SessionBusyError: another turn is running and did not end within `wait_s`.
            ApprovalPendingError: the turn before waits for a decision.
            KeyReusedError: `key` was used for another message.
        """
        _check_message(message)
        state = await self._sessions.state(session_id)
        turn = await self._joined(state, message, key)
        if turn is None:
            holder = await self._leases.take(session_id, wait_s=wait_s)
            begun = await self._runner.begin(state, holder, message, key)
            turn = begun.turn
            if begun.recorded:
                self._runner.launch(
                    begun.state, holder, begun.recorded, agent=begun.agent, brought=brought, reply_options=reply_options
                )
        async for event in self._runner.follow(session_id, turn):
            yield event

    async def approve(
        self, session_id: SessionId, decisions: Mapping[str, Decision], *, actor: Actor = "user"
    ) -> AsyncGenerator[Live]:
        """Decide about waiting tool calls, by call id, and yield what the turn does then.

        Raises:
            SessionNotFoundError: no such session.
            NothingToApproveError: no call waits, or one of the ids is not a waiting call's.
            SessionBusyError: somebody else is deciding at this moment.
        """
        holder = await self._leases.take(session_id)
        try:
            changed = await self._sessions.change(session_id, lambda state: [_decision(state, decisions, actor)])
        except BaseException:
            await self._leases.release(session_id, holder)
            raise
        turn = self._runner.launch(changed.state, holder, changed.recorded)
        async for event in self._runner.follow(session_id, turn):
            yield event

    async def answer_calls(self, session_id: SessionId, results: Sequence[ToolResult]) -> AsyncGenerator[Live]:
        """Give the results of tools that the caller brought along, and yield what the turn does then.

        A result that does not fit the window is cut. Calls without a result keep waiting.

        Raises:
            SessionNotFoundError: no such session.
            NoResultAwaitedError: no call waits for one, or one of the ids is not a waiting call's.
            SessionBusyError: somebody else is at it at this moment.
        """
        holder = await self._leases.take(session_id)
        try:
            state = await self._sessions.state(session_id)
            _check_results(state, results)
            request = await self._requests.read(state)

            def given(now: SessionState) -> list[Event]:
                _check_results(now, results)
                turn = open_turn(now)
                fits = [
                    replace(result, content=fitted(request, turn, result.content)) if request else result
                    for result in results
                ]
                return [ToolReturned(turn=turn.turn, result=result) for result in fits]

            changed = await self._sessions.change(session_id, given)
        except BaseException:
            await self._leases.release(session_id, holder)
            raise
        turn = self._runner.launch(changed.state, holder, changed.recorded)
        async for event in self._runner.follow(session_id, turn):
            yield event

    async def carry_on(
        self, session_id: SessionId, *, brought: Sequence[Tool] = (), reply_options: ReplyOptions | None = None
    ) -> AsyncGenerator[Live]:
        """Run on with a turn that began elsewhere, in a session that was created with such a past.

        Raises:
            SessionNotFoundError: no such session.
            NoTurnRunningError: there is no such turn.
            SessionBusyError: somebody else is at it at this moment.
        """
        state = await self._sessions.state(session_id)
        open_turn(state)
        holder = await self._leases.take(session_id)
        turn = self._runner.launch(state, holder, brought=brought, reply_options=reply_options)
        async for event in self._runner.follow(session_id, turn):
            yield event

    async def cancel(self, session_id: SessionId, *, actor: Actor = "user") -> SessionState:
        """Stop the turn that is running or waiting, wherever it runs. What it said so far is kept.

        Raises:
            SessionNotFoundError: no such session.
            NoTurnRunningError: there is nothing to stop.
        """

        def ask(state: SessionState) -> list[Event]:
            return [CancelRequested(turn=open_turn(state).turn, actor=actor)]

        changed = await self._sessions.change(session_id, ask)
        await self._runner.cancel(session_id, open_turn(changed.state).turn)
        return await self.session(session_id)

    async def preview(self, session_id: SessionId, message: str) -> Request:
        """Return the request that a message would make, without storing anything or calling a model."""
        _check_message(message)
        state = await self._sessions.state(session_id)
        return await self._requests.preview(state, self.agents.current(state.agent), message)

    async def prepare(
        self, session_id: SessionId, message: str, *, key: str | None = None, wait_s: float = 0
    ) -> Prepared:
        """Store a message and build its request, for a model call of your own. Then call `record()`.

        Raises:
            The same as `turn()`, and:
            ContextTooLargeError: what must be sent does not fit; the turn is recorded as failed.
        """
        _check_message(message)
        state = await self._sessions.state(session_id)
        holder = await self._leases.take(session_id, wait_s=wait_s, ttl_s=PREPARED_LEASE_S)
        begun = await self._runner.begin(state, holder, message, key)
        if not begun.recorded:
            raise KeyReusedError(key or "")
        try:
            request, _ = await self._requests.build_and_store(begun.state, begun.agent)
        except WindowpaneError as error:
            await append_to_turn(self._sessions, session_id, begun.turn, [failed(begun.turn, error)])
            await self._leases.release(session_id, holder)
            raise
        return Prepared(session_id, begun.turn, request, holder)

    async def record(
        self,
        prepared: Prepared,
        reply: str | Sequence[Step],
        *,
        usage: Usage | None = None,
        model: str | None = None,
        sources: Sequence[Source] = (),
    ) -> SessionState:
        """Store what your model answered to a prepared request: a text, or every step with its tool calls."""
        name = model or prepared.request.context.settings.model
        steps = [Step(text=reply, usage=usage or Usage(), model=name)] if isinstance(reply, str) else reply
        events: list[Event] = []
        for step in steps:
            events.append(ModelReplied(turn=prepared.turn, step=replace(step, results=()), tokens=count(step.text)))
            events += [ToolReturned(turn=prepared.turn, result=result) for result in step.results]
        events.append(TurnFinished(turn=prepared.turn, outcome="completed", sources=tuple(sources)))
        return await self._conclude(prepared, events)

    async def abandon(self, prepared: Prepared, why: str) -> SessionState:
        """Store that your model call failed. The message and the request stay, with an error message."""
        error = TurnError(code="model_error", message=why)
        return await self._conclude(prepared, [TurnFinished(turn=prepared.turn, outcome="failed", error=error)])

    async def call_tool(self, session_id: SessionId, ref: ItemRef, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run a tool of a prepared request. One that must be asked about first is refused: nobody is asked here.

        Raises:
            SessionNotFoundError: no such session.
            ToolError: the tool's server did not answer as needed.
        """
        state = await self._sessions.state(session_id)
        sets = self._working.of(session_id, actor="model", tell=lambda _: None)
        agent = self.agents.current(state.agent)
        toolbox = WithContextTools(await self._toolboxes.of(agent), sets)
        if self._runner.verdict_with(agent, toolbox)(state, ref) != "run":
            return ToolOutput("This tool may not be used without asking, and nobody can be asked here.", is_error=True)
        return await toolbox.call(ref.server or "", ref.name, arguments)

    # Sessions

    async def create_session(
        self,
        agent: str | None = None,
        *,
        owner: str = "local",
        name: str = "",
        settings: Mapping[str, Any] | None = None,
        session_id: SessionId | None = None,
        past: Sequence[Exchange] = (),
        listed: bool = True,
    ) -> SessionState:
        """Begin a session with every `always` item of its agent.

        `past` is what was said elsewhere before. A session that is not `listed` is the owner's like any other, but
        found only by its id.

        Raises:
            AgentNotFoundError: no such agent.
            MissingCorePromptError: the agent cannot start.
            InvalidSettingError: a setting cannot be used.
            SequenceConflictError: `session_id` is taken.
        """
        found = self.agents.current(agent or self._default_agent())
        changes = checked_changes(settings or {})
        build_prompt(found, SessionState(id=SessionId("")).settings, now=datetime.now(UTC))
        toolbox = await self._toolboxes.of(found)
        ready = [server for server in toolbox.servers() if server.state == "ready"]
        created = SessionCreated(
            agent=found.name,
            owner=owner if listed else unlisted(owner),
            name=_checked_name(name),
            settings=changes,
            items=always_items(found) + tuple(item for server in ready for item in always_tools(server)),
            servers=tuple(server.name for server in ready),
        )
        return (await self._sessions.create(session_id or new_session_id(), [created, *past_events(past)])).state

    async def session(self, session_id: SessionId) -> SessionState:
        """Return a session as it is now. A turn in it that its worker left behind is closed before long.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._sessions.state(session_id)
        self._runner.attend(state)
        return state

    async def check_owner(self, session_id: SessionId, owner: str) -> None:
        """Make sure that a session belongs to an owner.

        Raises:
            SessionNotFoundError: there is no such session, or it is somebody else's; nobody can tell which.
        """
        if await self._sessions.owner(session_id) != owner:
            raise SessionNotFoundError(session_id)

    async def sessions(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionList:
        """Return sessions, last used first."""
        page = await self.store.sessions(owner, agent=agent, limit=limit, cursor=cursor)
        states: list[SessionState] = []
        for row in page.rows:
            # A session may be deleted while the list is being read.
            with suppress(SessionNotFoundError):
                states.append(await self._sessions.glance(row.id))
        return SessionList(tuple(states), page.cursor)

    async def update_session(
        self, session_id: SessionId, changes: Mapping[str, Any], *, actor: Actor = "user"
    ) -> SessionState:
        """Change the name or settings of a session. A value of None clears a setting.

        Raises:
            SessionNotFoundError: no such session.
            InvalidSettingError: a setting cannot be used; nothing is changed.
        """
        settings = dict(changes)
        named = {"name": _checked_name(settings.pop("name") or "")} if "name" in settings else {}

        def update(state: SessionState) -> list[Event]:
            checked = {**named, **checked_changes(settings, state.settings.time_zone)}
            return [SessionUpdated(changes=checked, actor=actor)] if checked else []

        return (await self._sessions.change(session_id, update)).state

    async def change_session(
        self,
        session_id: SessionId,
        changes: Mapping[str, Any],
        *,
        context: Mapping[str, Sequence[str]] | None = None,
        set_context: SetWish | None = None,
        expected_seq: int | None = None,
        actor: Actor = "user",
    ) -> tuple[SessionState, SetChange | None]:
        """Change name, settings and working context in one step. `context` replaces every set, then `set_context`.

        Everything is checked before anything is changed. The second value says what became of the working context, or
        is None when that was not to be changed; when it is a refusal nothing was changed at all.

        Raises:
            SessionNotFoundError: no such session.
            InvalidSettingError: a setting cannot be used; nothing is changed.
            StaleRevisionError: the log does not stand at `expected_seq`; nothing is changed.
        """
        settings = dict(changes)
        named = {"name": _checked_name(settings.pop("name") or "")} if "name" in settings else {}
        marks = await read_marks(_files_named(context, set_context))
        made: SetChange | None = None

        def decide(state: SessionState) -> list[Event]:
            nonlocal made
            if expected_seq not in (None, state.seq):
                raise StaleRevisionError("the session", str(state.seq))
            checked = {**named, **checked_changes(settings, state.settings.time_zone)}
            made = _changed_sets(state.sets, context, set_context)
            if made is not None and made.refused:
                return []
            set_name = set_context.set_name if set_context and context is None else None
            events = change_events(state, made, set_name, marks, actor) if made else []
            return [*events, SessionUpdated(changes=checked, actor=actor)] if checked else events

        changed = await self._sessions.change(session_id, decide)
        if changed.recorded and made is not None and made.sets is not None:
            warn_of_unknown(session_id, made.sets)
        return changed.state, made

    async def delete_session(self, session_id: SessionId) -> None:
        """Delete a session so that nothing of it is left. A running turn is stopped.

        Raises:
            SessionNotFoundError: no such session.
        """
        self._runner.drop(session_id)
        await self.store.delete(session_id)
        self._sessions.forget(session_id)
        self._memory.forget(session_id)

    async def export_session(self, session_id: SessionId) -> SessionExport:
        """Return a session as one document: every event, every request with its texts.

        Raises:
            SessionNotFoundError: no such session.
        """
        return await export(self.store, session_id)

    async def import_session(
        self,
        document: SessionExport,
        *,
        owner: str = "local",
        name: str | None = None,
        session_id: SessionId | None = None,
    ) -> SessionState:
        """Store an exported session as a new one, with the times and texts that it had.

        Raises:
            InvalidInputError: it is not a session that could have happened here; nothing is stored.
            SequenceConflictError: `session_id` is taken.
        """
        wanted = own_copy(document, owner=owner, name=None if name is None else _checked_name(name))
        new_id = session_id or new_session_id()
        moved = OriginalTimes(tuple(entry.at for entry in wanted.events), datetime.now(UTC))
        events = [entry.event for entry in wanted.events]
        await self.store.append(new_id, events, expected_seq=0, blobs=wanted.blobs, original_times=moved)
        return await self.session(new_id)

    async def fork_session(
        self,
        session_id: SessionId,
        turn: int | None = None,
        *,
        name: str | None = None,
        new_id: SessionId | None = None,
    ) -> SessionState:
        """Begin a new session that is this one as it was before a turn; without a turn, with all that is finished.

        Raises:
            SessionNotFoundError: no such session.
            TurnNotFoundError: no such turn, or it was erased.
            SequenceConflictError: `new_id` is taken.
        """
        state = await self.session(session_id)
        document = before_turn(await self.export_session(session_id), turn)
        return await self.import_session(document, owner=state.owner, name=name, session_id=new_id)

    async def sum_up(self, session_id: SessionId) -> SessionState:
        """Make the summary that is due, if one is. A summary that fails leaves the one before in place.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._sessions.state(session_id)
        await self._memory.sum_up(state, call_settings(self.agents.current(state.agent), state).model)
        return await self._sessions.state(session_id)

    async def clear_history(self, session_id: SessionId, *, actor: Actor = "user") -> SessionState:
        """Erase the conversation for good. Items, settings and the session itself stay.

        Raises:
            SessionNotFoundError: no such session.
            SessionBusyError: a turn is running.
        """
        holder = await self._leases.take(session_id)
        try:
            changed = await self._sessions.change(
                session_id, lambda state: [HistoryCleared(turns=state.turn_count, actor=actor)]
            )
            events = await self.store.read(session_id)
            gone = [entry.seq for entry in events if entry.seq < changed.state.seq and _is_conversation(entry.event)]
            records = [entry.event.request for entry in events if isinstance(entry.event, RequestBuilt)]
            bodies = (await self.store.blobs(session_id, records)).values()
            texts = [text for body in bodies for text in texts_of(body)]
            texts += await self._catalog_texts(session_id, events)
            await self.store.erase(session_id, gone, blobs=[*records, *dict.fromkeys(texts)])
        finally:
            await self._leases.release(session_id, holder)
        self._sessions.forget(session_id)
        self._memory.forget(session_id)
        return await self.session(session_id)

    async def add_message(
        self, session_id: SessionId, message: MessageAdded, *, key: str | None = None
    ) -> SessionState:
        """Put a message into the conversation from outside, such as one from an imported chat.

        With `key`, the same call again adds nothing.
        """
        _check_message(message.content)
        counted = replace(message, tokens=count(message.content))
        if key is None:
            return (await self._sessions.change(session_id, lambda _: [counted])).state
        await self.store.append(session_id, [counted], key=key)
        return await self._sessions.state(session_id)

    async def add_messages(self, session_id: SessionId, messages: Sequence[MessageAdded]) -> SessionState:
        """Put messages into the conversation from outside, all of them or none."""
        for message in messages:
            _check_message(message.content)
        counted = [replace(message, tokens=count(message.content)) for message in messages]
        return (await self._sessions.change(session_id, lambda _: counted)).state

    async def remove_message(self, session_id: SessionId, seq: int) -> SessionState:
        """Take back, and erase, one of the latest messages that were put in from outside.

        Raises:
            SessionNotFoundError: no such session.
            InvalidInputError: there is no such message, or it belongs to a turn.
        """
        found = await self.store.read(session_id, after=seq - 1, limit=1)
        added = found[0].event if found else None

        def remove(state: SessionState) -> list[Event]:
            latest = any(message.seq == seq for message in state.recent)
            if not isinstance(added, MessageAdded) or not latest:
                raise InvalidInputError(f"at {seq} there is no message that was put in from outside a little while ago")
            return [MessageRemoved(seq=seq, tokens=added.tokens)]

        changed = await self._sessions.change(session_id, remove)
        await self.store.erase(session_id, [seq])
        self._memory.forget(session_id)
        return changed.state

    # Items

    async def add_item(self, session_id: SessionId, ref: ItemRef, *, actor: Actor = "user") -> Changed:
        """Add an item to a session by hand. Adding it twice changes nothing, and the answer says so.

        Raises:
            SessionNotFoundError: no such session.
            UnknownItemError: the agent has no such item.
        """
        state = await self._sessions.state(session_id)
        agent = self.agents.current(state.agent)
        servers = (await self._toolboxes.of(agent)).servers()
        if not state.holds(ref) and item_of(agent, servers, ref) is None:
            known = [str(item.ref) for item in (*agent.rules, *agent.references, *_tools(servers))]
            raise UnknownItemError(str(ref), tuple(get_close_matches(str(ref), known, n=3)))
        added = ItemAdded(item=SessionItem(ref, "manual"), actor=actor)
        return await self._sessions.change(session_id, lambda now: [] if now.holds(ref) else [added])

    async def remove_item(self, session_id: SessionId, ref: ItemRef, *, actor: Actor = "user") -> Changed:
        """Take an item out of a session, also an `always` one. The removal is remembered.

        Raises:
            SessionNotFoundError: no such session.
        """
        removed = ItemRemoved(ref=ref, actor=actor)
        return await self._sessions.change(session_id, lambda now: [removed] if now.holds(ref) else [])

    # Fetched context

    async def fetch_page(self, session_id: SessionId, url: str, *, actor: Actor = "user") -> SessionState:
        """Fetch a web page into a session. Private and local addresses are refused.

        Raises:
            SessionNotFoundError: no such session.
            FetchError: the page may not or cannot be fetched; nothing is changed.
        """
        return (await self._fetching.fetch(session_id, url, actor=actor)).state

    async def push_page(
        self,
        session_id: SessionId,
        url: str,
        *,
        title: str = "",
        text: str = "",
        html: str = "",
        actor: Actor = "user",
    ) -> SessionState:
        """Take in a page that somebody else has read, such as the user's browser. Nothing is fetched.

        Raises:
            SessionNotFoundError: no such session.
            FetchError: there is no text in it; nothing is changed.
        """
        return (await self._fetching.push(session_id, url, title=title, text=text, html=html, actor=actor)).state

    async def add_fetched(
        self, session_id: SessionId, items: Sequence[Fetched], *, actor: Actor = "user"
    ) -> SessionState:
        """Take in pages or search results that somebody else has fetched. One that is there already is replaced.

        Raises:
            SessionNotFoundError: no such session.
        """
        held = [replace(item, content=capped(item.content)) for item in items]
        return (await self._fetching.add(session_id, held, actor=actor)).state

    async def clear_fetched(
        self, session_id: SessionId, kind: FetchedKind | None = None, *, actor: Actor = "user"
    ) -> SessionState:
        """Erase what was fetched, of one kind or all of it. The conversation stays.

        Raises:
            SessionNotFoundError: no such session.
        """
        return await self._fetching.clear(session_id, kind, actor=actor)

    # Working context

    async def set_context(
        self,
        session_id: SessionId,
        set_name: str,
        items: Sequence[str],
        mode: ChangeMode = "replace",
        *,
        actor: Actor = "user",
    ) -> SetChange:
        """Change one set of the working context. The answer says what became of it; a refusal changes nothing.

        Raises:
            SessionNotFoundError: no such session.
        """
        return await self._working.set(session_id, set_name, items, mode, actor=actor)

    async def replace_context(
        self, session_id: SessionId, sets: Mapping[str, Sequence[str]], *, actor: Actor = "user"
    ) -> SetChange:
        """Make these sets the whole working context, all or none of them.

        Raises:
            SessionNotFoundError: no such session.
        """
        return await self._working.replace(session_id, sets, actor=actor)

    async def get_context(self, session_id: SessionId, set_name: str | None = None) -> ContextSets:
        """Return the working context: every set, or one of them, also when it is empty.

        Raises:
            SessionNotFoundError: no such session.
        """
        sets = await self._working.sets(session_id)
        return sets if set_name is None else {set_name: sets.get(set_name, ())}

    async def promote_observed(
        self, session_id: SessionId, paths: Sequence[str], *, actor: Actor = "user"
    ) -> SetChange:
        """Take files that tools were seen to touch into the set `files`.

        Raises:
            SessionNotFoundError: no such session.
        """
        return await self._working.promote(session_id, paths, actor=actor)

    # Looking

    async def search_context_items(
        self,
        agent_name: str,
        query: str,
        items: Sequence[ItemRef],
        *,
        top_k: int = 20,
        top_n: int = 5,
        include_score: float = 0.7,
    ) -> tuple[ContextItem, ...]:
        """Return which of these items a query needs, best first, each with its evidence. Unknown items are passed over.

        `top_k` candidates are looked at in detail, at most `top_n` are returned, and beyond that every one that scores
        at least `include_score`.
        """
        known = {item.ref: item for item in await self.items(agent_name)}
        wanted = [known[ref] for ref in dict.fromkeys(items) if ref in known]
        settings = {"top_k": top_k, "top_n": top_n, "include_score": include_score}
        selection = await self._selector.select(query, (), wanted, settings)
        return tuple(
            ContextItem(
                type=chosen.item.ref.type,
                name=chosen.item.name,
                server=chosen.item.ref.server,
                include_mode="agent",
                reason=chosen.reason,
                hash=item_hash(chosen.item),
                version=chosen.item.version,
                priority=None if isinstance(chosen.item, Tool) else chosen.item.priority,
                evidence=chosen.evidence,
            )
            for chosen in selection.chosen
        )

    async def select(
        self, message: str, candidates: Sequence[Item], search: Mapping[str, Any], *, recent: Sequence[Message] = ()
    ) -> Selection:
        """Return which of these items a message needs, given the conversation before it. Nothing is stored.

        Raises:
            InvalidSettingError: the search settings cannot be used.
        """
        return await self._selector.select(message, recent, candidates, search)

    async def nearness(self, message: str, texts: Sequence[str]) -> list[float | None]:
        """Return how near texts are to a message in meaning, as cosines; None where that could not be measured.

        Nothing is kept of them.
        """
        return await self._memory.nearness(message, texts)

    async def items(self, agent_name: str) -> tuple[Item, ...]:
        """Return everything an agent makes available now: rules, references, tools."""
        agent = self.agents.current(agent_name)
        return (*agent.rules, *agent.references, *_tools((await self._toolboxes.of(agent)).servers()))

    async def servers(self, agent_name: str, *, settle_s: float = 0) -> tuple[ServerStatus, ...]:
        """Return an agent's tool servers as they are now, or when they have settled."""
        toolbox = await self._toolboxes.of(self.agents.current(agent_name))
        await toolbox.settled(settle_s)
        return toolbox.servers()

    async def get_ready(self, session_id: SessionId, message: str, *, within_s: float) -> None:
        """Give tool servers and the search the time to start, so that the first request of a process lacks nothing.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._sessions.state(session_id)
        agent = self.agents.current(state.agent)
        await self.servers(state.agent, settle_s=within_s)
        candidates = [item for item in await self.items(state.agent) if item.include == "agent"]
        settings = {**search_settings(agent, state), "deadline_s": within_s}
        await self._selector.select(message, (), candidates, settings)

    async def messages(self, session_id: SessionId, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Return the latest messages before a sequence number, oldest first."""
        state = await self._sessions.state(session_id)
        starts = [seq for seq in state.turn_starts if before is None or seq < before]
        # A turn gives at least two messages, so this many turns are enough; before the first, anything may stand.
        first = starts[-limit] if len(starts) > limit else 1
        if before is not None and before <= first:
            return []
        events = await self.store.read(session_id, after=first - 1, limit=None if before is None else before - first)
        return messages_of(session_id, events)[-limit:]

    async def request_context(self, session_id: SessionId, turn: int) -> RequestContext:
        """Return the record of what a turn's request contained, as it was recorded.

        Raises:
            TurnNotFoundError: no such turn, or nothing was recorded for it.
        """
        return context_of(await self._record_of(session_id, turn))

    async def request(self, session_id: SessionId, turn: int) -> Request:
        """Return a past request, byte for byte as it was sent.

        Raises:
            TurnNotFoundError: no such turn, or nothing was recorded for it.
        """
        body = await self._record_of(session_id, turn)
        return rebuild(body, await self.store.blobs(session_id, texts_of(body)))

    async def watch(self, session_id: SessionId, *, after: int | None = None) -> AsyncGenerator[WatchEvent]:
        """Yield everything that happens to a session, whoever causes it, until it is deleted.

        First comes the log after a sequence number, then the working context as it stands, also when it is empty, then
        what happens. Without `after` only what happens from now on.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._sessions.state(session_id)
        self._runner.attend(state)
        async with aclosing(self._audience.watch(session_id, state.seq, state.sets, after)) as events:
            async for event in events:
                yield event

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
        """Tell whether nobody may watch any more: the process is about to stop."""
        return self._audience.closed

    @property
    def indexing(self) -> tuple[int, int] | None:
        """Return how many passages are embedded, and out of how many; None while nothing was searched."""
        return self._selector.progress if isinstance(self._selector, HybridSelector) else None

    async def turn_events(self, session_id: SessionId, turn: int) -> list[Recorded]:
        """Return everything that happened from the start of a turn to the start of the next.

        Raises:
            TurnNotFoundError: no such turn.
        """
        state = await self._sessions.state(session_id)
        start, end = state.turn_starts.of(turn), state.turn_starts.of(turn + 1)
        if start is None:
            raise TurnNotFoundError(session_id, turn)
        return await self.store.read(session_id, after=start - 1, limit=None if end is None else end - start)

    async def _joined(self, state: SessionState, message: str, key: str | None) -> int | None:
        """Return the turn that was started with this key before, or None."""
        turn = dict(state.turn_keys).get(key) if key else None
        if turn is None:
            return None
        started = (await self.turn_events(state.id, turn))[0].event
        if not isinstance(started, TurnStarted) or started.message != message:
            raise KeyReusedError(key or "")
        return turn

    async def _conclude(self, prepared: Prepared, events: Sequence[Event]) -> SessionState:
        try:
            changed = await append_to_turn(self._sessions, prepared.session_id, prepared.turn, events)
        finally:
            await self._leases.release(prepared.session_id, prepared.holder)
        if not changed.recorded:
            raise TurnNotFoundError(prepared.session_id, prepared.turn)
        return changed.state

    def _default_agent(self) -> str:
        names = self.agents.names()
        if not names:
            raise AgentNotFoundError("", names)
        return names[0]

    async def _catalog_texts(self, session_id: SessionId, events: Iterable[Recorded]) -> list[BlobHash]:
        """Return the names of the catalogs of these turns, and of the texts that they name."""
        built = [entry.event for entry in events if isinstance(entry.event, RequestBuilt)]
        names = list(dict.fromkeys(event.catalog for event in built if event.catalog))
        found = (await self.store.blobs(session_id, names)).values()
        return names + [entry.hash for body in found for entry in read_catalog(body).entries]

    async def _record_of(self, session_id: SessionId, turn: int) -> str:
        for entry in await self.turn_events(session_id, turn):
            if isinstance(entry.event, RequestBuilt) and entry.event.turn == turn:
                return await self.store.blob(session_id, entry.event.request)
        raise TurnNotFoundError(session_id, turn)


def _files_named(context: Mapping[str, Sequence[str]] | None, wish: SetWish | None) -> Sequence[str]:
    """Return the files that a change names, if it can be made at all."""
    made = _changed_sets({}, context, wish)
    if made is None or made.sets is None:
        return ()
    if context is not None:
        return made.sets.get("files", ())
    return wish.items if wish and wish.set_name == "files" else ()


def _changed_sets(
    sets: ContextSets, context: Mapping[str, Sequence[str]] | None, wish: SetWish | None
) -> SetChange | None:
    if context is None:
        return wish and change_set(sets, wish.set_name, wish.items, wish.mode)
    whole = replace_all(context)
    if whole.sets is None or wish is None:
        return whole
    then = change_set(whole.sets, wish.set_name, wish.items, wish.mode)
    return replace(then, warnings=tuple(dict.fromkeys(whole.warnings + then.warnings)))


def _check_message(message: str) -> None:
    if not message.strip():
        raise InvalidInputError("the message is empty")
    if len(message) > MAX_MESSAGE_CHARACTERS:
        raise InvalidInputError(
            f"the message has {len(message):,} characters and {MAX_MESSAGE_CHARACTERS:,} is the limit; shorten it"
        )
    try:
        message.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"the message is not valid Unicode at character {error.start}") from None


def _checked_name(name: str) -> str:
    if len(name) > 200:
        raise InvalidInputError(f"the name has {len(name)} characters and 200 is the limit")
    return name.strip()


def _decision(state: SessionState, decisions: Mapping[str, Decision], actor: Actor) -> ApprovalDecided:
    waiting = {call.id for call in state.open_turn.undecided} if state.open_turn else set[str]()
    if state.open_turn is None or not waiting:
        raise NothingToApproveError("no tool call of this session waits for a decision")
    if not decisions:
        raise NothingToApproveError(f"no decision was given; these calls wait: {', '.join(sorted(waiting))}")
    if unknown := sorted(set(decisions) - waiting):
        raise NothingToApproveError(
            f"these calls do not wait for a decision: {', '.join(unknown)}; these do: {', '.join(sorted(waiting))}"
        )
    return ApprovalDecided(turn=state.open_turn.turn, decisions=dict(decisions), actor=actor)


def _check_results(state: SessionState, results: Sequence[ToolResult]) -> None:
    waiting = {call.id for call in state.open_turn.for_client} if state.open_turn else set[str]()
    if not waiting:
        raise NoResultAwaitedError("no tool call of this session waits for a result; send a message instead")
    if not results:
        raise NoResultAwaitedError(f"no result was given; these calls wait: {', '.join(sorted(waiting))}")
    if unknown := sorted({result.call_id for result in results} - waiting):
        raise NoResultAwaitedError(
            f"no result is awaited for these calls: {', '.join(unknown)}; these wait: {', '.join(sorted(waiting))}"
        )


def _is_conversation(event: Event) -> bool:
    return not isinstance(
        event,
        SessionCreated
        | SessionUpdated
        | ItemAdded
        | ItemRemoved
        | ServerArrived
        | SessionContext
        | FetchedAdded
        | FetchedCleared
        | HistoryCleared
        | Erased,
    )


def _tools(servers: Iterable[ServerStatus]) -> tuple[Tool, ...]:
    return tuple(tool for server in servers for tool in server.tools)
