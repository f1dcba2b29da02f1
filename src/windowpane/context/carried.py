"""What stands in the prompt of a session from one request to the next, so that providers can read it from their cache.

Since the last re-base a request only grows: what entered at a turn stands where it entered. `Carried` is what a session
knows about that; `CarryChange` is what one request changes about it, in the words of the log.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from windowpane.context.ids import BlobHash
from windowpane.context.items import ItemRef, ItemType

CacheMode = Literal["auto", "stable", "fresh"]
"""How a request is put together: so that the last one is its beginning, or from nothing each time."""

CacheOrder = Literal["stable", "fresh"]

Additions = Literal["by_reference", "with_definitions"]
"""How a model is given a tool in the middle of a conversation: by the name of a declared one, or whole."""

RebaseCode = Literal["carrying_cost", "size", "cold", "item", "model", "system", "tools", "history"]
"""Why a prompt did not go on with the last one. Only `carrying_cost` is a choice; the others are forced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedItem:
    """An item that entered the prompt in an earlier turn and still stands there.

    `turn` is the one whose message it was for, `step` the model call that asked for it, 0 where none did. `place` is
    where it stands: 0 at the head of the history, else behind what was said before that turn. `used` is the last turn
    that selected or called it.
    """

    type: ItemType
    name: str
    server: str | None = None
    turn: int
    step: int = 0
    place: int
    used: int
    reason: str
    tokens: int
    hash: BlobHash
    version: str = ""
    offered_name: str | None = None

    @property
    def ref(self) -> ItemRef:
        """Return the item's name."""
        return ItemRef(self.type, self.name, self.server)


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedItem:
    """An item that stood in the prompt before and left with this request, and why."""

    type: ItemType
    name: str
    server: str | None = None
    turn: int
    tokens: int
    reason: str

    @property
    def ref(self) -> ItemRef:
        """Return the item's name."""
        return ItemRef(self.type, self.name, self.server)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebase:
    """A request that does not go on with the one before.

    `rewritten_tokens` are those that could have been read from the cache and are not; `price_tokens` is what that
    costs, in tokens of plain input, and `price_usd` in dollars, where the model has a price. `item` is the one that had
    to leave, where one had to.
    """

    code: RebaseCode
    reason: str
    rewritten_tokens: int = 0
    price_tokens: float = 0.0
    price_usd: float | None = None
    item: str = ""

    @property
    def forced(self) -> bool:
        """Tell whether it had to be, whatever it cost."""
        return self.code != "carrying_cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrefix:
    """What a request began with, as hashes: enough to tell whether the next one goes on with it, and where it breaks.

    `messages` counts the system messages too. `tokens` is what a provider can keep of it: all that stands before the
    first volatile block. `expected_tokens` is how much of this request the provider should have read from its cache.
    `rewrite_price` is what writing one of these tokens again costs beyond reading it, in plain tokens, and `input_usd`
    the price of a plain one.
    """

    system: str
    tools: str
    tool_count: int
    messages: str
    message_count: int
    tokens: int
    system_tokens: int
    tools_tokens: int
    expected_tokens: int = 0
    rewrite_price: float = 0.0
    input_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryChange:
    """What a request changes about what is carried.

    `again` are carried items that were selected again. `moved` are tools that stand at the head of the history from now
    on. `rent_tokens` is what carrying idle items has cost since the last re-base, this request included.
    """

    model: str
    through_seq: int
    prefix: SentPrefix
    entered: tuple[CarriedItem, ...] = ()
    again: tuple[ItemRef, ...] = ()
    moved: tuple[ItemRef, ...] = ()
    dropped: tuple[ItemRef, ...] = ()
    rebase: Rebase | None = None
    rent_tokens: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What stands in the prompt of a session, oldest first. Without a `prefix` there was no request to go on with.

    `through_seq` is where the summary ends that stands there, `turn` the last request's, `at` when it was last read.
    """

    items: tuple[CarriedItem, ...] = ()
    prefix: SentPrefix | None = None
    model: str = ""
    turn: int = 0
    through_seq: int = 0
    rent_tokens: float = 0.0
    at: datetime | None = None
