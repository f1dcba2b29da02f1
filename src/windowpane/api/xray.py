"""A session as its calls tell it: what was sent each time, how much of it was there before, and what it cost."""

from collections.abc import Mapping
from dataclasses import dataclass

from windowpane.api.comparison import CacheReport
from windowpane.api.sessions import SessionView
from windowpane.api.turns import CallList, CallView


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCall:
    """One call and its body.

    `parts` are the bytes of each field of the body, such as `tools`, `system` and `messages`. `shared_bytes` is how
    much the body has in common, at the beginning, with the one sent before for the same purpose; null for the first.
    """

    call: CallView
    parts: Mapping[str, int]
    shared_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedToolUse:
    """A tool that was offered in the last call, the bytes that describe it, and how often it was called."""

    name: str
    bytes: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class XrayReport:
    """The essence of a session's calls.

    `cache` is what the calls read from the provider's cache, and what broke the prefix. `subagents` are the sessions
    that this one's agent began, by id.
    """

    session: SessionView
    calls: tuple[SentCall, ...]
    together: CallList
    cache: CacheReport
    tools: tuple[OfferedToolUse, ...]
    subagents: tuple[str, ...]
