"""Events: everything that can happen to a session, in the words of the log.

A session is the list of its events. What is stored is an `Event` inside a `Recorded` envelope that says when and at
which place in the log. A `Delta` is text on its way: it is shown live and never stored, because the `model.replied`
event that follows it holds the whole. A `ToolProgress` is not stored either: the result of the call follows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from windowpane.context.calls import CallEnded, CallSent, ModelPrice, Origin, SmallerWindow
from windowpane.context.carried import CarryChange
from windowpane.context.fetched import Fetched, FetchedKind
from windowpane.context.ids import Actor, BlobHash, SessionId
from windowpane.context.items import ItemRef, OwnReference, SessionMode
from windowpane.context.messages import (
    AnswerAction,
    Attachment,
    Decision,
    Outcome,
    Source,
    Step,
    ToolCall,
    ToolQuestion,
    ToolResult,
)
from windowpane.context.sets import ContextSets
from windowpane.context.summary import Summary


@dataclass(frozen=True, slots=True)
class SessionItem:
    """An item in a session, and how it came there."""

    ref: ItemRef
    mode: SessionMode


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a session that was forked began: before which turn of which session.

    Its events up to `seq` are copies: what they tell happened in that session. Zero: an earlier version noted nothing.
    """

    session: SessionId
    turn: int
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCreated:
    """A session began, with every `always` item of its agent. `servers` are the tool servers that were ready.

    `branch_of` is set for a forked session, and `origin` is the program of a recorded session, which has no agent.
    """

    agent: str
    owner: str
    name: str = ""
    settings: Mapping[str, Any]
    items: tuple[SessionItem, ...]
    servers: tuple[str, ...] = ()
    branch_of: Branch | None = None
    origin: Origin | None = None
    type: Literal["session.created"] = "session.created"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUpdated:
    """Settings changed. A value of None clears the setting."""

    changes: Mapping[str, Any]
    actor: Actor
    type: Literal["session.updated"] = "session.updated"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanged:
    """The session was given another agent. `items` are those of the session from then on.

    Turns before it keep what they were given. `servers` are the tool servers of the agent that were ready.
    """

    agent: str
    items: tuple[SessionItem, ...]
    servers: tuple[str, ...] = ()
    actor: Actor = "user"
    type: Literal["session.agent"] = "session.agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAdded:
    """An item came into the session."""

    item: SessionItem
    actor: Actor
    type: Literal["item.added"] = "item.added"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRemoved:
    """An item left the session, or is never to come into it. The removal is remembered."""

    ref: ItemRef
    actor: Actor
    type: Literal["item.removed"] = "item.removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReadmitted:
    """A removal was taken back: the item is not in the session, and may be selected for a request again."""

    ref: ItemRef
    actor: Actor
    type: Literal["item.readmitted"] = "item.readmitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceAdded:
    """A file became a reference of this session."""

    reference: OwnReference
    actor: Actor
    type: Literal["reference.added"] = "reference.added"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRemoved:
    """A reference that the session had made from a file is gone."""

    name: str
    actor: Actor
    type: Literal["reference.removed"] = "reference.removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerArrived:
    """A tool server became ready for this session for the first time, or unlocked more, and brought `always` tools."""

    server: str
    items: tuple[SessionItem, ...]
    type: Literal["server.arrived"] = "server.arrived"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    """A message was put into the conversation from outside, without a turn.

    `source` is what it was made of, word for word, for a framework that wants its own form back.
    """

    role: Literal["user", "assistant", "system"]
    content: str
    tokens: int = 0
    source: str = ""
    attachments: tuple[Attachment, ...] = ()
    type: Literal["message.added"] = "message.added"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRemoved:
    """A message that had been put in from outside was taken back. `tokens` is what its text had cost.

    `erased` names the blobs that were erased with it. `drops_summary` tells that a summary that covered it is gone too.
    """

    seq: int
    tokens: int = 0
    erased: tuple[BlobHash, ...] = ()
    drops_summary: bool = False
    type: Literal["message.removed"] = "message.removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """The user's message arrived, byte for byte, with its files.

    `key` is the caller's idempotency key, if there was one. `resumed` tells that the session had been left alone, so
    the model is to be reminded of what it was working on.
    """

    turn: int
    message: str
    key: str | None = None
    tokens: int = 0
    resumed: bool = False
    attachments: tuple[Attachment, ...] = ()
    type: Literal["turn.started"] = "turn.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBuilt:
    """What the model will be given is decided. `request` names the blob that holds all of it.

    `step` is the first model call that is given it: 1, or a later one when the model asked for more. `catalog` names
    the blob with what the agent had; None when that was not kept. `smaller` is the window that a second
    request of a turn was built for, after the model had refused the first one as too long. `carry` is what the request
    leaves standing for the next one; None when it leaves nothing.
    """

    turn: int
    request: BlobHash
    catalog: BlobHash | None = None
    step: int = 1
    smaller: SmallerWindow | None = None
    carry: CarryChange | None = None
    type: Literal["request.built"] = "request.built"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplied:
    """One model call ended well. `tokens` is what its text costs by our own count.

    `own_words` is the reply as its provider wrote it, where the provider wants that back with the results of tools;
    empty where the step says it all. `price` is what the agent says that the model costs.
    """

    turn: int
    step: Step
    tokens: int = 0
    own_words: str = ""
    price: ModelPrice | None = None
    type: Literal["model.replied"] = "model.replied"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """One tool call ended, well or not."""

    turn: int
    result: ToolResult
    type: Literal["tool.returned"] = "tool.returned"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """Tool calls wait for a person."""

    turn: int
    calls: tuple[ToolCall, ...]
    type: Literal["approval.requested"] = "approval.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecided:
    """A person decided about waiting calls, by call id."""

    turn: int
    decisions: Mapping[str, Decision]
    actor: Actor = "user"
    type: Literal["approval.decided"] = "approval.decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """A running tool asks the user. The turn goes on running: the call waits for the answer."""

    turn: int
    question: ToolQuestion
    type: Literal["question.asked"] = "question.asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """The question of a running tool was answered. `content` has the fields of a form that was accepted.

    `reason` says why the system answered, where no user was asked.
    """

    turn: int
    question_id: str
    action: AnswerAction
    content: Mapping[str, Any] | None = None
    actor: Actor = "user"
    reason: str = ""
    type: Literal["question.answered"] = "question.answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSampled:
    """The model answered a running tool (`sampling`). `question_id` is what the tool asked, `step` what it was told."""

    turn: int
    question_id: str
    step: Step
    type: Literal["model.sampled"] = "model.sampled"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """A running turn was asked to stop."""

    turn: int
    actor: Actor = "user"
    type: Literal["cancel.requested"] = "cancel.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnError:
    """Why a turn failed, for the user: a stable code, what happened, what to do next.

    `status` is what the model's provider answered with, `retry_after_s` how long it asked to wait, where known.
    """

    code: str
    message: str
    partial: str = ""
    status: int | None = None
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """A turn ended. `sources` are the documents its answer could draw on, `related` the titles they point to."""

    turn: int
    outcome: Outcome
    error: TurnError | None = None
    sources: tuple[Source, ...] = ()
    related: tuple[str, ...] = ()
    type: Literal["turn.finished"] = "turn.finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryMade:
    """The conversation up to a message was summed up."""

    summary: Summary
    type: Literal["summary.made"] = "summary.made"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedAdded:
    """Pages or search results came in. One that is there already is replaced."""

    items: tuple[Fetched, ...]
    actor: Actor
    type: Literal["fetched.added"] = "fetched.added"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedCleared:
    """Fetched context was erased: of one kind, or all of it. `erased` names the blobs that were erased with it."""

    kind: FetchedKind | None = None
    erased: tuple[BlobHash, ...] = ()
    actor: Actor = "user"
    type: Literal["fetched.cleared"] = "fetched.cleared"


@dataclass(frozen=True, slots=True)
class FileMark:
    """What a file was like when it was named: the hash of its content and when it was last changed."""

    hash: str
    modified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """The working context was changed, or, with reason `resume`, shown to the model again.

    `marks` are the files of the set as they were at that moment; a file that was not there has none.
    """

    reason: Literal["load", "resume", "changed"]
    context: ContextSets
    set_name: str | None = None
    actor: Actor = "user"
    marks: Mapping[str, FileMark] = field(default_factory=dict[str, FileMark])
    type: Literal["session.context"] = "session.context"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCleared:
    """The conversation was erased. Only the fact remains, how many turns there had been, and digests of their keys."""

    turns: int = 0
    keys: tuple[str, ...] = ()
    actor: Actor = "user"
    type: Literal["history.cleared"] = "history.cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What stood here was erased for good."""

    type: Literal["erased"] = "erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """An event as an encrypted store keeps it. It is no `Event`: only the store that opens it ever sees it.

    `key` names the data key, `box` is the encrypted event.
    """

    key: str
    box: str
    type: Literal["sealed"] = "sealed"


Event = (
    SessionCreated
    | SessionUpdated
    | AgentChanged
    | ItemAdded
    | ItemRemoved
    | ItemReadmitted
    | ReferenceAdded
    | ReferenceRemoved
    | ServerArrived
    | MessageAdded
    | MessageRemoved
    | TurnStarted
    | RequestBuilt
    | CallSent
    | CallEnded
    | ModelReplied
    | ToolReturned
    | ApprovalRequested
    | ApprovalDecided
    | QuestionAsked
    | QuestionAnswered
    | ModelSampled
    | CancelRequested
    | TurnFinished
    | SummaryMade
    | FetchedAdded
    | FetchedCleared
    | SessionContext
    | HistoryCleared
    | Erased
)


def only_looks(event: Event) -> bool:
    """Tell whether an event only notes what the user has open. That is no use of the session, and does not move it."""
    return isinstance(event, SessionContext) and event.set_name == "applet" and event.actor == "user"


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event in its place: `seq` counts from 1 without gaps; `at` is the writer's clock and orders nothing."""

    seq: int
    at: datetime
    event: Event


@dataclass(frozen=True, slots=True)
class Delta:
    """A little more of the answer that is being written."""

    turn: int
    text: str
    kind: Literal["text", "thinking"] = "text"
    type: Literal["reply.delta"] = "reply.delta"


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a running tool call has come, in the tool's own unit. `total` None: the tool does not know it."""

    turn: int
    call_id: str
    progress: float
    total: float | None = None
    message: str = ""
    type: Literal["tool.progress"] = "tool.progress"


Live = Recorded | Delta | ToolProgress
"""What a client that follows a turn receives."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A listener fell behind.

    Every event after `after` follows, from the log. Of the text that was being written parts are lost: what is still
    unfinished comes again from its beginning.
    """

    after: int
    type: Literal["missed"] = "missed"


@dataclass(frozen=True, slots=True)
class SessionDeleted:
    """The session is no more, and nothing follows."""

    type: Literal["session.deleted"] = "session.deleted"


WatchEvent = Live | SessionContext | Missed | SessionDeleted
"""What a client that watches a session receives. A context event without an envelope is not in the log either."""
