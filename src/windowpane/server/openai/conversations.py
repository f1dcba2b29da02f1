"""Conversations as OpenAI's clients keep them: each is a session, under its id."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from windowpane.context.events import MessageAdded
from windowpane.context.messages import AssistantMessage, UserMessage
from windowpane.context.session import SessionState
from windowpane.errors import NotFoundError
from windowpane.local.pane import LocalPane
from windowpane.server.dependencies import Asking, Chatting, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.openai import asking
from windowpane.server.openai.errors import OpenAIRoute, failures
from windowpane.server.openai.response_request import Item
from windowpane.server.parameters import RequestBody

router = LazyRouter(prefix="/v1", tags=["openai"], route_class=OpenAIRoute)

MOST_ITEMS = 20
"""How many items come with one call, as OpenAI has it."""


class NewConversation(RequestBody):
    """A conversation to begin. `metadata.agent` names the agent, `metadata.name` the session."""

    model_config = ConfigDict(frozen=True)

    items: Annotated[list[Item], Field(max_length=MOST_ITEMS)] | None = None
    metadata: dict[str, JsonValue] | None = None


class ConversationChange(RequestBody):
    """What is to be different. `metadata.name` names the session."""

    model_config = ConfigDict(frozen=True)

    metadata: dict[str, JsonValue]


class NewItems(RequestBody):
    """Messages to put into a conversation."""

    model_config = ConfigDict(frozen=True)

    items: Annotated[list[Item], Field(min_length=1, max_length=MOST_ITEMS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDocument:
    """A conversation: a session, its agent and its name."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedConversation:
    """What is said about a conversation that is gone."""

    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationItems:
    """Messages of a conversation."""

    object: Literal["list"] = "list"
    data: tuple[dict[str, Any], ...]
    first_id: str | None
    last_id: str | None
    has_more: bool = False


@router.post("/conversations", summary="Begin a conversation", responses=failures(404, 413, 415))
async def create_conversation(pane: Chatting, caller: Asking, body: NewConversation) -> ConversationDocument:
    """Begin a session, of the agent that `metadata.agent` names or of the first one; give its id as `conversation`."""
    told = body.metadata or {}
    agent, name = (str(told[key]) if told.get(key) else None for key in ("agent", "name"))
    added = _messages(body.items or [])
    state = await pane.engine.sessions.create(agent, owner=caller.owner, name=name or "")
    if added:
        state = await pane.engine.conversations.add_all(state.id, added)
    return _document(state)


@router.get("/conversations/{conversation_id}", summary="Read a conversation", responses=failures(404))
async def read_conversation(pane: Reading, conversation_id: str) -> ConversationDocument:
    """Return a conversation without its messages."""
    return _document(await _state(pane, conversation_id))


@router.post("/conversations/{conversation_id}", summary="Rename a conversation", responses=failures(404, 413, 415))
async def update_conversation(pane: Chatting, conversation_id: str, body: ConversationChange) -> ConversationDocument:
    """Give the session the name that `metadata.name` says. Other keys are not kept, as the answer shows."""
    state = await _state(pane, conversation_id)
    if "name" in body.metadata:
        state = await pane.engine.sessions.update(state.id, {"name": str(body.metadata["name"] or "")})
    return _document(state)


@router.delete("/conversations/{conversation_id}", summary="Delete a conversation", responses=failures(404))
async def delete_conversation(pane: Chatting, conversation_id: str) -> DeletedConversation:
    """Delete the session, and everything in it."""
    await pane.sessions.delete((await _state(pane, conversation_id)).id)
    return DeletedConversation(id=conversation_id)


@router.get("/conversations/{conversation_id}/items", summary="Read a conversation's messages", responses=failures(404))
async def list_items(
    pane: Reading,
    conversation_id: str,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Field(description="The last item of the page before.")] = None,
) -> ConversationItems:
    """Return messages, newest first unless `order` says otherwise."""
    items = await _items(pane, conversation_id)
    if order == "desc":
        items.reverse()
    if after is not None:
        items = items[items.index(_found(items, after)) + 1 :]
    return _listed(items[:limit], has_more=len(items) > limit)


@router.get(
    "/conversations/{conversation_id}/items/{item_id}",
    summary="Read a message of a conversation",
    responses=failures(404),
)
async def read_item(pane: Reading, conversation_id: str, item_id: str) -> dict[str, Any]:
    """Return one message."""
    return _found(await _items(pane, conversation_id), item_id)


@router.post(
    "/conversations/{conversation_id}/items", summary="Put messages into a conversation", responses=failures(404)
)
async def create_items(pane: Chatting, conversation_id: str, body: NewItems) -> ConversationItems:
    """Put messages of users and assistants into the session, from outside: no turn answers them."""
    state = await _state(pane, conversation_id)
    added = _messages(body.items)
    await pane.engine.conversations.add_all(state.id, added)
    return _listed((await _items(pane, conversation_id))[-len(added) :], has_more=False)


async def _state(pane: LocalPane, conversation_id: str) -> SessionState:
    return await pane.engine.sessions.get(await pane.own(conversation_id))


def _document(state: SessionState) -> ConversationDocument:
    told = {"agent": state.agent, **({"name": state.name} if state.name else {})}
    created_at = int(state.created_at.timestamp()) if state.created_at else 0
    return ConversationDocument(id=state.id, created_at=created_at, metadata=told)


def _messages(items: list[Item]) -> list[MessageAdded]:
    return [
        MessageAdded(
            role="assistant" if item.role == "assistant" else "user",
            content=asking.text_of(item.content, f"items[{index}].content"),
        )
        for index, item in enumerate(items)
    ]


async def _items(pane: LocalPane, conversation_id: str) -> list[dict[str, Any]]:
    """Return every message of a conversation, oldest first."""
    state = await _state(pane, conversation_id)
    messages = await pane.engine.conversations.messages(state.id, limit=state.seq + 1)
    return [_item(message) for message in messages if isinstance(message, UserMessage | AssistantMessage)]


def _found(items: list[dict[str, Any]], item_id: str) -> dict[str, Any]:
    found = next((item for item in items if item["id"] == item_id), None)
    if found is None:
        raise NotFoundError(f"Item with id '{item_id}' not found.")
    return found


def _listed(items: list[dict[str, Any]], *, has_more: bool) -> ConversationItems:
    ends = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return ConversationItems(data=tuple(items), first_id=ends[0], last_id=ends[1], has_more=has_more)


def _item(message: UserMessage | AssistantMessage) -> dict[str, Any]:
    mine = isinstance(message, AssistantMessage)
    text = message.model_reply.text if isinstance(message, AssistantMessage) else message.content
    part: dict[str, Any] = {"type": "output_text" if mine else "input_text", "text": text}
    if mine:
        part["annotations"] = []
    role = "assistant" if mine else "user"
    return {"id": f"msg_{message.seq}", "type": "message", "status": "completed", "role": role, "content": [part]}
