"""The skeleton of a body: its pieces in their order, written whole or as what is different from an earlier one's.

The skeleton of a later call names an earlier one's and says which stretches of it come again. Nearly always that is the
call before, so that each call stores what it adds. A chain of those is bounded: after some calls one is compared to the
call where the last stretch began, and in the end one is written whole. Of n calls that each add a message, reading one
takes about √n skeletons, and none is written more than twice.

A text that is said in a skeleton itself is also said by every body that is compared to it. So when it is erased, and
the skeleton with it, the bodies that cannot be read any more are those that had the text.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.context.ids import BlobHash, content_hash

LONG_CHAIN = 32
"""So many calls are compared each to the one before; the next one is compared to the first of them."""

MOST_CHAINS = 64
"""So many times. Then a skeleton is written whole."""

WORTH_NAMING = 12
"""A shorter text is written again: saying where it stood takes as much."""

Literal = str
Named = tuple[str, BlobHash]
Piece = Literal | Named
"""A piece of a skeleton: text as it is, or how a blob is written there and its name."""

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?')


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a body at which cutting can go on: after a field of it, or after an element of one of its lists.

    `digest` is of all that stands before. `pieces` is how many pieces there are until here, and `written` where the
    last of them ends.
    """

    at: int
    digest: bytes
    pieces: int
    written: int
    in_list: bool


@dataclass(frozen=True, slots=True)
class LastBody:
    """The body that the next one is compared to. `begins` is where its chain begins; None when it is that one."""

    name: BlobHash
    pieces: tuple[Piece, ...]
    depth: int = 0
    begins: "LastBody | None" = None
    marks: tuple[Mark, ...] = ()

    def base(self) -> "LastBody | None":
        """Return what the next body is compared to; None when it is to be written whole."""
        begins = self.begins or self
        if self.depth - begins.depth < LONG_CHAIN:
            return self
        return begins if begins.depth < MOST_CHAINS else None


def written(pieces: Sequence[Piece], last: LastBody | None) -> tuple[str, LastBody]:
    """Return a skeleton as it is stored, and what the next one is compared to."""
    base = last.base() if last is not None else None
    listed = _compared(base.pieces, pieces) if base is not None else None
    if base is None or last is None or listed is None:
        text = _as_text({"pieces": pieces})
        return text, LastBody(content_hash(text), tuple(pieces))
    text = _as_text({"before": base.name, "pieces": listed})
    begins = (last.begins or last) if base is last else None
    return text, LastBody(content_hash(text), tuple(pieces), base.depth + 1, begins)


def _as_text(skeleton: Mapping[str, Any]) -> str:
    return json.dumps(skeleton, ensure_ascii=False, separators=(",", ":"))


def _compared(base: Sequence[Piece], pieces: Sequence[Piece]) -> list[Piece | tuple[int, int]] | None:
    """Return pieces with stretches of an earlier body in their place.

    None when there are none, or when the earlier body says something itself that this one does not.
    """
    places = {piece: at for at, piece in reversed(list(enumerate(base))) if _is_worth_naming(piece)}
    listed: list[Piece | tuple[int, int]] = []
    own: set[str] = set()
    again: set[Piece] = set()
    start = end = len(base)
    for piece in pieces:
        if end < len(base) and base[end] == piece:
            end += 1
            listed[-1] = (start, end)
        elif (at := places.get(piece)) is not None:
            start, end = at, at + 1
            listed.append((start, end))
        else:
            start = end = len(base)
            listed.append(piece)
            own |= {piece} if isinstance(piece, str) else set()
            continue
        again.add(piece)
    dropped = {piece for piece in base if isinstance(piece, str) and piece not in again}
    return listed if again and _strings_in(dropped) <= _strings_in(own) else None


def _is_worth_naming(piece: Piece) -> bool:
    return not isinstance(piece, str) or len(piece) >= WORTH_NAMING


def _strings_in(literals: Iterable[str]) -> set[str]:
    """Return what these say: the JSON strings in them, and a stretch that is not closed within its piece."""
    return {found for literal in literals for found in _STRINGS.findall(literal)}


def before_in(skeleton: str) -> BlobHash | None:
    """Return the name of the skeleton that this one is compared to; None for one that is whole."""
    kept = json.loads(skeleton)
    return kept.get("before") or kept.get("first")


def names_in(skeleton: str) -> tuple[BlobHash, ...]:
    """Return the names of the texts that a skeleton names itself, in their order."""
    own = _own_pieces(json.loads(skeleton))
    return tuple(dict.fromkeys(piece[1] for piece in own if isinstance(piece, tuple)))


def literals_in(skeleton: str) -> str:
    """Return what a skeleton says itself, without the texts that it names."""
    return "\n".join(piece for piece in json.loads(skeleton)["pieces"] if isinstance(piece, str))


def chain_of(skeleton: str, texts: Mapping[BlobHash, str]) -> Iterator[BlobHash]:
    """Yield the names of the skeletons that this one is compared to, the nearest first, as far as they are known."""
    before = before_in(skeleton)
    while before is not None:
        yield before
        text = texts.get(before)
        before = before_in(text) if text is not None else None


def pieces_of(skeleton: str, texts: Mapping[BlobHash, str]) -> tuple[Piece, ...]:
    """Return the pieces of a body in their order.

    Raises:
        KeyError: a skeleton that this one is compared to is not among `texts`: it was erased.
    """
    chain = [json.loads(text) for text in (skeleton, *(texts[name] for name in chain_of(skeleton, texts)))]
    pieces: tuple[Piece, ...] = ()
    for kept in reversed(chain):
        pieces = tuple(_put_together(_own_pieces(kept, len(pieces)), pieces))
    return pieces


def _put_together(own: Iterable[Piece | range], before: Sequence[Piece]) -> Iterator[Piece]:
    for piece in own:
        if isinstance(piece, range):
            yield from before[piece.start : piece.stop]
        else:
            yield piece


def _own_pieces(kept: Mapping[str, Any], before: int = 0) -> Iterator[Piece | range]:
    """Yield what a skeleton lists. `before` is how many pieces the one has that it is compared to."""
    # Earlier versions named one stretch at the beginning and one at the end.
    yield range(kept.get("head", 0))
    for piece in kept["pieces"]:
        if isinstance(piece, str):
            yield piece
        else:
            one, other = piece
            yield (one, BlobHash(other)) if isinstance(one, str) else range(one, other)
    yield range(before - kept.get("tail", 0), before)
