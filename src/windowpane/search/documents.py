"""What of an item is searched.

An item becomes a `Document`, a document has one indexed text, and that text is cut
into passages. A passage is shown as it stands in the text; what is embedded is the
passage below the item's name in plain words, so that the third paragraph of a guide
still knows which guide it belongs to, and `getUserById` is read as "get user by id".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from windowpane.context.items import Domain, Item, ItemRef, Reference, Rule, Tool
from windowpane.search.chunks import CAP_CHARS, Chunk, chunks

DOMAINS: tuple[Domain, ...] = ("text", "tool")

REMEMBERED_DOCUMENTS = 20_000
"""How many documents stay cut and counted for the searches to come."""


@dataclass(frozen=True, slots=True)
class Document:
    """The searchable side of one item. `body` is its text, or the parameters of a tool, one to a line.

    What is not `shared` belongs to one session: nothing of it is kept on disk.
    """

    key: ItemRef
    name: str
    description: str = ""
    body: str = ""
    shared: bool = True

    @property
    def domain(self) -> Domain:
        """Return which settings apply."""
        return "tool" if self.key.type == "tool" else "text"

    @property
    def server(self) -> str:
        """Return the tool's server, or nothing."""
        return self.key.server or ""

    @property
    def head(self) -> str:
        """Return the line that introduces the item."""
        return f"{self.name}: {self.description}" if self.description else self.name

    @property
    def text(self) -> str:
        """Return the indexed text: the one that offsets of passages count in."""
        return self.head + ("\n" if self.domain == "tool" else "\n\n") + self.body if self.body else self.head


def document(item: Item) -> Document:
    """Return the searchable side of an item."""
    if isinstance(item, Tool):
        return Document(item.ref, item.name, item.description, "\n".join(_parameters(item.parameters)))
    description = ". ".join(part for part in (_own_title(item), item.description) if part)
    shared = not (isinstance(item, Reference) and item.own)
    return Document(item.ref, item.name, description, item.text, shared)


def _own_title(item: Rule | Reference) -> str:
    """Return a title that says more than the name and the text do."""
    title = item.title if isinstance(item, Reference) else ""
    return title if title not in item.text and spelled_out(item.name) != title.lower() != item.name.lower() else ""


def passages(doc: Document) -> tuple[Chunk, ...]:
    """Return the passages of a document's text in order; there is always a first one, with its name."""
    if doc.domain == "tool":
        return chunks(doc.text)
    offset = len(doc.text) - len(doc.body)
    body = (Chunk(c.start + offset, c.end + offset, c.text) for c in chunks(doc.body))
    return (*chunks(doc.head), *body)


def embedded_text(doc: Document, passage: Chunk) -> str:
    """Return what stands for a passage when its meaning is measured."""
    name = spelled_out(doc.name)
    if passage.start == 0:
        return name + passage.text[len(doc.name) :]
    return f"{name[:CAP_CHARS]}\n{passage.text}"


_WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")


def spelled_out(name: str) -> str:
    """Return a name as plain words: `getUserById` and `get_user_by_id` both give `get user by id`."""
    if " " in name:
        return name
    return " ".join(_WORD.findall(name)).lower() or name


_DEEPEST = 4


def _parameters(schema: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield `name: description` for every parameter of a JSON schema, nested ones after their parent."""
    properties: object = schema.get("properties")
    if not isinstance(properties, Mapping) or depth >= _DEEPEST:
        return
    for name, inner in cast("Mapping[str, object]", properties).items():
        if not isinstance(inner, Mapping):
            yield name
            continue
        parameter = cast("Mapping[str, Any]", inner)
        description: object = parameter.get("description")
        yield f"{name}: {description}" if isinstance(description, str) and description else name
        yield from _parameters(parameter, depth + 1)
        items: object = parameter.get("items")
        if isinstance(items, Mapping):
            yield from _parameters(cast("Mapping[str, Any]", items), depth + 1)
