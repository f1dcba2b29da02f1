"""Decide what fits the model's window.

Pieces are taken in order of importance, and a piece is kept exactly when it fits the room that the more important
ones left. So nothing important gives way to something less important, and a short piece further down may still take
the room that a long one could not. The order, most important first:

1. `must`: prompt sections, `always` items and the user's message. If these alone do not fit, the turn fails before
   any model call.
2. `attached`: the words of files that came with the message.
3. `latest`: the last five messages of the conversation.
4. `resume`: what the session was working on, when it is taken up again.
5. `summary`: what was said before the messages that are sent whole.
6. `manual`: items added by hand, by priority, then name.
7. `selected`: items selected for this message, best score first.
8. `finder`: the tools by which the model asks for what was left out. No item gives way to them.
9. `fetched`: pages and search results, newest first.
10. `recall`: earlier messages that bear on this one, best score first.
11. `older`: the rest of the recent messages, newest first, without gaps.

A reference, a page or a file that does not fit is shortened rather than dropped when at least `SHORTENED_TOKENS` are
left for it.
"""

from collections.abc import Sequence
from typing import NamedTuple, get_args

from windowpane.context.request import Tier
from windowpane.errors import ContextTooLargeError

ORDER: tuple[Tier, ...] = get_args(Tier)
_PLACES = {tier: place for place, tier in enumerate(ORDER)}
CONVERSATION: tuple[Tier, ...] = ("latest", "older")
SHORTENED_TOKENS = 256


class Piece(NamedTuple):
    """Something that could be sent. `rank` orders pieces inside a tier, lowest first."""

    key: str
    tier: Tier
    rank: tuple[float | int | str, ...]
    tokens: int
    can_shorten: bool = False


class Fitted(NamedTuple):
    """What became of a piece: kept whole, kept with this many tokens, or cut (0 tokens), and why if not whole."""

    piece: Piece
    tokens: int
    reason: str = ""

    @property
    def kept(self) -> bool:
        """Tell whether any of the piece is sent."""
        return self.tokens > 0 or self.piece.tokens == 0

    @property
    def whole(self) -> bool:
        """Tell whether all of the piece is sent."""
        return self.tokens == self.piece.tokens


def fit(pieces: Sequence[Piece], room_tokens: int) -> tuple[Fitted, ...]:
    """Return what becomes of each piece, in order of importance.

    Raises:
        ContextTooLargeError: the `must` pieces alone do not fit.
    """
    ordered = in_order(pieces)
    must = [piece for piece in ordered if piece.tier == "must"]
    needed = sum(piece.tokens for piece in must)
    if needed > room_tokens:
        largest = sorted(must, key=lambda piece: (-piece.tokens, piece.key))[:3]
        raise ContextTooLargeError(
            needed, room_tokens, tuple(f"{piece.key} ({piece.tokens} tokens)" for piece in largest)
        )
    left = room_tokens - needed
    fitted = [Fitted(piece, piece.tokens) for piece in must]
    gap = False
    for piece in ordered[len(must) :]:
        if piece.tokens <= left and not gap:
            outcome = Fitted(piece, piece.tokens)
        else:
            outcome = _place(piece, left, gap)
            gap = gap or (piece.tier in CONVERSATION and not outcome.kept)
        left -= outcome.tokens
        fitted.append(outcome)
    return tuple(fitted)


def in_order(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces in order of importance."""
    return sorted(pieces, key=lambda piece: (_PLACES[piece.tier], piece.rank, piece.key))


def granted(piece: Piece, left: int, gap: bool) -> int:
    """Return how many tokens a piece gets of those that are left; `gap` tells that a later message did not fit."""
    if gap and piece.tier in CONVERSATION:
        return 0
    if piece.tokens <= left:
        return piece.tokens
    return left if piece.can_shorten and left >= SHORTENED_TOKENS else 0


def _place(piece: Piece, left: int, gap: bool) -> Fitted:
    tokens = granted(piece, left, gap)
    if tokens == piece.tokens:
        return Fitted(piece, tokens)
    if tokens:
        return Fitted(piece, tokens, f"shortened from {piece.tokens} to {left} tokens to fit")
    if gap and piece.tier in CONVERSATION:
        return Fitted(piece, 0, "a later message did not fit; history is sent without gaps")
    return Fitted(piece, 0, f"needs {piece.tokens} tokens; {left} were left after more important items")
