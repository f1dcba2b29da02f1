"""An agent as a value: everything its folder says at one moment.

Reading the folder again gives another value; a request is built from exactly one of them. Tools are not in it: they
come from the servers that `servers` describes, and the servers know them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from windowpane.context.agents import AgentSettings, Problem
from windowpane.context.items import Reference, Rule

FileKind = Literal["manifest", "servers", "rule", "reference", "core", "default_site", "site"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The agent's prompt files. `sites` are site skills by host name. An absent core prompt is None."""

    core: str | None = None
    default_site: str | None = None
    sites: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """One entry of `mcpServers`, checked and with variables filled in.

    The keys of `body` are those of `tools.base.ServerConfig` without the name, so that it can be made from them.
    """

    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file of the folder and what it is. `name` is the item that it holds; None when it holds none that is used."""

    file: str
    kind: FileKind
    name: str | None = None
    modified_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """What an agent's folder says."""

    name: str
    folder: str
    description: str = ""
    questions: tuple[str, ...] = ()
    settings: AgentSettings = field(default_factory=AgentSettings)
    rules: tuple[Rule, ...] = ()
    references: tuple[Reference, ...] = ()
    prompts: Prompts = Prompts()
    servers: tuple[ServerEntry, ...] = ()
    problems: tuple[Problem, ...] = ()
    unreadable: Problem | None = None
    """Why its `agent.yaml` cannot be read, or the model in it. Such an agent answers nothing."""
    files: tuple[FileEntry, ...] = field(default=(), compare=False)

    def rule(self, name: str) -> Rule | None:
        """Return a rule by name, or None."""
        return next((rule for rule in self.rules if rule.name == name), None)

    def reference(self, name: str) -> Reference | None:
        """Return a reference by name, or None."""
        return next((reference for reference in self.references if reference.name == name), None)


class Agents(Protocol):
    """The agents there are, always current: edits on disk are seen by the next call."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all agents, in order."""
        ...

    def current(self, name: str) -> Agent:
        """Return an agent as its folder says it now.

        Raises:
            AgentNotFoundError: no such agent.
        """
        ...

    def create(self, name: str, *, description: str = "", copy_of: str | None = None) -> None:
        """Write a new agent without items, or a copy of another one.

        Raises:
            InvalidInputError: the name cannot be used, or the folder cannot be written.
            AlreadyThereError: there is an agent, or something else, of this name.
            AgentNotFoundError: there is no agent `copy_of`.
        """
        ...

    def rename(self, name: str, new_name: str) -> None:
        """Give an agent another name. Sessions that it has keep the old one until they are given an agent again.

        Raises:
            AgentNotFoundError: no such agent.
            InvalidInputError: the new name cannot be used, or the folder cannot be renamed.
            AlreadyThereError: there is an agent, or something else, of the new name.
        """
        ...

    async def look(self, name: str) -> Agent:
        """Return an agent as `current` does, and let others work while a large folder is read."""
        ...

    def close(self) -> None:
        """Give back what is held to notice edits. Every other call still works."""
        ...
