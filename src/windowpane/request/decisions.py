"""Write down what was decided about each item, part and piece of a request, for its record."""

from collections.abc import Iterator, Mapping, Sequence

from windowpane.context.identity_cache import cached_in
from windowpane.context.ids import BlobHash, content_hash
from windowpane.context.items import ItemRef, Reference, Rule, item_hash
from windowpane.context.request import ContextItem, OfferedTool, Part, PlacedPiece, RequestMessage
from windowpane.request.fit import Fitted
from windowpane.request.prompt.order import PastMessage, RequestEntry
from windowpane.text.blocks import Block
from windowpane.text.tokens import count, message_tokens


def item_decision(entry: RequestEntry, offered: OfferedTool | None, fates: Mapping[str, Fitted]) -> ContextItem:
    """Return what the record says about an item. `fates` is what became of each piece, by its key."""
    return ContextItem(
        type=entry.ref.type,
        name=entry.ref.name,
        server=entry.ref.server,
        include_mode=entry.mode,
        status=entry.status,
        reason=entry.reason,
        tokens=_tokens(entry, fates),
        hash=item_hash(entry.item) if entry.item else None,
        version=entry.item.version if entry.item else "",
        priority=entry.item.priority if isinstance(entry.item, Rule | Reference) else None,
        evidence=entry.evidence,
        offered_name=offered.offered_name if offered and entry.sent else None,
        since=entry.since,
    )


def _tokens(entry: RequestEntry, fates: Mapping[str, Fitted]) -> int:
    if entry.status == "truncated":
        return count(entry.text)
    return fates[piece_key(entry)].tokens if entry.sendable else 0


def piece_key(entry: RequestEntry) -> str:
    """Return what the piece of an item is called by."""
    return str(entry.ref) if entry.since is None else carried_key(entry.ref)


def carried_key(ref: ItemRef) -> str:
    """Return what the piece of an item is called by that stands in the prompt since an earlier turn."""
    return f"carried {ref}"


def placed_piece(fitted: Fitted) -> PlacedPiece:
    """Return what the record says about a piece."""
    piece = fitted.piece
    return PlacedPiece(
        key=piece.key,
        tier=piece.tier,
        tokens=piece.tokens,
        sent_tokens=fitted.tokens,
        can_shorten=piece.can_shorten,
    )


def part_decisions(
    messages: Sequence[RequestMessage], blocks: Sequence[Block], cut: Mapping[str, Fitted]
) -> list[Part]:
    """Return what the record says about each message. `cut` are the pieces that are not sent whole."""
    by_place = {(block.kind, block.name): block for block in blocks}
    parts: list[Part] = []
    for message in messages:
        block = by_place.get((message.part, message.name))
        parts.append(_plain_part(message) if block is None else _part(message, block, cut.get(block.key)))
    return parts


@cached_in("_part")
def _plain_part(message: RequestMessage) -> Part:
    hashed = message_hash(message)
    return Part(kind=message.part, name=message.name, tokens=message_tokens(message), hash=hashed)


def _part(message: RequestMessage, block: Block, fate: Fitted | None) -> Part:
    return Part(
        kind=message.part,
        name=message.name,
        tokens=message_tokens(message),
        hash=message_hash(message),
        status="truncated" if fate else "used",
        reason=fate.reason if fate else block.reason,
        evidence=block.evidence,
    )


@cached_in("_hash")
def message_hash(message: RequestMessage) -> BlobHash:
    """Return the hash of a message's text."""
    return content_hash(message.content)


def left_out(history: Sequence[PastMessage], blocks: Sequence[Block], cut: Mapping[str, Fitted]) -> Iterator[Part]:
    """Yield what the record says about messages and blocks that are not sent."""
    if not cut:
        return
    for past in history:
        if (fate := cut.get(past.key)) is not None and not fate.kept:
            yield Part(kind="history", name=past.key, tokens=0, status="left_out", reason=fate.reason)
    for block in blocks:
        if (fate := cut.get(block.key)) is not None and not fate.kept:
            yield Part(kind=block.kind, name=block.name, tokens=0, status="left_out", reason=fate.reason)
