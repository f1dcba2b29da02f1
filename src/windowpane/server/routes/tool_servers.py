"""The tool servers of an agent: their state, their tools, and how each tool is included and permitted.

How tools are included is said in the agent's files (`agent.yaml` or `mcp.json`), and changing it changes the file: the
values alone, with everything around them as it is written.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict

from windowpane.agents.base import Agent
from windowpane.agents.edit import FileText, ToolChange, change_server, server_text
from windowpane.api.agents import ServerDetail, ToolView
from windowpane.context.items import IncludeMode, Permission
from windowpane.engine import Engine
from windowpane.errors import MissingFileError, NotFoundError
from windowpane.server.dependencies import Managing, Reading
from windowpane.server.problems import BODY, problems
from windowpane.server.revisions import IfMatch, expected, tag
from windowpane.server.routes.agents import AgentName
from windowpane.tools.base import ServerConfig

router = APIRouter(prefix="/api/agents/{agent}/servers/{server}", tags=["agents"])

ServerName = Annotated[str, Path(description="The tool server's name.", examples=["notes"])]


class ToolSetting(BaseModel):
    """How a tool is included and permitted. What is null is as its server says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    include: IncludeMode | None = None
    permission: Permission | None = None


class ServerChange(BaseModel):
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
async def read_agent_server(engine: Reading, response: Response, agent: AgentName, server: ServerName) -> ServerDetail:
    """Return a tool server with its tools. The `ETag` is the revision of the file that describes it."""
    return await _detail(engine, response, agent, server)


@router.patch("", summary="Change how a server's tools are used", responses=problems(*BODY, 404, 409, 412, 428))
async def change_agent_server(
    engine: Managing,
    response: Response,
    agent: AgentName,
    server: ServerName,
    change: ServerChange,
    if_match: IfMatch = None,
) -> ServerDetail:
    """Change include modes and permissions of a server and of its tools, or switch it off. Its file is changed."""
    settings = change.model_dump(exclude_unset=True, exclude={"tools"})
    tools = {name: ToolChange(setting.include, setting.permission) for name, setting in change.tools.items()}
    found = engine.agents.current(agent)
    await anyio.to_thread.run_sync(partial(change_server, found, server, settings, tools, revision=expected(if_match)))
    return await _detail(engine, response, agent, server)


async def _detail(engine: Engine, response: Response, agent: str, server: str) -> ServerDetail:
    found = engine.agents.current(agent)
    status = next((status for status in await engine.servers(agent) if status.name == server), None)
    if status is None:
        raise NotFoundError(f"agent {agent!r} has no tool server {server!r}")
    entry = next((entry for entry in found.servers if entry.name == server), None)
    config = ServerConfig(name=server, **entry.body) if entry else ServerConfig(name=server)
    file = await anyio.to_thread.run_sync(_file, found, server)
    tag(response, file.revision)
    return ServerDetail(
        name=server,
        state=status.state,
        error=status.error,
        version=status.version,
        include=config.include,
        permission=config.permission,
        enabled=config.enabled,
        tools=tuple(
            ToolView(
                name=tool.name,
                description=tool.description,
                include=tool.include,
                permission=tool.permission,
                own_include=config.tool_include.get(tool.name),
                own_permission=config.tool_permission.get(tool.name),
            )
            for tool in status.tools
        ),
        file=file.file,
        revision=file.revision,
    )


def _file(agent: Agent, server: str) -> FileText:
    """Return the file that describes a server. Tools that were put in by a program are described by none."""
    try:
        return server_text(agent, server)
    except MissingFileError:
        return FileText("", "", "")
