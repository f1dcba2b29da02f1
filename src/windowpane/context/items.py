"""Items: the rules, references and tools that an agent makes available.

An item is named by an `ItemRef` and described by a `Rule`, `Reference` or `Tool`. Sessions and requests hold refs;
the texts live with the agent, and, once sent, in blobs named by their content hash.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Self

from windowpane.context.identity_cache import cached_by_identity
from windowpane.context.ids import BlobHash, content_hash
from windowpane.errors import InvalidInputError

ItemType = Literal["rule", "reference", "tool"]
IncludeMode = Literal["always", "manual", "agent"]
"""How an item comes into play: at session start, by hand, or chosen for one request."""

SessionMode = Literal["always", "manual"]
"""How an item came into a session. `agent` items never enter one by themselves."""

Permission = Literal["required", "not_required", "forbidden"]
"""Whether a tool call waits for a person. A `forbidden` tool is never offered to a model."""

DEFAULT_PRIORITY = 500

BUILT_IN_SERVER = "windowpane"
"""The server of the tools that Windowpane itself brings. No other server can have this name."""

KEPT_REFS = 65_536
"""How many names are kept as they are. Each turn asks several times for the name of every item."""

CLIENT_SERVER = "client"
"""The server of the tools that a client sends with a message and runs itself. No other can have this name."""


@dataclass(frozen=True, slots=True)
class ItemRef:
    """The name of an item. A tool is named together with its server."""

    type: ItemType
    name: str
    server: str | None = None

    def __post_init__(self) -> None:
        if (self.type == "tool") != (self.server is not None):
            raise ValueError("a tool names its server; a rule or a reference has none")

    def __str__(self) -> str:
        return f"{self.server}:{self.name}" if self.type == "tool" else f"{self.type}:{self.name}"

    @property
    def sort_key(self) -> tuple[str, str, str]:
        """Order refs the same way everywhere: by kind, server and name."""
        return (self.type, self.server or "", self.name)


@lru_cache(maxsize=KEPT_REFS)
def rule_ref(name: str) -> ItemRef:
    """Return the name of a rule."""
    return ItemRef("rule", name)


@lru_cache(maxsize=KEPT_REFS)
def reference_ref(name: str) -> ItemRef:
    """Return the name of a reference."""
    return ItemRef("reference", name)


@lru_cache(maxsize=KEPT_REFS)
def tool_ref(server: str, name: str) -> ItemRef:
    """Return the name of a tool."""
    return ItemRef("tool", name, server)


def as_ref(item: ItemRef | str) -> ItemRef:
    """Return the ref that a text names: `rule:NAME`, `reference:NAME`, or `SERVER:TOOL`.

    Raises:
        InvalidInputError: the text has no such form.
    """
    if isinstance(item, ItemRef):
        return item
    before, colon, name = item.partition(":")
    if not before or not colon or not name:
        raise InvalidInputError(f"{item!r} names no item; write rule:NAME, reference:NAME or SERVER:TOOL")
    if before == "rule":
        return rule_ref(name)
    return reference_ref(name) if before == "reference" else tool_ref(before, name)


@dataclass(frozen=True, slots=True)
class Rule:
    """An instruction that the model must follow. Lower priority numbers are more important."""

    name: str
    text: str
    description: str = ""
    priority: int = DEFAULT_PRIORITY
    include: IncludeMode = "manual"
    enabled: bool = True
    version: str = ""

    @property
    def ref(self) -> ItemRef:
        """Return this rule's name."""
        return rule_ref(self.name)


@dataclass(frozen=True, slots=True)
class Reference:
    """Knowledge that the model may draw upon. `related` names references worth reading next.

    One that is a session's `own` was made from a file there, and is not the agent's.
    """

    name: str
    text: str
    description: str = ""
    priority: int = DEFAULT_PRIORITY
    include: IncludeMode = "manual"
    enabled: bool = True
    version: str = ""
    related: tuple[str, ...] = ()
    title: str = ""
    own: bool = False

    @property
    def ref(self) -> ItemRef:
        """Return this reference's name."""
        return reference_ref(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnReference:
    """A reference that one session made from a file. `blob` names its definition, `characters` is how long it is."""

    name: str
    file: str
    blob: BlobHash
    characters: int
    origin: Literal["this session"] = "this session"

    @property
    def ref(self) -> ItemRef:
        """Return this reference's name."""
        return reference_ref(self.name)


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that the model may call on a tool server. `parameters` is the JSON schema of its arguments."""

    server: str
    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    include: IncludeMode = "always"
    permission: Permission = "required"
    version: str = ""

    @property
    def ref(self) -> ItemRef:
        """Return this tool's name."""
        return tool_ref(self.server, self.name)


Item = Rule | Reference | Tool


def is_own(item: Item) -> bool:
    """Tell whether an item is the session's own: its words are not shared with other sessions."""
    return isinstance(item, Reference) and item.own


class AgentText(str):
    """A text that its agent brought and that sessions therefore share, as opposed to what was said in one of them."""

    __slots__ = ()


class BundledText(AgentText):
    """One of the texts that an agent brings together: a session has a whole bundle or none. `bundles` are its own."""

    __slots__ = ("bundles",)
    bundles: tuple[str, ...]

    def __new__(cls, text: str, bundles: tuple[str, ...]) -> Self:
        """Return a text of these bundles."""
        found = super().__new__(cls, text)
        found.bundles = bundles
        return found


class HashedTexts(dict[BlobHash, str]):
    """Texts by the hashes that were worked out of these very texts: they need not be checked again."""


def bundled(*bundles: Mapping[BlobHash, str]) -> dict[BlobHash, str]:
    """Return the texts of these bundles, each marked with the names of those that it is in."""
    named = [(bundle_name(texts), texts) for texts in bundles]
    return {
        blob_hash: BundledText(text, tuple(name for name, others in named if blob_hash in others))
        for _, texts in named
        for blob_hash, text in texts.items()
    }


def bundle_name(names: Iterable[BlobHash]) -> str:
    """Return the name of the bundle of the texts with these names."""
    return content_hash(" ".join(sorted(names)))


def definition(item: Item) -> str:
    """Return the item as canonical JSON: what its content hash covers and what its blob holds.

    Everything a reader of a past turn wants is in it. Include mode, permission and version are not: they say how
    the item was used, which the record of the turn says already.
    """
    body: dict[str, Any] = {"type": item.ref.type, "name": item.name, "description": item.description}
    if isinstance(item, Tool):
        body |= {"server": item.server, "parameters": item.parameters}
    else:
        body |= {"priority": item.priority, "text": item.text}
    if isinstance(item, Reference):
        body |= {"title": item.title, "related": list(item.related)}
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@cached_by_identity
def item_hash(item: Item) -> BlobHash:
    """Return the content hash of an item."""
    return content_hash(definition(item))


Domain = Literal["text", "tool"]
"""Rules and references are one domain, tools the other; each has its own settings."""
