"""Catalogs: everything an agent made available at one moment.

A turn's record names its catalog by hash. So a past turn can be asked about any item of that time, also one that had
nothing to do with the turn, and its selection can be run again, whatever has become of the agent since.
"""

from dataclasses import dataclass
from typing import Literal

from windowpane.context.ids import BlobHash
from windowpane.context.items import IncludeMode, ItemRef, ItemType

Standing = Literal["ready", "disabled", "not_permitted", "server_down"]
"""Whether an item could be sent at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One item as the agent had it. `hash` names the blob with all it says."""

    type: ItemType
    name: str
    server: str | None = None
    include: IncludeMode
    standing: Standing = "ready"
    version: str = ""
    hash: BlobHash

    @property
    def ref(self) -> ItemRef:
        """Return the item's name."""
        return ItemRef(self.type, self.name, self.server)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The items of an agent, in the order of their refs."""

    entries: tuple[CatalogEntry, ...]

    def entry(self, ref: ItemRef) -> CatalogEntry | None:
        """Return an item's entry, or None when the agent did not have it."""
        return next((entry for entry in self.entries if entry.ref == ref), None)
