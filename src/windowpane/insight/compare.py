"""What changed from one request to another: items and parts, tokens and cost, and where the prompt begins to differ.

Providers keep the beginning of a prompt and charge less for it as long as it stays the same. `Prefix` says how far two
prompts agree to the byte, in the order in which providers read them (tools, then messages), and what ended it.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import unified_diff
from itertools import chain

from windowpane.api.comparison import Comparison, Happened, ItemChange, PartChange, Prefix, Side
from windowpane.context.ids import BlobHash
from windowpane.context.items import ItemRef
from windowpane.context.request import ContextItem, OfferedTool, PartKind, Request, RequestContext, RequestMessage
from windowpane.insight.past import PastTurn
from windowpane.insight.usage import Spending, spending
from windowpane.request.stable.carry import array_of
from windowpane.text.shared_prefix import shared_prefix
from windowpane.text.tokens import count, family_for, message_tokens, tools_tokens

MOST_DIFF_LINES = 400
SHOWN_BYTES = 80
NUMBERED: tuple[PartKind, ...] = ("history", "sources", "summary", "recall")
"""Parts whose names count messages, which mean nothing in another session."""


def compare(before: PastTurn, after: PastTurn) -> Comparison:
    """Return what is different in the second turn's request."""
    first, second = before.request, after.request
    spent = tuple(spending(past.calls, past.context.settings.model) for past in (before, after))
    sides = _side(before, spent[0]), _side(after, spent[1])
    items = _item_changes(before, after)
    return Comparison(
        before=sides[0],
        after=sides[1],
        items=items,
        parts=_part_changes(first, second, same_session=before.session_id == after.session_id),
        tokens=sides[1].used_tokens - sides[0].used_tokens,
        tokens_by_part=_tokens_by_part(before.context, after.context),
        cost_usd=_difference(*spent),
        prefix=_prefix(before, after, items),
    )


def _side(past: PastTurn, spent: Spending) -> Side:
    context = past.context
    return Side(
        session_id=past.session_id,
        turn=past.turn,
        model=context.settings.model,
        used_tokens=context.budget.used_tokens,
        items=sum(item.sent for item in context.items),
        calls=spent.calls,
        usage=spent.usage,
        cost_usd=spent.cost_usd,
        calls_without_usage=spent.without_usage,
        calls_without_price=spent.without_price,
    )


def _difference(before: Spending, after: Spending) -> Decimal | None:
    """Return by how much the second turn cost more, or None when not every call of both has a known cost."""
    unknown = sum(spent.without_usage + spent.without_price for spent in (before, after))
    return None if unknown else (after.cost_usd or Decimal(0)) - (before.cost_usd or Decimal(0))


# Items


def _item_changes(before: PastTurn, after: PastTurn) -> tuple[ItemChange, ...]:
    old, new = sent_items(before.context), sent_items(after.context)
    both = [ref for ref in new if ref in old]
    # What stands in the prompt since an earlier turn has its place there, whatever its priority is.
    placed = [ref for ref in both if new[ref].since is None]
    strays = _strays([ref for ref in old if ref in placed], placed)
    changes = [
        ItemChange(ref=ref, happened="entered", reason=item.reason, tokens=item.tokens)
        for ref, item in new.items()
        if ref not in old
    ]
    changes += [
        ItemChange(ref=ref, happened="left", reason=_absence(after.context, ref), tokens=-item.tokens)
        for ref, item in old.items()
        if ref not in new
    ]
    for ref in both:
        was, now = old[ref], new[ref]
        tokens = now.tokens - was.tokens
        if was.hash != now.hash or was.status != now.status:
            diff = _diff(_said(before, was.hash), _said(after, now.hash))
            changes.append(ItemChange(ref=ref, happened="changed", reason=now.reason, tokens=tokens, diff=diff))
        if ref in strays or place_of(was) != place_of(now):
            changes.append(ItemChange(ref=ref, happened="moved", reason=_movement(was, now), tokens=tokens))
    return tuple(changes)


def sent_items(context: RequestContext) -> dict[ItemRef, ContextItem]:
    """Return the items that the model was given, in the order of the prompt."""
    sent = [*(item for item in context.items if item.sent), *context.standing]
    return {item.ref: item for _, item in sorted(enumerate(sent), key=lambda pair: _prompt_order(*pair))}


def _prompt_order(index: int, item: ContextItem) -> tuple[int, bool, int, str]:
    """Return where an item stands: texts by priority and name, tools as they came in."""
    place = _PLACES.index(place_of(item))
    return (place, item.type == "reference", index if item.type == "tool" else item.priority or 0, item.name)


def place_of(item: ContextItem) -> PartKind:
    if item.type == "tool":
        return "tools"
    return "selected" if item.include_mode == "agent" else "rules" if item.type == "rule" else "references"


_PLACES: tuple[PartKind, ...] = ("tools", "rules", "references", "selected")


def _movement(was: ContextItem, now: ContextItem) -> str:
    if place_of(was) != place_of(now):
        return f"moved from {place_of(was)} to {place_of(now)}"
    if was.priority != now.priority:
        return f"priority changed from {was.priority} to {now.priority}"
    return "other items moved around it"


def _absence(context: RequestContext, ref: ItemRef) -> str:
    item = context.item(ref)
    if item is not None:
        return item.reason
    if (dropped := next((each for each in context.dropped if each.ref == ref), None)) is not None:
        return f"dropped at a re-base: {dropped.reason}"
    return next((c.reason for c in context.candidates if c.ref == ref), "not in the session and not a candidate")


def _said(past: PastTurn, blob: BlobHash | None) -> str:
    """Return what an item said, as lines that can be compared."""
    text = past.texts.get(blob) if blob else None
    if text is None:
        return ""
    body = json.loads(text)
    said = body.pop("text", None)
    facts = json.dumps(body, ensure_ascii=False, sort_keys=True, indent=1)
    return facts if said is None else f"{facts}\n{said}"


def _strays(before: Sequence[Hashable], after: Sequence[Hashable]) -> set[Hashable]:
    """Return what stands in another order: all but the longest run of things that kept theirs."""
    place = {thing: index for index, thing in enumerate(before)}
    # For each length, the run of it that ends earliest: its last place, and the run itself as a linked list.
    ends: list[int] = []
    runs: list[_Run] = []
    for thing in after:
        length = bisect_left(ends, place[thing])
        run = _Run(thing, runs[length - 1] if length else None)
        ends[length : length + 1] = [place[thing]]
        runs[length : length + 1] = [run]
    kept: set[Hashable] = set()
    last = runs[-1] if runs else None
    while last is not None:
        kept.add(last.thing)
        last = last.before
    return set(after) - kept


@dataclass(frozen=True, slots=True)
class _Run:
    thing: Hashable
    before: "_Run | None"


# Parts

_PartKey = tuple[PartKind, str]


def _part_changes(first: Request, second: Request, *, same_session: bool) -> tuple[PartChange, ...]:
    old, new = _keyed(first, same_session), _keyed(second, same_session)
    strays = _strays([key for key in old if key in new], [key for key in new if key in old])
    changes: list[PartChange] = []
    for key, messages in new.items():
        was = old.get(key)
        tokens = sum(map(message_tokens, messages)) - sum(map(message_tokens, was or ()))
        if was is None:
            changes.append(PartChange(kind=key[0], name=key[1], happened="entered", tokens=tokens))
        elif _text(was) != _text(messages):
            diff = _diff(_text(was), _text(messages))
            changes.append(PartChange(kind=key[0], name=key[1], happened="changed", tokens=tokens, diff=diff))
        if key in strays:
            changes.append(PartChange(kind=key[0], name=key[1], happened="moved", tokens=tokens))
    changes += [
        PartChange(kind=key[0], name=key[1], happened="left", tokens=-sum(map(message_tokens, messages)))
        for key, messages in old.items()
        if key not in new
    ]
    tools = tuple(tools_tokens(each.tools, family_for(each.context.settings)) for each in (first, second))
    if _offers(first) != _offers(second):
        diff = _diff("\n".join(_offers(first)), "\n".join(_offers(second)))
        changes.append(PartChange(kind="tools", name="", happened="changed", tokens=tools[1] - tools[0], diff=diff))
    return tuple(changes)


def _keyed(request: Request, same_session: bool) -> dict[_PartKey, list[RequestMessage]]:
    """Return the messages of each part; a past answer may be several messages of one name."""
    found: dict[_PartKey, list[RequestMessage]] = {}
    seen: dict[PartKind, list[str]] = {}
    for message in request.messages:
        names = seen.setdefault(message.part, [])
        if message.name not in names:
            names.append(message.name)
        numbered = message.part in NUMBERED and not same_session
        name = f"number {names.index(message.name) + 1}" if numbered else message.name
        found.setdefault((message.part, name), []).append(message)
    return found


def _text(messages: Iterable[RequestMessage]) -> str:
    return "\n".join(chain.from_iterable((message.content, *_calls(message)) for message in messages))


def _calls(message: RequestMessage) -> list[str]:
    return [f"{call.offered_name} {call.arguments}" for call in message.tool_calls]


def _offers(request: Request) -> list[str]:
    return [_offer(tool) for tool in request.tools]


def _offer(tool: OfferedTool) -> str:
    offer = {"name": tool.offered_name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps(offer, ensure_ascii=False)


def _tokens_by_part(before: RequestContext, after: RequestContext) -> dict[str, int]:
    difference: Counter[str] = Counter()
    for part in after.parts:
        difference[part.kind] += part.tokens
    for part in before.parts:
        difference[part.kind] -= part.tokens
    return {kind: tokens for kind, tokens in difference.items() if tokens}


def _diff(before: str, after: str) -> str:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2))
    if len(lines) > MOST_DIFF_LINES:
        lines = [*lines[:MOST_DIFF_LINES], f"… {len(lines) - MOST_DIFF_LINES} more lines"]
    return "\n".join(lines)


# The prefix


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch of the prompt: what it belongs to, and its bytes."""

    part: PartKind
    name: str
    body: bytes
    item: ItemRef | None = None

    @property
    def key(self) -> _PartKey:
        return (self.part, self.name)


def prompt_bytes(past: PastTurn) -> bytes:
    """Return a request as bytes, in the order in which providers read it: tools, then messages."""
    return b"".join(stretch.body for stretch in _stretches(past))


def _prefix(before: PastTurn, after: PastTurn, changes: Sequence[ItemChange]) -> Prefix:
    old, new = _stretches(before), _stretches(after)
    first, second = (b"".join(stretch.body for stretch in stretches) for stretches in (old, new))
    same = shared_prefix(first, second)
    agreed = Prefix(
        same_bytes=same,
        same_tokens=_tokens_of(first[:same], first, before.context.budget.used_tokens),
        bytes_before=len(first),
        bytes_after=len(second),
    )
    here = _at(old, same), _at(new, same)
    if here[0] is None or here[1] is None:
        return agreed
    stretch, happened = _cause(here[0], here[1], old, new, changes)
    return replace(
        agreed,
        part=stretch.part,
        name=stretch.name,
        item=stretch.item,
        happened=happened,
        before=first[same : same + SHOWN_BYTES].decode("utf-8", "replace"),
        after=second[same : same + SHOWN_BYTES].decode("utf-8", "replace"),
    )


def _stretches(past: PastTurn) -> list[_Stretch]:
    request = past.request
    items = sent_items(past.context)
    named = {tool.offered_name: tool for tool in request.tools}
    found = [_tool_stretch("tools", tool) for tool in array_of(request) if not tool.deferred]
    for message in request.messages:
        # Tools that a message adds stand where it stands.
        added = [named[name] for name in message.tools_added if name in named]
        found += [_tool_stretch("additions", tool) for tool in added] or _cut(message, items)
    return found


def _tool_stretch(part: PartKind, tool: OfferedTool) -> _Stretch:
    return _Stretch(part, tool.offered_name, _bytes(f"{_offer(tool)}\n"), tool.ref)


def _cut(message: RequestMessage, items: Mapping[ItemRef, ContextItem]) -> list[_Stretch]:
    """Return a message as stretches: one for each item that stands in it, or all of it."""
    tail = "".join(f"\n{line}" for line in _calls(message))
    text = f"[{message.role}]\n{message.content}{tail}\n"
    found: list[_Stretch] = []
    owner: ItemRef | None = None
    start = 0
    for ref in [ref for ref, item in items.items() if place_of(item) == message.part]:
        # The heading under which the item stands; the blank line before it belongs to it.
        at = text.find(f"\n\n## {ref.name}\n\n", start)
        if at < 0:
            continue
        # What leads up to the first item is there because of it.
        if owner is not None:
            found.append(_Stretch(message.part, message.name, _bytes(text[start:at]), owner))
            start = at
        owner = ref
    return [*found, _Stretch(message.part, message.name, _bytes(text[start:]), owner)]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _tokens_of(beginning: bytes, prompt: bytes, used_tokens: int) -> int:
    """Return what the beginning of a prompt takes of its tokens.

    The bytes are counted for their share only: tools take fewer tokens than their JSON has as text.
    """
    whole = count(prompt.decode("utf-8", "ignore"))
    return round(used_tokens * count(beginning.decode("utf-8", "ignore")) / whole) if whole else 0


def _at(stretches: Iterable[_Stretch], position: int) -> _Stretch | None:
    """Return the stretch that a byte belongs to, or None when the prompt ends before it."""
    for stretch in stretches:
        if position < len(stretch.body):
            return stretch
        position -= len(stretch.body)
    return None


def _cause(
    first: _Stretch,
    second: _Stretch,
    old: Sequence[_Stretch],
    new: Sequence[_Stretch],
    changes: Sequence[ItemChange],
) -> tuple[_Stretch, Happened]:
    """Return what ended what two prompts have in common in these two stretches."""
    if first.item is not None and first.item == second.item:
        return second, "changed"
    facts = {(change.ref, change.happened) for change in changes}
    suspects: tuple[tuple[_Stretch, Happened], ...] = (
        (first, "left"),
        (second, "entered"),
        (second, "moved"),
        (first, "moved"),
    )
    for stretch, happened in suspects:
        if stretch.item is not None and (stretch.item, happened) in facts:
            return stretch, happened
    if first.key == second.key:
        return second, "changed"
    if first.key not in {stretch.key for stretch in new}:
        return first, "left"
    return second, "moved" if second.key in {stretch.key for stretch in old} else "entered"
