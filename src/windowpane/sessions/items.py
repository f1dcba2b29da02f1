"""The items of a session: add one by hand, take one out, keep one out."""

from difflib import get_close_matches

from windowpane.agents.base import Agents
from windowpane.context.events import (
    ItemAdded,
    ItemReadmitted,
    ItemRemoved,
    SessionItem,
)
from windowpane.context.ids import Actor, SessionId
from windowpane.context.items import ItemRef
from windowpane.errors import (
    UnknownItemError,
)
from windowpane.request.gather import item_of
from windowpane.sessions.agent_items import tools_of
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.stores.sessions import Changed, Sessions


class SessionItems:
    """Which items sessions hold."""

    def __init__(self, sessions: Sessions, agents: Agents, toolboxes: Toolboxes) -> None:
        self._states = sessions
        self._agents = agents
        self._toolboxes = toolboxes

    async def add(self, session_id: SessionId, ref: ItemRef, *, actor: Actor = "user") -> Changed:
        """Add an item to a session by hand. Adding it twice changes nothing, and the answer says so.

        Raises:
            SessionNotFoundError: no such session.
            UnknownItemError: the agent has no such item.
        """
        await self._check_known(session_id, ref)
        added = ItemAdded(item=SessionItem(ref, "manual"), actor=actor)
        return await self._states.change(session_id, lambda now: [] if now.holds(ref) else [added])

    async def remove(self, session_id: SessionId, ref: ItemRef, *, actor: Actor = "user") -> Changed:
        """Take an item out of a session, also an `always` one. The removal is remembered.

        Raises:
            SessionNotFoundError: no such session.
        """
        removed = ItemRemoved(ref=ref, actor=actor)
        return await self._states.change(session_id, lambda now: [removed] if now.holds(ref) else [])

    async def exclude(self, session_id: SessionId, ref: ItemRef, *, actor: Actor = "user") -> Changed:
        """Never let an item into a session: take it out if it is there, and do not select it for any request.

        Adding it by hand takes this back, and so does `readmit`.

        Raises:
            SessionNotFoundError: no such session.
            UnknownItemError: the agent has no such item.
        """
        await self._check_known(session_id, ref)
        removed = ItemRemoved(ref=ref, actor=actor)
        return await self._states.change(session_id, lambda now: [] if ref in now.removed else [removed])

    async def readmit(self, session_id: SessionId, ref: ItemRef, *, actor: Actor = "user") -> Changed:
        """Take a removal back: the item may be selected again. It does not come into the session by this.

        Raises:
            SessionNotFoundError: no such session.
        """
        readmitted = ItemReadmitted(ref=ref, actor=actor)
        return await self._states.change(session_id, lambda now: [readmitted] if ref in now.removed else [])

    async def _check_known(self, session_id: SessionId, ref: ItemRef) -> None:
        state = await self._states.state(session_id)
        agent = await self._agents.look(state.agent)
        servers = (await self._toolboxes.of(agent)).servers()
        if not state.holds(ref) and not state.owns(ref) and item_of(agent, servers, ref) is None:
            known = [str(item.ref) for item in (*agent.rules, *agent.references, *tools_of(servers))]
            raise UnknownItemError(str(ref), tuple(get_close_matches(str(ref), known, n=3)))
