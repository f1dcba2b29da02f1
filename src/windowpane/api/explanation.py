"""Why an item was in a request or was not, and what would have turned it round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from windowpane.context.items import IncludeMode, ItemRef
from windowpane.context.request import Evidence, ItemStatus

Fate = ItemStatus | Literal["left_out", "not_in_session", "carried"]
"""What became of an item: as the record has it, left out by the selection, or never in question."""


What = Literal["floor", "share_of_best", "top_n", "include_score", "enabled", "tokens", "add", "remove", "agent"]


Effect = Literal["includes", "leaves_out", "completes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One thing to change, in words and as a value, which is the `most` or the `least` that will do.

    `domain` is the group of search settings that it belongs to. `tokens` is how much larger the window must be; `add`
    and `remove` are done to the session by hand; `agent` is something to do to the agent.
    """

    what: What
    text: str
    value: float | int | bool | None = None
    bound: Literal["most", "least"] | None = None
    domain: Literal["text", "tools"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What would have turned a decision round, in words and value by value: everything in it, and nothing less.

    `search` are the search settings in it, as a replay and `agent.yaml` take them; `tokens` is how much larger the
    window would have to be.
    """

    effect: Effect
    text: str
    needs: tuple[Need, ...]
    search: Mapping[str, Mapping[str, Any]]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomState:
    """The budget as one item met it, in tokens.

    `pieces_tokens` is what could be sent in all. `left_tokens` is what was left when the item's turn came, and None
    when it never did. Both are None in records that do not say.
    """

    pieces_tokens: int | None
    left_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an item was in a request or not. `changes` would have turned that round, the smallest first.

    `tokens` is what all of the item takes, None when that is not known. `compared` is how many candidates its score was
    ranked among. `mode` is how the item came in, or else how the agent includes it. `degraded` says what was less good
    than it should be in the request that its score comes from.
    """

    ref: ItemRef
    included: bool
    fate: Fate
    mode: IncludeMode | None
    code: str
    reason: str
    evidence: Evidence | None
    compared: int
    tokens: int | None
    room: RoomState
    changes: tuple[Change, ...]
    degraded: tuple[str, ...] = ()

    @property
    def smallest(self) -> Change | None:
        """Return the smallest change that turns the decision round, or None when there is none."""
        turning = "leaves_out" if self.included else "includes"
        return next((change for change in self.changes if change.effect == turning), None)


@dataclass(frozen=True, slots=True)
class ExplanationList:
    """Everything that the agent had at the time of the turn, and why it was in the request or not."""

    items: tuple[Explanation, ...]
