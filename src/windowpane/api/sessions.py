"""Sessions as answers: what a session is, holds and cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from windowpane.context.calls import Origin
from windowpane.context.events import Branch, SessionItem
from windowpane.context.fetched import FetchedKind
from windowpane.context.ids import BlobHash, SessionId
from windowpane.context.items import IncludeMode, ItemRef, ItemType, OwnReference
from windowpane.context.messages import Message, NewFile, ToolCall, ToolQuestion, Usage
from windowpane.context.session import Mode, SessionSettings
from windowpane.context.sets import ChangeMode, ContextSets
from windowpane.context.summary import Summary


@dataclass(frozen=True, slots=True)
class SetWish:
    """A change of one set of the working context, as a caller asks for it."""

    set_name: str
    items: Sequence[str]
    mode: ChangeMode = "replace"


@dataclass(frozen=True, slots=True)
class ToolName:
    """A tool and its server."""

    server: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurnView:
    """A turn that has not finished. `approvals` are the calls that wait for a person.

    `questions` are what a running tool asks.
    """

    turn: int
    state: Literal["running", "waiting"]
    request: BlobHash | None
    approvals: tuple[ToolCall, ...]
    questions: tuple[ToolQuestion, ...]


@dataclass(frozen=True, slots=True)
class FetchedCounts:
    """How much fetched context there is, by kind."""

    web_search: int
    page: int


@dataclass(frozen=True, slots=True)
class SessionMeta:
    """What a page needs for its footer."""

    context: ContextSets


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A session as it is now. `settings` are its own; null: as the agent has it.

    `title` is its name, or how its conversation begins. `excluded` are items that were removed or excluded by hand, and
    are not selected for its requests. `branch_of` is where a session that was forked began. `origin` is the program
    whose calls were recorded; null: a session of an agent. Turns that were erased are not in `turn_count`; numbers go
    on after them: `last_turn` is the latest. `own_references` are those that the session made from files.
    """

    id: SessionId
    name: str
    title: str
    agent: str
    origin: Origin | None
    owner: str
    settings: SessionSettings
    items: tuple[SessionItem, ...]
    excluded: tuple[ItemRef, ...]
    rules: tuple[str, ...]
    references: tuple[str, ...]
    tools: tuple[ToolName, ...]
    context: ContextSets
    meta: SessionMeta
    observed: tuple[str, ...]
    fetched: FetchedCounts
    summary: Summary | None
    message_count: int
    turn_count: int
    last_turn: int
    token_count: int
    seq: int
    created_at: datetime | None
    updated_at: datetime | None
    open_turn: OpenTurnView | None
    branch_of: Branch | None = None
    own_references: tuple[OwnReference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSession(SessionView):
    """A session after a change. `reply` says what became of the working context, `warnings` what looks wrong in it."""

    reply: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedSession(SessionView):
    """A session after a message was erased. `remains` says, in plain words, what has the same text and is kept."""

    remains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionListView:
    """Some sessions, last used first, and the cursor of the next page; null when this was the last.

    `names_only` tells that a search looks at names alone, because conversations are encrypted.
    """

    sessions: tuple[SessionView, ...]
    cursor: str | None
    names_only: bool = False


@dataclass(frozen=True, slots=True)
class ItemsView:
    """The items of a session, and how each came in."""

    items: tuple[SessionItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnReferenceView(OwnReference):
    """A reference that a session made from a file. `tokens` is what sending all of it takes; 0: its words are gone."""

    title: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ReferencesView:
    """The references that a session made from files, in the order in which they came.

    After a removal, `remains` says in plain words what keeps the text.
    """

    references: tuple[OwnReferenceView, ...]
    remains: tuple[str, ...] = ()


class ReferencesApi(Protocol):
    """References that a session makes from files. They are selected as the agent's are, for this session alone."""

    async def own_references(self, session_id: str) -> ReferencesView:
        """Return the references that a session made from files."""
        ...

    async def add_reference(self, session_id: str, file: NewFile) -> ReferencesView:
        """Make a reference from the words of a text file, PDF or Word document. The same file again changes nothing.

        Raises:
            InvalidInputError: the file has no words that can be read, is too large, or there are too many.
        """
        ...

    async def remove_reference(self, session_id: str, name: str) -> ReferencesView:
        """Take such a reference out, and erase its words unless the records of turns keep them; `remains` says which.

        Raises:
            UnknownItemError: the session has made no such reference.
            SessionBusyError: a turn is running.
        """
        ...


@dataclass(frozen=True, slots=True)
class ItemsChange:
    """Whether anything changed, and the items of the session now; `excluded` are those that are kept out of it."""

    changed: bool
    items: tuple[SessionItem, ...]
    excluded: tuple[ItemRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedView:
    """One page or search result. The text is in the requests that it was sent in."""

    kind: FetchedKind
    url: str
    title: str
    site_name: str
    at: datetime
    characters: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedList:
    """What a session holds from outside, oldest first.

    After clearing, `remains` says in plain words what has the same text and is kept, such as an answer that quotes it.
    """

    items: tuple[FetchedView, ...]
    counts: FetchedCounts
    remains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MessagePage:
    """Messages, oldest first. `before` gives the page before this one; null when there is none."""

    messages: tuple[Message, ...]
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What a session holds, true after every clear and delete.

    `token_count` is our own count of what was said; `usage` is what providers reported for all `call_count` calls,
    retries, broken answers and summaries included. `cost_usd` covers the calls whose usage and price are known, and
    is null when there is none; `calls_without_usage` and `calls_without_price` are the others.
    """

    mode: Mode
    message_count: int
    turn_count: int
    token_count: int
    fetched_context_counts: FetchedCounts
    total_fetched_items: int
    has_summary: bool
    usage: Usage
    cost_usd: Decimal | None
    call_count: int
    calls_without_usage: int
    calls_without_price: int


@dataclass(frozen=True, slots=True)
class SummaryView:
    """The rolling summary of what lies before the recent messages; null while there is none."""

    summary: Summary | None


@dataclass(frozen=True, slots=True)
class Observed:
    """Files that tools were seen to touch, the latest last."""

    observed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInSession:
    """A turn, a message that was said elsewhere (`turn` is null), or a session's name (both are null) that was found.

    `seq` is where it begins in the log. `tokens` is how long the turn's request was; null where it had none.
    """

    session_id: SessionId
    title: str
    agent: str
    turn: int | None
    seq: int | None
    at: datetime
    tokens: int | None
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAgentItem:
    """An item of an agent whose name or description has the words."""

    agent: str
    type: ItemType
    name: str
    server: str | None
    include: IncludeMode
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindView:
    """What was found, the latest first, and the cursor of the next page; null when this was the last.

    `words` and `understood` tell how the line was read. `complete` is false while some sessions are not indexed yet:
    ask again in a moment. `names_only` tells that only names are looked at, because conversations are encrypted.
    """

    words: tuple[str, ...]
    understood: tuple[str, ...]
    found: tuple[FoundInSession, ...]
    items: tuple[FoundAgentItem, ...]
    cursor: str | None
    complete: bool
    names_only: bool
