"""Looking back: messages, and what any past turn was given and did."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from windowpane.api.sessions import MessagePage
from windowpane.api.turns import SentItem, TurnRecord, TurnView
from windowpane.context.events import Erased, ModelReplied, Recorded, RequestBuilt, TurnFinished
from windowpane.context.fold import messages_of
from windowpane.context.ids import SessionId
from windowpane.context.items import BUILT_IN_SERVER, CLIENT_SERVER, ItemRef, item_hash
from windowpane.context.request import ContextItem, Request, RequestContext
from windowpane.engine import Engine
from windowpane.errors import AgentNotFoundError, NotFoundError, TurnNotFoundError
from windowpane.request.record import context_of
from windowpane.server.dependencies import Reading
from windowpane.server.problems import problems
from windowpane.server.routes.items import Kind, Name, Server, ref_of
from windowpane.server.routes.sessions import Id

router = APIRouter(prefix="/api/sessions/{session_id}", tags=["history"])

TurnNumber = Annotated[int, Path(description="The turn's number, from 1.")]
LARGEST_SEQ = 2**53


@router.get("/messages", summary="Read the conversation", responses=problems(404))
async def list_messages(
    engine: Reading,
    session_id: Id,
    before: Annotated[
        int | None, Query(ge=2, le=LARGEST_SEQ, description="Only messages before this sequence number.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> MessagePage:
    """Return the latest messages. An assistant message names its `turn`, whose context is one call away."""
    found = await engine.messages(session_id, before=before, limit=limit + 1)
    page = found[-limit:]
    # A failed turn can end in two messages with one sequence number; a page must not part them.
    if len(found) > limit and found[-limit - 1].seq == page[0].seq:
        page = found[-limit - 1 :]
        more = bool(await engine.messages(session_id, before=page[0].seq, limit=1))
    else:
        more = len(found) > limit
    return MessagePage(tuple(page), page[0].seq if more else None)


@router.get("/turns/{turn}", summary="Read a turn", responses=problems(404))
async def read_turn(engine: Reading, session_id: Id, turn: TurnNumber) -> TurnRecord:
    """Return a turn's messages and events."""
    events = await _events(engine, session_id, turn)
    return TurnRecord(**await _facts(engine, session_id, turn, events), events=tuple(events))


@router.get("/turns/{turn}/context", summary="Read what a turn's request contained", responses=problems(404))
async def read_turn_context(engine: Reading, session_id: Id, turn: TurnNumber) -> RequestContext:
    """Return the record that was made when the request was built: every item, part and candidate, and why."""
    return await engine.request_context(session_id, turn)


@router.get("/turns/{turn}/request", summary="Read a turn's request", responses=problems(404))
async def read_turn_request(engine: Reading, session_id: Id, turn: TurnNumber) -> Request:
    """Return the messages and tools that the model was given, byte for byte."""
    return await engine.request(session_id, turn)


@router.get(
    "/turns/{turn}/items/{type}/{name:path}", summary="Read an item as a turn was given it", responses=problems(404)
)
async def read_sent_item(
    engine: Reading, session_id: Id, turn: TurnNumber, kind: Kind, name: Name, server: Server = None
) -> SentItem:
    """Return an item's text at that time, and whether the agent has changed or deleted it since."""
    ref = ref_of(kind, name, server)
    context = await engine.request_context(session_id, turn)
    item = context.item(ref)
    if item is None:
        raise NotFoundError(f"turn {turn} had no item {str(ref)!r}")
    definition = None if item.hash is None else json.loads(await engine.store.blob(session_id, item.hash))
    return SentItem(
        item=item,
        text=definition.get("text") if definition else None,
        definition=definition,
        changed_since=await _changed_since(engine, context.agent, item),
    )


async def turn_view(
    engine: Engine, session_id: SessionId, turn: int, events: Sequence[Recorded] | None = None
) -> TurnView:
    """Return a turn as it stands. `events` are those of the turn, from its beginning, for who has them already.

    Raises:
        TurnNotFoundError: no such turn, or it was erased.
    """
    return TurnView(**await _facts(engine, session_id, turn, events or await _events(engine, session_id, turn)))


async def _events(engine: Engine, session_id: SessionId, turn: int) -> list[Recorded]:
    events = await engine.turn_events(session_id, turn)
    if isinstance(events[0].event, Erased):
        raise TurnNotFoundError(session_id, turn)
    return events


async def _facts(engine: Engine, session_id: SessionId, turn: int, events: Sequence[Recorded]) -> dict[str, Any]:
    state = await engine.session(session_id)
    now = state.open_turn if state.open_turn and state.open_turn.turn == turn else None
    finished = next(
        (entry.event for entry in events if isinstance(entry.event, TurnFinished) and entry.event.turn == turn), None
    )
    said = [entry.event.step.text for entry in events if isinstance(entry.event, ModelReplied)]
    return {
        "turn": turn,
        "outcome": finished.outcome if finished else "waiting" if now and now.waits else "running",
        "text": "\n\n".join(text for text in said if text),
        "messages": tuple(message for message in messages_of(session_id, events) if message.turn == turn),
        "approvals": now.undecided if now else (),
        "request_context": await _context(engine, session_id, turn, events),
        "seq": state.seq,
    }


async def _context(
    engine: Engine, session_id: SessionId, turn: int, events: Sequence[Recorded]
) -> RequestContext | None:
    for entry in events:
        if isinstance(entry.event, RequestBuilt) and entry.event.turn == turn:
            return context_of(await engine.store.blob(session_id, entry.event.request))
    return None


async def _changed_since(
    engine: Engine, agent: str, item: ContextItem
) -> Literal["unchanged", "changed", "deleted", "unknown"]:
    if item.server in (BUILT_IN_SERVER, CLIENT_SERVER):
        return "unknown"
    try:
        # Asked first: a server that is ready by the time of the second question has its tools then.
        away = await _away(engine, agent, item.ref)
        now = next((found for found in await engine.items(agent) if found.ref == item.ref), None)
    except AgentNotFoundError:
        return "deleted"
    if now is None:
        return "unknown" if away else "deleted"
    return "unchanged" if item_hash(now) == item.hash else "changed"


async def _away(engine: Engine, agent: str, ref: ItemRef) -> bool:
    servers = await engine.servers(agent)
    return any(server.name == ref.server and server.state != "ready" for server in servers)
