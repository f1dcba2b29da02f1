"""Sessions: begin, list, read, change, delete."""

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from windowpane.api.sessions import (
    ChangedSession,
    SessionListView,
    SessionView,
    SetWish,
)
from windowpane.context.sets import KNOWN_SETS, MAX_PER_SET, MAX_TOTAL
from windowpane.errors import (
    InvalidSettingError,
    WrongSessionError,
)
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.json_numbers import check_storable
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import Id, RequestBody
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, Key, expected, tag

router = LazyRouter(prefix="/api/sessions", tags=["sessions"])


def _storable(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    check_storable(value)
    return value


Changes = Annotated[
    dict[str, JsonValue],
    AfterValidator(_storable),
    WithJsonSchema({"$ref": "#/components/schemas/SessionSettings"}),
]
"""Settings by name. What they may be is checked by the engine, which knows; here only that they are JSON."""


class NewSession(RequestBody):
    """What a new session begins with. Without an agent it gets the first one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str | None = None
    name: str | None = None
    settings: Changes | None = None


Items = Annotated[
    Any,
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": MAX_PER_SET, "title": "Items"}),
]
SetName = Annotated[Any, WithJsonSchema({"type": "string", "examples": list(KNOWN_SETS), "title": "Set name"})]
SetMode = Annotated[Any, WithJsonSchema({"enum": ["replace", "merge"], "default": "replace", "title": "Mode"})]
"""What these may be is checked where sets are changed, in one way and with one text for every door."""


class SetContext(BaseModel):
    """A change of one set of the working context. No items with mode `replace` clears the set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    set_name: Annotated[SetName, Field(validation_alias=AliasChoices("setName", "set_name"))]
    items: Items
    mode: SetMode = "replace"


class SessionChange(RequestBody):
    """What changes about a session. What is not named stays; null clears.

    With `agent` the session is given another agent; turns before keep what they were given.
    `context` replaces the whole working context, then `setContext` changes one set of it. With `sessionId` the change
    is refused when it is another session than the one addressed. The names may also be written with underscores.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str | None = None
    agent: str | None = None
    settings: Changes | None = None
    context: Annotated[dict[str, Items], Field(max_length=MAX_TOTAL)] | None = None
    set_context: Annotated[SetContext | None, Field(validation_alias=AliasChoices("setContext", "set_context"))] = None
    session_id: Annotated[str | None, Field(validation_alias=AliasChoices("sessionId", "session_id"))] = None


class Promotion(RequestBody):
    """Observed files to take into the working context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: list[str]


@router.post("", status_code=201, summary="Begin a session", responses=problems(*BODY, 404, 409))
async def create_session(
    pane: Chatting, response: Response, new: NewSession | None = None, key: Key = None
) -> SessionView:
    """Begin a session with every `always` item of its agent."""
    new = new or NewSession()
    made = await pane.sessions.create(new.agent, name=new.name or "", settings=new.settings, key=key)
    response.headers["Location"] = f"/api/sessions/{made.id}"
    tag(response, str(made.seq))
    return made


@router.get("", summary="List sessions", responses=problems())
async def list_sessions(
    pane: Reading,
    agent: Annotated[str | None, Query(description="Only sessions that began with this agent.")] = None,
    q: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="Only sessions with these words in their name or conversation, or in their name if "
            "`names_only`. The line may have conditions as in `/api/search`.",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(description="The cursor of the page before.")] = None,
) -> SessionListView:
    """Return sessions, last used first; with `q`, found last first.

    With `q` a page may be short, or even empty, and still have a cursor: then there is more to look through.
    """
    return await pane.sessions.list(agent=agent, query=q, limit=limit, cursor=cursor)


@router.get("/{session_id}", summary="Read a session", responses=problems(404))
async def read_session(pane: Reading, response: Response, session_id: Id) -> SessionView:
    """Return a session as it is now. Its `ETag` is its sequence number."""
    found = await pane.sessions.get(session_id)
    tag(response, str(found.seq))
    return found


@router.patch(
    "/{session_id}",
    summary="Change a session's name, agent, settings or working context",
    responses=problems(*BODY, 404, 409, 412),
)
async def update_session(
    pane: Chatting, response: Response, session_id: Id, change: SessionChange, if_match: IfMatch = None
) -> ChangedSession:
    """Change what is named and nothing else. A setting of null goes back to what the agent says.

    Everything is checked before anything is changed, and it is changed in one step. An applet that was left is a set
    without items. With `If-Match` nothing is changed when anything at all has happened to the session since.
    """
    if change.session_id not in (None, session_id):
        raise WrongSessionError(session_id, change.session_id or "")
    changes = dict(change.settings or {})
    for name in ("name", "agent"):
        if name in changes:
            raise InvalidSettingError(name, f"the {name} stands beside `settings`, not in it")
        if name in change.model_fields_set:
            changes[name] = getattr(change, name)
    clears = change.context is None and "context" in change.model_fields_set
    one = change.set_context
    changed = await pane.sessions.update(
        session_id,
        changes,
        context={} if clears else change.context,
        set_context=None if one is None else SetWish(one.set_name, one.items, one.mode),
        expected_seq=_seq(if_match),
    )
    tag(response, str(changed.seq))
    return changed


def _seq(if_match: str | None) -> int | None:
    revision = "*" if if_match is None else expected(if_match)
    if revision == "*":
        return None
    # What is no number is no revision of a session, and so none that is there now.
    return int(revision) if revision.isascii() and revision.isdecimal() and len(revision) < 19 else -1


@router.post("/{session_id}/observed", summary="Take observed files in", responses=problems(*BODY, 404))
async def promote_observed(pane: Chatting, session_id: Id, promotion: Promotion) -> ChangedSession:
    """Take files that tools were seen to touch into the set `files`."""
    return await pane.sessions.promote(session_id, promotion.paths)


@router.delete("/{session_id}", status_code=204, summary="Delete a session", responses=problems(404))
async def delete_session(pane: Chatting, session_id: Id) -> None:
    """Delete a session so that nothing of it is left. A running turn is stopped."""
    await pane.sessions.delete(session_id)


@router.delete("/{session_id}/history", summary="Erase the conversation", responses=problems(404, 409))
async def clear_history(pane: Chatting, session_id: Id) -> SessionView:
    """Erase every message and request for good. Items, settings and the session itself stay."""
    return await pane.sessions.clear_history(session_id)
