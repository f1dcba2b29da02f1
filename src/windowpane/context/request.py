"""Requests: what a model is given in one turn, and the record of why.

A `Request` is a value, complete and immutable: doors preview it, the engine sends it, the store keeps it, and later
it can be rebuilt to the byte. Its `RequestContext` says for every item, part and candidate what happened and why;
views read these reasons and never work them out again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, cast

from windowpane.context.calls import ModelPrice
from windowpane.context.carried import Additions, CacheOrder, CarriedItem, DroppedItem, Rebase, SentPrefix
from windowpane.context.identity_cache import Remembering
from windowpane.context.ids import BlobHash, RequestId
from windowpane.context.items import IncludeMode, ItemRef, ItemType
from windowpane.context.messages import FileKind, SentFile, ToolCall

ItemStatus = Literal["used", "truncated", "missing", "over_budget", "not_permitted", "server_down", "disabled"]
"""What became of an item of the request. Only `used` and `truncated` ones reached the model."""

PartKind = Literal[
    "core",
    "site",
    "user_context",
    "time_context",
    "override",
    "rules",
    "references",
    "tools",
    "summary",
    "history",
    "sources",
    "additions",
    "recall",
    "resume",
    "fetched",
    "attached",
    "selected",
    "message",
]
"""The places of the one prompt order, in that order, but for `tools`, which travel beside the messages.

`sources` name the documents of an earlier answer; they stand in the history, each directly after its answer.
`attached` are the words of files, or what stands for a file that the model does not take, before their message.
"""

VOLATILE_PARTS: frozenset[PartKind] = frozenset(("user_context", "time_context", "recall", "resume", "fetched"))
"""Parts that stand between what stays and the message in a stable request, and are never kept for the next one."""

Role = Literal["system", "user", "assistant", "tool"]
T = TypeVar("T")

Tier = Literal[
    "must",
    "attached",
    "latest",
    "resume",
    "summary",
    "manual",
    "selected",
    "finder",
    "carried",
    "fetched",
    "recall",
    "older",
]
"""How important a piece of a request is when room is short, the most important first; `request/fit.py` says more."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The stretch of an item's indexed text that matched the query."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What decided about one item that could have been selected.

    `score` is calibrated and means the same for every query, between 0 and 1. `meaning` and `words` are the two
    measurements behind it; None where one was not taken. `rank` counts from 1.
    """

    score: float
    meaning: float | None = None
    words: float | None = None
    rank: int | None = None
    passage: Passage | None = None
    cut_off: float | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How the model asked for an item in the middle of a turn: in which step, by which finder, with which words.

    The tool that reads resources is not asked for: `finder` is the tool whose result named one, `query` its address.
    `score` is how well the item matched the words; None where it was named. `pages` are those of a reference that were
    read.
    """

    step: int
    finder: str
    query: str
    score: float | None = None
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One item of a request: how it came in, what it cost, and what became of it.

    `found` is set for an item that the model asked for; it reached the model after the step that is named there.
    `since` is the turn since which a selected item stands in the prompt; None: it enters with this request.
    """

    type: ItemType
    name: str
    server: str | None = None
    include_mode: IncludeMode
    status: ItemStatus = "used"
    reason: str
    tokens: int = 0
    hash: BlobHash | None = None
    version: str = ""
    priority: int | None = None
    evidence: Evidence | None = None
    offered_name: str | None = None
    found: Found | None = None
    since: int | None = None

    @property
    def ref(self) -> ItemRef:
        """Return the item's name."""
        return ItemRef(self.type, self.name, self.server)

    @property
    def selected(self) -> bool:
        """Tell whether the selection took the item for the message; one that the model asked for it did not."""
        return self.include_mode == "agent" and self.found is None

    @property
    def similarity_score(self) -> float | None:
        """Return the score that selected the item, or None when it was in the session anyway."""
        return self.evidence.score if self.evidence else None

    @property
    def sent(self) -> bool:
        """Tell whether the model was given this item."""
        return self.status in ("used", "truncated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An `agent` item that was considered for this request and left out."""

    type: ItemType
    name: str
    server: str | None = None
    reason: str
    code: str
    evidence: Evidence | None = None

    @property
    def ref(self) -> ItemRef:
        """Return the item's name."""
        return ItemRef(self.type, self.name, self.server)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateColumns(Sequence[Candidate]):
    """Candidates as one list for each field: they are many and much alike. A list of nothing but None is left out."""

    type: list[ItemType]
    name: list[str]
    code: list[str]
    reason: list[str]
    server: list[str | None] | None = None
    score: list[float | None] | None = None
    meaning: list[float | None] | None = None
    words: list[float | None] | None = None
    rank: list[int | None] | None = None
    passage: list[Passage | None] | None = None
    cut_off: list[float | None] | None = None
    floor: list[float | None] | None = None

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> "CandidateColumns":
        """Return the same candidates in columns."""
        if isinstance(candidates, cls):
            return candidates
        evidence = [each.evidence or Evidence(0.0) for each in candidates]
        return cls(
            type=[each.type for each in candidates],
            name=[each.name for each in candidates],
            code=[each.code for each in candidates],
            reason=[each.reason for each in candidates],
            server=unless_empty([each.server for each in candidates]),
            score=unless_empty([each.evidence and each.evidence.score for each in candidates]),
            meaning=unless_empty([each.meaning for each in evidence]),
            words=unless_empty([each.words for each in evidence]),
            rank=unless_empty([each.rank for each in evidence]),
            passage=unless_empty([each.passage for each in evidence]),
            cut_off=unless_empty([each.cut_off for each in evidence]),
            floor=unless_empty([each.floor for each in evidence]),
        )

    def __len__(self) -> int:
        return len(self.name)

    def __getitem__(self, position: Any) -> Any:
        return cast("Any", tuple(self)[position])

    def __iter__(self) -> Iterator[Candidate]:
        nothing = [None] * len(self)
        measured = (self.meaning, self.words, self.rank, self.passage, self.cut_off, self.floor)
        evidence = (
            None if score is None else Evidence(score, *rest)
            for score, *rest in zip(self.score or nothing, *(each or nothing for each in measured), strict=True)
        )
        about = (self.type, self.name, self.server or nothing, self.reason, self.code, evidence)
        for kind, name, server, reason, code, decided in zip(*about, strict=True):
            yield Candidate(type=kind, name=name, server=server, reason=reason, code=code, evidence=decided)

    def __eq__(self, other: object) -> bool:
        others = cast("Sequence[object]", other) if isinstance(other, Sequence) else None
        return others is not None and len(self) == len(others) and tuple(self) == tuple(others)

    def __hash__(self) -> int:
        return hash(tuple(self))


def unless_empty(column: list[T | None]) -> list[T | None] | None:
    """Return a column, or None when there is nothing in it."""
    return None if column.count(None) == len(column) else column


class _AsTuple:
    """Has pydantic read and write any sequence of candidates as a tuple of them."""

    def __get_pydantic_core_schema__(self, source: object, handler: Any) -> dict[str, Any]:
        schema = handler.generate_schema(tuple[Candidate, ...])
        return {**schema, "serialization": {"type": "function-wrap", "function": self._write, "schema": schema}}

    def _write(self, candidates: Sequence[Candidate], write: Callable[[tuple[Candidate, ...]], T]) -> T:
        return write(tuple(candidates))


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """An item that could be in this session and is not, nor can it be selected for it: why."""

    type: ItemType
    name: str
    server: str | None = None
    reason: str
    code: Literal["removed", "became_always"]

    @property
    def ref(self) -> ItemRef:
        """Return the item's name."""
        return ItemRef(self.type, self.name, self.server)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One stretch of the request that is not an item by itself: what it is, what it cost, whether it was cut."""

    kind: PartKind
    name: str = ""
    tokens: int
    hash: BlobHash | None = None
    status: Literal["used", "truncated", "left_out"] = "used"
    reason: str = ""
    evidence: Evidence | None = None


def counted_room(tokens: int, token_factor: float) -> int:
    """Return how many tokens of our count go into this many of the model's."""
    return int(tokens / token_factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The room there was, and how much of it was taken, in tokens.

    `token_factor` is how many tokens of the model one of our own count has been so far: what is counted is divided
    into the window by it. `pieces_tokens` is what all pieces could take together, by our count; None in records that
    do not say.
    """

    window_tokens: int
    reply_tokens: int
    used_tokens: int
    window_source: str = ""
    pieces_tokens: int | None = None
    token_factor: float = 1.0

    @property
    def room_tokens(self) -> int:
        """Return what was left over, by our count."""
        return counted_room(self.window_tokens - self.reply_tokens, self.token_factor) - self.used_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedPiece:
    """Something that competed for the room, and how many of its tokens were sent. `tier` is its importance."""

    key: str
    tier: Tier
    tokens: int
    sent_tokens: int
    can_shorten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFormat:
    """The JSON that an answer must be. `schema` None: any object.

    `strict` is passed to the provider: whether the schema is followed to the letter.
    """

    schema: Mapping[str, Any] | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """What the caller of a turn requires of its answer.

    With `must_call` the turn's first model call must call one of these tools. `response_format` None: plain text. The
    words of a model call end before the first of `stop`. `sampling` are further parameters by OpenAI's names, such as
    `seed`; a provider that does not take one is not given it.
    """

    must_call: tuple[ItemRef, ...] = ()
    response_format: ResponseFormat | None = None
    stop: tuple[str, ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """How the model is called. None leaves the choice to the provider.

    `price` is what the agent says that the model costs; it is not sent.
    `cache` is how the request is put together, `cache_key` what requests that share a beginning have in common.
    `additions` is how the model is given tools in the middle of a conversation; None: it has one list of tools.
    `allowed_tools` are the names of the tools that may be called, where not all that stand in the prompt may.
    `inputs` are the files that the model takes as they are.
    `tools_shown` is False where the reports of earlier calls told that the model's server leaves tools out of the
    prompt: then they count for nothing.
    """

    model: str
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    mode: Literal["normal", "thinking", "research"] = "normal"
    reply_options: ReplyOptions = field(default_factory=ReplyOptions)
    price: ModelPrice | None = None
    cache: CacheOrder = "fresh"
    cache_key: str = ""
    additions: Additions | None = None
    allowed_tools: tuple[str, ...] | None = None
    inputs: tuple[FileKind, ...] = ()
    tools_shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What was searched for on behalf of a message. `text` is the message itself unless `reason` says otherwise.

    A follow-up takes `context_share` of its meaning from `text`, which then begins with the turns before it. `clauses`
    are the parts of a message that asks for several things; `small_talk` says that it asks for nothing.
    """

    text: str
    reason: str = ""
    context_share: float = 0.0
    clauses: tuple[str, ...] = ()
    small_talk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The record of one turn's request. `message_count` is how many messages the session had before this one.

    What the model asked for in the middle of the turn is among `items`, and still among `candidates`, which say why the
    selection left it out. `absent` are items that the session does not have for a reason of its own. `carried` is what
    entered in earlier turns and still stands in the prompt, `dropped` what stood there and left with this request,
    `rebase` why this request does not go on with the last one, if it does not.

    With `search` (the settings of the selection, every one of them), `pieces` (in order of importance) and `catalog`
    (what the agent had) the decisions can be made again. `finders` tells whether the model was to get tools to ask for
    what is left out. Records of earlier versions lack them.
    """

    id: RequestId
    turn: int
    timestamp: datetime
    agent: str
    settings: CallSettings
    query: Query
    items: tuple[ContextItem, ...]
    candidates: Annotated[Sequence[Candidate], _AsTuple()] = ()
    absent: tuple[Absent, ...] = ()
    parts: tuple[Part, ...] = ()
    budget: Budget
    message_count: int = 0
    degraded: tuple[str, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pieces: tuple[PlacedPiece, ...] = ()
    catalog: BlobHash | None = None
    finders: bool | None = None
    carried: tuple[CarriedItem, ...] = ()
    dropped: tuple[DroppedItem, ...] = ()
    rebase: Rebase | None = None
    prefix: SentPrefix | None = None

    def item(self, ref: ItemRef) -> ContextItem | None:
        """Return the request's record of one item, or None when the item is not in it."""
        return next((item for item in self.items if item.ref == ref), None)

    @property
    def standing(self) -> tuple[ContextItem, ...]:
        """Return what the model was given although this message did not select it: it stands there since earlier."""
        sent = {item.ref for item in self.items if item.sent}
        return tuple(_standing(item) for item in self.carried if item.ref not in sent)


def _standing(item: CarriedItem) -> ContextItem:
    return ContextItem(
        type=item.type,
        name=item.name,
        server=item.server,
        include_mode="agent",
        reason=f"here since turn {item.turn}: {item.reason}",
        tokens=item.tokens,
        hash=item.hash,
        version=item.version,
        offered_name=item.offered_name,
        since=item.turn,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMessage(Remembering):
    """One message as the model gets it, and the part of the prompt order that it belongs to.

    `name` tells parts of one kind apart for people; the model never sees it. `is_error` is for the result of a tool
    that failed. `erased` tells that the text of a past message was erased since. `tools_added` names tools that the
    model has from here on; how it is told is its provider's affair. `files` go with the text, in this order.
    """

    role: Role
    content: str
    part: PartKind
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    erased: bool = False
    tools_added: tuple[str, ...] = ()
    files: tuple[SentFile, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool under the name that the model is given for it.

    One that is `deferred` is only declared: the model does not see it before a message adds it.
    """

    offered_name: str
    ref: ItemRef
    description: str
    parameters: Mapping[str, Any]
    deferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything that a model is given in one turn, before its own tool calls are added.

    `tools` are those that it can call. `declared` are others that its provider is told of, so that one can be added
    later without a change of what stands first in the prompt; the model does not see them.
    """

    messages: tuple[RequestMessage, ...]
    tools: tuple[OfferedTool, ...]
    context: RequestContext
    declared: tuple[OfferedTool, ...] = ()
