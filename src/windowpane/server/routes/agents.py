"""Agents: what there is to work with, and what is wrong with their folders."""

from collections.abc import Sequence
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from windowpane.agents.edit import item_text
from windowpane.api.agents import (
    AgentList,
    AgentSummary,
    AgentView,
    FoundItems,
    ItemCounts,
    ItemDetail,
    ItemList,
    ItemView,
    ProblemList,
    ServerList,
    ServerView,
)
from windowpane.context.ids import content_hash
from windowpane.context.items import IncludeMode, Item, ItemRef, ItemType, Reference, Tool, item_hash
from windowpane.engine import Engine
from windowpane.errors import InvalidInputError, UnknownItemError
from windowpane.request.assemble import item_tokens
from windowpane.server.dependencies import Reading
from windowpane.server.json_numbers import Whole
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import tag
from windowpane.server.routes.items import Kind, Name, Server, ref_of
from windowpane.tools.base import ServerStatus
from windowpane.tools.names import offered_name

router = APIRouter(prefix="/api/agents", tags=["agents"])

MAX_QUERY_CHARACTERS = 100_000
AgentName = Annotated[str, Path(description="The agent's name.")]


@router.get("", summary="List agents", responses=problems())
async def list_agents(engine: Reading) -> AgentList:
    """Return every agent. Their tool servers are not started for this."""
    return AgentList(tuple(_summary(engine, name) for name in engine.agents.names()))


def _summary(engine: Engine, name: str) -> AgentSummary:
    agent = engine.agents.current(name)
    return AgentSummary(
        name=agent.name,
        description=agent.description,
        model=agent.settings.model,
        rules=len(agent.rules),
        references=len(agent.references),
        servers=len(agent.servers),
        problems=len(agent.problems),
    )


@router.get("/{agent}", summary="Read an agent", responses=problems(404))
async def read_agent(engine: Reading, agent: AgentName) -> AgentView:
    """Return an agent's settings, how much it has, its tool servers and what is wrong with it."""
    found = engine.agents.current(agent)
    servers = await engine.servers(agent)
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


@router.get("/{agent}/items", summary="List what an agent makes available", responses=problems(404))
async def list_agent_items(
    engine: Reading,
    agent: AgentName,
    kind: Annotated[ItemType | None, Query(alias="type", description="Only items of this type.")] = None,
    include: Annotated[IncludeMode | None, Query(description="Only items of this include mode.")] = None,
    server: Annotated[str | None, Query(description="Only tools of this server.")] = None,
    q: Annotated[str | None, Query(max_length=1000, description="Only items with this in name or description.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    cursor: Annotated[str | None, Query(description="The cursor of the page before.")] = None,
) -> ItemList:
    """Return the agent's items without their texts."""
    found = [
        item
        for item in await engine.items(agent)
        if kind in (None, item.ref.type)
        and include in (None, item.include)
        and server in (None, item.ref.server)
        and (q is None or q.casefold() in f"{item.name}\n{item.description}".casefold())
    ]
    start = _start(found, cursor)
    page = found[start : start + limit]
    more = start + limit < len(found)
    views = await anyio.to_thread.run_sync(lambda: tuple(ItemView(**_facts(item)) for item in page))
    return ItemList(views, _cursor(page[-1]) if more else None)


def _start(items: Sequence[Item], cursor: str | None) -> int:
    if cursor is None:
        return 0
    after = next((place for place, item in enumerate(items, 1) if _cursor(item) == cursor), None)
    if after is None:
        raise InvalidInputError("this is not the cursor of an item that is there now; start again without one")
    return after


def _cursor(item: Item) -> str:
    return content_hash(str(item.ref))[:16]


@router.get("/{agent}/items/{type}/{name:path}", summary="Read an item of an agent", responses=problems(404))
async def read_agent_item(
    engine: Reading, response: Response, agent: AgentName, kind: Kind, name: Name, server: Server = None
) -> ItemDetail:
    """Return an item as it is now, with all it says. The `ETag` of a rule or a reference is its file's revision."""
    found = await detail_of(engine, agent, ref_of(kind, name, server))
    if found.revision is not None:
        tag(response, found.revision)
    return found


async def detail_of(engine: Engine, agent: str, ref: ItemRef) -> ItemDetail:
    """Return an item with all it says.

    Raises:
        UnknownItemError: the agent has no such item.
    """
    item = next((item for item in await engine.items(agent) if item.ref == ref), None)
    if item is None:
        raise UnknownItemError(str(ref))
    tool = isinstance(item, Tool)
    file = None if tool else await anyio.to_thread.run_sync(item_text, engine.agents.current(agent), ref)
    return ItemDetail(
        **_facts(item),
        text=None if tool else item.text,
        related=item.related if isinstance(item, Reference) else (),
        parameters=item.parameters if tool else None,
        file=file and file.file,
        raw=file and file.text,
        revision=file and file.revision,
    )


def _facts(item: Item) -> dict[str, Any]:
    tool = isinstance(item, Tool)
    return {
        "type": item.ref.type,
        "name": item.name,
        "server": item.ref.server,
        "title": item.title if isinstance(item, Reference) else "",
        "description": item.description,
        "include": item.include,
        "enabled": True if tool else item.enabled,
        "permission": item.permission if tool else None,
        "priority": None if tool else item.priority,
        "version": item.version,
        "hash": item_hash(item),
        "tokens": item_tokens(item, offered_name(item.ref) if tool else ""),
    }


class Search(BaseModel):
    """What to look for, and among which items; without `items`, among all that the agent has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    items: tuple[ItemRef, ...] | None = None
    top_k: Annotated[Whole, Field(ge=1, le=1000)] = 20
    top_n: Annotated[Whole, Field(ge=0, le=1000)] = 5
    include_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)] = 0.7


@router.post("/{agent}/search", summary="Search an agent's items", responses=problems(*BODY, 404))
async def search_agent_items(engine: Reading, agent: AgentName, search: Search) -> FoundItems:
    """Return which items a query needs. At most `top_n` are found, and beyond that all of at least `include_score`.

    Items that the agent does not have are passed over. No model is called.
    """
    items = search.items
    if items is None:
        items = tuple(item.ref for item in await engine.items(agent))
    found = await engine.search_context_items(
        agent, search.query, items, top_k=search.top_k, top_n=search.top_n, include_score=search.include_score
    )
    return FoundItems(found)


@router.get("/{agent}/problems", summary="List what is wrong in an agent's folder", responses=problems(404))
async def list_agent_problems(engine: Reading, agent: AgentName) -> ProblemList:
    """Return every file, or part of one, that cannot be used, with line and reason."""
    return ProblemList(engine.agents.current(agent).problems)


@router.get("/{agent}/servers", summary="List an agent's tool servers", responses=problems(404))
async def list_agent_servers(
    engine: Reading,
    agent: AgentName,
    settle_s: Annotated[float, Query(ge=0, le=60, description="Wait so long for servers that are connecting.")] = 0,
) -> ServerList:
    """Return the agent's tool servers as they are now."""
    return ServerList(tuple(map(server_view, await engine.servers(agent, settle_s=settle_s))))


def server_view(server: ServerStatus) -> ServerView:
    """Return a tool server as lists show it."""
    return ServerView(
        name=server.name,
        state=server.state,
        error=server.error,
        version=server.version,
        tools=tuple(tool.name for tool in server.tools),
    )
