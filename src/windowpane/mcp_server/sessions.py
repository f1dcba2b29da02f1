"""The session that a host means when it names none, and the tools to begin with: list, start, ask.

A host that starts the server in a folder has one session for each folder; over HTTP each caller has one. Its name is
kept in its id, so it is found again whichever process asks.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from windowpane.context.ids import SessionId, named_session_id
from windowpane.context.session import SessionState
from windowpane.engine import Engine
from windowpane.errors import AgentNotFoundError, ScopeNeededError, SequenceConflictError, SessionNotFoundError
from windowpane.local.pane import LocalPane
from windowpane.mcp_server.callers import caller, own_session, told

MaybeId = Annotated[
    str | None,
    Field(description="The session's id, such as ses_…. Without it: the session of this host's working folder."),
]
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_BEGINS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)


# Without slots: the library takes the slots of a tool's result for default values.
@dataclass(frozen=True, kw_only=True)
class SessionEntry:
    """A session as a host is told of it."""

    session_id: str
    agent: str
    name: str
    turns: int


@dataclass(frozen=True, kw_only=True)
class SessionEntries:
    """Sessions, last used first."""

    sessions: tuple[SessionEntry, ...]


@dataclass(frozen=True, kw_only=True)
class AgentAnswer:
    """What an agent answered, and the turn under which that is recorded. `outcome` is `waiting` before an approval."""

    session_id: str
    turn: int
    outcome: str
    text: str


class HostSessions:
    """Finds the session that a host means. `place` is the host's working folder; empty where it has none."""

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._place = place

    async def own(self, session_id: str | None, scope: Any) -> SessionId:
        """Return a session of the caller's: the one that is named, or that of its place, which begins now if need be.

        Raises:
            ScopeNeededError: the caller's token allows less than this.
            SessionNotFoundError: the caller has no such session.
            AgentNotFoundError: there is no agent yet.
        """
        if session_id is not None:
            return await own_session(self._engine, session_id, scope)
        names = self._engine.agents.names()
        if not names:
            raise AgentNotFoundError("", names)
        name = f"MCP host in {self._place}"[:200] if self._place else "MCP host"
        mine = named_session_id(caller().owner, names[0], name)
        try:
            return await own_session(self._engine, mine, scope)
        except SessionNotFoundError:
            return await self._begun(names[0], name, mine)

    async def _begun(self, agent: str, name: str, mine: SessionId) -> SessionId:
        if not caller().may("chat"):
            raise ScopeNeededError("chat")
        # Another process may be a little faster.
        with suppress(SequenceConflictError):
            await self._engine.sessions.create(agent, owner=caller().owner, name=name, session_id=mine)
        return mine


def add_session_tools(server: MCPServer[Any], engine: Engine, sessions: HostSessions) -> None:
    """Add the tools that a host begins with."""

    @server.tool(annotations=READS)
    async def list_sessions(limit: Annotated[int, Field(ge=1, le=200)] = 50) -> SessionEntries:
        """List the sessions there are, last used first."""
        with told():
            if not caller().may("read"):
                raise ScopeNeededError("read")
            page = await engine.sessions.list(caller().owner, limit=limit)
        return SessionEntries(sessions=tuple(map(_entry, page.sessions)))

    @server.tool(annotations=_BEGINS)
    async def start_session(agent: str | None = None, name: str = "") -> SessionEntry:
        """Begin a session, of an agent if one is named, and return its id: give it to the other tools."""
        with told():
            if not caller().may("chat"):
                raise ScopeNeededError("chat")
            return _entry(await engine.sessions.create(agent, owner=caller().owner, name=name))

    @server.tool(annotations=_ASKS)
    async def ask_agent(message: str, session_id: MaybeId = None) -> AgentAnswer:
        """Send a message to a session's agent and return its answer. Everything it was given is recorded."""
        with told():
            engine.admission.check(caller().owner)
            own = await sessions.own(session_id, "chat")
            turn = await LocalPane(engine, owner=caller().owner).ask(own, message)
        if turn.outcome in ("failed", "interrupted"):
            said = next((m.content for m in reversed(turn.messages) if m.role == "error"), turn.outcome)
            raise ToolError(str(said))
        return AgentAnswer(session_id=own, turn=turn.turn, outcome=turn.outcome, text=turn.text)


def _entry(state: SessionState) -> SessionEntry:
    return SessionEntry(session_id=state.id, agent=state.agent, name=state.name, turns=state.turn_count)
