"""A session as its calls tell it: what was sent each time, how much of it was there before, and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, Protocol

from windowpane.api.comparison import CacheReport, CallComparison
from windowpane.api.sessions import SessionView
from windowpane.api.turns import CallList, CallRecord, CallView, SentKind, SentPart
from windowpane.context.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SentShare:
    """What the parts of one kind take of a call. `cost_usd` is null when usage or price is not known."""

    kind: SentKind
    parts: int
    bytes: int
    tokens: int
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCall:
    """One call and its body.

    `kinds` are what the body is made of, the largest first. `shared_bytes` is how much the body has in common, at the
    beginning, with the one sent before for the same purpose; null for the first.
    """

    call: CallView
    kinds: tuple[SentShare, ...]
    shared_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedToolUse:
    """A tool that was offered in the last call, and how often it was called.

    `bytes` and `tokens` are what describes it in that call, `session_tokens` what that came to over all calls.
    `server` is the MCP server that its name tells of; empty for others.
    """

    name: str
    server: str
    bytes: int
    tokens: int
    session_tokens: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedText:
    """A text that the last call holds more than once. `tokens` are those of the copies after the first."""

    kind: SentKind
    name: str
    copies: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleResult:
    """Something that a tool read more than once: all but the last result are old, and the last call still holds them.

    `subject` is the file or the command. `tokens` are those of the old results.
    """

    tool: str
    subject: str
    reads: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class XrayReport:
    """The essence of a session's calls.

    `cache` is what the calls read from the provider's cache, and what broke the prefix. `last` is the number of the
    last call that asked for an answer; `parts`, `tools`, `repeated` and `stale` are about it, and `window_tokens` is
    what its model can take in; null when that is not known. `subagents` are the sessions that this one's agent began,
    by id.
    """

    session: SessionView
    calls: tuple[SentCall, ...]
    together: CallList
    cache: CacheReport
    last: int | None
    window_tokens: int | None
    parts: tuple[SentPart, ...]
    tools: tuple[OfferedToolUse, ...]
    repeated: tuple[RepeatedText, ...]
    stale: tuple[StaleResult, ...]
    subagents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """A part of a shared call: its place among the parts of the record, and that of its text among the file's."""

    part: int
    text: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCall:
    """A call of a share file. Its record has no body: that begins with `same` characters of the body before, and then
    has `text`; null when it is not in the file. `read` are its parts in the order in which the provider reads them."""

    record: CallRecord
    same: int
    text: str | None
    read: tuple[ReadPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSession:
    """A session as a file that the page opens without storing it: what was said, and every call taken apart.

    `texts` are what the parts of calls say, each once, so that any two calls can be compared. Anything that looks like
    a key is taken out. In a `redacted` file every text is replaced by its length and a hash, and bodies are left out.
    """

    session: SessionView
    messages: tuple[Message, ...]
    report: XrayReport
    calls: tuple[SharedCall, ...]
    texts: tuple[str, ...]
    redacted: bool
    shared_at: datetime
    format: Literal["windowpane.share"] = "windowpane.share"
    version: Literal[1] = 1


class CallsApi(Protocol):
    """The calls of sessions, as they were sent."""

    async def calls(self, session_id: str) -> CallList:
        """Return every call that was made for a session, also those for summaries.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def call(self, session_id: str, number: int) -> CallRecord:
        """Return one of those calls, counted from 1, as built and as sent, with the parts of its body.

        Raises:
            CallNotFoundError: the session has no such call.
        """
        ...

    async def compare_calls(self, session_id: str, before: int, after: int) -> CallComparison:
        """Return what is different between two of those calls, part by part.

        Raises:
            CallNotFoundError: the session has no such call.
        """
        ...

    async def cache(self, session_id: str) -> CacheReport:
        """Return what each call read from the provider's cache, what was expected, what broke the prefix and its cost.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def xray(self, session_id: str) -> XrayReport:
        """Return a session as its calls tell it: what was sent each time, what it had in common, which tools it used.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...

    async def share(self, session_id: str, *, redacted: bool = False) -> Mapping[str, Any]:
        """Return a session as a share file, the JSON of a `SharedSession`, which the page opens without storing it.

        Raises:
            SessionNotFoundError: no such session.
        """
        ...
