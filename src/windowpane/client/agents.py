"""Agents of a server, and its models."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

from windowpane.api.agents import (
    AgentList,
    AgentSummary,
    AgentView,
    FileView,
    FoundItems,
    ItemDetail,
    ItemList,
    ProblemList,
    PromptList,
    PromptView,
    ServerDetail,
    ServerList,
    ServerView,
)
from windowpane.api.context_tests import ContextTest, ContextTests, Report
from windowpane.api.evaluation import Evaluation, Proposal, Tuning
from windowpane.api.models import KnownModels, ProviderView
from windowpane.api.suggestions import Applied, Edit, SuggestionList
from windowpane.client.connection import Connection, agent_path, item_path, keyed, matching, part
from windowpane.context.agents import Problem
from windowpane.context.items import Domain, IncludeMode, ItemRef, ItemType, Reference, Rule, as_ref


class RemoteAgents:
    """Agents: what they make available, their files, their tool servers, and how well their selection does."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    async def list(self) -> tuple[AgentSummary, ...]:
        """Return every agent, in order."""
        return (await self._server.get(AgentList, "/api/agents")).agents

    async def get(self, agent: str) -> AgentView:
        """Return an agent's settings, how much it has, its tool servers and what is wrong with it."""
        return await self._server.get(AgentView, agent_path(agent))

    async def create(self, name: str, *, description: str = "", copy_of: str | None = None) -> AgentView:
        """Write a new agent without items, or a copy of another one."""
        body = {"name": name, "description": description, "copy_of": copy_of}
        return await self._server.send(AgentView, "POST", "/api/agents", body)

    async def rename(self, agent: str, new_name: str) -> AgentView:
        """Give an agent another name."""
        return await self._server.send(AgentView, "PATCH", agent_path(agent), {"name": new_name})

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
        """Return what an agent makes available, without the texts."""
        params = {
            "type": type, "include": include, "server": server, "q": query, "limit": limit, "cursor": cursor,
        }  # fmt: skip
        return await self._server.get(ItemList, f"{agent_path(agent)}/items", params)

    async def item(self, agent: str, item: ItemRef | str) -> ItemDetail:
        """Return an item with all it says, and the revision that a change of it names."""
        ref = as_ref(item)
        return await self._server.get(ItemDetail, _item(agent, ref), {"server": ref.server})

    async def create_item(
        self, agent: str, item: Rule | Reference, *, key: str | None = None, also_in: str | None = None
    ) -> ItemDetail:
        """Write a new rule or reference."""
        return await self._create(agent, {"type": item.ref.type, **asdict(item)}, key, also_in)

    async def create_item_file(
        self, agent: str, item: ItemRef | str, raw: str, *, key: str | None = None, also_in: str | None = None
    ) -> ItemDetail:
        """Write a new rule or reference as a whole file, with its front matter."""
        ref = as_ref(item)
        return await self._create(agent, {"type": ref.type, "name": ref.name, "raw": raw}, key, also_in)

    async def put_item(
        self, agent: str, item: ItemRef | str, raw: str, *, revision: str, also_in: str | None = None
    ) -> ItemDetail:
        """Replace the whole file of a rule or a reference."""
        path = _item(agent, as_ref(item))
        return await self._server.send(
            ItemDetail, "PUT", path, {"raw": raw}, headers=matching(revision), params={"also_in": also_in}
        )

    async def change_item(
        self,
        agent: str,
        item: ItemRef | str,
        changes: Mapping[str, Any],
        *,
        revision: str,
        also_in: str | None = None,
    ) -> ItemDetail:
        """Change single settings of a rule or a reference, or its `text`."""
        path = _item(agent, as_ref(item))
        return await self._server.send(
            ItemDetail, "PATCH", path, dict(changes), headers=matching(revision), params={"also_in": also_in}
        )

    async def delete_item(self, agent: str, item: ItemRef | str, *, revision: str) -> None:
        """Delete the file of a rule or a reference."""
        await self._server.request("DELETE", _item(agent, as_ref(item)), headers=matching(revision))

    async def prompts(self, agent: str) -> tuple[PromptView, ...]:
        """Return an agent's prompts: `core`, `default_site`, then site skills by name."""
        return (await self._server.get(PromptList, f"{agent_path(agent)}/prompts")).prompts

    async def prompt(self, agent: str, name: str) -> FileView:
        """Return a prompt's file."""
        return await self._server.get(FileView, f"{agent_path(agent)}/prompts/{name}")

    async def put_prompt(self, agent: str, name: str, raw: str, *, revision: str | None) -> FileView:
        """Write a prompt's file. A revision of None writes a new one."""
        headers = {"If-None-Match": "*"} if revision is None else matching(revision)
        path = f"{agent_path(agent)}/prompts/{name}"
        return await self._server.send(FileView, "PUT", path, {"raw": raw}, headers=headers)

    async def delete_prompt(self, agent: str, name: str, *, revision: str) -> None:
        """Delete a site skill or the default for sites."""
        await self._server.request("DELETE", f"{agent_path(agent)}/prompts/{name}", headers=matching(revision))

    async def manifest(self, agent: str) -> FileView:
        """Return `agent.yaml` as it is."""
        return await self._server.get(FileView, f"{agent_path(agent)}/manifest")

    async def put_manifest(self, agent: str, raw: str, *, revision: str) -> FileView:
        """Write `agent.yaml`."""
        path = f"{agent_path(agent)}/manifest"
        return await self._server.send(FileView, "PUT", path, {"raw": raw}, headers=matching(revision))

    async def file(self, agent: str, file: str) -> FileView:
        """Return a file that the agent reads, and what is wrong with it."""
        return await self._server.get(FileView, f"{agent_path(agent)}/files/{part(file)}")

    async def put_file(self, agent: str, file: str, raw: str, *, revision: str) -> FileView:
        """Write a file that the agent reads."""
        path = f"{agent_path(agent)}/files/{part(file)}"
        return await self._server.send(FileView, "PUT", path, {"raw": raw}, headers=matching(revision))

    async def delete_file(self, agent: str, file: str, *, revision: str) -> None:
        """Delete a file that holds a rule or a reference."""
        await self._server.request("DELETE", f"{agent_path(agent)}/files/{part(file)}", headers=matching(revision))

    async def problems(self, agent: str) -> tuple[Problem, ...]:
        """Return every file, or part of one, that cannot be used, with line and reason."""
        return (await self._server.get(ProblemList, f"{agent_path(agent)}/problems")).problems

    async def servers(self, agent: str, *, settle_s: float = 0) -> tuple[ServerView, ...]:
        """Return an agent's tool servers as they are now, or when they have settled."""
        return (await self._server.get(ServerList, f"{agent_path(agent)}/servers", {"settle_s": settle_s})).servers

    async def server(self, agent: str, server: str) -> ServerDetail:
        """Return a tool server with its settings and its tools."""
        return await self._server.get(ServerDetail, f"{agent_path(agent)}/servers/{part(server)}")

    async def change_server(
        self,
        agent: str,
        server: str,
        changes: Mapping[str, Any],
        *,
        revision: str,
        also_in: str | None = None,
    ) -> ServerDetail:
        """Change `include`, `permission` or `enabled` of a server, or `tools`: those two settings by tool name."""
        path = f"{agent_path(agent)}/servers/{part(server)}"
        return await self._server.send(
            ServerDetail, "PATCH", path, dict(changes), headers=matching(revision), params={"also_in": also_in}
        )

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
        """Return which of an agent's items, or of these, a query needs, best first."""
        body: dict[str, Any] = {"query": query, "top_k": top_k, "top_n": top_n, "include_score": include_score}
        if items is not None:
            body["items"] = [asdict(as_ref(item)) for item in items]
        return await self._server.send(FoundItems, "POST", f"{agent_path(agent)}/search", body)

    async def tests(self, agent: str) -> ContextTests:
        """Return the context tests in an agent's folder, and what is wrong with their files."""
        return await self._server.get(ContextTests, f"{agent_path(agent)}/tests")

    async def run_tests(self, agent: str) -> Report:
        """Run every context test with the real selection."""
        return await self._server.send(Report, "POST", f"{agent_path(agent)}/tests/run")

    async def evaluate(self, agent: str, labels: Sequence[ContextTest] = (), *, everyone: bool = False) -> Evaluation:
        """Return how well the selection does on labelled questions; without any, on what past turns made use of."""
        path = f"{agent_path(agent)}/evaluation"
        return await self._server.send(Evaluation, "POST", path, _labels(labels), params={"everyone": everyone})

    async def tune(
        self, agent: str, labels: Sequence[ContextTest] = (), *, everyone: bool = False
    ) -> tuple[Proposal, ...]:
        """Return better search settings, measured on held-out questions."""
        path = f"{agent_path(agent)}/tuning"
        found = await self._server.send(Tuning, "POST", path, _labels(labels), params={"everyone": everyone})
        return found.proposals

    async def change_search(self, agent: str, changes: Mapping[Domain, Mapping[str, Any]]) -> FileView:
        """Write search settings into `agent.yaml`, by domain."""
        body = {domain: dict(own) for domain, own in changes.items()}
        return await self._server.send(FileView, "PATCH", f"{agent_path(agent)}/search", body)

    async def suggestions(self, agent: str, *, since: date | None = None, everyone: bool = False) -> SuggestionList:
        """Return which items to demote, promote, shorten or remove."""
        params = {"since": since and since.isoformat(), "everyone": everyone}
        return await self._server.get(SuggestionList, f"{agent_path(agent)}/suggestions", params)

    async def apply_suggestion(self, agent: str, edit: Edit, *, revision: str, also_in: str | None = None) -> Applied:
        """Change an item's settings as a suggestion says."""
        body = {"ref": asdict(edit.ref), "settings": dict(edit.settings)}
        path = f"{agent_path(agent)}/suggestions"
        return await self._server.send(
            Applied, "POST", path, body, headers=matching(revision), params={"also_in": also_in}
        )

    async def _create(self, agent: str, body: Mapping[str, Any], key: str | None, also_in: str | None) -> ItemDetail:
        path = f"{agent_path(agent)}/items"
        return await self._server.send(ItemDetail, "POST", path, body, headers=keyed(key), params={"also_in": also_in})


class RemoteModels:
    """Models that turns can use."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection

    async def list(self) -> tuple[str, ...]:
        """Return the names of models that are known to work there."""
        return (await self._server.get(KnownModels, "/api/models")).models

    async def providers(self) -> tuple[ProviderView, ...]:
        """Return every provider, with what is missing before it can be used there."""
        return (await self._server.get(KnownModels, "/api/models")).providers

    async def keep_key(self, provider: str, key: str) -> None:
        """Keep a key for a provider on the server."""
        await self._server.request("PUT", f"/api/providers/{part(provider)}/key", json={"key": key})

    async def remove_key(self, provider: str) -> None:
        """Forget the key that was given for a provider."""
        await self._server.request("DELETE", f"/api/providers/{part(provider)}/key")

    async def check(self, model: str) -> None:
        """Make sure that a model can be used."""
        await self._server.request("GET", f"/api/models/{part(model)}")


def _item(agent: str, ref: ItemRef) -> str:
    return f"{agent_path(agent)}/items/{item_path(ref)}"


def _labels(labels: Sequence[ContextTest]) -> dict[str, Any]:
    return {
        "labels": [
            {
                # What a question of a file is called: several may have the same name.
                "name": f"{label.file}:{label.line}" if label.file else label.name,
                "message": label.message,
                "must": [asdict(ref) for ref in label.must],
                "may": [asdict(ref) for ref in label.may or ()],
            }
            for label in labels
        ]
    }
