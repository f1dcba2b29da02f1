"""Answers that were given: read one again, with what it answered, stop it or delete it.

Nothing more is stored for it: a response is a turn, or the part of one between two calls of the client's tools, and its
id names both.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

from starlette.responses import JSONResponse, Response

from windowpane.context.events import Live, Recorded, ToolReturned, TurnFinished, TurnStarted
from windowpane.context.session import SessionState
from windowpane.errors import NotFoundError, NoTurnRunningError
from windowpane.local.pane import LocalPane
from windowpane.server.dependencies import Chatting, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai.chat import ChatCompletion, ChatShape
from windowpane.server.openai.conversation import Answering
from windowpane.server.openai.errors import OpenAIRoute, UnsupportedError, failures
from windowpane.server.openai.reply import End, Text, reply_in
from windowpane.server.openai.response_request import ResponseRequest
from windowpane.server.openai.responses import WrittenResponse, parse_id

router = LazyRouter(prefix="/v1", tags=["openai"], route_class=OpenAIRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedResponse:
    """What is said about a response that is gone."""

    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


@router.get(
    "/responses/{response_id}",
    summary="Read a response again",
    response_model=None,
    responses=failures(404),
)
async def read_response(pane: Reading, response_id: str) -> Response:
    """Return a response as the log of its session has it."""
    return JSONResponse(_written(await _found(pane, response_id)).response())


@router.post(
    "/responses/{response_id}/cancel",
    summary="Stop a response that is being given",
    response_model=None,
    responses=failures(404, 409),
)
async def cancel_response(pane: Chatting, response_id: str) -> Response:
    """Stop the turn of a response, and return what was said so far. One that has ended cannot be stopped."""
    found = await _found(pane, response_id)
    if found.state.last_turn == found.turn:
        await pane.cancel(found.state.id)
        async with aclosing(pane.engine.follow(found.state.id, found.turn)) as events:
            async for _ in events:
                pass
        found = await _found(pane, response_id)
    written = _written(found)
    if not written.cancelled:
        raise NoTurnRunningError
    return JSONResponse(written.response())


@router.get(
    "/chat/completions/{completion_id}",
    summary="Read a chat completion again",
    response_model_exclude_none=False,
    responses=failures(404),
)
async def read_chat_completion(pane: Reading, completion_id: str) -> ChatCompletion:
    """Return an answer as the log of its session has it."""
    found = await _found(pane, completion_id)
    text, end = reply_in(found.events[1:], found.turn, formed=False)
    if not isinstance(end, End):
        raise NotFoundError(f"Chat completion with id '{completion_id}' has not been given.")
    return ChatShape(found.answering, found.state.agent, created=found.created).whole(text, end)


@router.get(
    "/responses/{response_id}/input_items",
    summary="Read what a response answers",
    response_model=None,
    responses=failures(404),
)
async def list_input_items(pane: Reading, response_id: str) -> Response:
    """Return the user's message, or the results of the client's tools, that a response answers."""
    found = await _found(pane, response_id)
    first, *rest = found.events
    items = [_item(entry) for entry in (first, *takewhile(lambda entry: isinstance(entry.event, ToolReturned), rest))]
    body = {"object": "list", "data": items, "first_id": items[0]["id"], "last_id": items[-1]["id"], "has_more": False}
    return JSONResponse(body)


@router.delete("/responses/{response_id}", summary="Delete a response", responses=failures(404))
async def delete_response(pane: Chatting, response_id: str) -> DeletedResponse:
    """Delete a response that was made without a session, and everything that is kept of it.

    A turn of a session is part of its log: delete the session instead, `DELETE /api/sessions/{id}`.
    """
    found = await _found(pane, response_id)
    if found.state.listed:
        why = f"This response is a turn of the session {found.state.id}; delete the session to delete it."
        raise UnsupportedError("response_id", why)
    await pane.sessions.delete(found.state.id)
    return DeletedResponse(id=response_id)


@dataclass(frozen=True, slots=True)
class _Found:
    """A response in the log: its events, from the one that it answers."""

    state: SessionState
    turn: int
    events: list[Recorded]

    @property
    def answering(self) -> Answering:
        """Return the turn, of which nothing more is heard."""
        return Answering(self.state.id, self.turn, self.events[0].seq, _nothing(), once=not self.state.listed)

    @property
    def created(self) -> int:
        """Return when the answer began, in seconds."""
        return int(self.events[0].at.timestamp())


def _written(found: _Found) -> WrittenResponse:
    text, end = reply_in(found.events[1:], found.turn, formed=False)
    written = WrittenResponse(found.answering, ResponseRequest(model=found.state.agent, input=" "), found.created)
    written.take(Text(text))
    if end is not None:
        written.take(end)
    finished = [entry.event for entry in found.events if isinstance(entry.event, TurnFinished)]
    written.cancelled = any(event.turn == found.turn and event.outcome == "cancelled" for event in finished)
    return written


async def _found(pane: LocalPane, response_id: str) -> _Found:
    named = parse_id(response_id)
    try:
        state = await pane.engine.sessions.get(await pane.own(named.session_id))
        events = await pane.engine.past.events(state.id, named.turn)
    except NotFoundError:
        events, state = [], None
    mine = [entry for entry in events if entry.seq >= named.first_seq]
    if state is None or not mine or mine[0].seq != named.first_seq:
        raise NotFoundError(f"Response with id '{response_id}' not found.")
    return _Found(state, named.turn, mine)


def _item(entry: Recorded) -> dict[str, Any]:
    match entry.event:
        case TurnStarted(message=message, attachments=attachments):
            content = [{"type": "input_text", "text": message}]
            content += [{"type": "input_file", "filename": each.name, "file_id": each.blob} for each in attachments]
            return {"id": f"msg_{entry.seq}", "type": "message", "role": "user", "content": content}
        case ToolReturned(result=result):
            called = {"call_id": result.call_id, "output": result.content, "status": "completed"}
            return {"id": f"fco_{entry.seq}", "type": "function_call_output", **called}
        case _:
            return {"id": f"msg_{entry.seq}", "type": "message", "role": "user", "content": []}


async def _nothing() -> AsyncGenerator[Live]:
    """Yield nothing: what was said is in the log."""
    for event in ():
        yield event
