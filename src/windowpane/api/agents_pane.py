"""What a pane can do with agents and models: the part of the protocol in `pane.py` that is about them."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Protocol

from windowpane.api.agents import (
    AgentSummary,
    AgentView,
    FileView,
    FoundItems,
    ItemDetail,
    ItemList,
    PromptView,
    ServerDetail,
    ServerView,
)
from windowpane.api.context_tests import ContextTest, ContextTests, Report
from windowpane.api.evaluation import Evaluation, Proposal
from windowpane.api.models import ProviderView
from windowpane.api.suggestions import Applied, Edit, SuggestionList
from windowpane.context.agents import Problem
from windowpane.context.items import Domain, IncludeMode, ItemRef, ItemType, Reference, Rule


class AgentsApi(Protocol):
    """Agents: what they make available, their files, their tool servers, and how well their selection does."""

    async def list(self) -> tuple[AgentSummary, ...]:
        """Return every agent, in order; the first is the one that a session gets by default."""
        ...

    async def get(self, agent: str) -> AgentView:
        """Return an agent's settings, how much it has, its tool servers and what is wrong with it.

        Raises:
            AgentNotFoundError: no such agent.
        """
        ...

    async def create(self, name: str, *, description: str = "", copy_of: str | None = None) -> AgentView:
        """Write a new agent without items, or a copy of the agent `copy_of`.

        Raises:
            InvalidInputError: the name cannot be used, or the folder cannot be written.
            AlreadyThereError: there is an agent, or something else, of this name.
            AgentNotFoundError: there is no agent `copy_of`.
        """
        ...

    async def rename(self, agent: str, new_name: str) -> AgentView:
        """Give an agent another name. Its sessions keep the old one until each is given the agent again.

        Raises:
            AgentNotFoundError: no such agent.
            InvalidInputError: the new name cannot be used, or the folder cannot be renamed.
            AlreadyThereError: there is an agent, or something else, of the new name.
        """
        ...

    async def items(
        self,
        agent: str,
        *,
        type: ItemType | None = None,  # noqa: A002 – what it is called everywhere
        include: IncludeMode | None = None,
        server: str | None = None,
        query: str | None = None,
        limit: int = 1000,
        cursor: str | None = None,
    ) -> ItemList:
        """Return what an agent makes available, without the texts: rules, then references, then tools."""
        ...

    async def item(self, agent: str, item: ItemRef | str) -> ItemDetail:
        """Return an item with all it says, and the revision that a change of it names.

        Raises:
            UnknownItemError: the agent has no such item.
        """
        ...

    async def create_item(
        self, agent: str, item: Rule | Reference, *, key: str | None = None, also_in: str | None = None
    ) -> ItemDetail:
        """Write a new rule or reference. With `key`, finding exactly this file is the same as having written it.

        `also_in` is a session of the agent that receives the item by hand; see `change_item`.

        Raises:
            AlreadyThereError: the agent has one of this name.
        """
        ...

    async def create_item_file(
        self, agent: str, item: ItemRef | str, raw: str, *, key: str | None = None, also_in: str | None = None
    ) -> ItemDetail:
        """Write a new rule or reference as a whole file, with its front matter."""
        ...

    async def put_item(
        self, agent: str, item: ItemRef | str, raw: str, *, revision: str, also_in: str | None = None
    ) -> ItemDetail:
        """Replace the whole file of a rule or a reference, if it is still the one of this revision (`*`: any).

        Raises:
            StaleRevisionError: the file has changed since.
        """
        ...

    async def change_item(
        self,
        agent: str,
        item: ItemRef | str,
        changes: Mapping[str, Any],
        *,
        revision: str,
        also_in: str | None = None,
    ) -> ItemDetail:
        """Change single settings of a rule or a reference, or its `text`. None takes a setting away.

        An item that becomes `always` comes into new sessions by itself. `also_in` is an open session of the agent that
        receives it as well, as if it was added by hand.

        Raises:
            InvalidInputError: the session `also_in` is one of another agent. Nothing was changed.
            SessionNotFoundError: there is no session `also_in`. Nothing was changed.
        """
        ...

    async def delete_item(self, agent: str, item: ItemRef | str, *, revision: str) -> None:
        """Delete the file of a rule or a reference. Past turns keep the text that they were given."""
        ...

    async def prompts(self, agent: str) -> tuple[PromptView, ...]:
        """Return an agent's prompts: `core`, `default_site`, then site skills by name."""
        ...

    async def prompt(self, agent: str, name: str) -> FileView:
        """Return a prompt's file: `core`, `default_site`, or `sites/HOST`."""
        ...

    async def put_prompt(self, agent: str, name: str, raw: str, *, revision: str | None) -> FileView:
        """Write a prompt's file. A revision of None writes a new one."""
        ...

    async def delete_prompt(self, agent: str, name: str, *, revision: str) -> None:
        """Delete a site skill or the default for sites. The core prompt can only be changed."""
        ...

    async def manifest(self, agent: str) -> FileView:
        """Return `agent.yaml` as it is."""
        ...

    async def put_manifest(self, agent: str, raw: str, *, revision: str) -> FileView:
        """Write `agent.yaml`: model, settings, search, tool servers."""
        ...

    async def file(self, agent: str, file: str) -> FileView:
        """Return a file that the agent reads, also when it cannot be used, and what is wrong with it."""
        ...

    async def put_file(self, agent: str, file: str, raw: str, *, revision: str) -> FileView:
        """Write a file that the agent reads, above all one that could not be used, corrected."""
        ...

    async def delete_file(self, agent: str, file: str, *, revision: str) -> None:
        """Delete a file that holds a rule or a reference, above all one that could not be used."""
        ...

    async def problems(self, agent: str) -> tuple[Problem, ...]:
        """Return every file, or part of one, that cannot be used, with line and reason."""
        ...

    async def servers(self, agent: str, *, settle_s: float = 0) -> tuple[ServerView, ...]:
        """Return an agent's tool servers as they are now, or when they have settled."""
        ...

    async def server(self, agent: str, server: str) -> ServerDetail:
        """Return a tool server with its settings and its tools."""
        ...

    async def change_server(
        self,
        agent: str,
        server: str,
        changes: Mapping[str, Any],
        *,
        revision: str,
        also_in: str | None = None,
    ) -> ServerDetail:
        """Change `include`, `permission` or `enabled` of a server, or `tools`: those two settings by tool name.

        `also_in` is an open session that receives the tools that are `always` by this change; see `change_item`.
        """
        ...

    async def search(
        self,
        agent: str,
        query: str,
        *,
        items: Sequence[ItemRef | str] | None = None,
        top_k: int = 20,
        top_n: int = 5,
        include_score: float = 0.7,
    ) -> FoundItems:
        """Return which of an agent's items, or of these, a query needs, best first. No model is called.

        At most `top_n` are found, and beyond that all of at least `include_score`.
        """
        ...

    async def tests(self, agent: str) -> ContextTests:
        """Return the context tests in an agent's folder, and what is wrong with their files."""
        ...

    async def run_tests(self, agent: str) -> Report:
        """Run every context test with the real selection. No model is called, and nothing is stored."""
        ...

    async def evaluate(self, agent: str, labels: Sequence[ContextTest] = (), *, everyone: bool = False) -> Evaluation:
        """Return how well the selection does on labelled questions; without any, on what past turns made use of."""
        ...

    async def tune(
        self, agent: str, labels: Sequence[ContextTest] = (), *, everyone: bool = False
    ) -> tuple[Proposal, ...]:
        """Return better search settings, measured on held-out questions. Nothing is changed."""
        ...

    async def change_search(self, agent: str, changes: Mapping[Domain, Mapping[str, Any]]) -> FileView:
        """Write search settings into `agent.yaml`, by domain, as a proposal's `changes` have them."""
        ...

    async def suggestions(self, agent: str, *, since: date | None = None, everyone: bool = False) -> SuggestionList:
        """Return which items to demote, promote, shorten or remove, with what was counted and what it would save."""
        ...

    async def apply_suggestion(self, agent: str, edit: Edit, *, revision: str, also_in: str | None = None) -> Applied:
        """Change an item's settings as a suggestion says. The answer names the edit that undoes it.

        `also_in` is an open session that receives the item as well; see `change_item`.
        """
        ...


class ModelsApi(Protocol):
    """Models that turns can use."""

    async def list(self) -> tuple[str, ...]:
        """Return the names of models that are known to work here, as `provider:model`."""
        ...

    async def providers(self) -> tuple[ProviderView, ...]:
        """Return every provider, with what is missing before it can be used. No key is in it."""
        ...

    async def keep_key(self, provider: str, key: str) -> None:
        """Keep a key for a provider with the data. It counts from the next call on, before one in the environment.

        Raises:
            InvalidInputError: no such provider, or no key, or it cannot be kept.
        """
        ...

    async def remove_key(self, provider: str) -> None:
        """Forget the key that was given for a provider. One in the environment stays.

        Raises:
            InvalidInputError: no such provider, or the key cannot be removed.
        """
        ...

    async def check(self, model: str) -> None:
        """Make sure that a model can be used.

        Raises:
            UnknownModelError: there is no such provider, or it needs a key that is not set.
        """
        ...


async def set_include(
    agents: AgentsApi, agent: str, ref: ItemRef, include: IncludeMode, *, also_in: str | None = None
) -> str:
    """Set the include mode of an item of any type, and return the name of the file that was changed.

    `also_in` is an open session of the agent that receives the item as well, as if it was added by hand.

    Raises:
        UnknownItemError: the agent has no such item.
        NotFoundError: the agent has no such tool server.
    """
    item = await agents.item(agent, ref)
    if ref.server is None:
        changed = await agents.change_item(
            agent, ref, {"include": include}, revision=item.revision or "*", also_in=also_in
        )
        return changed.file or ""
    server = await agents.server(agent, ref.server)
    permission = next(tool.own_permission for tool in server.tools if tool.name == ref.name)
    changes = {"tools": {ref.name: {"include": include, "permission": permission}}}
    return (await agents.change_server(agent, ref.server, changes, revision=server.revision, also_in=also_in)).file
