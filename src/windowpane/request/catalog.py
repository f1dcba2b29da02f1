"""Keep what an agent made available at the time of a turn, as blobs.

A catalog is a list of names and hashes, with one blob for what each item says. It changes when the agent does, so a
session's turns mostly share one, and its texts are stored when the first of them is built.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.agents.base import Agent
from windowpane.context.catalog import Catalog, CatalogEntry, Standing
from windowpane.context.ids import BlobHash, content_hash
from windowpane.context.items import Item, Reference, Rule, Tool, bundled, definition, is_own
from windowpane.json_codec import JsonCodec
from windowpane.request.gather import Stock
from windowpane.tools.base import ServerStatus

KEPT_CATALOGS = 8

_CATALOG = JsonCodec(Catalog)


@dataclass(frozen=True, slots=True)
class KeptCatalog:
    """A catalog by its hash, every text that must be stored for it, and the items themselves."""

    name: BlobHash
    blobs: dict[BlobHash, str]
    stock: Stock


class Catalogs:
    """The catalogs of the agents that a worker used last; an agent that did not change is not looked through again."""

    def __init__(self) -> None:
        self._kept: list[tuple[Agent, tuple[ServerStatus, ...], KeptCatalog]] = []

    def of(self, agent: Agent, servers: tuple[ServerStatus, ...]) -> KeptCatalog:
        """Return the catalog of an agent and its tool servers as they are now."""
        for position, (known, states, kept) in enumerate(self._kept):
            if known is agent and states == servers:
                self._kept.insert(0, self._kept.pop(position))
                return kept
        kept = keep_catalog(agent, servers)
        self._kept.insert(0, (agent, servers, kept))
        del self._kept[KEPT_CATALOGS:]
        return kept


def keep_catalog(agent: Agent, servers: Sequence[ServerStatus]) -> KeptCatalog:
    """Return the catalog of an agent and its tool servers, ready to be stored."""
    standings: dict[str, Standing] = {
        server.name: "ready" if server.state == "ready" else "server_down" for server in servers
    }
    tools = tuple(tool for server in servers for tool in server.tools)
    blobs: dict[BlobHash, str] = {}
    own: set[BlobHash] = set()
    entries: list[CatalogEntry] = []
    for item in sorted((*agent.rules, *agent.references, *tools), key=lambda item: item.ref.sort_key):
        text = definition(item)
        name = content_hash(text)
        blobs[name] = text
        own |= {name} if is_own(item) else set()
        entries.append(
            CatalogEntry(
                type=item.ref.type,
                name=item.name,
                server=item.ref.server,
                include=item.include,
                standing=_standing(item, standings),
                version=item.version,
                hash=name,
            )
        )
    body = _CATALOG.adapter.dump_json(Catalog(tuple(entries))).decode()
    name = content_hash(body)
    # A list that names references of one session is that session's.
    blobs[name] = body
    own |= {name} if own else set()
    shared = bundled({each: text for each, text in blobs.items() if each not in own})
    return KeptCatalog(name, {**blobs, **shared}, Stock.of(agent, servers))


def read_catalog(body: str) -> Catalog:
    """Return the catalog that a blob holds."""
    return _CATALOG.adapter.validate_json(body)


def item_from(entry: CatalogEntry, text: str) -> Item:
    """Return an item as it was, from its entry and from what its blob says."""
    body: dict[str, Any] = json.loads(text)
    if entry.type == "tool":
        return Tool(
            server=body["server"],
            name=body["name"],
            description=body["description"],
            parameters=body["parameters"],
            include=entry.include,
            permission="forbidden" if entry.standing == "not_permitted" else "required",
            version=entry.version,
        )
    rule = Rule(
        name=body["name"],
        text=body["text"],
        description=body["description"],
        priority=body["priority"],
        include=entry.include,
        enabled=entry.standing != "disabled",
        version=entry.version,
    )
    if entry.type == "rule":
        return rule
    return Reference(
        name=rule.name,
        text=rule.text,
        description=rule.description,
        priority=rule.priority,
        include=rule.include,
        enabled=rule.enabled,
        version=rule.version,
        related=tuple(body["related"]),
        title=body["title"],
    )


def _standing(item: Item, servers: dict[str, Standing]) -> Standing:
    if isinstance(item, Tool):
        return "not_permitted" if item.permission == "forbidden" else servers[item.server]
    return "ready" if item.enabled else "disabled"
