"""What a session is at one moment: its settings, its items, its latest messages, the turn that is open.

`context/fold.py` makes this state from the session's events. It is bounded however long the conversation grows: it
keeps the latest messages and where each turn begins in the log; older messages are read from the log when they are
asked for.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from windowpane.context.calls import Origin, SmallerWindow, TokenFactor
from windowpane.context.carried import CacheMode, Carried
from windowpane.context.events import (
    Branch,
    FileMark,
    SessionItem,
)
from windowpane.context.fetched import Fetched
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import CLIENT_SERVER, ItemRef, OwnReference
from windowpane.context.messages import (
    AssistantMessage,
    Attachment,
    Message,
    Step,
    ToolCall,
    ToolCallApproval,
    ToolQuestion,
)
from windowpane.context.sets import ContextSets
from windowpane.context.summary import Summary
from windowpane.errors import NoTurnRunningError, RecordedSessionError

ToolPermission = Literal["always", "never", "tool"]
"""When a tool call waits for a person: each one, none, or as the tool itself says."""

Mode = Literal["normal", "thinking", "research"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What a session changes about its agent. None: as the agent has it."""

    model: str | None = None
    """The model that answers."""
    temperature: float | None = None
    """The sampling temperature."""
    top_p: float | None = None
    """The nucleus sampling share."""
    max_output_tokens: int | None = None
    """How long one reply may be, in tokens."""
    max_chat_turns: int | None = None
    """How many model calls one turn may make."""
    tool_permission: ToolPermission | None = None
    """Which tool calls need approval: every one, none, or as each tool says."""
    search: Mapping[str, Any] | None = None
    """How freely items are selected. Keys that are left out are the agent's."""
    mode: Mode | None = None
    """How a message is answered. `research` searches the web first."""
    current_url: str | None = None
    """The address of the page that the user has open. It chooses the site skill."""
    time_zone: str | None = None
    """The user's time zone, such as `Europe/Paris`."""
    user_time: str | None = None
    """The user's time, as ISO 8601. Default: the server's clock."""
    environment_hint: str | None = None
    """Where the session takes place. The model is told when the session is resumed."""
    current_intent: str | None = None
    """What the user wants to do. It is shown, and the model is told when the session is resumed."""
    system_prompt: str | None = None
    """The session's own instructions. They stand last in the system prompt."""
    cache: CacheMode | None = None
    """How requests are put together: `stable` goes on with the last one, `fresh` begins from nothing each time."""


SETTING_NAMES = tuple(setting.name for setting in fields(SessionSettings))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """A turn that has not finished: what has happened in it so far. `own_words` has an entry for each step.

    `questions` are those of a running tool that have no answer yet.
    """

    turn: int
    message: str
    attachments: tuple[Attachment, ...] = ()
    request: BlobHash | None = None
    steps: tuple[Step, ...] = ()
    own_words: tuple[str, ...] = ()
    approvals: tuple[ToolCallApproval, ...] = ()
    questions: tuple[ToolQuestion, ...] = ()
    cancel_requested: bool = False

    @property
    def undecided(self) -> tuple[ToolCall, ...]:
        """Return the calls that still wait for a person."""
        return tuple(approval.call for approval in self.approvals if approval.decision is None)

    @property
    def unanswered(self) -> tuple[ToolCall, ...]:
        """Return the calls of the last step that have no result yet."""
        if not self.steps:
            return ()
        last = self.steps[-1]
        return tuple(call for call in last.tool_calls if last.result_of(call.id) is None)

    @property
    def for_client(self) -> tuple[ToolCall, ...]:
        """Return the calls that the client runs itself, and whose results it owes."""
        return tuple(call for call in self.unanswered if is_for_client(call))

    @property
    def waits(self) -> bool:
        """Tell whether only a person or the client can carry the turn on."""
        return bool(self.undecided) or (bool(self.unanswered) and self.for_client == self.unanswered)


def is_for_client(call: ToolCall) -> bool:
    """Tell whether a call is of a tool that the client brought along."""
    return call.ref is not None and call.ref.server == CLIENT_SERVER


@dataclass(frozen=True, slots=True)
class HeldFetch:
    """A fetched page or search result, and where in the log it came in."""

    seq: int
    at: datetime
    item: Fetched


@dataclass(frozen=True, slots=True)
class TurnStarts:
    """Where each turn begins in the log, by turn number; cheap to extend and to share.

    The first `erased` turns were erased: they count, and begin nowhere.
    """

    full: tuple[tuple[int, ...], ...] = ()
    tail: tuple[int, ...] = ()
    erased: int = 0

    def __len__(self) -> int:
        return self.erased + len(self.full) * _BLOCK + len(self.tail)

    def __iter__(self) -> Iterator[int]:
        for block in self.full:
            yield from block
        yield from self.tail

    def with_next(self, seq: int) -> "TurnStarts":
        """Return these starts and one more."""
        if len(self.tail) == _BLOCK:
            return TurnStarts((*self.full, self.tail), (seq,), self.erased)
        return TurnStarts(self.full, (*self.tail, seq), self.erased)

    def of(self, turn: int) -> int | None:
        """Return the sequence number at which a turn began, or None when there is no such turn."""
        block, index = divmod(turn - self.erased - 1, _BLOCK)
        if block < 0:
            return None
        if block < len(self.full):
            return self.full[block][index]
        if block == len(self.full) and index < len(self.tail):
            return self.tail[index]
        return None


_BLOCK = 128


_DIGEST_BYTES, _TURN_BYTES = 9, 3
_DIGEST, _ENTRY = 12, 16
_KEYS_BLOCK = 128 * _ENTRY


@dataclass(frozen=True, slots=True)
class TurnKeys:
    """Which turn each idempotency key began, oldest first, for as long as the session lives.

    Of a key only a digest is kept, with the number of its turn: 16 characters together. They stand in blocks, so that
    one more is cheap to add to a state that others share.
    """

    full: tuple[str, ...] = ()
    tail: str = ""

    @property
    def blocks(self) -> tuple[str, ...]:
        """Return all of it, for `from_blocks`."""
        return (*self.full, self.tail) if self.tail else self.full

    @staticmethod
    def from_blocks(blocks: tuple[str, ...]) -> "TurnKeys":
        """Return the keys that `blocks` told."""
        return TurnKeys(blocks[:-1], blocks[-1]) if blocks else TurnKeys()

    def with_next(self, key: str, turn: int) -> "TurnKeys":
        """Return these keys and one more."""
        number = (turn % 256**_TURN_BYTES).to_bytes(_TURN_BYTES)
        entry = _digest(key) + base64.urlsafe_b64encode(number).decode()
        if len(self.tail) >= _KEYS_BLOCK:
            return TurnKeys((*self.full, self.tail), entry)
        return TurnKeys(self.full, self.tail + entry)

    def of(self, key: str) -> int | None:
        """Return the turn that a key began, or None."""
        digest = _digest(key)
        for block in (self.tail, *reversed(self.full)):
            at = block.find(digest)
            while at >= 0 and at % _ENTRY:
                at = block.find(digest, at + 1)
            if at >= 0:
                return int.from_bytes(base64.urlsafe_b64decode(block[at + _DIGEST : at + _ENTRY].ljust(4, "A")))
        return None


def _digest(key: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()[:_DIGEST_BYTES]).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """Everything about a session that the next turn needs. `opening` is how its conversation begins, in a few words.

    One that is not `listed` was made for a single request.
    """

    id: SessionId
    seq: int = 0
    agent: str = ""
    origin: Origin | None = None
    owner: str = ""
    listed: bool = True
    name: str = ""
    opening: str = ""
    branch_of: Branch | None = None
    settings: SessionSettings = SessionSettings()
    context_items: tuple[SessionItem, ...] = ()
    removed: frozenset[ItemRef] = frozenset()
    own_references: tuple[OwnReference, ...] = ()
    servers: frozenset[str] = frozenset()
    allowed_tools: frozenset[ItemRef] = frozenset()
    recent: tuple[Message, ...] = ()
    message_count: int = 0
    turn_starts: TurnStarts = TurnStarts()
    turn_keys: TurnKeys = field(default_factory=TurnKeys)
    open_turn: OpenTurn | None = None
    token_count: int = 0
    summary: Summary | None = None
    fetched: tuple[HeldFetch, ...] = ()
    sets: ContextSets = field(default_factory=dict[str, tuple[str, ...]])
    marks: Mapping[str, FileMark] = field(default_factory=dict[str, FileMark])
    observed: tuple[str, ...] = ()
    resume_pending: bool = False
    catalog: BlobHash | None = None
    token_factor: TokenFactor | None = None
    smaller_window: SmallerWindow | None = None
    carried: Carried = field(default_factory=Carried)
    erased_seq: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def title(self) -> str:
        """Return what to call the session: its name, else how its conversation begins; empty before that."""
        return self.name or self.opening

    @property
    def last_turn(self) -> int:
        """Return the number of the latest turn, the open one included; 0 before the first."""
        return len(self.turn_starts)

    @property
    def turn_count(self) -> int:
        """Return how many turns the session holds, the open one included. Erased ones are not counted."""
        return len(self.turn_starts) - self.turn_starts.erased

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the names of the session's rules."""
        return tuple(item.ref.name for item in self.context_items if item.ref.type == "rule")

    @property
    def references(self) -> tuple[str, ...]:
        """Return the names of the session's references."""
        return tuple(item.ref.name for item in self.context_items if item.ref.type == "reference")

    @property
    def tools(self) -> tuple[tuple[str, str], ...]:
        """Return the session's tools as (server, tool)."""
        return tuple((item.ref.server or "", item.ref.name) for item in self.context_items if item.ref.type == "tool")

    def holds(self, ref: ItemRef) -> bool:
        """Tell whether an item is in the session."""
        return any(item.ref == ref for item in self.context_items)

    def owns(self, ref: ItemRef) -> bool:
        """Tell whether an item is a reference that the session made from a file."""
        return any(own.ref == ref for own in self.own_references)


def named_links(state: SessionState) -> dict[str, str]:
    """Return the resources that results of tools named, in messages that the state holds: the server of each address.

    Of two servers that named one address it is the later one.
    """
    replies = (message.model_reply.steps for message in state.recent if isinstance(message, AssistantMessage))
    steps = [step for reply in replies for step in reply] + list(state.open_turn.steps if state.open_turn else ())
    found: dict[str, str] = {}
    for step in steps:
        for call in step.tool_calls:
            result = step.result_of(call.id)
            if result is not None and call.ref is not None and call.ref.server and not is_for_client(call):
                found |= dict.fromkeys(result.links, call.ref.server)
    return found


def check_answerable(state: SessionState) -> None:
    """Make sure that a session has an agent.

    Raises:
        RecordedSessionError: it was recorded from another program.
    """
    if state.origin is not None:
        raise RecordedSessionError(state.origin.program)


def open_turn(state: SessionState) -> OpenTurn:
    """Return the turn that is running or waiting.

    Raises:
        NoTurnRunningError: there is none.
    """
    if state.open_turn is None:
        raise NoTurnRunningError
    return state.open_turn
