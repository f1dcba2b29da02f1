"""Agents: what there is to work with, and what is wrong with their folders."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import ConfigDict, Field, JsonValue

from windowpane.api.agents import (
    AgentList,
    AgentView,
    FileView,
    FoundItems,
    ItemDetail,
    ItemList,
    ProblemList,
    ServerList,
)
from windowpane.context.items import Domain, IncludeMode, ItemRef, ItemType
from windowpane.server.dependencies import Managing, Reading
from windowpane.server.json_numbers import Whole
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import MAX_QUERY_CHARACTERS, AgentName, Kind, Name, RequestBody, Server, ref_of
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import tag

router = LazyRouter(prefix="/api/agents", tags=["agents"])


@router.get("", summary="List agents", responses=problems())
async def list_agents(pane: Reading) -> AgentList:
    """Return every agent. Their tool servers are not started for this."""
    return AgentList(await pane.agents.list())


class NewAgent(RequestBody):
    """A new agent: without items, or a copy of the agent `copy_of`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=2000)] = ""
    copy_of: str | None = None


class AgentChange(RequestBody):
    """The new name of an agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]


@router.post("", status_code=201, summary="Create an agent", responses=problems(*BODY, 404, 409))
async def create_agent(pane: Managing, response: Response, new: NewAgent) -> AgentView:
    """Write the folder of a new agent, empty or as a copy of another one."""
    made = await pane.agents.create(new.name, description=new.description, copy_of=new.copy_of)
    response.headers["Location"] = f"/api/agents/{made.name}"
    return made


@router.patch("/{agent}", summary="Rename an agent", responses=problems(*BODY, 404, 409))
async def rename_agent(pane: Managing, agent: AgentName, change: AgentChange) -> AgentView:
    """Give an agent's folder another name.

    Its sessions keep the old name until each is given the agent again (`agent` in `PATCH /api/sessions/{session_id}`).
    """
    return await pane.agents.rename(agent, change.name)


@router.get("/{agent}", summary="Read an agent", responses=problems(404))
async def read_agent(pane: Reading, agent: AgentName) -> AgentView:
    """Return an agent's settings, how much it has, its tool servers and what is wrong with it."""
    return await pane.agents.get(agent)


@router.get("/{agent}/items", summary="List what an agent makes available", responses=problems(404))
async def list_agent_items(
    pane: Reading,
    agent: AgentName,
    kind: Annotated[ItemType | None, Query(alias="type", description="Only items of this type.")] = None,
    include: Annotated[IncludeMode | None, Query(description="Only items of this include mode.")] = None,
    server: Annotated[str | None, Query(description="Only tools of this server.")] = None,
    q: Annotated[str | None, Query(max_length=1000, description="Only items with this in name or description.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
    cursor: Annotated[str | None, Query(description="The cursor of the page before.")] = None,
) -> ItemList:
    """Return the agent's items without their texts."""
    return await pane.agents.items(
        agent, type=kind, include=include, server=server, query=q, limit=limit, cursor=cursor
    )


@router.get("/{agent}/items/{type}/{name:path}", summary="Read an item of an agent", responses=problems(404))
async def read_agent_item(
    pane: Reading, response: Response, agent: AgentName, kind: Kind, name: Name, server: Server = None
) -> ItemDetail:
    """Return an item as it is now, with all it says. The `ETag` of a rule or a reference is its file's revision."""
    found = await pane.agents.item(agent, ref_of(kind, name, server))
    if found.revision is not None:
        tag(response, found.revision)
    return found


class Search(RequestBody):
    """What to look for, and among which items; without `items`, among all that the agent has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    items: tuple[ItemRef, ...] | None = None
    top_k: Annotated[Whole, Field(ge=1, le=1000)] = 20
    top_n: Annotated[Whole, Field(ge=0, le=1000)] = 5
    include_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)] = 0.7


@router.post("/{agent}/search", summary="Search an agent's items", responses=problems(*BODY, 404))
async def search_agent_items(pane: Reading, agent: AgentName, search: Search) -> FoundItems:
    """Return which items a query needs. At most `top_n` are found, and beyond that all of at least `include_score`.

    Items that the agent does not have are passed over. No model is called.
    """
    return await pane.agents.search(
        agent,
        search.query,
        items=search.items,
        top_k=search.top_k,
        top_n=search.top_n,
        include_score=search.include_score,
    )


class DomainChanges(RequestBody):
    """Search settings by name, for rules and references (`text`) and for tools (`tool`)."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"text": {"floor": 0.3, "top_n": 4}}]}
    )

    text: dict[str, JsonValue] = Field(default_factory=dict)
    tool: dict[str, JsonValue] = Field(default_factory=dict)


@router.patch("/{agent}/search", summary="Change search settings", responses=problems(*BODY, 404, 409))
async def change_agent_search(pane: Managing, response: Response, agent: AgentName, body: DomainChanges) -> FileView:
    """Write search settings into `agent.yaml`. Everything else in it stays as it is written."""
    changes: dict[Domain, Mapping[str, Any]] = {"text": body.text, "tool": body.tool}
    changed = await pane.agents.change_search(agent, changes)
    tag(response, changed.revision)
    return changed


@router.get("/{agent}/problems", summary="List what is wrong in an agent's folder", responses=problems(404))
async def list_agent_problems(pane: Reading, agent: AgentName) -> ProblemList:
    """Return every file, or part of one, that cannot be used, with line and reason."""
    return ProblemList(await pane.agents.problems(agent))


@router.get("/{agent}/servers", summary="List an agent's tool servers", responses=problems(404))
async def list_agent_servers(
    pane: Reading,
    agent: AgentName,
    settle_s: Annotated[float, Query(ge=0, le=60, description="Wait so long for servers that are connecting.")] = 0,
) -> ServerList:
    """Return the agent's tool servers as they are now."""
    return ServerList(await pane.agents.servers(agent, settle_s=settle_s))
