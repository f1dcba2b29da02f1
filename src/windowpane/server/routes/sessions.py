"""Sessions: begin, list, read, change, delete."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from windowpane.api.sessions import (
    ChangedSession,
    FetchedCounts,
    OpenTurnView,
    SessionListView,
    SessionMeta,
    SessionView,
    SetWish,
    ToolName,
)
from windowpane.context.events import SessionCreated
from windowpane.context.ids import SessionId, keyed_session_id
from windowpane.context.messages import ApprovalMessage, AssistantMessage, Message
from windowpane.context.session import OpenTurn, SessionState
from windowpane.context.sets import KNOWN_SETS, MAX_PER_SET, SetChange
from windowpane.engine import Engine, SessionList
from windowpane.errors import (
    InvalidInputError,
    InvalidSettingError,
    KeyReusedError,
    SequenceConflictError,
    WrongSessionError,
)
from windowpane.server.dependencies import Asking, Chatting, Reading
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, Key, expected, tag

router = APIRouter(prefix="/api/sessions", tags=["sessions"])

LOOKED_AT = 500
"""How many sessions are looked through for a page of those that hold some words."""

Id = Annotated[SessionId, Path(description="The session's id.", examples=["ses_0123456789abcdefghjkmnpqrs"])]


def _storable(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuse what other programs could not read back: half characters, and numbers that are none or too large."""
    as_doubles: JsonValue = json.loads(json.dumps(value), parse_int=float)
    json.dumps([value, as_doubles], ensure_ascii=False, allow_nan=False).encode()
    return value


Changes = Annotated[
    dict[str, JsonValue],
    AfterValidator(_storable),
    WithJsonSchema({"$ref": "#/components/schemas/SessionSettings"}),
]
"""Settings by name. What they may be is checked by the engine, which knows; here only that they are JSON."""


class NewSession(BaseModel):
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


class SessionChange(BaseModel):
    """What changes about a session. What is not named stays; null clears.

    `context` replaces the whole working context, then `setContext` changes one set of it. With `sessionId` the change
    is refused when it is another session than the one addressed. The names may also be written with underscores.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str | None = None
    settings: Changes | None = None
    context: dict[str, Items] | None = None
    set_context: Annotated[SetContext | None, Field(validation_alias=AliasChoices("setContext", "set_context"))] = None
    session_id: Annotated[str | None, Field(validation_alias=AliasChoices("sessionId", "session_id"))] = None


class Promotion(BaseModel):
    """Observed files to take into the working context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: list[str]


def view_of(state: SessionState) -> SessionView:
    """Return a session as clients see it."""
    return SessionView(**_facts(state))


def counts_of(state: SessionState) -> FetchedCounts:
    """Return how much of each kind a session holds."""
    kinds = [held.item.kind for held in state.fetched]
    return FetchedCounts(web_search=kinds.count("web_search"), page=kinds.count("page"))


def _facts(state: SessionState) -> dict[str, Any]:
    return {
        "id": state.id,
        "name": state.name,
        "title": state.title,
        "agent": state.agent,
        "owner": state.owner,
        "settings": state.settings,
        "items": state.context_items,
        "rules": state.rules,
        "references": state.references,
        "tools": tuple(ToolName(server, name) for server, name in state.tools),
        "context": state.sets,
        "meta": SessionMeta(state.sets),
        "observed": state.observed,
        "fetched": counts_of(state),
        "summary": state.summary,
        "message_count": state.message_count,
        "turn_count": state.turn_count,
        "token_count": state.token_count,
        "seq": state.seq,
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "open_turn": _open_view(state.open_turn) if state.open_turn else None,
    }


def _open_view(turn: OpenTurn) -> OpenTurnView:
    return OpenTurnView(
        turn=turn.turn,
        state="waiting" if turn.waits else "running",
        request=turn.request,
        approvals=turn.undecided,
    )


@router.post("", status_code=201, summary="Begin a session", responses=problems(*BODY, 404, 409))
async def create_session(
    engine: Chatting, caller: Asking, response: Response, new: NewSession | None = None, key: Key = None
) -> SessionView:
    """Begin a session with every `always` item of its agent."""
    new = new or NewSession()
    new_id = keyed_session_id(caller.owner, "create", key) if key else None
    try:
        state = await engine.create_session(
            new.agent, owner=caller.owner, name=new.name or "", settings=new.settings, session_id=new_id
        )
    except SequenceConflictError:
        if new_id is None or key is None:
            raise
        state = await _made_before(engine, new_id, new, key)
    response.headers["Location"] = f"/api/sessions/{state.id}"
    tag(response, str(state.seq))
    return view_of(state)


async def _made_before(engine: Engine, session_id: SessionId, new: NewSession, key: str) -> SessionState:
    """Return the session that was made with this key, if it was made with this wish."""
    began = (await engine.store.read(session_id, limit=1))[0].event
    if (
        not isinstance(began, SessionCreated)
        or new.agent not in (None, began.agent)
        or (new.name or "").strip() != began.name
        or set(new.settings or {}) != set(began.settings)
    ):
        raise KeyReusedError(key)
    return await engine.session(session_id)


@router.get("", summary="List sessions", responses=problems())
async def list_sessions(
    engine: Reading,
    caller: Asking,
    agent: Annotated[str | None, Query(description="Only sessions of this agent.")] = None,
    q: Annotated[
        str | None, Query(max_length=1000, description="Only sessions with this in their name or conversation.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(description="The cursor of the page before.")] = None,
) -> SessionListView:
    """Return sessions, last used first.

    With `q` a page may be short, or even empty, and still have a cursor: then there is more to look through.
    """
    if q is None or not q.strip():
        page = await engine.sessions(caller.owner, agent=agent, limit=limit, cursor=cursor)
    else:
        page = await _found(engine, caller.owner, agent, q.strip().casefold(), limit, cursor)
    return SessionListView(tuple(view_of(state) for state in page.sessions), page.cursor)


async def _found(
    engine: Engine, owner: str, agent: str | None, words: str, limit: int, cursor: str | None
) -> SessionList:
    found: list[SessionState] = []
    looked_at = 0
    while True:
        page = await engine.sessions(owner, agent=agent, limit=limit - len(found), cursor=cursor)
        found += [state for state in page.sessions if await _holds(engine, state, words)]
        looked_at += len(page.sessions)
        cursor = page.cursor
        if cursor is None or len(found) == limit or looked_at >= LOOKED_AT:
            return SessionList(tuple(found), cursor)


async def _holds(engine: Engine, state: SessionState, words: str) -> bool:
    if words in state.name.casefold() or any(words in said(message).casefold() for message in state.recent):
        return True
    if state.message_count <= len(state.recent):
        return False
    earlier = await engine.messages(state.id, limit=state.message_count)
    return any(words in said(message).casefold() for message in earlier)


def said(message: Message) -> str:
    """Return the words of a message."""
    if isinstance(message, AssistantMessage):
        return message.model_reply.text
    return "" if isinstance(message, ApprovalMessage) else message.content


@router.get("/{session_id}", summary="Read a session", responses=problems(404))
async def read_session(engine: Reading, response: Response, session_id: Id) -> SessionView:
    """Return a session as it is now. Its `ETag` is its sequence number."""
    state = await engine.session(session_id)
    tag(response, str(state.seq))
    return view_of(state)


@router.patch(
    "/{session_id}",
    summary="Change a session's name, settings or working context",
    responses=problems(*BODY, 404, 409, 412),
)
async def update_session(
    engine: Chatting, response: Response, session_id: Id, change: SessionChange, if_match: IfMatch = None
) -> ChangedSession:
    """Change what is named and nothing else. A setting of null goes back to what the agent says.

    Everything is checked before anything is changed, and it is changed in one step. An applet that was left is a set
    without items. With `If-Match` nothing is changed when anything at all has happened to the session since.
    """
    if change.session_id not in (None, session_id):
        raise WrongSessionError(session_id, change.session_id or "")
    changes = dict(change.settings or {})
    if "name" in changes:
        raise InvalidSettingError("name", "the name stands beside `settings`, not in it")
    if "name" in change.model_fields_set:
        changes["name"] = change.name
    clears = change.context is None and "context" in change.model_fields_set
    one = change.set_context
    state, made = await engine.change_session(
        session_id,
        changes,
        context={} if clears else change.context,
        set_context=None if one is None else SetWish(one.set_name, one.items, one.mode),
        expected_seq=_seq(if_match),
    )
    tag(response, str(state.seq))
    return _after(state, made)


def _seq(if_match: str | None) -> int | None:
    revision = "*" if if_match is None else expected(if_match)
    if revision == "*":
        return None
    # What is no number is no revision of a session, and so none that is there now.
    return int(revision) if revision.isascii() and revision.isdecimal() and len(revision) < 19 else -1


@router.post("/{session_id}/observed", summary="Take observed files in", responses=problems(*BODY, 404))
async def promote_observed(engine: Chatting, session_id: Id, promotion: Promotion) -> ChangedSession:
    """Take files that tools were seen to touch into the set `files`."""
    made = await engine.promote_observed(session_id, promotion.paths)
    return _after(await engine.session(session_id), made)


def _after(state: SessionState, made: SetChange | None) -> ChangedSession:
    if made is None:
        return ChangedSession(**_facts(state), reply="", warnings=())
    if made.refused:
        raise InvalidInputError(made.reply)
    return ChangedSession(**_facts(state), reply=made.reply, warnings=made.warnings)


@router.delete("/{session_id}", status_code=204, summary="Delete a session", responses=problems(404))
async def delete_session(engine: Chatting, session_id: Id) -> None:
    """Delete a session so that nothing of it is left. A running turn is stopped."""
    await engine.delete_session(session_id)


@router.delete("/{session_id}/history", summary="Erase the conversation", responses=problems(404, 409))
async def clear_history(engine: Chatting, session_id: Id) -> SessionView:
    """Erase every message and request for good. Items, settings and the session itself stay."""
    return view_of(await engine.clear_history(session_id))
