"""Share out the room of a past request once more, with other items in it.

Everything else keeps the place and the size that the record gives it. `more_tokens` finds how much larger the window
would have to be: not by trying every size, but from one size at which something changes to the next.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from windowpane.context.items import DEFAULT_PRIORITY, ItemRef, ItemType
from windowpane.context.request import ContextItem, RequestContext, Tier, counted_room
from windowpane.request.assemble import REPLY_SHARE
from windowpane.request.fit import CONVERSATION, SHORTENED_TOKENS, Fitted, Piece, fit, granted, in_order
from windowpane.request.gather import SWITCHED_OFF
from windowpane.text.tokens import TOOLS_OVERHEAD_TOKENS, family_for
from windowpane.tools.finder_tools import FINDERS, READ_RESOURCE


@dataclass(frozen=True, slots=True)
class WantedItem:
    """An item that competes for the room. A score of 0 is that of an item which was added by hand."""

    ref: ItemRef
    tokens: int
    priority: int = DEFAULT_PRIORITY
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class WindowRoom:
    """The room that pieces have in the window of a past request, or in a larger one, by our own count.

    `reply_grows`: the reply has a share of the window, and so more of a larger one. `frame_tokens` are set aside, and
    `tools_tokens` too where a tool is among the pieces.
    """

    window_tokens: int
    reply_tokens: int
    reply_grows: bool
    token_factor: float
    frame_tokens: int
    tools_tokens: int

    @classmethod
    def of(cls, context: RequestContext) -> "WindowRoom":
        """Return the room of a request whose record tells what its pieces could take."""
        budget = context.budget
        tools_tokens = TOOLS_OVERHEAD_TOKENS[family_for(context.settings)]
        all_tokens = counted_room(budget.window_tokens - budget.reply_tokens, budget.token_factor)
        had_tools = any(is_tool(piece.key) for piece in context.pieces)
        frame_tokens = all_tokens - (budget.pieces_tokens or 0) - (tools_tokens if had_tools else 0)
        asked = context.settings.max_output_tokens or 0
        return cls(
            budget.window_tokens,
            budget.reply_tokens,
            asked > budget.reply_tokens,
            budget.token_factor,
            frame_tokens,
            tools_tokens,
        )

    def tokens(self, pieces: Sequence[Piece], more: int = 0) -> int:
        """Return what these pieces can take in a window that is larger by `more`."""
        window_tokens = self.window_tokens + more
        reply_tokens = int(window_tokens * REPLY_SHARE) if self.reply_grows else self.reply_tokens
        room_tokens = counted_room(window_tokens - reply_tokens, self.token_factor) - self.frame_tokens
        return room_tokens - (self.tools_tokens if any(is_tool(piece.key) for piece in pieces) else 0)

    def with_tools(self, pieces: Sequence[Piece]) -> "WindowRoom":
        """Return the room that is left where a tool comes in that is not among the pieces."""
        if any(is_tool(piece.key) for piece in pieces):
            return self
        return replace(self, frame_tokens=self.frame_tokens + self.tools_tokens)

    def more_for(self, pieces: Sequence[Piece], room_tokens: int, more: int) -> int:
        """Return by how much the window must be larger for these pieces to have so much room, `more` at least."""
        enough = more + 1
        while self.tokens(pieces, enough) < room_tokens:
            enough *= 2
        return bisect_left(range(enough), room_tokens, lo=more, key=lambda each: self.tokens(pieces, each))


def is_tool(key: str) -> bool:
    """Tell whether a piece is a tool, new or carried: `SERVER:TOOL`. Keys of messages and blocks have a space."""
    server, colon, _ = key.removeprefix("carried ").partition(":")
    return bool(colon) and " " not in server and server not in ("rule", "reference")


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


def with_finders(
    context: RequestContext, pieces: Sequence[Piece], decided: Iterable[tuple[ItemRef, str]]
) -> tuple[Piece, ...]:
    """Return pieces with the finders that a selection brings. `decided` is each candidate and the code of its decision.

    They come last and take nothing from others, but the first tool of a request takes room for all of them.
    """
    if context.finders is None or not TOOLS_OVERHEAD_TOKENS[family_for(context.settings)]:
        return tuple(pieces)
    reader = str(READ_RESOURCE.ref)
    others = tuple(piece for piece in pieces if piece.tier != "finder" or piece.key == reader)
    if not context.finders or any(is_tool(piece.key) for piece in others):
        return others
    codes: dict[ItemType, set[str]] = {}
    for ref, code in decided:
        codes.setdefault(ref.type, set()).add(code)
    stable = context.settings.cache == "stable"
    for kind, tools in FINDERS.items():
        found = codes.get(kind, set())
        left_out = found - {"selected", *SWITCHED_OFF}
        if left_out or (stable and found and found.isdisjoint(SWITCHED_OFF)):
            return (*others, Piece(key=str(tools[0].ref), tier="finder", rank=(0,), tokens=0))
    return others


def fate_of(pieces: Sequence[Piece], room_tokens: int, key: str) -> Fitted | None:
    """Return what becomes of one piece, or None when it is not among them."""
    return next((fitted for fitted in fit(pieces, room_tokens) if fitted.piece.key == key), None)


def more_tokens(pieces: Sequence[Piece], room: WindowRoom, key: str, *, whole: bool = False) -> int:
    """Return by how many tokens the window must be larger for a piece to be sent, or sent whole.

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
        room_tokens = room.tokens(pieces, more)
        tokens, step = _share_out(before, ordered[last], room_tokens - must)
        if tokens >= enough:
            return more
        more = room.more_for(pieces, room_tokens + step, more)


def more_with_finders(pieces: Sequence[Piece], room: WindowRoom, key: str) -> int | None:
    """Return the same for a selection that is switched on; None when finders, which it may bring, make a difference.

    The record does not tell whether they come, and the first tool of a request takes room for all of them.
    """
    more = more_tokens(pieces, room, key)
    return more if more == more_tokens(pieces, room.with_tools(pieces), key) else None


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
