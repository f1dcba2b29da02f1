"""Calls as a source tells them: the common form that every reader of a log, a trace or an export gives.

Nothing here was seen on the wire. A body has the form of one of the protocols, as far as the source tells what was
sent, so that everything that looks at recorded bodies can look at these.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pydantic_core import to_json

from windowpane.calls.protocol import WireProtocol
from windowpane.calls.reply import fold_reply
from windowpane.context.calls import CallOutcome, CallPurpose, FoldedReply, ImportSource, NotTold
from windowpane.context.messages import Usage

PATHS: Mapping[WireProtocol, str] = {
    "anthropic": "/v1/messages",
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
"""Where bodies of these forms are sent, by which their form is known later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldCall:
    """One call. `id` is the source's own and is the same each time it is read; `model` begins with its provider."""

    id: str
    protocol: WireProtocol
    model: str
    body: Mapping[str, Any]
    reply: FoldedReply
    usage: Usage | None = None
    at: datetime
    ended_at: datetime
    outcome: CallOutcome = "complete"
    reason: str = ""
    purpose: CallPurpose = "answer"

    @property
    def duration_ms(self) -> int:
        """Return how long it took, as far as that is told."""
        return max(round((self.ended_at - self.at).total_seconds() * 1000), 0)

    def written(self) -> bytes:
        """Return the body as bytes."""
        return to_json(self.body, inf_nan_mode="null")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSession:
    """One conversation. `thread` tells a subagent's apart from its parent's, whose `conversation` it shares."""

    source: ImportSource
    program: str
    version: str = ""
    conversation: str
    thread: str = ""
    calls: Sequence[ToldCall]
    tells_failures: bool = True

    @property
    def not_told(self) -> tuple[NotTold, ...]:
        """Return what the source does not tell about these calls."""
        bodies = [call.body for call in self.calls]
        found: dict[NotTold, bool] = {
            "wire": True,
            "system": not any(_system(body) for body in bodies),
            "tools": not any(body.get("tools") for body in bodies),
            "messages": not any(body.get("messages") or body.get("input") for body in bodies),
            "usage": any(call.usage is None and call.outcome == "complete" for call in self.calls),
            "failures": not self.tells_failures,
        }
        return tuple(name for name, missing in found.items() if missing)


def folded(protocol: WireProtocol, answer: Mapping[str, Any]) -> FoldedReply:
    """Return an answer as it is kept, from one in the form of a protocol."""
    return fold_reply(protocol, to_json(answer, inf_nan_mode="null"))


def time_of(value: object) -> datetime | None:
    """Return a time from how a source writes it: ISO 8601, or seconds since 1970. None: it is no time."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def first_of(document: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first value that is there under one of these names."""
    return next((document[name] for name in names if document.get(name) not in (None, "")), None)


def number_of(value: object) -> int:
    """Return a count of tokens, or 0 in place of anything that is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else 0


def _system(body: Mapping[str, Any]) -> bool:
    told: object = body.get("messages") or body.get("input")
    listed = cast("list[object]", told) if isinstance(told, list) else []
    roles = (cast("Mapping[str, object]", each).get("role") for each in listed if isinstance(each, dict))
    return bool(body.get("system") or body.get("instructions")) or any(
        role in ("system", "developer") for role in roles
    )
