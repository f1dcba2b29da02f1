"""Collect everything that this turn could be told.

Four groups: the items of the session, each with what the agent says about it now; the tools that are built in; the
tools that the client brought along for this turn; and the candidates, the agent's `agent` items that are not in the
session, were not removed from it, and may be selected for this one request.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from windowpane.agents.base import Agent
from windowpane.context.events import SessionItem
from windowpane.context.items import IncludeMode, Item, ItemRef, Tool
from windowpane.context.request import Absent, Candidate, CandidateColumns, ItemStatus
from windowpane.context.session import SessionState
from windowpane.text.render import CODE_DIGITS
from windowpane.tools.base import ServerStatus
from windowpane.tools.context_tools import CONTEXT_TOOLS
from windowpane.tools.finder_tools import FINDERS, READ_RESOURCE

SWITCHED_OFF = ("off", "selection_off")
"""Why a candidate is left out where nothing is searched for."""


KEPT_CANDIDATES = 64
"""For how many sets of items that sessions hold or removed the candidates are kept, so that they are the same value."""

_LONG_NUMBER = re.compile(f"[0-9]{{{CODE_DIGITS},}}")


@dataclass(frozen=True, slots=True)
class Stock:
    """What an agent and its tool servers have, looked through once for all turns in which neither changes.

    `known` is everything by its name, `usable` what could be sent, in order. `candidates` are those of them that can be
    selected, `always` those that every new session receives. `numbers` are those in its texts that could be a code.
    """

    known: Mapping[ItemRef, Item]
    usable: tuple[Item, ...]
    candidates: tuple[Item, ...]
    candidate_refs: frozenset[ItemRef]
    always: tuple[Item, ...]
    numbers: frozenset[str]
    _others: dict[frozenset[ItemRef], tuple[Item, ...]] = field(default_factory=dict[frozenset[ItemRef], Any])

    @staticmethod
    def of(agent: Agent, servers: Iterable[ServerStatus]) -> "Stock":
        """Return what an agent and its servers have now."""
        servers = tuple(servers)
        texts: tuple[Item, ...] = (*agent.rules, *agent.references)
        ready = {server.name: server for server in servers if server.state == "ready"}
        usable = [item for item in texts if item.enabled]
        usable += [tool for server in ready.values() for tool in server.tools if tool.permission != "forbidden"]
        usable.sort(key=lambda item: item.ref.sort_key)
        candidates = tuple(item for item in usable if item.include == "agent")
        return Stock(
            known={item.ref: item for item in (*texts, *(tool for server in servers for tool in server.tools))},
            usable=tuple(usable),
            candidates=candidates,
            candidate_refs=frozenset(item.ref for item in candidates),
            always=tuple(item for item in usable if item.include == "always"),
            numbers=long_numbers(item.text for item in (*agent.rules, *agent.references)),
        )

    def candidates_without(self, refs: AbstractSet[ItemRef]) -> tuple[Item, ...]:
        """Return the candidates of a session that holds or removed these items: the same value for the same items."""
        gone = self.candidate_refs.intersection(refs)
        if not gone:
            return self.candidates
        found = self._others.get(gone)
        if found is None:
            if len(self._others) >= KEPT_CANDIDATES:
                self._others.clear()
            found = self._others[gone] = tuple(item for item in self.candidates if item.ref not in gone)
        return found


def long_numbers(texts: Iterable[str]) -> frozenset[str]:
    """Return every number of as many digits as a boundary code has that stands anywhere in these texts."""
    runs = (run for text in texts for run in _LONG_NUMBER.findall(text))
    return frozenset(run[at : at + CODE_DIGITS] for run in runs for at in range(len(run) - CODE_DIGITS + 1))


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
    """The session's items, built-in and brought tools, and the candidates for selection.

    `finders`: the model is given tools to ask for candidates that were left out, if any are. `numbers` are those that
    the texts of the agent hold: no boundary code is one of them.
    """

    session: tuple[HeldItem, ...]
    candidates: tuple[Item, ...]
    numbers: frozenset[str]
    built_in: tuple[HeldItem, ...] = ()
    brought: tuple[HeldItem, ...] = ()
    absent: tuple[Absent, ...] = ()
    degraded: tuple[str, ...] = ()
    finders: bool = False

    @property
    def found(self) -> tuple[HeldItem, ...]:
        """Return everything that is in the request before anything is selected for it."""
        return self.session + self.built_in + self.brought


def gather(
    agent: Agent,
    servers: Iterable[ServerStatus],
    session: SessionState,
    brought: Sequence[Tool] = (),
    working_context: bool = True,
    stock: Stock | None = None,
) -> Gathered:
    """Return what the session holds and what could be selected beyond it. Its notes may be left out.

    `stock` is what the agent and the servers have, where it is known already.
    """
    servers = tuple(servers)
    stock = stock or Stock.of(agent, servers)
    # An agent may have ten thousand items, and a session holds few of them.
    held_refs, removed = {held.ref for held in session.context_items}, session.removed
    absent = (item for item in (stock.usable if removed else stock.always) if item.ref not in held_refs)
    return Gathered(
        session=tuple(_find(servers, stock.known.get(held.ref), held) for held in session.context_items),
        candidates=stock.candidates_without(held_refs | removed),
        numbers=stock.numbers,
        absent=tuple(_absent(item, session) for item in absent if item.include == "always" or item.ref in removed),
        built_in=tuple(
            HeldItem(tool.ref, "always", tool, "used", "built in: lets the model record what it is working on")
            for tool in (CONTEXT_TOOLS if working_context and agent.settings.working_context else ())
        ),
        brought=tuple(HeldItem(tool.ref, "manual", tool, "used", "provided and run by the client") for tool in brought),
        degraded=tuple(
            f"tool server {server.name} is {'still connecting' if server.state == 'connecting' else 'not available'}"
            + (f": {server.error}" if server.error else "")
            for server in servers
            if server.state in ("connecting", "failed")
        ),
    )


def with_finders(
    gathered: Gathered, left_out: Sequence[Candidate], *, stable: bool = False, links: bool = False
) -> Gathered:
    """Return the same with the finders of every kind of which candidates were left out by a selection that is on.

    `stable`: of every kind that has candidates, so that the finders do not come and go. `links`: results of tools have
    named resources, which can be read.
    """
    columns = CandidateColumns.of(left_out)
    fates = set(zip(columns.type, columns.code, strict=True))
    missing = {kind for kind, code in fates if code not in SWITCHED_OFF}
    if stable:
        off = {kind for kind, code in fates if code in SWITCHED_OFF}
        missing = {item.ref.type for item in gathered.candidates} - off
    finders = tuple(
        HeldItem(tool.ref, "always", tool, "used", f"built in: lets the model ask for {kind}s that were not sent")
        for kind, tools in FINDERS.items()
        if kind in missing
        for tool in tools
    )
    reader = HeldItem(
        READ_RESOURCE.ref, "always", READ_RESOURCE, "used", "built in: a result of a tool named resources"
    )
    return replace(gathered, built_in=gathered.built_in + finders + ((reader,) if links else ()), finders=True)


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


def _absent(item: Item, session: SessionState) -> Absent:
    ref = item.ref
    if ref not in session.removed:
        reason = "became `always` after this session began"
        return Absent(type=ref.type, name=ref.name, server=ref.server, code="became_always", reason=reason)
    reason = "never in this session: it was removed by hand"
    return Absent(type=ref.type, name=ref.name, server=ref.server, code="removed", reason=reason)


def _find(servers: tuple[ServerStatus, ...], item: Item | None, held: SessionItem) -> HeldItem:
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
