"""Find the session, the item or the request that the user means."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.errors import InvalidInputError, SessionNotFoundError, TurnNotFoundError, UnknownItemError

if TYPE_CHECKING:
    from windowpane.api.agents import ItemView
    from windowpane.api.pane import Pane
    from windowpane.api.sessions import SessionListView, SessionView
    from windowpane.context.ids import BlobHash
    from windowpane.context.items import ItemType
    from windowpane.context.request import Request

LAST = "last"
"""Means the session that was used last."""

PAGE = 200
"""How many sessions or messages are read at once."""


class ListSessions(Protocol):
    """Returns a page of sessions, last used first."""

    async def __call__(self, *, agent: str | None, limit: int, cursor: str | None = None) -> "SessionListView":
        """Return the page after a cursor."""
        ...


class SessionsToRead(Protocol):
    """Sessions that can be found."""

    async def list(self, *, agent: str | None = None, limit: int = 50, cursor: str | None = None) -> "SessionListView":
        """Return a page of sessions, last used first."""
        ...

    async def get(self, session_id: str) -> "SessionView":
        """Return a session as it is now."""
        ...


class HasSessions(Protocol):
    """A pane, or what else has sessions."""

    @property
    def sessions(self) -> SessionsToRead:
        """Its sessions."""
        ...


class HasTurns(Protocol):
    """A pane, or what else has requests of past turns."""

    @property
    def turns(self) -> "RequestsToRead":
        """Its turns."""
        ...


class RequestsToRead(Protocol):
    """Requests of past turns."""

    async def request(self, session_id: str, turn: int) -> "Request":
        """Return a turn's request."""
        ...


async def find_session(pane: HasSessions, text: str) -> "SessionView":
    """Return the session that an id, the beginning of an id, or `last` means.

    Raises:
        SessionNotFoundError: none.
        InvalidInputError: more than one.
    """
    if text == LAST:
        found = list((await pane.sessions.list(limit=1)).sessions)
    else:
        found = await _beginning_with(pane, text) if text else []
    if len(found) > 1:
        raise InvalidInputError(f"{len(found)} sessions begin with {text!r}; type more of the id")
    if not found:
        raise SessionNotFoundError(text)
    return found[0]


async def _beginning_with(pane: HasSessions, text: str) -> "list[SessionView]":
    try:
        return [await pane.sessions.get(text)]
    except SessionNotFoundError:
        return [session for session in await sessions_of(pane.sessions.list) if session.id.startswith(text)]


async def all_sessions(
    pane: "Pane", *, agent: str | None = None, query: str | None = None, limit: int | None = None
) -> "tuple[SessionView, ...]":
    """Return sessions, most recently used first; with a limit, not all of them."""
    return await sessions_of(partial(pane.sessions.list, query=query), agent=agent, limit=limit)


async def sessions_of(
    pages: "ListSessions", *, agent: str | None = None, limit: int | None = None
) -> "tuple[SessionView, ...]":
    """Return the sessions of as many pages as it takes, most recently used first."""
    page = await pages(agent=agent, limit=PAGE if limit is None else min(limit, PAGE))
    found = list(page.sessions)
    while page.cursor is not None and (limit is None or len(found) < limit):
        size = PAGE if limit is None else min(limit - len(found), PAGE)
        page = await pages(agent=agent, limit=size, cursor=page.cursor)
        found += page.sessions
    return tuple(found)


async def find_request(pane: HasTurns, session: "SessionView", turn: int | None) -> "Request | None":
    """Return a turn's request, by default the last turn's; None when no request is on record for it.

    Raises:
        TurnNotFoundError: the session has no such turn.
    """
    if turn is not None and turn > session.last_turn:
        raise TurnNotFoundError(session.id, turn)
    try:
        return await pane.turns.request(session.id, turn or session.last_turn)
    except TurnNotFoundError:
        return None


async def all_items(pane: "Pane", agent: str, kind: "ItemType | None" = None) -> "tuple[ItemView, ...]":
    """Return everything that an agent makes available, or all of one type."""
    page = await pane.agents.items(agent, type=kind)
    found = list(page.items)
    while page.cursor is not None:
        page = await pane.agents.items(agent, type=kind, cursor=page.cursor)
        found += page.items
    return tuple(found)


async def hashes_now(pane: "Pane", agent: str, kinds: "Iterable[ItemType]") -> "dict[ItemRef, BlobHash]":
    """Return the content hashes of an agent's items of some types, as they are now."""
    views = [view for kind in kinds for view in await all_items(pane, agent, kind)]
    return {ref_of(view): view.hash for view in views}


def ref_of(view: "ItemView") -> ItemRef:
    """Return the ref of a listed item."""
    return ItemRef(view.type, view.name, view.server)


def find_item(text: str, known: Iterable[ItemRef]) -> ItemRef:
    """Return the item that a text means: in its full form, or only its name if one item has it.

    An item in its full form need not be among the known ones.

    Raises:
        UnknownItemError: the text does not say what kind of item it is.
    """
    refs = tuple(known)
    exact = [ref for ref in refs if str(ref) == text]
    named = [ref for ref in refs if ref.name == text]
    if exact:
        return exact[0]
    if len(named) == 1:
        return named[0]
    if named:
        raise UnknownItemError(text, tuple(str(ref) for ref in named))
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise UnknownItemError(text)
    return rule_ref(name) if kind == "rule" else reference_ref(name) if kind == "reference" else tool_ref(kind, name)
