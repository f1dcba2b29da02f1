"""The index port: what a store with a full-text search of its own promises beside its log.

What is indexed are fingerprints of words, never words: what is erased must be gone, and databases leave copies of what
they move about. An index is made from the log and can be made again; it goes with the texts that it is of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from windowpane.context.ids import SessionId
from windowpane.stores.clock import to_us


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedText:
    """Something that can be found: a turn, a message that was said elsewhere (turn 0), or a name (turn 0, seq 0).

    `seq` is where it begins in the log. `terms` are fingerprints of what it says and had; `tokens` is how long its
    request was, by our count.
    """

    seq: int
    turn: int
    at: datetime
    terms: frozenset[str]
    tokens: int = 0

    @property
    def place(self) -> int:
        """Return where it stands among all documents, the oldest first."""
        return to_us(self.at) * _PLACES + self.seq % _PLACES


_PLACES = 1000
"""So many documents of one moment are told apart."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A session with events that are not indexed.

    Everything through `indexed_seq` is; `erased_seq` is where its log stood when something of it was last erased.
    """

    id: SessionId
    touched_at: datetime
    indexed_seq: int
    erased_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTexts:
    """What is looked for: documents that have all of the terms, with a request between two lengths."""

    session_id: SessionId | None = None
    terms: frozenset[str] = frozenset()
    owner: str | None = None
    agent: str | None = None
    least_tokens: int | None = None
    most_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A document that has what is looked for. `place` is where the next page begins."""

    session_id: SessionId
    turn: int
    seq: int
    at: datetime
    tokens: int
    place: int = field(repr=False)


class TextIndex(Protocol):
    """The full-text search of a store. All operations may raise `StoreUnavailableError`."""

    async def behind(self, *, since: datetime | None = None, limit: int) -> list[Behind]:
        """Return sessions with events that were not looked at, last touched first; those touched since a time."""
        ...

    async def index(
        self, session: Behind, documents: Sequence[IndexedText], *, indexed_seq: int, seen_seq: int
    ) -> bool:
        """Keep documents, each in place of the one that began where it begins, unless something was erased since.

        `indexed_seq` is through where the log is indexed for good, `seen_seq` through where it was looked at. Tells
        whether they were kept.
        """
        ...

    async def find(self, wanted: WantedTexts, *, limit: int, before: int | None = None) -> list[IndexHit]:
        """Return what is found, the latest first, before a place."""
        ...
