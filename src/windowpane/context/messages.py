"""Messages: what a conversation consists of, as people and views see it.

Messages are folded from events (`context/fold.py`) and never stored by themselves. An assistant message holds
every model call of its turn, with the tool calls and their results, and names the request that it answers.

A session keeps the files of messages by their content: `Attachment.blob` names a text, the file's bytes in base64, so
that every store, export and encryption that keeps texts keeps files too, and a file that is sent twice is kept once.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from windowpane.context.identity_cache import Remembering
from windowpane.context.ids import Actor, BlobHash
from windowpane.context.items import ItemRef

ECHO = "echo"
"""The name of the built-in model."""

SCRIPTED = "scripted"
"""What the names of models begin with that say what they were told to say, as if it were their provider."""


def is_built_in(model: str) -> bool:
    """Tell whether a model speaks in this process: nothing is sent, no provider reports tokens, and it is free."""
    return model.partition(":")[0] in (ECHO, SCRIPTED)


Decision = Literal["allow_once", "allow_session", "deny"]
Outcome = Literal["completed", "failed", "cancelled", "interrupted"]


FileKind = Literal["image", "pdf", "text"]
"""What a model can be given: `text` is every file of which only the words count."""

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF_TYPE = "application/pdf"


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file on its way into a session. What it is is found out from its bytes; its name is only shown."""

    name: str
    data: bytes

    @staticmethod
    def at(path: str | Path) -> "NewFile":
        """Return the file of a path."""
        return NewFile(Path(path).name, Path(path).read_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file of a session. `media_type` is what its bytes are, `size` how many there are.

    `blob` names its bytes in base64. `text` names the words that were read from it; None for an image and for a
    document without words. `width` and `height` are those of an image in pixels, `pages` those of a PDF.
    """

    name: str
    media_type: str
    size: int
    blob: BlobHash
    text: BlobHash | None = None
    width: int = 0
    height: int = 0
    pages: int = 0

    @property
    def kind(self) -> FileKind:
        """Return what it is to a model."""
        if self.media_type in IMAGE_TYPES:
            return "image"
        return "pdf" if self.media_type == PDF_TYPE else "text"

    @property
    def label(self) -> str:
        """Return what it is, in a few words, for people and models: its name is one line."""
        measured = f", {self.width}×{self.height}" if self.width else f", {self.pages} pages" if self.pages else ""
        return f"{self.name} ({self.media_type}{measured}, {self.size:,} bytes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file that a model is given with a message as it is, and what that costs. `estimated`: no rule is known."""

    name: str
    media_type: str
    blob: BlobHash
    tokens: int
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the provider reported for one model call. Zero where it reported nothing: no call is without input.

    Tokens that were read from its cache or written to it are part of the input. `cache_write_1h_tokens` are those of
    the written ones that it keeps for an hour, which cost more.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cache_write_1h_tokens + other.cache_write_1h_tokens,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asked for.

    `offered_name` is the name the model used; `ref` is the tool behind it, or None when the model made the name up.
    `arguments` is the model's JSON exactly as it wrote it, which may be malformed.
    """

    id: str
    offered_name: str
    arguments: str
    ref: ItemRef | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came back from a tool call, as the text that the model is given, and images and documents beside it.

    `links` are the addresses of the server's resources that it named.
    """

    call_id: str
    content: str
    is_error: bool = False
    latency_ms: int = 0
    attachments: tuple[Attachment, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One model call: what the model said, what it wanted to call, and what came back."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    finish_reason: str = ""
    latency_ms: int = 0

    def result_of(self, call_id: str) -> ToolResult | None:
        """Return the result of one call, or None while there is none."""
        return next((result for result in self.results if result.call_id == call_id), None)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The whole answer of a turn: its model calls in order."""

    steps: tuple[Step, ...]

    @property
    def text(self) -> str:
        """Return what was said to the user, over all steps."""
        return "\n\n".join(step.text for step in self.steps if step.text)

    @property
    def is_echo(self) -> bool:
        """Tell whether the built-in model answered: with what it was given, which is not what the user is after."""
        return bool(self.steps) and self.steps[-1].model == ECHO

    @property
    def usage(self) -> Usage:
        """Return the tokens of all steps together."""
        return sum((step.usage for step in self.steps), Usage())


@dataclass(frozen=True, slots=True)
class ToolCallApproval:
    """A call that waits for a person, and what was decided. None: not decided yet.

    `by` is who decided: the system where no person can be asked.
    """

    call: ToolCall
    decision: Decision | None = None
    by: Actor = "user"


QuestionKind = Literal["form", "url", "sampling"]
AnswerAction = Literal["accept", "decline", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuestion:
    """What a running tool asks the user: to fill in a form, to open an address, or to let it ask the model.

    `message` is the server's text; of `sampling` it is what the model would be given. `schema` is the JSON Schema of a
    form's fields.
    """

    id: str
    call_id: str
    server: str
    kind: QuestionKind
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A document that an answer could draw on. `score` is 1 for one that was in the session anyway."""

    title: str
    score: float
    ref: ItemRef | None = None
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage(Remembering):
    """What the user wrote, byte for byte, and the files that came with it."""

    content: str
    attachments: tuple[Attachment, ...] = ()
    turn: int | None = None
    seq: int
    at: datetime
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """A note for people in the conversation. It is never sent to a model."""

    content: str
    turn: int | None = None
    seq: int
    at: datetime
    role: Literal["system"] = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMessage:
    """A turn that failed, with the next step for the user. It is never sent to a model."""

    content: str
    code: str
    partial: str = ""
    request: BlobHash | None = None
    turn: int | None = None
    seq: int
    at: datetime
    role: Literal["error"] = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalMessage:
    """Tool calls that a person was asked about."""

    tool_call_approvals: tuple[ToolCallApproval, ...]
    turn: int | None = None
    seq: int
    at: datetime
    role: Literal["approval"] = "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage(Remembering):
    """An answer. `request` names the record of what the model was given; None when it was not recorded."""

    model_reply: ModelReply
    request: BlobHash | None = None
    outcome: Outcome = "completed"
    sources: tuple[Source, ...] = ()
    related: tuple[str, ...] = ()
    turn: int | None = None
    seq: int
    at: datetime
    role: Literal["assistant"] = "assistant"


Message = UserMessage | SystemMessage | ErrorMessage | ApprovalMessage | AssistantMessage


@dataclass(frozen=True, slots=True)
class Utterance:
    """One earlier message as text."""

    role: Literal["user", "assistant"]
    text: str


def blobs_of(attachments: Iterable[Attachment]) -> tuple[BlobHash, ...]:
    """Return the names of every text that attachments need."""
    found = (name for each in attachments for name in (each.blob, each.text) if name is not None)
    return tuple(dict.fromkeys(found))


def as_text(data: bytes) -> str:
    """Return bytes as the text that they are kept as."""
    return base64.b64encode(data).decode()


def as_bytes(text: str) -> bytes:
    """Return the bytes that a text keeps."""
    return base64.b64decode(text)
