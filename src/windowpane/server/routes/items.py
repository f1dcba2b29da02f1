"""The items of a session: look, add, remove."""

from fastapi import APIRouter

from windowpane.api.sessions import ItemsChange, ItemsView
from windowpane.context.items import ItemRef
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.parameters import Id, Kind, Name, Server, ref_of
from windowpane.server.problems import BODY, problems

router = APIRouter(prefix="/api/sessions/{session_id}/items", tags=["items"])


@router.get("", summary="List the session's items", responses=problems(404))
async def list_session_items(pane: Reading, session_id: Id) -> ItemsView:
    """Return what is in the session, in the order in which it came."""
    return ItemsView(await pane.sessions.items(session_id))


@router.post("", summary="Add an item to the session", responses=problems(*BODY, 404))
async def add_session_item(pane: Chatting, session_id: Id, ref: ItemRef) -> ItemsChange:
    """Add an item by hand, whatever its include mode. Adding it twice changes nothing."""
    return await pane.sessions.add_item(session_id, ref)


@router.delete("/{type}/{name:path}", summary="Take an item out of the session", responses=problems(404))
async def remove_session_item(
    pane: Chatting, session_id: Id, kind: Kind, name: Name, server: Server = None
) -> ItemsChange:
    """Take an item out, also an `always` one. It stays out until a user adds it by hand."""
    return await pane.sessions.remove_item(session_id, ref_of(kind, name, server))
