"""Set how an item is included, whatever it is: a rule and a reference in their files, a tool in its server's."""

from windowpane.api.agents_pane import AgentsApi
from windowpane.context.items import IncludeMode, ItemRef


async def set_include(
    agents: AgentsApi, agent: str, ref: ItemRef, include: IncludeMode, *, also_in: str | None = None
) -> str:
    """Set the include mode of an item, and return the name of the file that was changed.

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
