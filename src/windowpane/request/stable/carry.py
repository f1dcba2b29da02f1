"""Measure how far a request goes on with the last one, and write down what it leaves standing for the next.

Nothing is taken on trust: what a request begins with is hashed as it was built, and the next one is compared with that.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from windowpane.agents.base import Agent
from windowpane.context.carried import Carried, CarriedItem, CarryChange, Rebase, RebaseCode, SentPrefix
from windowpane.context.ids import BlobHash
from windowpane.context.items import Item, ItemRef, Tool, item_hash
from windowpane.context.request import VOLATILE_PARTS, ContextItem, OfferedTool, Request, RequestMessage
from windowpane.context.session import SessionState
from windowpane.models.base import CacheRules
from windowpane.request.gather import item_of
from windowpane.request.stable.rebase import CarryPlan
from windowpane.text.tokens import Family, family_for, message_tokens, tools_tokens
from windowpane.tools.base import ServerStatus

SHOWN = 3
"""How many names a reason tells."""


def gone_items(
    agent: Agent,
    servers: Iterable[ServerStatus],
    session: SessionState,
    candidates: Iterable[Item],
) -> dict[ItemRef, str]:
    """Return which carried items may not be sent any more, or say something else now, and why."""
    servers = tuple(servers)
    by_ref = {item.ref: item for item in candidates} if session.carried.items else {}
    gone: dict[ItemRef, str] = {}
    for item in session.carried.items:
        now = by_ref.get(item.ref)
        if now is None:
            gone[item.ref] = _why_gone(agent, servers, session, item.ref)
        elif item_hash(now) != item.hash:
            gone[item.ref] = "was edited"
    return gone


def _why_gone(agent: Agent, servers: Sequence[ServerStatus], session: SessionState, ref: ItemRef) -> str:
    if session.holds(ref):
        return "is in the session now"
    if ref in session.removed:
        return "was removed: never in this session"
    if ref.server is not None and not any(s.name == ref.server and s.state == "ready" for s in servers):
        return "is gone with its server"
    item = item_of(agent, servers, ref)
    if item is None:
        return "was deleted"
    if isinstance(item, Tool):
        return "was forbidden by the agent" if item.permission == "forbidden" else f"became `{item.include}`"
    return f"became `{item.include}`" if item.enabled else "was disabled by the agent"


@dataclass(frozen=True, slots=True)
class Built:
    """A request as it goes out: its messages, the list of tools before them, and all tools that can be called."""

    messages: tuple[RequestMessage, ...]
    array: tuple[OfferedTool, ...]
    tools: tuple[OfferedTool, ...]
    family: Family

    @property
    def kept(self) -> tuple[RequestMessage, ...]:
        """Return what the next request begins with, if it goes on with this one."""
        return tuple(message for message in self.messages if not is_volatile(message))


def built(request: Request) -> Built:
    """Return a request as it goes out."""
    return Built(request.messages, array_of(request), request.tools, family_for(request.context.settings))


def array_of(request: Request) -> tuple[OfferedTool, ...]:
    """Return the tools that stand before the messages: without those that messages add, with those only declared."""
    additions = request.context.settings.additions
    if additions is None:
        return request.tools
    added = {name for message in request.messages for name in message.tools_added}
    added |= {item.offered_name for item in request.context.items if item.found and item.offered_name}
    first = tuple(tool for tool in request.tools if tool.offered_name not in added)
    if additions == "with_definitions":
        return first
    shown = (replace(tool, deferred=True) for tool in request.tools if tool.offered_name in added)
    return (*first, *sorted((*shown, *request.declared), key=lambda tool: tool.offered_name))


def is_volatile(message: RequestMessage) -> bool:
    """Tell whether a message is never kept for the next request."""
    return message.part in VOLATILE_PARTS and message.role == "user"


def break_in(before: SentPrefix, now: Built) -> tuple[RebaseCode, str] | None:
    """Return where and why a request does not go on with the one before; None when it does."""
    if _hash_of_tools(now.array[: before.tool_count]) != before.tools or len(now.array) < before.tool_count:
        return "tools", "the list of tools changed"
    if _hash(_system(now.messages)) != before.system:
        return "system", "the system prompt changed"
    if len(now.array) > before.tool_count:
        names = [tool.offered_name for tool in now.array[before.tool_count :]]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return "tools", f"tools were added: {', '.join(names[:SHOWN])}{more}"
    if _hash(now.kept[: before.message_count]) != before.messages:
        return "history", "the history is written differently, or not all of it fits the window"
    return None


def prefix_of(now: Built, before: Carried, rebase: Rebase | None, rules: CacheRules, *, cold: bool) -> SentPrefix:
    """Return what a request begins with, for the next one to be compared with."""
    system = _system(now.messages)
    first_volatile = next((i for i, message in enumerate(now.messages) if is_volatile(message)), len(now.messages))
    array_tokens = tools_tokens([tool for tool in now.array if not tool.deferred], now.family)
    tokens = tools_tokens(now.tools, now.family) + sum(map(message_tokens, now.messages[:first_volatile]))
    system_tokens = sum(map(message_tokens, system))
    return SentPrefix(
        system=_hash(system),
        tools=_hash_of_tools(now.array),
        tool_count=len(now.array),
        messages=_hash(now.kept),
        message_count=len(now.kept),
        tokens=tokens,
        system_tokens=system_tokens,
        tools_tokens=array_tokens,
        expected_tokens=0 if cold else _expected(before, rebase, array_tokens, system_tokens),
        rewrite_price=round(rules.write - rules.read, 4),
        input_usd=rules.input_usd,
    )


def _expected(before: Carried, rebase: Rebase | None, array_tokens: int, system_tokens: int) -> int:
    """Return how many tokens the provider should be able to read from its cache."""
    if before.prefix is None:
        return 0
    if rebase is None:
        return before.prefix.tokens
    if rebase.code in ("model", "tools"):
        return 0
    return array_tokens if rebase.code == "system" else array_tokens + system_tokens


def measured(request: Request, before: Carried, plan: CarryPlan, rules: CacheRules, *, cold: bool) -> Request:
    """Return the request with what it begins with in its record, and why it does not go on with the last one, if so."""
    now, rebase = built(request), plan.rebase
    if rebase is None and before.prefix is not None and (broken := break_in(before.prefix, now)):
        rebase = Rebase(code=broken[0], reason=broken[1])
    prefix = prefix_of(now, before, rebase, rules, cold=cold)
    if rebase is not None:
        rebase = _not_more_than_is_sent(rebase, prefix)
    return replace(request, context=replace(request.context, rebase=rebase, prefix=prefix))


def _not_more_than_is_sent(rebase: Rebase, prefix: SentPrefix) -> Rebase:
    """Return a re-base with its true price: what was summed up is not written again."""
    rewritten = min(rebase.rewritten_tokens, max(prefix.tokens - prefix.expected_tokens, 0))
    if rewritten == rebase.rewritten_tokens:
        return rebase
    share = rewritten / rebase.rewritten_tokens
    dollars = None if rebase.price_usd is None else round(rebase.price_usd * share, 8)
    return replace(
        rebase, rewritten_tokens=rewritten, price_tokens=round(rebase.price_tokens * share, 1), price_usd=dollars
    )


def carry_change(request: Request, plan: CarryPlan, through_seq: int) -> CarryChange:
    """Return what a request leaves standing, in the words of the log.

    What was shortened is not kept: the next request has it whole or not at all.
    """
    context = request.context
    if context.prefix is None:
        raise ValueError("the request was not measured")
    return CarryChange(
        model=context.settings.model,
        through_seq=through_seq,
        prefix=context.prefix,
        entered=_in_order(entered(item, context.turn) for item in context.items if _enters(item)),
        again=tuple(item.ref for item in context.items if item.since is not None),
        moved=plan.moved,
        dropped=tuple(item.ref for item in context.dropped),
        rebase=context.rebase,
        rent_tokens=plan.rent_tokens,
    )


def found_tools(request: Request, before: Carried) -> tuple[Request, CarryChange | None]:
    """Return the request after tools were added in the middle of a turn, and what stands from then on.

    Where all tools stand in one list, that list is another one now: a re-base. The second is None where nothing is
    carried.
    """
    context = request.context
    if before.prefix is None:
        return request, None
    known = {item.ref for item in before.items}
    new = [item for item in context.items if item.found and item.ref not in known and _enters(item)]
    prefix, rebase = before.prefix, None
    if context.settings.additions is None and len(request.tools) > prefix.tool_count:
        rebase = _asked_for(before.prefix, "the model asked for tools" if new else "a result named resources")
        rules = CacheRules(read=0.0, write=prefix.rewrite_price, input_usd=prefix.input_usd)
        prefix = prefix_of(built(request), before, rebase, rules, cold=False)
        request = replace(
            request, context=replace(context, rebase=_with_earlier(context.rebase, rebase), prefix=prefix)
        )
    return request, CarryChange(
        model=before.model,
        through_seq=before.through_seq,
        prefix=prefix,
        entered=_in_order(entered(item, context.turn) for item in new),
        rebase=rebase,
        rent_tokens=before.rent_tokens,
    )


def _asked_for(prefix: SentPrefix, why: str) -> Rebase:
    price = round(prefix.rewrite_price * prefix.tokens, 1)
    return Rebase(
        code="tools",
        reason=f"{why}, and the list of tools changed",
        rewritten_tokens=prefix.tokens,
        price_tokens=price,
        price_usd=None if prefix.input_usd is None else round(price * prefix.input_usd, 8),
    )


def _with_earlier(earlier: Rebase | None, rebase: Rebase) -> Rebase:
    """Return the re-bases of one turn as one: what broke the prefix first, and what both cost."""
    if earlier is None:
        return rebase
    both = [price for price in (earlier.price_usd, rebase.price_usd) if price is not None]
    return Rebase(
        code=earlier.code,
        reason=f"{earlier.reason}; then {rebase.reason}",
        rewritten_tokens=earlier.rewritten_tokens + rebase.rewritten_tokens,
        price_tokens=round(earlier.price_tokens + rebase.price_tokens, 1),
        price_usd=round(sum(both), 8) if both else None,
        item=earlier.item,
    )


def strictly(request: Request) -> Request:
    """Return the request so that only what is in the session or was selected now may be called."""
    context = request.context
    now = {item.ref for item in context.items}
    names = tuple(tool.offered_name for tool in request.tools if tool.ref in now)
    settings = replace(context.settings, allowed_tools=names) if len(names) < len(request.tools) else context.settings
    return replace(request, context=replace(context, settings=settings))


def entered(item: ContextItem, turn: int) -> CarriedItem:
    """Return an item that enters with a request as the next one carries it."""
    return CarriedItem(
        type=item.type,
        name=item.name,
        server=item.server,
        turn=turn,
        step=item.found.step if item.found else 0,
        place=turn,
        used=turn,
        reason=item.reason,
        tokens=item.tokens,
        hash=BlobHash(item.hash or ""),
        version=item.version,
        offered_name=item.offered_name,
    )


def _in_order(items: Iterable[CarriedItem]) -> tuple[CarriedItem, ...]:
    """Return items in the order in which they entered: tools by the names that they are offered under."""
    return tuple(sorted(items, key=lambda item: (item.offered_name or "", item.ref.sort_key)))


def _enters(item: ContextItem) -> bool:
    """Tell whether an item stands in the prompt from this request on. What a finder read stands in its answer."""
    if item.include_mode != "agent" or item.since is not None or item.status != "used":
        return False
    return item.type == "tool" or item.found is None


def _system(messages: Sequence[RequestMessage]) -> list[RequestMessage]:
    return [message for message in messages if message.role == "system" and not message.tools_added]


def _hash(messages: Iterable[RequestMessage]) -> str:
    body = [
        (
            message.role,
            message.content,
            [(call.id, call.offered_name, call.arguments) for call in message.tool_calls],
            message.tool_call_id,
            message.is_error,
            message.tools_added,
            *([[file.blob for file in message.files]] if message.files else []),
        )
        for message in messages
    ]
    return _digest(body)


def _hash_of_tools(tools: Iterable[OfferedTool]) -> str:
    return _digest([(tool.offered_name, tool.description, tool.parameters) for tool in tools])


def _digest(body: object) -> str:
    text = json.dumps(body, ensure_ascii=True, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
