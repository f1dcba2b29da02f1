"""Agents in this process: what they make available, and how well their selection does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from windowpane.agents.base import Agent
from windowpane.api.agents import (
    AgentSummary,
    AgentView,
    FileView,
    FoundItems,
    ItemCounts,
    ItemList,
    ItemView,
    ServerView,
)
from windowpane.api.analytics import Filters
from windowpane.api.context_tests import ContextTest, ContextTests, Report
from windowpane.api.evaluation import Evaluation, Proposal
from windowpane.api.suggestions import Applied, Edit, SuggestionList
from windowpane.context.agents import Problem
from windowpane.context.ids import content_hash
from windowpane.context.items import Domain, IncludeMode, Item, ItemRef, ItemType, as_ref
from windowpane.errors import InvalidInputError
from windowpane.insight.analytics.report import counted_turns, item_rows
from windowpane.insight.analytics.suggest import apply, suggestions
from windowpane.insight.context_tests import read_tests, run_tests, title_of
from windowpane.insight.evaluate import LabelledQuestion, asked_before, asked_now, evaluate
from windowpane.insight.tune import tune, write_search
from windowpane.local.agent_files import LocalAgentFiles
from windowpane.local.views import item_facts, server_view
from windowpane.search.settings import search_settings

QUESTIONS = 3
"""How many questions to begin with are offered."""

LOOKED_AT = 2000
"""How many of the latest turns are taken as labels."""


@dataclass(frozen=True, slots=True)
class FolderState:
    """An agent's folder at one moment: which files it has and when they were written, and what is wrong."""

    files: Mapping[str, int]
    problems: tuple[Problem, ...]


class LocalAgents(LocalAgentFiles):
    """Agents: what they make available, their files, their tool servers, and how well their selection does."""

    async def list(self) -> tuple[AgentSummary, ...]:
        """Return every agent, in order. Their tool servers are not started for this."""
        return tuple([await self._summary(name) for name in self._engine.agents.names()])

    async def get(self, agent: str) -> AgentView:
        """Return an agent's settings, how much it has, its tool servers and what is wrong with it."""
        found = await self._current(agent)
        servers = await self._engine.agent_items.servers(agent)
        return AgentView(
            name=found.name,
            description=found.description,
            folder=found.folder,
            settings=found.settings,
            counts=ItemCounts(
                rules=len(found.rules),
                references=len(found.references),
                tools=sum(len(server.tools) for server in servers),
            ),
            servers=tuple(map(server_view, servers)),
            problems=found.problems,
        )

    async def create(self, name: str, *, description: str = "", copy_of: str | None = None) -> AgentView:
        """Write a new agent without items, or a copy of another one."""
        work = partial(self._engine.agents.create, name, description=description, copy_of=copy_of)
        await anyio.to_thread.run_sync(work)
        return await self.get(name)

    async def rename(self, agent: str, new_name: str) -> AgentView:
        """Give an agent another name."""
        await anyio.to_thread.run_sync(self._engine.agents.rename, agent, new_name)
        return await self.get(new_name)

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
        found = [
            item
            for item in await self._available(agent, type)
            if type in (None, item.ref.type)
            and include in (None, item.include)
            and server in (None, item.ref.server)
            and (query is None or query.casefold() in f"{item.name}\n{item.description}".casefold())
        ]
        start = _start(found, cursor)
        page = found[start : start + limit]
        more = start + limit < len(found)
        model = (await self._current(agent)).settings.model
        views = await anyio.to_thread.run_sync(lambda: tuple(ItemView(**item_facts(item, model)) for item in page))
        return ItemList(views, _cursor(page[-1]) if more else None)

    async def problems(self, agent: str) -> tuple[Problem, ...]:
        """Return every file, or part of one, that cannot be used, with line and reason."""
        return (await self._current(agent)).problems

    async def servers(self, agent: str, *, settle_s: float = 0) -> tuple[ServerView, ...]:
        """Return an agent's tool servers as they are now, or when they have settled."""
        return tuple(map(server_view, await self._engine.agent_items.servers(agent, settle_s=settle_s)))

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
        if items is None:
            items = tuple(item.ref for item in await self._engine.agent_items.of(agent))
        return await self._engine.agent_items.search(
            agent,
            query,
            [as_ref(item) for item in items],
            top_k=top_k,
            top_n=top_n,
            include_score=include_score,
            owner=self._bound.creator,
        )

    async def tests(self, agent: str) -> ContextTests:
        """Return the context tests in an agent's folder, and what is wrong with their files."""
        return await anyio.to_thread.run_sync(read_tests, Path((await self._current(agent)).folder))

    async def run_tests(self, agent: str) -> Report:
        """Run every context test with the real selection."""
        return await run_tests(self._engine, agent)

    async def evaluate(self, agent: str, labels: Sequence[ContextTest] = (), *, everyone: bool = False) -> Evaluation:
        """Return how well the selection does on labelled questions; without any, on what past turns made use of."""
        found = await self._current(agent)
        questions = await self._questions(agent, labels, everyone)
        settings = search_settings(found.settings.search)
        return await anyio.to_thread.run_sync(evaluate, found.name, questions, settings)

    async def tune(
        self, agent: str, labels: Sequence[ContextTest] = (), *, everyone: bool = False
    ) -> tuple[Proposal, ...]:
        """Return better search settings, measured on held-out questions."""
        found = await self._current(agent)
        questions = await self._questions(agent, labels, everyone)
        return await anyio.to_thread.run_sync(tune, questions, search_settings(found.settings.search))

    async def change_search(self, agent: str, changes: Mapping[Domain, Mapping[str, Any]]) -> FileView:
        """Write search settings into `agent.yaml`, by domain."""
        await anyio.to_thread.run_sync(write_search, await self._current(agent), changes)
        return await self.manifest(agent)

    async def suggestions(self, agent: str, *, since: date | None = None, everyone: bool = False) -> SuggestionList:
        """Return which items to demote, promote, shorten or remove."""
        found, items = await self._current(agent), await self._engine.agent_items.of(agent)
        filters = Filters(owner=None if everyone else self._bound.owner, agent=agent, since=since)
        await self._bound.updater.update()
        store = self._bound.updater.analytics

        def looked_up() -> SuggestionList:
            turns = counted_turns(store, filters)
            return SuggestionList(turns, suggestions(found, items, item_rows(store, filters), turns))

        return await anyio.to_thread.run_sync(looked_up)

    async def apply_suggestion(self, agent: str, edit: Edit, *, revision: str, also_in: str | None = None) -> Applied:
        """Change an item's settings as a suggestion says."""
        session = await self._bound.also_in(also_in, agent)
        applied = await anyio.to_thread.run_sync(partial(apply, await self._current(agent), edit, revision=revision))
        await self._add(session, [edit.ref])
        return applied

    async def folder(self, agent: str) -> FolderState:
        """Return the state of an agent's folder.

        Raises:
            AgentNotFoundError: no such agent.
        """
        found = await anyio.to_thread.run_sync(self._engine.agents.current, agent)
        return FolderState({entry.file: entry.modified_ns for entry in found.files}, found.problems)

    async def _available(self, agent: str, kind: ItemType | None) -> Sequence[Item]:
        """Return an agent's items. Its tool servers are not started for rules or references alone."""
        if kind in ("rule", "reference"):
            found = await self._current(agent)
            return (*found.rules, *found.references)
        return await self._engine.agent_items.of(agent)

    async def _summary(self, name: str) -> AgentSummary:
        agent = await self._current(name)
        return AgentSummary(
            name=agent.name,
            description=agent.description,
            model=agent.settings.model,
            rules=len(agent.rules),
            references=len(agent.references),
            servers=len(agent.servers),
            problems=len(agent.problems),
            questions=_to_try(agent),
        )

    async def _questions(self, agent: str, labels: Sequence[ContextTest], everyone: bool) -> Sequence[LabelledQuestion]:
        if labels:
            named = [label if label.name else _named(label, number) for number, label in enumerate(labels, 1)]
            return await asked_now(self._engine, agent, named)
        await self._bound.updater.update()
        owner = None if everyone else self._bound.owner
        lessons = partial(self._bound.updater.analytics.lessons, owner, agent, limit=LOOKED_AT)
        return await asked_before(self._engine, await anyio.to_thread.run_sync(lessons))


def _to_try(agent: Agent) -> tuple[str, ...]:
    """Return questions to begin with: the agent's own, or some about what it knows."""
    if agent.questions:
        return agent.questions[:QUESTIONS]
    known = [reference for reference in agent.references if reference.enabled and reference.include != "manual"]
    about = [f"What should I know about {reference.title or reference.name}?" for reference in known]
    return (*about[: QUESTIONS - 1], "What can you help me with?")


def _named(label: ContextTest, number: int) -> ContextTest:
    return ContextTest(
        name=f"{number}: {title_of(label.message)}", message=label.message, must=label.must, may=label.may
    )


def _start(items: Sequence[Item], cursor: str | None) -> int:
    if cursor is None:
        return 0
    after = next((place for place, item in enumerate(items, 1) if _cursor(item) == cursor), None)
    if after is None:
        raise InvalidInputError("this is not the cursor of an item that is there now; start again without one")
    return after


def _cursor(item: Item) -> str:
    return content_hash(str(item.ref))[:16]
