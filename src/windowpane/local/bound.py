"""An engine bound to one owner: the one place where it is checked whose session it is."""

from dataclasses import dataclass, field

from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.insight.finding.finder import SessionFinder

KNOWN = 10_000
"""How many sessions are remembered to be the owner's; a session never changes hands."""

LOCAL_OWNER = "local"
"""The owner of what is made on this machine without a token."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An engine, and who uses it. An owner of None sees the sessions of every owner; what it makes is `local`'s."""

    engine: Engine
    owner: str | None
    updater: AnalyticsUpdater
    finder: SessionFinder
    _known: set[str] = field(default_factory=set[str])

    @property
    def creator(self) -> str:
        """Return whose a new session is."""
        return LOCAL_OWNER if self.owner is None else self.owner

    async def own(self, session_id: str) -> SessionId:
        """Return a session's id, if it is the owner's.

        Raises:
            SessionNotFoundError: there is no such session, or it is another owner's; the error does not tell which.
        """
        if self.owner is not None and session_id not in self._known:
            await self.engine.sessions.check_owner(SessionId(session_id), self.owner)
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known.add(session_id)
        return SessionId(session_id)

    async def to_read(self, session_id: str) -> SessionId:
        """Return a session's id, if it is the owner's. A turn in it whose worker is gone is closed before.

        Raises:
            SessionNotFoundError: there is no such session, or it is another owner's; the error does not tell which.
        """
        own = await self.own(session_id)
        await self.engine.sessions.close_abandoned(own)
        return own

    async def also_in(self, session_id: str | None, agent: str) -> SessionId | None:
        """Return the id of the session that receives an item of an agent as well, or None when none is to.

        Raises:
            SessionNotFoundError: there is no such session, or it is another owner's.
            InvalidInputError: it is a session of another agent.
        """
        if session_id is None:
            return None
        own = await self.own(session_id)
        theirs = (await self.engine.sessions.get(own)).agent
        if theirs != agent:
            raise InvalidInputError(f"session {session_id} is one of agent {theirs!r}, not of {agent!r}")
        return own
