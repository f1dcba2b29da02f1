"""The tool servers of an agent: their state, their tools, and how each tool is included and permitted.

How tools are included is said in the agent's files (`agent.yaml` or `mcp.json`), and changing it changes the file: the
values alone, with everything around them as it is written.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path, Response
from pydantic import BaseModel, ConfigDict

from windowpane.api.agents import ServerDetail
from windowpane.context.items import IncludeMode, Permission
from windowpane.server.dependencies import Managing, Reading
from windowpane.server.lazy_routes import LazyRouter
from windowpane.server.parameters import AgentName, AlsoIn, RequestBody
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, expected, tag

router = LazyRouter(prefix="/api/agents/{agent}/servers/{server}", tags=["agents"])

ServerName = Annotated[str, Path(description="The tool server's name.", examples=["notes"])]


class ToolSetting(BaseModel):
    """How a tool is included and permitted. What is null is as its server says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    include: IncludeMode | None = None
    permission: Permission | None = None


class ServerChange(RequestBody):
    """What changes about a tool server. What is not named stays; null takes a setting away, so that its default counts.

    A tool that is named has exactly the settings that are given for it.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"include": "agent", "tools": {"list_notes": {"permission": "not_required"}}}]},
    )

    include: IncludeMode | None = None
    permission: Permission | None = None
    enabled: bool | None = None
    tools: Mapping[str, ToolSetting] = {}


@router.get("", summary="Read a tool server", responses=problems(404))
async def read_agent_server(pane: Reading, response: Response, agent: AgentName, server: ServerName) -> ServerDetail:
    """Return a tool server with its tools. The `ETag` is the revision of the file that describes it."""
    return _tagged(response, await pane.agents.server(agent, server))


@router.patch("", summary="Change how a server's tools are used", responses=problems(*BODY, 404, 409, 412, 428))
async def change_agent_server(
    pane: Managing,
    response: Response,
    agent: AgentName,
    server: ServerName,
    change: ServerChange,
    if_match: IfMatch = None,
    also_in: AlsoIn = None,
) -> ServerDetail:
    """Change include modes and permissions of a server and of its tools, or switch it off. Its file is changed."""
    changes = change.model_dump(exclude_unset=True)
    revision = expected(if_match)
    made = await pane.agents.change_server(agent, server, changes, revision=revision, also_in=also_in)
    return _tagged(response, made)


def _tagged(response: Response, server: ServerDetail) -> ServerDetail:
    tag(response, server.revision)
    return server
