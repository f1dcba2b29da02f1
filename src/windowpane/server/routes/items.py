"""The items of a session: look, add, remove."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from windowpane.api.sessions import ItemsChange, ItemsView
from windowpane.context.items import ItemRef, ItemType
from windowpane.errors import InvalidInputError
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.problems import BODY, problems
from windowpane.server.routes.sessions import Id

router = APIRouter(prefix="/api/sessions/{session_id}/items", tags=["items"])

Kind = Annotated[ItemType, Path(alias="type", description="What it is: rule, reference or tool.")]
Name = Annotated[str, Path(description="Its name, which may hold anything; percent-encode it.")]
Server = Annotated[str | None, Query(description="The tool's server. A rule or a reference has none.")]


def ref_of(kind: ItemType, name: str, server: str | None) -> ItemRef:
    """Return the name of an item.

    Raises:
        InvalidInputError: a tool without a server, or a server without a tool.
    """
    try:
        return ItemRef(kind, name, server)
    except ValueError as error:
        raise InvalidInputError(str(error)) from None


@router.get("", summary="List the session's items", responses=problems(404))
async def list_session_items(engine: Reading, session_id: Id) -> ItemsView:
    """Return what is in the session, in the order in which it came."""
    return ItemsView((await engine.session(session_id)).context_items)


@router.post("", summary="Add an item to the session", responses=problems(*BODY, 404))
async def add_session_item(engine: Chatting, session_id: Id, ref: ItemRef) -> ItemsChange:
    """Add an item by hand, whatever its include mode. Adding it twice changes nothing."""
    change = await engine.add_item(session_id, ref)
    return ItemsChange(bool(change.recorded), change.state.context_items)


@router.delete("/{type}/{name:path}", summary="Take an item out of the session", responses=problems(404))
async def remove_session_item(
    engine: Chatting, session_id: Id, kind: Kind, name: Name, server: Server = None
) -> ItemsChange:
    """Take an item out, also an `always` one. It stays out until somebody adds it by hand."""
    change = await engine.remove_item(session_id, ref_of(kind, name, server))
    return ItemsChange(bool(change.recorded), change.state.context_items)
