"""Sessions as documents: export one, import one, share one as a file, and fork one at a turn.

To edit a message and run it again, fork before its turn and send the edited message to the fork. The session itself
is left as it was.
"""

import json
import re
from typing import Annotated, Any
from urllib.parse import quote

import anyio.to_thread
from fastapi import Body, Query, Response
from pydantic import ConfigDict, Field, WithJsonSchema

from windowpane.api.export import EXPORT, SessionExport, read_export
from windowpane.api.sessions import SessionView
from windowpane.api.xray import SharedSession
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.json_numbers import Whole
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import Id, RequestBody
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import Key

router = LazyRouter(prefix="/api/sessions", tags=["sessions"])

LONGEST_NAME = 80
"""How many characters of a session's name a file's name has."""

SessionName = Annotated[
    str | None, Query(max_length=200, description="The new session's name; without, the old one's.")
]


ExportBody = Annotated[
    dict[str, Any],
    Body(),
    WithJsonSchema({"$ref": "#/components/schemas/SessionExport"}),
]
"""What may be in it is checked where exports are read."""


class Fork(RequestBody):
    """Where to fork: before this turn; without one, after everything that is finished."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    turn: Annotated[Whole, Field(ge=1, le=2**31)] | None = None
    name: Annotated[str | None, Field(max_length=200)] = None


@router.get(
    "/{session_id}/export",
    summary="Export a session",
    response_model=SessionExport,
    responses=problems(404),
)
async def export_session(pane: Reading, session_id: Id) -> Response:
    """Return the whole session as one document: every event with its time, every request with its texts."""
    document = await pane.sessions.export(session_id)
    return Response(
        await anyio.to_thread.run_sync(_written, document),
        media_type="application/json",
        headers=_named((await pane.sessions.get(session_id)).name, "json"),
    )


def _written(document: SessionExport) -> str:
    # By hand: what a tool server said may hold half a character, and JSON can carry it as an escape.
    return json.dumps(EXPORT.adapter.dump_python(document, mode="json"))


@router.get(
    "/{session_id}/share",
    summary="Share a session as a file",
    response_model=SharedSession,
    responses=problems(404),
)
async def share_session(
    pane: Reading,
    session_id: Id,
    redacted: Annotated[bool, Query(description="Replace every text by its length and a hash.")] = False,
) -> Response:
    """Return the session as a file that the page opens without storing it: what was said, and every call taken apart.

    Keys are never in it.
    """
    document = await pane.sessions.share(session_id, redacted=redacted)
    return Response(
        await anyio.to_thread.run_sync(json.dumps, document),
        media_type="application/json",
        headers=_named("" if redacted else (await pane.sessions.get(session_id)).name, "windowpane.json"),
    )


def _named(name: str, ending: str) -> dict[str, str]:
    """Return the header that names a file after its session: several files can then be told apart."""
    words = " ".join(re.findall(r"[\w-]+", name))[:LONGEST_NAME].strip() or "session"
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(f'{words}.{ending}', errors='replace')}"}


@router.post("/import", status_code=201, summary="Import a session", responses=problems(*BODY, 409))
async def import_session(
    pane: Chatting,
    response: Response,
    body: ExportBody,
    name: SessionName = None,
    key: Key = None,
) -> SessionView:
    """Store an exported session as a new one of the caller's, with another id, and the times and texts that it had.

    Its agent need not be there: the session can be read all the same.
    """
    document = await anyio.to_thread.run_sync(read_export, body)
    made = await pane.sessions.import_(document, name=name, key=key)
    response.headers["Location"] = f"/api/sessions/{made.id}"
    return made


@router.post("/{session_id}/fork", status_code=201, summary="Fork a session", responses=problems(*BODY, 404, 409))
async def fork_session(
    pane: Chatting,
    response: Response,
    session_id: Id,
    fork: Fork | None = None,
    key: Key = None,
) -> SessionView:
    """Begin a new session that is this one as it was before a turn. This one stays as it is."""
    fork = fork or Fork()
    made = await pane.sessions.fork(session_id, fork.turn, name=fork.name, key=key)
    response.headers["Location"] = f"/api/sessions/{made.id}"
    return made
