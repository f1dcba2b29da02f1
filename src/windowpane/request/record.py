"""Keep a request so that it can be read again, byte for byte, whatever happens to its agent.

A record is one small JSON text that names every message and every item by content hash, and the texts themselves.
Texts that do not change from turn to turn have the same hash and are stored once.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from pydantic_core import from_json

from windowpane.context.events import Recorded, RequestBuilt
from windowpane.context.identity_cache import cached_by_identity, cached_in
from windowpane.context.ids import BlobHash, content_hash
from windowpane.context.items import (
    CLIENT_SERVER,
    AgentText,
    HashedTexts,
    Item,
    ItemRef,
    definition,
    is_own,
    item_hash,
)
from windowpane.context.messages import SentFile, ToolCall
from windowpane.context.request import (
    CandidateColumns,
    OfferedTool,
    PartKind,
    Query,
    Request,
    RequestContext,
    RequestMessage,
    Role,
)
from windowpane.errors import BlobNotFoundError
from windowpane.json_codec import JsonCodec
from windowpane.request.decisions import message_hash
from windowpane.tools.finder_tools import FINDER_REFS


@dataclass(frozen=True, slots=True)
class _KeptMessage:
    role: Role
    part: PartKind
    content: BlobHash
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    tools_added: tuple[str, ...] = ()
    files: tuple[SentFile, ...] = ()


@dataclass(frozen=True, slots=True)
class _KeptTool:
    offered_name: str
    ref: ItemRef
    offer: BlobHash


@dataclass(frozen=True, slots=True)
class _Kept:
    """A record. Those of earlier versions have their candidates in the context."""

    context: RequestContext
    messages: tuple[_KeptMessage, ...]
    tools: tuple[_KeptTool, ...]
    declared: BlobHash | None = None
    query: BlobHash | None = None
    candidates: CandidateColumns | None = None


_AGENT_PARTS: frozenset[PartKind] = frozenset({"core", "site", "rules", "references"})
"""The parts that are made of the agent's words alone."""

ERASED_TEXT = "[erased]"
"""What stands for a message of a past request whose text was erased since."""

_KEPT = JsonCodec(_Kept)
_OFFER = JsonCodec(OfferedTool)
_QUERY = JsonCodec(Query)
_OFFERS = JsonCodec(tuple[OfferedTool, ...])


@lru_cache(maxsize=8)
def _read(body: str) -> _Kept:
    # A reader of a record asks it several things in a row.
    kept = from_json(body)
    settings = kept["context"]["settings"]
    if "demands" in settings:
        settings["reply_options"] = _reply_options(settings.pop("demands"))
    found = _KEPT.adapter.validate_python(kept)
    if found.candidates is None:
        return found
    return replace(found, context=replace(found.context, candidates=found.candidates), candidates=None)


def _reply_options(demands: dict[str, Any]) -> dict[str, Any]:
    """Return the reply options of a record that was written when they were called demands."""
    return {"must_call": demands["must_call"], "response_format": demands["form"]}


def to_blobs(
    request: Request, items: Mapping[ItemRef, Item], there: Container[BlobHash] = ()
) -> tuple[BlobHash, HashedTexts]:
    """Return the name of the record and every text that must be stored with it, but for those that are `there`."""
    body, texts = _kept_of(request, own=any(map(is_own, items.values())))
    blobs = HashedTexts((name, text) for name, text in texts.items() if name not in there)
    for item in (*request.context.items, *request.context.carried):
        if item.hash is None or item.hash in there:
            continue
        if (found := items.get(item.ref)) is not None and item_hash(found) == item.hash:
            blobs[item.hash] = _definition(item.ref, found)
    text = _KEPT.adapter.dump_json(body, exclude_defaults=True).decode()
    name = content_hash(text)
    blobs[name] = text
    return name, blobs


def _definition(ref: ItemRef, item: Item) -> str:
    if is_own(item):
        return definition(item)
    return _finder_definition(ref) if item is FINDER_REFS.get(ref) else _shared(ref, definition(item))


@cache
def _finder_definition(ref: ItemRef) -> str:
    # They are in no catalog, and in nearly every request.
    return AgentText(definition(FINDER_REFS[ref]))


def _shared(ref: ItemRef, text: str) -> str:
    """Return what an item says, marked as the agent's unless the client brought it."""
    return text if ref.server == CLIENT_SERVER else AgentText(text)


def _kept_of(request: Request, *, own: bool = False) -> tuple[_Kept, dict[BlobHash, str]]:
    """Return what is kept of a request, and its texts. With `own` its references are not the agent's alone."""
    of_agent = _AGENT_PARTS - {"references"} if own else _AGENT_PARTS
    blobs: dict[BlobHash, str] = {}

    def kept(text: str) -> BlobHash:
        name = content_hash(text)
        blobs[name] = text
        return name

    query, candidates = request.context.query, request.context.candidates
    # What a follow-up asks for is told by earlier messages: it is erased with them, and the record stays.
    apart = query.context_share > 0
    asked = kept(_QUERY.adapter.dump_json(query).decode()) if apart else None
    for message in request.messages:
        text = message.content
        blobs[message_hash(message)] = AgentText(text) if message.part in of_agent else text
    offers = [_offer(tool) for tool in request.tools]
    blobs |= {offer.offer: text for offer, text in offers}
    body = _Kept(
        context=replace(request.context, query=_without_words(query) if apart else query, candidates=()),
        query=asked,
        messages=tuple(map(_kept_message, request.messages)),
        tools=tuple(offer for offer, _ in offers),
        # One text for all of them: they are many, and the same from turn to turn.
        declared=kept(AgentText(_OFFERS.adapter.dump_json(request.declared).decode())) if request.declared else None,
        candidates=CandidateColumns.of(candidates) if candidates else None,
    )
    return body, blobs


@cached_in("_kept")
def _kept_message(message: RequestMessage) -> _KeptMessage:
    return _KeptMessage(
        role=message.role,
        part=message.part,
        content=message_hash(message),
        name=message.name,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        is_error=message.is_error,
        tools_added=message.tools_added,
        files=message.files,
    )


def _without_words(query: Query) -> Query:
    return replace(query, text="", reason="", clauses=())


@cached_by_identity
def _offer(tool: OfferedTool) -> tuple[_KeptTool, str]:
    """Return what is kept of a tool, and its text."""
    text = _shared(tool.ref, _OFFER.adapter.dump_json(tool).decode())
    return _KeptTool(tool.offered_name, tool.ref, content_hash(text)), text


def last_built(events: Iterable[Recorded], turn: int) -> RequestBuilt | None:
    """Return where a turn's request stands as its last model call was given it, or None when it has none."""
    built: RequestBuilt | None = None
    for entry in events:
        if isinstance(entry.event, RequestBuilt) and entry.event.turn == turn:
            built = entry.event
    return built


def texts_of(body: str) -> tuple[BlobHash, ...]:
    """Return the names of every text that a record needs or mentions."""
    kept = _read(body)
    names = [message.content for message in kept.messages] + [tool.offer for tool in kept.tools]
    names += [name for name in (kept.declared, kept.query) if name]
    names += [item.hash for item in (*kept.context.items, *kept.context.carried) if item.hash]
    return tuple(dict.fromkeys(names))


def messages_of_record(body: str) -> tuple[tuple[PartKind, str, BlobHash], ...]:
    """Return part, name and text of each message of a record, the text by its hash."""
    return tuple((message.part, message.name, message.content) for message in _read(body).messages)


def damages(name: BlobHash, body: str, texts: Mapping[BlobHash, str]) -> tuple[str, ...]:
    """Return what is not as it was recorded: nothing, when the request that is rebuilt is the one that was sent.

    A record is named by its hash and names every text by its own, so this finds any change of any byte.
    """
    found = [] if content_hash(body) == name else ["the record itself was changed"]
    kept = _read(body)
    needed = [(f"the text of {m.part} {m.name}".rstrip(), m.content) for m in kept.messages]
    needed += [(f"the tool {tool.ref}", tool.offer) for tool in kept.tools]
    needed += [("the list of declared tools", kept.declared)] if kept.declared else []
    needed += [("the query", kept.query)] if kept.query else []
    for what, blob in needed:
        if blob not in texts:
            found.append(f"{what} is missing")
        elif content_hash(texts[blob]) != blob:
            found.append(f"{what} was changed")
    if not found:
        rebuilt = rebuild(body, texts)
        again, _ = _kept_of(rebuilt)
        if (again.messages, again.tools, again.declared, again.query) != (
            kept.messages,
            kept.tools,
            kept.declared,
            kept.query,
        ):
            found.append("the messages or tools are written differently now")
    return tuple(found)


def query_in(body: str) -> BlobHash | None:
    """Return the name of the text that holds the query of a record; None for one that holds it itself."""
    return _read(body).query


def context_of(body: str, texts: Mapping[BlobHash, str]) -> RequestContext:
    """Return the request context of a record. A query whose text is not among `texts` is marked as erased."""
    kept = _read(body)
    if kept.query is None:
        return kept.context
    text = texts.get(kept.query)
    query = replace(kept.context.query, text=ERASED_TEXT) if text is None else _QUERY.adapter.validate_json(text)
    return replace(kept.context, query=query)


def rebuild(body: str, texts: Mapping[BlobHash, str]) -> Request:
    """Return the request exactly as it was sent. A message whose text is not among `texts` is marked as erased.

    Raises:
        BlobNotFoundError: a tool of the record is not among `texts`, because another caller erased the session since.
    """
    kept = _read(body)
    return Request(
        messages=tuple(
            RequestMessage(
                role=message.role,
                content=texts.get(message.content, ERASED_TEXT),
                part=message.part,
                name=message.name,
                tool_calls=message.tool_calls,
                tool_call_id=message.tool_call_id,
                is_error=message.is_error,
                erased=message.content not in texts,
                tools_added=message.tools_added,
                files=message.files,
            )
            for message in kept.messages
        ),
        tools=tuple(_OFFER.adapter.validate_json(_kept_text(texts, tool.offer)) for tool in kept.tools),
        context=context_of(body, texts),
        declared=_OFFERS.adapter.validate_json(_kept_text(texts, kept.declared)) if kept.declared else (),
    )


def _kept_text(texts: Mapping[BlobHash, str], name: BlobHash) -> str:
    if name not in texts:
        raise BlobNotFoundError(name)
    return texts[name]
