"""The items of a session: look, add, remove, exclude; and references made from files."""

from windowpane.api.sessions import ItemsChange, ItemsView, ReferencesView
from windowpane.context.items import ItemRef
from windowpane.context.messages import NewFile
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import FileBody, Id, Kind, Name, Server, ref_of
from windowpane.server.problems import BODY, problems

router = LazyRouter(prefix="/api/sessions/{session_id}", tags=["items"])


@router.get("/items", summary="List the session's items", responses=problems(404))
async def list_session_items(pane: Reading, session_id: Id) -> ItemsView:
    """Return what is in the session, in the order in which it came."""
    return ItemsView(await pane.sessions.items(session_id))


@router.post("/items", summary="Add an item to the session", responses=problems(*BODY, 404))
async def add_session_item(pane: Chatting, session_id: Id, ref: ItemRef) -> ItemsChange:
    """Add an item by hand, whatever its include mode. Adding it twice changes nothing."""
    return await pane.sessions.add_item(session_id, ref)


@router.delete("/items/{type}/{name:path}", summary="Take an item out of the session", responses=problems(404))
async def remove_session_item(
    pane: Chatting, session_id: Id, kind: Kind, name: Name, server: Server = None
) -> ItemsChange:
    """Take an item out, also an `always` one. It stays out until a user adds it by hand."""
    return await pane.sessions.remove_item(session_id, ref_of(kind, name, server))


@router.post("/excluded", summary="Never let an item into the session", responses=problems(*BODY, 404))
async def exclude_session_item(pane: Chatting, session_id: Id, ref: ItemRef) -> ItemsChange:
    """Take the item out, do not select it for any request, and do not let the model find it."""
    return await pane.sessions.exclude_item(session_id, ref)


@router.delete("/excluded/{type}/{name:path}", summary="Let an item be selected again", responses=problems(404))
async def readmit_session_item(
    pane: Chatting, session_id: Id, kind: Kind, name: Name, server: Server = None
) -> ItemsChange:
    """Let an item that was removed or excluded be selected again. It does not come into the session by this."""
    return await pane.sessions.readmit_item(session_id, ref_of(kind, name, server))


@router.get("/references", summary="List the references made from files", responses=problems(404))
async def list_own_references(pane: Reading, session_id: Id) -> ReferencesView:
    """Return the references that the session made from files, in the order in which they came."""
    return await pane.sessions.own_references(session_id)


@router.post("/references", status_code=201, summary="Make a reference from a file", responses=problems(*BODY, 404))
async def add_own_reference(pane: Chatting, session_id: Id, file: FileBody) -> ReferencesView:
    """Make a reference of this session from the words of a text file, PDF or Word document.

    It is selected by its passages, as the agent's `agent` references are. The same file again changes nothing.
    """
    return await pane.sessions.add_reference(session_id, NewFile(file.name, file.data))


@router.delete("/references/{name}", summary="Remove a reference made from a file", responses=problems(404, 409))
async def remove_own_reference(pane: Chatting, session_id: Id, name: Name) -> ReferencesView:
    """Take the reference out and erase its words, unless the records of turns keep them: `remains` says which."""
    return await pane.sessions.remove_reference(session_id, name)
