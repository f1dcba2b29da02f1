"""Looking back: messages, and what any past turn was given and did."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Query, Response

from windowpane.api.sessions import ErasedSession, MessagePage
from windowpane.api.turns import PastContext, SentItem, TurnReceipts, TurnRecord
from windowpane.context.ids import BlobHash
from windowpane.context.request import Request
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import LARGEST_SEQ, Id, Kind, Name, Server, TurnNumber, ref_of
from windowpane.server.problems import problems
from windowpane.sessions.attachments import read_attachment

router = LazyRouter(prefix="/api/sessions/{session_id}", tags=["history"])


@router.get("/messages", summary="Read the conversation", responses=problems(404))
async def list_messages(
    pane: Reading,
    session_id: Id,
    before: Annotated[
        int | None, Query(ge=2, le=LARGEST_SEQ, description="Only messages before this sequence number.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> MessagePage:
    """Return the latest messages. An assistant message names its `turn`, whose context is one call away."""
    return await pane.sessions.messages(session_id, before=before, limit=limit)


@router.delete("/messages/{seq}", summary="Take a message back", responses=problems(404, 409))
async def remove_message(
    pane: Chatting,
    session_id: Id,
    seq: Annotated[int, Path(ge=1, le=LARGEST_SEQ, description="The message's sequence number.")],
) -> ErasedSession:
    """Take back, and erase, a message that was added without a turn a short while ago.

    Later requests, calls and summaries lose its text too. `remains` says what has the same words and is kept.
    """
    return await pane.sessions.remove_message(session_id, seq)


@router.get(
    "/attachments/{blob}",
    summary="Download a file",
    response_class=Response,
    responses={
        **problems(404),
        200: {
            "description": "The bytes of the file.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
    },
)
async def read_attachment_file(
    pane: Reading,
    session_id: Id,
    blob: Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="What the session calls the file.")],
) -> Response:
    """Return a file that came with a message or from a tool, as a download: a browser never shows it as a page."""
    found, data = await read_attachment(pane.engine.store, await pane.own(session_id), BlobHash(blob))
    return Response(
        data,
        media_type=found.media_type if found.kind == "image" else "application/octet-stream",
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}",
            "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
            # Its name is its content.
            "Cache-Control": "private, max-age=86400, immutable",
        },
    )


@router.get("/turns", summary="List turns in brief", responses=problems(404))
async def list_turns(
    pane: Reading,
    session_id: Id,
    first: Annotated[int, Query(ge=1, le=2**31, description="The first turn to list.")] = 1,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> TurnReceipts:
    """Return what each turn's model was given and what that cost, in brief. `next` is the `first` of the next page."""
    return await pane.turns.receipts(session_id, first=first, limit=limit)


@router.get("/turns/{turn}", summary="Read a turn", responses=problems(404))
async def read_turn(pane: Reading, session_id: Id, turn: TurnNumber) -> TurnRecord:
    """Return a turn's messages and events."""
    return await pane.turns.get(session_id, turn)


@router.get("/turns/{turn}/context", summary="Read what a turn's request contained", responses=problems(404))
async def read_turn_context(pane: Reading, session_id: Id, turn: TurnNumber) -> PastContext:
    """Return the record that was made when the request was built: every item, part and candidate, and why.

    `changed_since` of each item compares it with the agent now.
    """
    return await pane.turns.context(session_id, turn)


@router.get("/turns/{turn}/request", summary="Read a turn's request", responses=problems(404))
async def read_turn_request(pane: Reading, session_id: Id, turn: TurnNumber) -> Request:
    """Return the messages and tools that the model was given, byte for byte."""
    return await pane.turns.request(session_id, turn)


@router.get(
    "/turns/{turn}/items/{type}/{name:path}", summary="Read an item as a turn was given it", responses=problems(404)
)
async def read_sent_item(
    pane: Reading, session_id: Id, turn: TurnNumber, kind: Kind, name: Name, server: Server = None
) -> SentItem:
    """Return an item's text at that time, and whether the agent has changed or deleted it since."""
    return await pane.turns.item(session_id, turn, ref_of(kind, name, server))
