"""What could be better about an agent, and what helped with similar questions before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from windowpane.api.analytics import ItemRow
from windowpane.context.ids import SessionId
from windowpane.context.items import ItemRef

Kind = Literal["demote", "promote", "shorten", "remove"]


Setting = str | bool | None
"""What a setting becomes; None takes it away, so that its default counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Settings of an item and what they become: `include` (a mode) and `enabled`; null takes one away."""

    ref: ItemRef
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What to do with an item, and why.

    `saves_tokens` is what it would have saved over the requests that were looked at, less than zero when it would have
    cost more; `saves_tokens_per_request` is the mean. `edit` does it, applied to the file of `revision`; None when
    only a person can. `row` is all that was counted.
    """

    kind: Kind
    agent: str
    ref: ItemRef
    why: str
    saves_tokens: int
    saves_tokens_per_request: int
    edit: Edit | None
    revision: str | None
    row: ItemRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A suggestion that was applied: which file was changed, its new revision, and what undoes it there."""

    agent: str
    ref: ItemRef
    file: str
    revision: str
    undo: Edit


@dataclass(frozen=True, slots=True)
class SuggestionList:
    """What could be better about an agent, what saves the most first, from so many turns."""

    turns: int
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarTurn:
    """A past turn of the same owner, what was asked in it, and how near that is: 1 is the same."""

    session_id: SessionId
    turn: int
    day: date
    message: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedItem:
    """An item of a combination. `held`: it is in the session already. `added`: a user had added it by hand."""

    ref: ItemRef
    description: str
    held: bool
    added: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Items that were of use together, and the turns that they were of use in, the most similar first."""

    items: tuple[SharedItem, ...]
    turns: tuple[SimilarTurn, ...]
    times: int
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """What helped with questions like this one, best first. `looked_at` is how many past turns were compared."""

    message: str
    looked_at: int
    combinations: tuple[Combination, ...]
