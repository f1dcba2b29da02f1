"""Sessions: create, read, list, change, delete, export, import, fork."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import anyio.to_thread

from windowpane.agents.base import Agent, Agents
from windowpane.api.export import SessionExport
from windowpane.api.sessions import SetWish
from windowpane.context.events import (
    AgentChanged,
    Event,
    SessionCreated,
    SessionUpdated,
)
from windowpane.context.ids import SessionId, new_session_id, unlisted
from windowpane.context.session import SessionState, check_answerable
from windowpane.context.sets import ContextSets, SetChange, change_set, replace_all
from windowpane.errors import (
    AgentNotFoundError,
    InvalidInputError,
    InvalidSettingError,
    SessionBusyError,
    SessionNotFoundError,
    StaleRevisionError,
)
from windowpane.memory.memory import Memory
from windowpane.request.file_marks import read_marks
from windowpane.request.gather import always_items, always_tools, item_of
from windowpane.request.prompt.sections import build_prompt
from windowpane.request.settings import checked_changes
from windowpane.sessions.export import before_turn, own_copy
from windowpane.sessions.export import export as export_of
from windowpane.sessions.listing import SessionList, list_sessions, list_these
from windowpane.sessions.past import Exchange, past_blobs, past_events
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.sessions.working import change_events, warn_of_unknown
from windowpane.stores.append import OriginalTimes
from windowpane.stores.session_copy import bundled_catalogs
from windowpane.stores.sessions import Sessions
from windowpane.tools.base import ServerStatus


class RunningTurns(Protocol):
    """What sessions need of the turns that run in them."""

    def attend(self, state: SessionState) -> None:
        """Close a turn before long that its worker left behind."""
        ...

    async def close_now(self, state: SessionState) -> None:
        """Close a turn that its worker left behind, if that is known by now."""
        ...

    def drop(self, session_id: SessionId) -> None:
        """Stop a turn without a record, because its session is about to be deleted."""
        ...


@dataclass(frozen=True, slots=True)
class _NewAgent:
    """The agent that a session is given, with its tool servers."""

    agent: Agent
    servers: Sequence[ServerStatus]

    def event(self, state: SessionState) -> AgentChanged:
        """Return what is recorded: what the agent has of the session's items stays, and its `always` items come in."""
        check_answerable(state)
        if state.open_turn is not None:
            raise SessionBusyError(state.id)
        ready = [server for server in self.servers if server.state == "ready"]
        starting = {server.name for server in self.servers} - {server.name for server in ready}
        kept = tuple(
            item
            for item in state.context_items
            if item.ref.server in starting
            or state.owns(item.ref)
            or item_of(self.agent, self.servers, item.ref) is not None
        )
        held = {item.ref for item in kept} | state.removed
        always = always_items(self.agent) + tuple(item for server in ready for item in always_tools(server))
        return AgentChanged(
            agent=self.agent.name,
            items=kept + tuple(item for item in always if item.ref not in held),
            servers=tuple(server.name for server in ready),
        )


class SessionLifecycle:
    """Sessions as a whole, whatever is in them."""

    def __init__(
        self,
        sessions: Sessions,
        agents: Agents,
        toolboxes: Toolboxes,
        memory: Memory,
        turns: RunningTurns,
        opened: Callable[[str], None],
        check_model: Callable[[str], None],
    ) -> None:
        """Take what sessions need. `opened` is told the agent of every session that a caller creates or opens.

        `check_model` refuses the name of a model that cannot exist.
        """
        self._states = sessions
        self._store = sessions.store
        self._agents = agents
        self._toolboxes = toolboxes
        self._memory = memory
        self._turns = turns
        self._opened = opened
        self._check_model = check_model

    async def create(
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
            MissingCorePromptError, UnreadableAgentError: the agent cannot start.
            InvalidSettingError: a setting cannot be used.
            UnknownModelError: there can be no such model.
            SequenceConflictError: `session_id` is taken.
        """
        found = await self._agents.look(agent or self._default_agent())
        changes = checked_changes(settings or {})
        await self._check(changes)
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
        events = [created, *past_events(past)]
        state = (await self._states.create(session_id or new_session_id(), events, past_blobs(past) or None)).state
        self._opened(state.agent)
        return state

    async def get(self, session_id: SessionId) -> SessionState:
        """Return a session as it is now. A turn in it that its worker left behind is closed before long.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._states.state(session_id)
        self._turns.attend(state)
        self._opened(state.agent)
        return state

    async def close_abandoned(self, session_id: SessionId) -> None:
        """Close a turn whose worker is gone, for a caller who reads it then: what it had said is in the log.

        Raises:
            SessionNotFoundError: no such session.
        """
        await self._turns.close_now(await self._states.state(session_id))

    async def check_owner(self, session_id: SessionId, owner: str) -> None:
        """Make sure that a session belongs to an owner.

        Raises:
            SessionNotFoundError: there is no such session, or it is another owner's; the error does not tell which.
        """
        if await self._states.owner(session_id) != owner:
            raise SessionNotFoundError(session_id)

    async def list(
        self, owner: str | None = None, *, agent: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionList:
        """Return sessions, last used first."""
        return await list_sessions(self._states, owner, agent=agent, limit=limit, cursor=cursor)

    async def list_these(
        self,
        session_ids: Sequence[SessionId],
        cursor: str | None = None,
        *,
        stand: Mapping[SessionId, int] | None = None,
    ) -> SessionList:
        """Return sessions of a page whose next has this cursor. `stand` is where their logs were just seen to stand."""
        return await list_these(self._states, session_ids, cursor, stand=stand)

    async def likely_agents(self) -> tuple[str, ...]:
        """Return the agents that are most likely used next: the latest session's, and the one that new sessions get."""
        latest, names = await self._store.sessions(limit=1), self._agents.names()
        return tuple(dict.fromkeys([*(row.agent for row in latest.rows if row.agent in names), *names[:1]]))

    async def update(self, session_id: SessionId, changes: Mapping[str, Any]) -> SessionState:
        """Change the name or settings of a session. A value of None clears a setting.

        Raises:
            SessionNotFoundError: no such session.
            InvalidSettingError: a setting cannot be used; nothing is changed.
            UnknownModelError: there can be no such model; nothing is changed.
        """
        settings = dict(changes)
        named = {"name": _checked_name(settings.pop("name") or "")} if "name" in settings else {}
        await self._check(settings)

        def update(state: SessionState) -> list[Event]:
            checked = {**named, **checked_changes(settings, state.settings.time_zone)}
            return [SessionUpdated(changes=checked, actor="user")] if checked else []

        return (await self._states.change(session_id, update)).state

    async def change(
        self,
        session_id: SessionId,
        changes: Mapping[str, Any],
        *,
        context: Mapping[str, Sequence[str]] | None = None,
        set_context: SetWish | None = None,
        expected_seq: int | None = None,
    ) -> tuple[SessionState, SetChange | None]:
        """Change name, agent, settings and working context in one step.

        `context` replaces every set, then `set_context` changes one. Everything is checked before anything is changed.
        The second value says what became of the working context, or is None when that was not to be changed; when it
        is a refusal nothing was changed at all.

        Raises:
            SessionNotFoundError: no such session.
            InvalidSettingError: a setting cannot be used; nothing is changed.
            UnknownModelError: there can be no such model; nothing is changed.
            StaleRevisionError: the log does not stand at `expected_seq`; nothing is changed.
            AgentNotFoundError: there is no such agent to give to the session.
            SessionBusyError: the session is to have another agent, and its turn is not over.
        """
        settings = dict(changes)
        named = {"name": _checked_name(settings.pop("name") or "")} if "name" in settings else {}
        given = await self._new_agent(settings.pop("agent")) if "agent" in settings else None
        await self._check(settings)
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
            events = change_events(state, made, set_name, marks, "user") if made else []
            if given is not None and given.agent.name != state.agent:
                events = [*events, given.event(state)]
            return [*events, SessionUpdated(changes=checked, actor="user")] if checked else events

        changed = await self._states.change(session_id, decide)
        if changed.recorded and made is not None and made.sets is not None:
            warn_of_unknown(session_id, made.sets)
        return changed.state, made

    async def _new_agent(self, name: object) -> "_NewAgent":
        if not isinstance(name, str) or not name:
            raise InvalidSettingError("agent", "must be the name of an agent")
        found = await self._agents.look(name)
        build_prompt(found, SessionState(id=SessionId("")).settings, now=datetime.now(UTC))
        toolbox = await self._toolboxes.of(found)
        self._opened(found.name)
        return _NewAgent(found, toolbox.servers())

    async def delete(self, session_id: SessionId) -> None:
        """Delete a session so that nothing of it is left. A running turn is stopped.

        Raises:
            SessionNotFoundError: no such session.
        """
        self._turns.drop(session_id)
        await self._store.delete(session_id)
        self._states.forget(session_id)
        self._memory.forget(session_id)

    async def export(self, session_id: SessionId) -> SessionExport:
        """Return a session as one document: every event, every request with its texts.

        Raises:
            SessionNotFoundError: no such session.
        """
        return await export_of(self._store, session_id)

    async def import_(
        self,
        document: SessionExport,
        *,
        owner: str = "local",
        name: str | None = None,
        session_id: SessionId | None = None,
        keep_permissions: bool = False,
    ) -> SessionState:
        """Store an exported session as a new one, with the times and texts that it had.

        What the document says about tools that may run without asking is dropped, unless `keep_permissions` is true.

        Raises:
            InvalidInputError: it is not a session that could have happened here; nothing is stored.
            SequenceConflictError: `session_id` is taken.
        """
        checked_name = None if name is None else _checked_name(name)
        check = partial(own_copy, document, owner=owner, name=checked_name, keep_permissions=keep_permissions)
        # In a thread: a long session takes seconds to look through, and other requests do not wait for it.
        wanted = await anyio.to_thread.run_sync(check)
        new_id = session_id or new_session_id()
        moved = OriginalTimes(tuple(entry.at for entry in wanted.events), datetime.now(UTC))
        events = [entry.event for entry in wanted.events]
        blobs = {**wanted.blobs, **bundled_catalogs(events, wanted.blobs)}
        await self._store.append(new_id, events, expected_seq=0, blobs=blobs, original_times=moved)
        return await self.get(new_id)

    async def fork(
        self,
        session_id: SessionId,
        turn: int | None = None,
        *,
        name: str | None = None,
        new_id: SessionId | None = None,
        listed: bool = True,
    ) -> SessionState:
        """Begin a new session that is this one as it was before a turn; without a turn, with all that is finished.

        Raises:
            SessionNotFoundError: no such session.
            TurnNotFoundError: no such turn, or it was erased.
            SequenceConflictError: `new_id` is taken.
        """
        state = await self.get(session_id)
        document = await anyio.to_thread.run_sync(before_turn, await self.export(session_id), turn)
        owner = state.owner if listed else unlisted(state.owner)
        return await self.import_(document, owner=owner, name=name, session_id=new_id, keep_permissions=True)

    async def _check(self, settings: Mapping[str, Any]) -> None:
        model = settings.get("model")
        if isinstance(model, str):
            # In a thread: the first look at the providers loads their clients.
            await anyio.to_thread.run_sync(self._check_model, model)

    def _default_agent(self) -> str:
        names = self._agents.names()
        if not names:
            raise AgentNotFoundError("", names)
        return names[0]


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


def _checked_name(name: str) -> str:
    if len(name) > 200:
        raise InvalidInputError(f"the name has {len(name)} characters and 200 is the limit")
    return name.strip()
