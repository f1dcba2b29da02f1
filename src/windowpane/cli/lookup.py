"""Find the session or the item that the user typed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef, reference_ref, rule_ref, tool_ref
from windowpane.errors import InvalidInputError, RemoteError, SessionNotFoundError, UnknownItemError

if TYPE_CHECKING:
    from windowpane.api.sessions import SessionView
    from windowpane.cli.old_client import Client
    from windowpane.engine import Engine

LAST = "last"
"""Means the session that was used last."""

LATEST = 200
"""How many sessions a server lists at once; among so many of the latest, the beginning of an id is enough there."""

_PAGE = 500


async def find_session(engine: "Engine", text: str) -> SessionId:
    """Return the session that an id, the beginning of an id, or `last` means.

    Raises:
        SessionNotFoundError: none.
        InvalidInputError: more than one.
    """
    if text == LAST:
        page = await engine.store.sessions(limit=1)
        if not page.rows:
            raise SessionNotFoundError(text)
        return page.rows[0].id
    try:
        return (await engine.store.row(SessionId(text))).id
    except SessionNotFoundError:
        found = await _beginning_with(engine, text) if text else []
    if len(found) > 1:
        raise InvalidInputError(f"{len(found)} sessions begin with {text!r}; type more of the id")
    if not found:
        raise SessionNotFoundError(text)
    return found[0]


async def _beginning_with(engine: "Engine", text: str) -> list[SessionId]:
    page = await engine.store.sessions(limit=_PAGE)
    found = [row.id for row in page.rows if row.id.startswith(text)]
    while page.cursor is not None:
        page = await engine.store.sessions(limit=_PAGE, cursor=page.cursor)
        found += [row.id for row in page.rows if row.id.startswith(text)]
    return found


async def find_there(client: "Client", text: str) -> "SessionView":
    """Return the session of a server that an id, the beginning of one, or `last` means.

    Raises:
        SessionNotFoundError: none.
        InvalidInputError: more than one.
    """
    listed = (await client.sessions(limit=LATEST)).sessions
    if text == LAST and listed:
        return listed[0]
    found = [session for session in listed if text and session.id.startswith(text)]
    if len(found) > 1 and all(session.id != text for session in found):
        raise InvalidInputError(f"{len(found)} sessions begin with {text!r}; type more of the id")
    if found:
        return next((session for session in found if session.id == text), found[0])
    try:
        return await client.session(text)
    except RemoteError as error:
        if error.remote_code != SessionNotFoundError.code:
            raise
        raise SessionNotFoundError(text) from None


def find_item(text: str, known: Iterable[ItemRef]) -> ItemRef:
    """Return the item that is meant: as it is written everywhere, or its name alone when only one has it.

    An item that is not among the known ones is taken at its word.

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
