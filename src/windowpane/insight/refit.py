"""Share out the room of a past request once more, with other items in it.

Everything else keeps the place and the size that the record gives it. `more_tokens` finds how much larger the window
would have to be: not by trying every size, but from one size at which something changes to the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windowpane.context.items import DEFAULT_PRIORITY, ItemRef
from windowpane.context.request import ContextItem, RequestContext, Tier
from windowpane.request.fit import CONVERSATION, SHORTENED_TOKENS, Fitted, Piece, fit, granted, in_order


@dataclass(frozen=True, slots=True)
class WantedItem:
    """An item that competes for the room. A score of 0 is that of an item which was added by hand."""

    ref: ItemRef
    tokens: int
    priority: int = DEFAULT_PRIORITY
    score: float = 0.0


def pieces_with(
    context: RequestContext, selected: Sequence[WantedItem], by_hand: Sequence[WantedItem] = ()
) -> tuple[Piece, ...]:
    """Return the pieces of a past request with these items selected instead, and these added by hand."""
    held = {str(item.ref): item for item in context.items}
    # What stands there from before has a place already, whether it is selected again or not.
    stands = {item.ref for item in context.carried}
    kept = [
        Piece(
            key=piece.key,
            tier=piece.tier,
            rank=_rank(held, piece.key) if piece.tier == "manual" else (index,),
            tokens=piece.tokens,
            can_shorten=piece.can_shorten,
        )
        for index, piece in enumerate(context.pieces)
        if piece.tier != "selected"
    ]
    added = {want.ref for want in by_hand}
    return (
        *kept,
        *(_piece(want, "manual") for want in by_hand),
        *(_piece(want, "selected") for want in selected if want.ref not in added and want.ref not in stands),
    )


def fate_of(pieces: Sequence[Piece], room_tokens: int, key: str) -> Fitted | None:
    """Return what becomes of one piece, or None when it is not among them."""
    return next((fitted for fitted in fit(pieces, room_tokens) if fitted.piece.key == key), None)


def more_tokens(pieces: Sequence[Piece], room_tokens: int, key: str, *, whole: bool = False) -> int:
    """Return how many more tokens there must be for a piece to be sent, or sent whole.

    0 when it is already, and when it is not among the pieces, because its size is not known.
    A larger window may let something more important in and thereby push the piece out, so this is the smallest number
    with which the piece is sent, and not every larger number does.
    """
    ordered = in_order(pieces)
    last = next((place for place, piece in enumerate(ordered) if piece.key == key), None)
    if last is None:
        return 0
    must = sum(piece.tokens for piece in ordered if piece.tier == "must")
    before = [piece for piece in ordered[:last] if piece.tier != "must"]
    enough = ordered[last].tokens if whole else min(ordered[last].tokens, 1)
    more = 0
    while True:
        tokens, step = _share_out(before, ordered[last], room_tokens + more - must)
        if tokens >= enough:
            return more
        more += step


def _share_out(before: Sequence[Piece], target: Piece, left: int) -> tuple[int, int]:
    """Return what a piece gets after those before it, and how much the room must grow before anything changes."""
    gap = False
    step: int | None = None
    for piece in (*before, target):
        tokens = granted(piece, left, gap)
        if tokens < piece.tokens:
            for wanted in (piece.tokens, SHORTENED_TOKENS) if piece.can_shorten and not tokens else (piece.tokens,):
                if wanted > left and (step is None or wanted - left < step):
                    step = wanted - left
            gap = gap or (not tokens and piece.tier in CONVERSATION)
        left -= tokens
        if piece is target:
            return tokens, step or 1
    raise AssertionError("the target comes last")


def _rank(held: Mapping[str, ContextItem], key: str) -> tuple[float | int | str, ...]:
    item = held.get(key)
    if item is None or item.priority is None:
        return (0.0, DEFAULT_PRIORITY, item.name if item else key)
    return (0.0, item.priority, item.name)


def _piece(want: WantedItem, tier: Tier) -> Piece:
    return Piece(
        key=str(want.ref),
        tier=tier,
        rank=(-want.score, want.priority, want.ref.name),
        tokens=want.tokens,
        can_shorten=want.ref.type == "reference",
    )
