"""Keep a request so that it can be read again, byte for byte, whatever happens to its agent.

A record is one small JSON text that names every message and every item by content hash, and the texts themselves.
Texts that do not change from turn to turn have the same hash and are stored once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter

from windowpane.context.ids import BlobHash, content_hash
from windowpane.context.items import Item, ItemRef, definition, item_hash
from windowpane.context.messages import ToolCall
from windowpane.context.request import OfferedTool, PartKind, Request, RequestContext, RequestMessage, Role


@dataclass(frozen=True, slots=True)
class _KeptMessage:
    role: Role
    part: PartKind
    content: BlobHash
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class _KeptTool:
    offered_name: str
    ref: ItemRef
    offer: BlobHash


@dataclass(frozen=True, slots=True)
class _Kept:
    context: RequestContext
    messages: tuple[_KeptMessage, ...]
    tools: tuple[_KeptTool, ...]


_KEPT: TypeAdapter[_Kept] = TypeAdapter(_Kept)
_OFFER: TypeAdapter[OfferedTool] = TypeAdapter(OfferedTool)


def record(request: Request, items: Mapping[ItemRef, Item]) -> tuple[BlobHash, dict[BlobHash, str]]:
    """Return the name of the record and every text that must be stored with it."""
    blobs: dict[BlobHash, str] = {}

    def kept(text: str) -> BlobHash:
        name = content_hash(text)
        blobs[name] = text
        return name

    for item in request.context.items:
        if item.hash and (found := items.get(item.ref)) is not None and item_hash(found) == item.hash:
            blobs[item.hash] = definition(found)
    body = _Kept(
        context=request.context,
        messages=tuple(
            _KeptMessage(
                role=message.role,
                part=message.part,
                content=kept(message.content),
                name=message.name,
                tool_calls=message.tool_calls,
                tool_call_id=message.tool_call_id,
            )
            for message in request.messages
        ),
        tools=tuple(
            _KeptTool(tool.offered_name, tool.ref, kept(_OFFER.dump_json(tool).decode())) for tool in request.tools
        ),
    )
    return kept(_KEPT.dump_json(body).decode()), blobs


def texts_of(body: str) -> tuple[BlobHash, ...]:
    """Return the names of every text that a record needs or mentions."""
    kept = _KEPT.validate_json(body)
    names = [message.content for message in kept.messages] + [tool.offer for tool in kept.tools]
    names += [item.hash for item in kept.context.items if item.hash]
    return tuple(dict.fromkeys(names))


def context_of(body: str) -> RequestContext:
    """Return the request context of a record."""
    return _KEPT.validate_json(body).context


def rebuild(body: str, texts: Mapping[BlobHash, str]) -> Request:
    """Return the request exactly as it was sent.

    Raises:
        KeyError: a text of the record is not among `texts`.
    """
    kept = _KEPT.validate_json(body)
    return Request(
        messages=tuple(
            RequestMessage(
                role=message.role,
                content=texts[message.content],
                part=message.part,
                name=message.name,
                tool_calls=message.tool_calls,
                tool_call_id=message.tool_call_id,
            )
            for message in kept.messages
        ),
        tools=tuple(_OFFER.validate_json(texts[tool.offer]) for tool in kept.tools),
        context=kept.context,
    )
