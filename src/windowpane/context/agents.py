"""What is said about agents wherever they come up: their settings, their tool servers' states, their problems."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from windowpane.context.calls import ModelPrice
from windowpane.context.carried import CacheMode
from windowpane.context.messages import FileKind
from windowpane.context.session import Mode, ToolPermission


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in the folder that cannot be used, and where. Everything else keeps working."""

    file: str
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The agent's defaults for its sessions."""

    model: str = "echo"
    """The model that answers: `provider:model`, or `echo`, which needs no provider."""
    temperature: float | None = None
    """The sampling temperature. Default: the provider's."""
    top_p: float | None = None
    """The nucleus sampling share. Default: the provider's."""
    max_output_tokens: int = 4096
    """How long one reply may be, in tokens."""
    max_chat_turns: int = 20
    """How many model calls one turn may make."""
    tool_permission: ToolPermission = "tool"
    """Which tool calls need approval: every one, none, or as each tool says."""
    mode: Mode = "normal"
    """How a message is answered. `research` searches the web first."""
    context_window: int | None = None
    """The size of the context window in tokens. Default: the model's own."""
    prices: Mapping[str, ModelPrice] = field(default_factory=dict[str, ModelPrice])
    """What models cost, by name; see below. Default: the provider's list price, where it answers itself."""
    search: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How freely items are selected; see below."""
    cache: CacheMode = "auto"
    """How requests are put together: `stable` goes on with the last one, `fresh` begins from nothing each time. `auto`:
    `stable` where the provider keeps the beginning of prompts."""
    memory: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """How much of the conversation is sent whole; see below."""
    working_context: bool = True
    """Whether the model gets the tools that record what it is working on."""
    finders: bool = True
    """Whether the model can look for `agent` tools and references that were not sent, and read resources that tools
    named."""
    strict_tools: bool = False
    """Whether the model may call only the session's tools and those that this message selected, where the provider can
    be told so: OpenAI's `allowed_tools`. Others that entered earlier still stand in the prompt."""
    inputs: tuple[FileKind, ...] | None = None
    """The files that the model takes as they are: `image`, `pdf`. Default: what is known of the model."""


ServerState = Literal["connecting", "ready", "failed", "disabled"]
