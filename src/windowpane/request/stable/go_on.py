"""Go on with the last request: what stands of it, what enters now, and how far the result really is the last one's
continuation.

Where tools cannot be added in the middle of a conversation, a new tool changes the list that stands before everything
else. So a tool must be needed clearly enough to be worth that, and then others that may be needed come along.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from windowpane.agents.base import Agent
from windowpane.context.carried import Additions, Carried, CarriedItem, CarryChange, RebaseCode
from windowpane.context.ids import SessionId
from windowpane.context.items import Item, ItemRef, Tool
from windowpane.context.request import CallSettings, Request
from windowpane.context.session import SessionState
from windowpane.memory.recent import sent_tokens
from windowpane.models.base import CacheRules
from windowpane.request.assemble import Carrying, Ingredients, assemble
from windowpane.request.gather import Gathered
from windowpane.request.prompt.order import StandingItem
from windowpane.request.settings import cache_order
from windowpane.request.stable.carry import break_in, built, carry_change, measured, strictly
from windowpane.request.stable.rebase import CarryPlan, Circumstances, decide, idle_turns, is_cold
from windowpane.text.render import render_item

MOST_DECLARED = 1000
"""Of so many tools a provider is told before the model needs them; where there are more, tools stand in one list."""

ENTRY = {"floor": 0.1, "top_n": 6, "share_of_best": 0.35}
"""Where a message of the conversation brings a tool's definition, those enter that come near the best. Where it only
names a tool that was declared, they enter as elsewhere: on weak evidence."""

RETURN_ENTRY = {"floor": 0.12, "top_n": 7, "share_of_best": 0.3}
"""The same where reading is so dear that an unused tool is idle after one turn: it must come back more easily."""

LISTED_ENTRY = {"floor": 0.35, "top_n": 1}
"""Where a new tool changes the list that stands first, only a clear best one is worth that."""

BATCH = {"floor": 0.02, "top_n": 20, "share_of_best": 0.0}
"""What comes along when the list of tools is written again anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """How a session's requests are put together now. `additions`: how tools are added in the middle of it."""

    stable: bool
    rules: CacheRules = field(default_factory=CacheRules)
    additions: Additions | None = None

    def laid_over(self, settings: CallSettings, session_id: SessionId) -> CallSettings:
        """Return the settings of a call with what concerns the cache. The key does not tell the id, which opens it."""
        key = hashlib.sha256(f"cache:{session_id}".encode()).hexdigest()[:32]
        order = "stable" if self.stable else "fresh"
        return replace(settings, cache=order, cache_key=key, additions=self.additions)

    def on_entry(self, search: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the search settings by which items enter a prompt that goes on."""
        if not self.stable or self.additions == "by_reference":
            return search
        if self.additions is None:
            return _for_tools(search, LISTED_ENTRY)
        return _for_tools(search, RETURN_ENTRY if idle_turns(self.rules) == 1 else ENTRY)

    def at_a_break(self, search: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the search settings of a request whose list of tools is written again anyway."""
        return _for_tools(search, BATCH)


def caching_of(
    agent: Agent, session: SessionState, rules: CacheRules | None, gathered: Gathered, *, in_stream: bool
) -> Caching:
    """Return how a session's requests are put together now. Without `in_stream` all tools stand in one list."""
    if cache_order(agent, session, rules) == "fresh":
        return Caching(stable=False)
    if rules is None:
        return Caching(stable=True)
    many = sum(isinstance(item, Tool) for item in gathered.candidates) > MOST_DECLARED
    # A provider refuses a list of which the model sees nothing.
    shown = agent.settings.finders or any(
        isinstance(held.item, Tool) and held.status == "used" for held in gathered.found
    )
    # OpenAI's older models refuse to be allowed a tool that is not in the list.
    strict = agent.settings.strict_tools and rules.additions == "with_definitions"
    listed = not in_stream or strict or (rules.additions == "by_reference" and (many or not shown))
    return Caching(stable=True, rules=rules, additions=None if listed else rules.additions)


def _for_tools(search: Mapping[str, Any], ours: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with ours for tools, unless the agent or the session has its own."""
    own = any(key not in ("deadline_s", "context", "text") for key in search)
    return search if own else {**search, "tools": dict(ours)}


@dataclass(frozen=True, slots=True)
class CarriedRequest:
    """A request that goes on with the last one as far as it can, and what it leaves standing.

    `breaks`: it does not, or there was none.
    """

    request: Request
    change: CarryChange
    breaks: bool


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Puts a request together that goes on with the last one. `gone` is what may not stand there any more, and why."""

    ingredients: Ingredients
    rules: CacheRules
    gone: Mapping[ItemRef, str]

    @property
    def items(self) -> dict[ItemRef, Item]:
        """Return the carried items as they are now."""
        refs = {item.ref for item in self._carried.items}
        return {item.ref: item for item in self.ingredients.gathered.candidates if item.ref in refs}

    def request(self) -> CarriedRequest:
        """Return the request. Where it turns out not to go on with the last one, that is made use of."""
        plan = decide(self._carried, self._circumstances())
        request = self._assembled(plan)
        before = self._carried.prefix
        broken = break_in(before, built(request)) if before is not None else None
        if broken is not None and plan.rebase is None:
            plan = decide(self._carried, self._circumstances(broken))
            request = self._assembled(plan)
        request = measured(request, self._carried, plan, self.rules, cold=self._cold)
        request = strictly(request) if self.ingredients.agent.settings.strict_tools else request
        summary = self.ingredients.session.summary
        change = carry_change(request, plan, summary.through_seq if summary else 0)
        return CarriedRequest(request, change, breaks=before is None or request.context.rebase is not None)

    @property
    def _carried(self) -> Carried:
        return self.ingredients.session.carried

    @property
    def _cold(self) -> bool:
        return is_cold(self._carried, self.rules, self.ingredients.now)

    def _circumstances(self, broken: tuple[RebaseCode, str] | None = None) -> Circumstances:
        given = self.ingredients
        turns = [message.turn for message in given.history if message.turn is not None]
        return Circumstances(
            turn=given.turn,
            at=given.now,
            model=given.settings.model,
            rules=self.rules,
            window_tokens=given.window_tokens,
            listed=given.settings.additions is None,
            history_tokens=sum(map(sent_tokens, given.history)),
            first_turn=min(turns, default=given.turn),
            through_seq=given.session.summary.through_seq if given.session.summary else 0,
            chosen=frozenset(chosen.item.ref for chosen in given.selection.chosen),
            gone=self.gone,
            broken=broken,
        )

    def _assembled(self, plan: CarryPlan) -> Request:
        given = self.ingredients
        carrying = Carrying(
            plan=plan,
            standing=tuple(self._standing(plan.standing)),
            declared=tuple(item for item in given.gathered.candidates if isinstance(item, Tool)),
        )
        return assemble(replace(given, carrying=carrying))

    def _standing(self, items: Iterable[CarriedItem]) -> Iterable[StandingItem]:
        now = self.items
        for carried in items:
            item = now.get(carried.ref)
            if item is not None:
                yield StandingItem(carried, item, "" if isinstance(item, Tool) else render_item(item))
