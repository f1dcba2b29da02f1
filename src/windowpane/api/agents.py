"""Agents as answers: what they make available, their files, their tool servers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.context.agents import AgentSettings, Problem, ServerState
from windowpane.context.ids import BlobHash
from windowpane.context.items import IncludeMode, ItemType, Permission
from windowpane.context.request import ContextItem


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSummary:
    """An agent in a list. `problems` counts what is wrong in its folder. `questions` are some to begin with."""

    name: str
    description: str
    model: str
    rules: int
    references: int
    servers: int
    problems: int
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentList:
    """Every agent, in order; the first is the one that a session gets by default."""

    agents: tuple[AgentSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """A tool server at this moment, and the names of its tools as last known."""

    name: str
    state: ServerState
    error: str
    version: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCounts:
    """How many items of each type an agent makes available."""

    rules: int
    references: int
    tools: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """An agent as its folder says it now."""

    name: str
    description: str
    folder: str
    settings: AgentSettings
    counts: ItemCounts
    servers: tuple[ServerView, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemView:
    """An item that an agent makes available. Tools have no priority; only tools have a permission.

    `tokens` is what sending all of it takes.
    """

    type: ItemType
    name: str
    server: str | None
    title: str
    description: str
    include: IncludeMode
    enabled: bool
    permission: Permission | None
    priority: int | None
    version: str
    hash: BlobHash
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDetail(ItemView):
    """An item with all it says: the text of a rule or a reference, the parameters of a tool.

    A rule or a reference is a file of the agent's folder: `raw` is all of it, and `revision` is what a change of it
    names. Tools have none: how they are included is a setting of their server.
    """

    text: str | None
    related: tuple[str, ...]
    parameters: Mapping[str, Any] | None
    file: str | None
    raw: str | None
    revision: str | None


@dataclass(frozen=True, slots=True)
class ItemList:
    """Items: rules, then references, then tools; and the cursor of the next page, null when this was the last."""

    items: tuple[ItemView, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ProblemList:
    """What cannot be used in an agent's folder, by file and line. Everything else works."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ServerList:
    """An agent's tool servers, by name."""

    servers: tuple[ServerView, ...]


@dataclass(frozen=True, slots=True)
class FoundItems:
    """Items that a query needs, best first, each with its evidence.

    `degraded` says what was less good than it should be: only words were compared, a language is not the model's.
    """

    items: tuple[ContextItem, ...]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    """A file of an agent: its name in the folder, all of it, its revision, and what is wrong with it."""

    file: str
    raw: str
    revision: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView:
    """A prompt in a list. `name` is what it is addressed by; a site skill has the `hosts` that it is for."""

    name: str
    file: str
    hosts: tuple[str, ...]
    characters: int


@dataclass(frozen=True, slots=True)
class PromptList:
    """The prompts that an agent has: `core` first, then `default_site`, then site skills by name."""

    prompts: tuple[PromptView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolView:
    """A tool: how it is included and permitted, and what of that is its own setting; null: as its server says."""

    name: str
    description: str
    include: IncludeMode
    permission: Permission
    own_include: IncludeMode | None
    own_permission: Permission | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDetail:
    """A tool server: its state, its settings, its tools as last known, and the file that describes it."""

    name: str
    state: ServerState
    error: str
    version: str
    include: IncludeMode | None
    permission: Permission | None
    enabled: bool
    tools: tuple[ToolView, ...]
    file: str
    revision: str
