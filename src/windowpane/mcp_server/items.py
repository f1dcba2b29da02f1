"""Rules and references of agents, as resources to read and as prompts to begin with."""

from collections.abc import Iterator

from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, GetPromptResult, Prompt, PromptMessage, Resource, TextContent

from windowpane.context.items import Reference, Rule
from windowpane.engine import Engine
from windowpane.errors import AgentNotFoundError, ScopeNeededError
from windowpane.mcp_server.callers import caller

ITEM_URI = "windowpane://agents/{agent}/{kind}/{name}"


def listed_items(engine: Engine) -> Iterator[tuple[str, str, Rule | Reference]]:
    """Yield every rule and reference that is on, with its agent and its kind."""
    for name in engine.agents.names():
        agent = engine.agents.current(name)
        for kind, items in (("rule", agent.rules), ("reference", agent.references)):
            yield from ((name, kind, item) for item in items if item.enabled)


def item_resources(engine: Engine) -> list[Resource]:
    """Return the items as resources."""
    if not caller().may("read"):
        return []
    return [
        Resource(
            uri=ITEM_URI.format(agent=agent, kind=kind, name=item.name),
            name=f"{kind} {item.name} of {agent}",
            description=item.description or None,
            mime_type="text/markdown",
        )
        for agent, kind, item in listed_items(engine)
    ]


def item_text(engine: Engine, agent: str, kind: str, name: str) -> str:
    """Return the text of an item.

    Raises:
        ResourceNotFoundError: there is no such item.
    """
    if not caller().may("read"):
        raise ScopeNeededError("read")
    try:
        found = engine.agents.current(agent)
    except AgentNotFoundError as error:
        raise ResourceNotFoundError(str(error)) from None
    item = found.rule(name) if kind == "rule" else found.reference(name) if kind == "reference" else None
    if item is None:
        raise ResourceNotFoundError(f"agent {agent!r} has no {kind} {name!r}")
    return item.text


def item_prompts(engine: Engine) -> list[Prompt]:
    """Return the items as prompts, named `agent/kind/name`."""
    if not caller().may("read"):
        return []
    return [
        Prompt(name=f"{agent}/{kind}/{item.name}", description=item.description or f"The {kind} {item.name}.")
        for agent, kind, item in listed_items(engine)
    ]


def item_prompt(engine: Engine, name: str) -> GetPromptResult:
    """Return an item as a prompt.

    Raises:
        MCPError: no prompt has this name.
    """
    agent, kind, item = parts if len(parts := name.split("/")) == 3 else ("", "", "")
    try:
        text = item_text(engine, agent, kind, item)
    except ResourceNotFoundError:
        why = f"no prompt {name!r}; a prompt is named agent/rule/name or agent/reference/name"
        raise MCPError(INVALID_PARAMS, why) from None
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(text=text))])
