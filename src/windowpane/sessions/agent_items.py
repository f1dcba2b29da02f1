"""What an agent makes available now, and which of it a message needs."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from windowpane.agents.base import Agent, Agents
from windowpane.api.agents import FoundItems
from windowpane.context.ids import SessionId
from windowpane.context.items import Item, ItemRef, Tool, item_hash
from windowpane.context.messages import Message
from windowpane.context.request import ContextItem
from windowpane.memory.memory import Memory
from windowpane.request.selector import Selection, Selects
from windowpane.request.settings import search_settings
from windowpane.sessions.calls.outside import ALL, OutsideCalls
from windowpane.sessions.toolboxes import Toolboxes
from windowpane.stores.sessions import Sessions
from windowpane.supervise import supervised
from windowpane.text.tokens import count
from windowpane.tools.base import ServerStatus

WARM_S = 60.0
"""How long warming may wait for the model."""

WARMING = "Which of these does a message need?"
"""What is searched for, and counted, to have everything loaded."""


class AgentItems:
    """Items and tool servers of agents."""

    def __init__(
        self,
        sessions: Sessions,
        agents: Agents,
        toolboxes: Toolboxes,
        selector: Selects,
        memory: Memory,
        outside: OutsideCalls,
    ) -> None:
        self._states = sessions
        self._agents = agents
        self._toolboxes = toolboxes
        self._selector = selector
        self._memory = memory
        self._outside = outside

    async def of(self, agent_name: str) -> tuple[Item, ...]:
        """Return everything an agent makes available now: rules, references, tools."""
        agent = await self._agents.look(agent_name)
        return (*agent.rules, *agent.references, *tools_of((await self._toolboxes.of(agent)).servers()))

    async def servers(self, agent_name: str, *, settle_s: float = 0) -> tuple[ServerStatus, ...]:
        """Return an agent's tool servers as they are now, or when they have settled."""
        toolbox = await self._toolboxes.of(await self._agents.look(agent_name))
        await toolbox.settled(settle_s)
        return toolbox.servers()

    async def search(
        self,
        agent_name: str,
        query: str,
        items: Sequence[ItemRef],
        *,
        top_k: int = 20,
        top_n: int = 5,
        include_score: float = 0.7,
        owner: str = ALL,
    ) -> FoundItems:
        """Return which of these items a query needs, best first, each with its evidence. Unknown items are passed over.

        The calls that this takes are the owner's, and those of no session.

        `top_k` candidates are looked at in detail, at most `top_n` are returned, and beyond that every one that scores
        at least `include_score`.
        """
        known = {item.ref: item for item in await self.of(agent_name)}
        wanted = [known[ref] for ref in dict.fromkeys(items) if ref in known]
        settings = {"top_k": top_k, "top_n": top_n, "include_score": include_score}
        prices = (await self._agents.look(agent_name)).settings.prices
        async with self._outside.recorder_for(owner, prices).apart():
            selection = await self._selector.select(query, (), wanted, settings)
        found = tuple(
            ContextItem(
                type=chosen.item.ref.type,
                name=chosen.item.name,
                server=chosen.item.ref.server,
                include_mode="agent",
                reason=chosen.reason,
                hash=item_hash(chosen.item),
                version=chosen.item.version,
                priority=None if isinstance(chosen.item, Tool) else chosen.item.priority,
                evidence=chosen.evidence,
            )
            for chosen in selection.chosen
        )
        return FoundItems(found, selection.degraded)

    async def select(
        self, message: str, candidates: Sequence[Item], search: Mapping[str, Any], *, recent: Sequence[Message] = ()
    ) -> Selection:
        """Return which of these items a message needs, given the conversation before it. Nothing is stored.

        Raises:
            InvalidSettingError: the search settings cannot be used.
        """
        return await self._selector.select(message, recent, candidates, search)

    async def nearness(self, message: str, texts: Sequence[str]) -> list[float | None]:
        """Return how near texts are to a message in meaning, as cosines; None where that could not be measured.

        Nothing is kept of them.
        """
        return await self._memory.nearness(message, texts)

    async def warm_agent(self, agent_name: str) -> None:
        """Load the search and index everything that could be selected from an agent, its tools included.

        Nothing is loaded where the agent has nothing to select, or its search is off. The work is done in threads.
        """
        agent = await anyio.to_thread.run_sync(self._agents.current, agent_name)
        await self.servers(agent_name, settle_s=WARM_S)
        candidates = [item for item in await self.of(agent_name) if item.include == "agent"]
        if candidates:
            await self._warmed(agent, candidates)

    async def warm(self) -> None:
        """Load what the first message would wait for: the tokenizer, the embedding model and the vectors of agents.

        Rules and references that can be selected are indexed; tools are when a session of their agent is opened.
        Nothing is loaded where no agent has a rule or a reference to select. The work is done in threads.
        """
        for name in self._agents.names():
            await supervised("search.warm", partial(self._warm_texts, name), agent=name)

    async def _warm_texts(self, agent_name: str) -> None:
        agent = await self._agents.look(agent_name)
        texts = [item for item in (*agent.rules, *agent.references) if item.include == "agent"]
        if texts:
            await self._warmed(agent, texts)

    async def _warmed(self, agent: Agent, items: Sequence[Item]) -> None:
        await anyio.to_thread.run_sync(count, WARMING)
        async with self._outside.recorder_for(ALL, agent.settings.prices, texts=False).apart():
            await self._selector.select(WARMING, (), items, {**agent.settings.search, "deadline_s": WARM_S})

    async def get_ready(self, session_id: SessionId, message: str, *, within_s: float) -> None:
        """Give tool servers and the search the time to start, so that the first request of a process lacks nothing.

        Raises:
            SessionNotFoundError: no such session.
        """
        state = await self._states.state(session_id)
        agent = await self._agents.look(state.agent)
        await self.servers(state.agent, settle_s=within_s)
        candidates = [item for item in await self.of(state.agent) if item.include == "agent"]
        settings = {**search_settings(agent, state), "deadline_s": within_s}
        await self._selector.select(message, (), candidates, settings)


def tools_of(servers: Iterable[ServerStatus]) -> tuple[Tool, ...]:
    """Return the tools of these servers."""
    return tuple(tool for server in servers for tool in server.tools)
