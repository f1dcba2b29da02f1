"""References that a session makes from files: add one, take one out, and let the requests of its turns have them.

They are candidates for selection as the agent's own are. Their words are a blob of the session, the same one that the
catalogs of its turns name. So a past turn is read again as it was, also after the reference was removed.
"""

from collections.abc import Sequence
from dataclasses import replace

from windowpane.agents.base import Agent, Agents
from windowpane.context.events import Event, Recorded, ReferenceAdded, ReferenceRemoved, RequestBuilt
from windowpane.context.ids import SessionId
from windowpane.context.items import OwnReference, Reference, definition
from windowpane.context.messages import NewFile
from windowpane.context.session import SessionState, check_answerable
from windowpane.errors import InvalidInputError, UnknownItemError
from windowpane.files.references import MAX_REFERENCES, free_name, read_own, words_of
from windowpane.request.catalog import read_catalog
from windowpane.sessions.erasing import Erasure, SessionLeases
from windowpane.stores.sessions import Sessions

KEPT_AGENTS = 32
"""For how many sessions the agent with their own references is remembered."""


class OwnReferences:
    """Gives agents the references that sessions have of their own."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._kept: dict[SessionId, tuple[Agent, tuple[OwnReference, ...], Agent]] = {}

    async def agent_with(self, agent: Agent, state: SessionState) -> Agent:
        """Return an agent as a session has it: with the session's own references, before others of their names.

        The same agent and references give the very same value again. What was erased meanwhile is left out.
        """
        if not state.own_references:
            return agent
        known, own, made = self._kept.get(state.id, (None, (), agent))
        if known is not agent or own != state.own_references:
            found = await read_references(self._sessions, state)
            taken = {each.name for each in state.own_references}
            others = (reference for reference in agent.references if reference.name not in taken)
            made = replace(agent, references=(*others, *found))
        self._kept.pop(state.id, None)
        self._kept[state.id] = (agent, state.own_references, made)
        while len(self._kept) > KEPT_AGENTS:
            del self._kept[next(iter(self._kept))]
        return made


async def read_references(sessions: Sessions, state: SessionState) -> tuple[Reference, ...]:
    """Return the references that a session made from files, with their words. What was erased meanwhile is left out."""
    texts = await sessions.store.blobs(state.id, [each.blob for each in state.own_references])
    return tuple(read_own(each, texts[each.blob]) for each in state.own_references if each.blob in texts)


class SessionReferences:
    """Which references sessions make from files. A file may have `limit_bytes`."""

    def __init__(self, sessions: Sessions, agents: Agents, leases: SessionLeases, *, limit_bytes: int) -> None:
        self._sessions = sessions
        self._agents = agents
        self._leases = leases
        self._limit_bytes = limit_bytes

    async def read(self, state: SessionState) -> tuple[Reference, ...]:
        """Return those of a session, with their words."""
        return await read_references(self._sessions, state)

    async def add(self, session_id: SessionId, file: NewFile) -> SessionState:
        """Make a reference of a file. The same file again changes nothing.

        Raises:
            SessionNotFoundError: no such session.
            RecordedSessionError: the session has no agent.
            InvalidInputError: the file has no words that can be read, is too large, or there are too many; nothing is
                changed.
        """
        state = await self._sessions.state(session_id)
        check_answerable(state)
        found = await words_of(file, limit_bytes=self._limit_bytes)
        of_agent = {reference.name for reference in (await self._agents.look(state.agent)).references}
        while not any(found.own(own.name) == own for own in state.own_references):
            if len(state.own_references) >= MAX_REFERENCES:
                raise InvalidInputError(
                    f"the session has {MAX_REFERENCES} references of its own, the most there can be; remove one first"
                )
            name = free_name(found.file, of_agent | {own.name for own in state.own_references})
            own, before = found.own(name), state.own_references
            added = ReferenceAdded(reference=own, actor="user")
            changed = await self._sessions.change(
                session_id,
                lambda now, before=before, added=added: [added] if now.own_references == before else [],
                blobs={own.blob: definition(found.reference(name))},
            )
            state = changed.state
        return state

    async def remove(self, session_id: SessionId, name: str) -> Erasure:
        """Take a reference out, and erase its words unless turns had it: their records keep them until they go.

        Raises:
            SessionNotFoundError: no such session.
            UnknownItemError: the session has made no such reference.
            SessionBusyError: a turn is running.
        """
        store = self._sessions.store
        lease = await self._leases.take(session_id)
        try:
            state = await self._sessions.state(session_id)
            own = next((own for own in state.own_references if own.name == name), None)
            if own is None:
                raise UnknownItemError(f"reference:{name}")
            turns = await self._turns_with(session_id, own, await store.read(session_id))
            if not turns:
                # Before the log tells of it: a worker that is killed between the two leaves a name without words.
                await store.erase(session_id, (), blobs=[own.blob], fence=lease.fence)
                self._sessions.forget(session_id)
            removed = ReferenceRemoved(name=name, actor="user")

            def tell(now: SessionState) -> list[Event]:
                return [removed] if own in now.own_references else []

            changed = await self._sessions.change(session_id, tell, fence=lease.fence)
        finally:
            await self._leases.release(session_id, lease)
        return Erasure(changed.state, tuple(f"the record of turn {turn} keeps its words" for turn in turns))

    async def _turns_with(self, session_id: SessionId, own: OwnReference, log: Sequence[Recorded]) -> list[int]:
        """Return the turns that could have been given a reference: those that its definition belongs to."""
        built = [entry.event for entry in log if isinstance(entry.event, RequestBuilt)]
        names = list(dict.fromkeys(event.catalog for event in built if event.catalog))
        bodies = await self._sessions.store.blobs(session_id, names)
        having = {
            each for each, body in bodies.items() if any(entry.hash == own.blob for entry in read_catalog(body).entries)
        }
        return sorted({event.turn for event in built if event.catalog in having})
