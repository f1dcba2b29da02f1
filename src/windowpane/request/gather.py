"""Collect everything that this turn could be told.

Four groups: the items of the session, each with what the agent says about it now; the tools that are built in; the
tools that the client brought along for this turn; and the candidates, the agent's `agent` items that are not in the
session and may be selected for this one request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windowpane.agents.base import Agent
from windowpane.context.events import SessionItem
from windowpane.context.items import IncludeMode, Item, ItemRef, Tool
from windowpane.context.request import ItemStatus
from windowpane.context.session import SessionState
from windowpane.tools.base import ServerStatus
from windowpane.tools.context_tools import CONTEXT_TOOLS


@dataclass(frozen=True, slots=True)
class HeldItem:
    """An item of the session as the agent has it now. `item` is None when the agent no longer has it."""

    ref: ItemRef
    mode: IncludeMode
    item: Item | None
    status: ItemStatus
    reason: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """The session's items, built-in and brought tools, and the candidates for selection."""

    session: tuple[HeldItem, ...]
    candidates: tuple[Item, ...]
    built_in: tuple[HeldItem, ...] = ()
    brought: tuple[HeldItem, ...] = ()
    degraded: tuple[str, ...] = ()

    @property
    def found(self) -> tuple[HeldItem, ...]:
        """Return everything that is in the request before anything is selected for it."""
        return self.session + self.built_in + self.brought


def gather(
    agent: Agent, servers: Iterable[ServerStatus], session: SessionState, brought: Sequence[Tool] = ()
) -> Gathered:
    """Return what the session holds and what could be selected beyond it."""
    servers = tuple(servers)
    ready = {server.name: server for server in servers if server.state == "ready"}
    known = {tool.ref: tool for server in servers for tool in server.tools}
    candidates: list[Item] = [item for item in (*agent.rules, *agent.references) if item.enabled]
    candidates += [tool for server in ready.values() for tool in server.tools if tool.permission != "forbidden"]
    return Gathered(
        session=tuple(_find(agent, servers, known, held) for held in session.context_items),
        candidates=tuple(
            sorted(
                (item for item in candidates if item.include == "agent" and not session.holds(item.ref)),
                key=lambda item: item.ref.sort_key,
            )
        ),
        built_in=tuple(
            HeldItem(tool.ref, "always", tool, "used", "built in: lets the model record what it is working on")
            for tool in (CONTEXT_TOOLS if agent.settings.working_context else ())
        ),
        brought=tuple(HeldItem(tool.ref, "manual", tool, "used", "provided and run by the client") for tool in brought),
        degraded=tuple(
            f"tool server {server.name} is {'still connecting' if server.state == 'connecting' else 'not available'}"
            + (f": {server.error}" if server.error else "")
            for server in servers
            if server.state in ("connecting", "failed")
        ),
    )


def always_items(agent: Agent) -> tuple[SessionItem, ...]:
    """Return the rules and references that every new session receives, most important first."""
    items = [item for item in (*agent.rules, *agent.references) if item.enabled and item.include == "always"]
    items.sort(key=lambda item: (item.ref.type == "reference", item.priority, item.name))
    return tuple(SessionItem(item.ref, "always") for item in items)


def always_tools(server: ServerStatus) -> tuple[SessionItem, ...]:
    """Return the tools that a server brings into a session when it becomes ready."""
    tools = sorted((tool for tool in server.tools if tool.include == "always"), key=lambda tool: tool.name)
    return tuple(SessionItem(tool.ref, "always") for tool in tools)


def item_of(agent: Agent, servers: Iterable[ServerStatus], ref: ItemRef) -> Item | None:
    """Return an item of the agent by its name, or None."""
    if ref.type == "rule":
        return agent.rule(ref.name)
    if ref.type == "reference":
        return agent.reference(ref.name)
    return next((tool for server in servers for tool in server.tools if tool.ref == ref), None)


def _find(agent: Agent, servers: tuple[ServerStatus, ...], known: dict[ItemRef, Tool], held: SessionItem) -> HeldItem:
    item = known.get(held.ref) if held.ref.type == "tool" else item_of(agent, (), held.ref)
    status, reason = _standing(servers, held, item)
    return HeldItem(held.ref, held.mode, item, status, reason)


def _standing(servers: tuple[ServerStatus, ...], held: SessionItem, item: Item | None) -> tuple[ItemStatus, str]:
    if isinstance(item, Tool):
        server = next(server for server in servers if server.name == item.server)
        if server.state != "ready":
            return "server_down", f"the server is {server.state}{f': {server.error}' if server.error else ''}"
        if item.permission == "forbidden":
            return "not_permitted", "forbidden by the agent"
    elif item is not None and not item.enabled:
        return "disabled", "disabled by the agent"
    elif item is None:
        server = next((server for server in servers if server.name == held.ref.server), None)
        if server is not None and server.state != "ready":
            return "server_down", f"the server is {server.state}{f': {server.error}' if server.error else ''}"
        return "missing", "no longer in the agent"
    if held.mode == "always":
        return "used", "included in every session of this agent"
    return "used", "added to this session by hand"
