"""What a running tool call can reach: its user, its model, and those who watch how far it has come.

A turn sets the caller for the time of a call (`calling`), and what serves the call looks for it (`current_caller`). A
call without one is made for no user: what it asks is declined.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from windowpane.context.messages import AnswerAction, NewFile
from windowpane.errors import ToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a tool asks the user: the fields of a form (`schema`), or to open an address (`url`)."""

    server: str
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    url: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """What the user answered. `content` has the fields of a form that was accepted."""

    action: AnswerAction
    content: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SampledMessage:
    """One message that a tool has for the model."""

    role: Literal["user", "assistant"]
    text: str
    files: tuple[NewFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What a tool asks the model."""

    server: str
    system: str = ""
    messages: Sequence[SampledMessage]
    max_tokens: int
    temperature: float | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the model answered to a tool."""

    text: str
    model: str
    finish_reason: str = ""


class NotSampledError(ToolError):
    """The model is not asked for a tool; the message says why."""


class ToolCaller(Protocol):
    """The user and the model behind a running tool call."""

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Tell how far the call has come."""
        ...

    async def ask(self, asked: Asked) -> Answered:
        """Ask the user, and wait for the answer for as long as that takes."""
        ...

    async def sample(self, sampling: Sampling) -> Sampled:
        """Ask the model, if the user lets the tool do that.

        Raises:
            NotSampledError: the user does not, or it is too much.
        """
        ...


_caller: ContextVar[ToolCaller | None] = ContextVar("tool_caller", default=None)


@contextmanager
def calling(caller: ToolCaller | None) -> Generator[None]:
    """Let tool calls that are made in this block reach a caller."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def current_caller() -> ToolCaller | None:
    """Return the caller of the block that runs now."""
    return _caller.get()
