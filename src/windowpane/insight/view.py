"""A request context as people read it: a summary, three groups of items, the other parts, and every reason.

The terminal, the API and the page all draw these rows, so they show the same things in the same order and words.
Reasons come from the record; nothing is worked out again here, except whether an item has changed since.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from windowpane.context.ids import BlobHash
from windowpane.context.items import IncludeMode, ItemRef, ItemType
from windowpane.context.request import ContextItem, ItemStatus, PartKind, RequestContext

NO_CONTEXT = "No context data available"
"""What is shown for a message that has no request context."""

NO_ITEMS = "no items"
NO_PRIORITY = "---"

Since = Literal["same", "changed", "deleted"]
"""What has happened to an item since the request was sent."""

_MODES: tuple[IncludeMode, ...] = ("agent", "always", "manual")
_GROUPS: tuple[ItemType, ...] = ("rule", "reference", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRow:
    """One item as it is shown. `label` is its priority in three digits, or its server and a dot."""

    ref: ItemRef
    label: str
    name: str
    mode: IncludeMode
    badge: str
    score: float | None
    status: ItemStatus
    reason: str
    tokens: int
    since: Since = "same"

    @property
    def sent(self) -> bool:
        """Tell whether the model was given this item."""
        return self.status in ("used", "truncated")

    @property
    def note(self) -> str:
        """Return what a reader must know beyond name and badge; empty for an item that was used and is unchanged."""
        fate = "" if self.status == "used" else f"{self.status.replace('_', ' ')}: {self.reason}"
        return ", ".join(part for part in (fate, "" if self.since == "same" else f"{self.since} since") if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextColumns:
    """The items of a request in three groups: rules and references by priority, tools by server, then by name."""

    rules: tuple[ContextRow, ...]
    references: tuple[ContextRow, ...]
    tools: tuple[ContextRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPartRow:
    """All stretches of one kind together. `reasons` say why those that were left out or cut were."""

    kind: PartKind
    count: int
    tokens: int
    left_out: int = 0
    reasons: tuple[str, ...] = ()


def summary(context: RequestContext) -> str:
    """Return how many items of each kind the model was given, by include mode, in one line."""
    groups = [_group_summary(kind, [item for item in context.items if item.type == kind]) for kind in _GROUPS]
    sent = ", ".join(group for group in groups if group) or NO_ITEMS
    missed = sum(not item.sent for item in context.items)
    return f"{sent}; {missed} not sent" if missed else sent


def columns(context: RequestContext, since: Mapping[ItemRef, Since] | None = None) -> ContextColumns:
    """Return the items as rows. `since` says what has happened to them in the meantime, where that is known."""
    changes = since or {}

    def rows(kind: ItemType) -> tuple[ContextRow, ...]:
        items = sorted((item for item in context.items if item.type == kind), key=_order)
        return tuple(_row(item, changes.get(item.ref, "same")) for item in items)

    return ContextColumns(rules=rows("rule"), references=rows("reference"), tools=rows("tool"))


def parts(context: RequestContext) -> tuple[ContextPartRow, ...]:
    """Return what the request consisted of, one row per kind, in the order of the request."""
    kinds: dict[PartKind, None] = dict.fromkeys(part.kind for part in context.parts)
    return tuple(_part_row(context, kind) for kind in kinds)


def changes_since(context: RequestContext, now: Mapping[ItemRef, BlobHash]) -> dict[ItemRef, Since]:
    """Return which items of the request have changed, given the hashes of the items that the agent has now.

    A tool counts as deleted only when its server offers others: a server that is away tells nothing.
    """
    servers = {ref.server for ref in now if ref.server is not None}
    changes: dict[ItemRef, Since] = {}
    for item in context.items:
        if item.hash is None or (item.server is not None and item.server not in servers):
            continue
        if item.ref not in now:
            changes[item.ref] = "deleted"
        elif now[item.ref] != item.hash:
            changes[item.ref] = "changed"
    return changes


def badge(mode: IncludeMode, score: float | None = None) -> str:
    """Return the words of an include mode, with the score of an item that was selected: `Agent - 0.87`."""
    return f"Agent - {score:.2f}" if mode == "agent" and score is not None else mode.capitalize()


def label(ref: ItemRef, priority: int | None) -> str:
    """Return what stands before an item's name: `001`, or `filesystem.` before a tool."""
    if ref.server is not None:
        return f"{ref.server}."
    return NO_PRIORITY if priority is None else f"{priority:03d}"


def groups_of(shown: ContextColumns) -> tuple[tuple[ContextRow, ...], ...]:
    """Return the three groups in the order in which they are shown."""
    return (shown.rules, shown.references, shown.tools)


def heading(title: str, rows: Sequence[ContextRow]) -> str:
    """Return the heading of a group: how many were sent, and how many were not."""
    sent = sum(row.sent for row in rows)
    return f"{title} ({sent}):" if sent == len(rows) else f"{title} ({sent}, {len(rows) - sent} not sent):"


def _group_summary(noun: str, items: Sequence[ContextItem]) -> str:
    modes = Counter(item.include_mode for item in items if item.sent)
    count = modes.total()
    if not count:
        return ""
    if count == 1:
        return f"1 {noun} ({next(iter(modes))})"
    if len(modes) == 1:
        return f"{count} {noun}s (all {next(iter(modes))})"
    return f"{count} {noun}s ({', '.join(f'{modes[mode]} {mode}' for mode in _MODES if mode in modes)})"


def _order(item: ContextItem) -> tuple[str, bool, int, str]:
    return (item.server or "", item.priority is None, item.priority or 0, item.name)


def _row(item: ContextItem, since: Since) -> ContextRow:
    return ContextRow(
        ref=item.ref,
        label=label(item.ref, item.priority),
        name=item.name,
        mode=item.include_mode,
        badge=badge(item.include_mode, item.similarity_score),
        score=item.similarity_score,
        status=item.status,
        reason=item.reason,
        tokens=item.tokens,
        since=since,
    )


def _part_row(context: RequestContext, kind: PartKind) -> ContextPartRow:
    same = [part for part in context.parts if part.kind == kind]
    sent = [part for part in same if part.status != "left_out"]
    return ContextPartRow(
        kind=kind,
        count=len(sent),
        tokens=sum(part.tokens for part in sent),
        left_out=len(same) - len(sent),
        reasons=tuple(dict.fromkeys(part.reason for part in same if part.reason)),
    )
