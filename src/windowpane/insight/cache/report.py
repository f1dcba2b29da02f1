"""Follow the calls of a session through the provider's cache: what each should have read, and what broke the prefix.

It needs bodies and usage alone, so it looks at calls of any program. Tokens are counted with our tokenizer and brought
to the provider's measure by what it reported for the whole call.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from windowpane.api.comparison import BreakKind, CacheCollapse, PrefixBreak
from windowpane.api.turns import WireSpan
from windowpane.context.carried import Rebase
from windowpane.context.messages import Usage
from windowpane.insight.cache.blocks import CachedBlock, PrefixRule, blocks_of, rule_of
from windowpane.insight.cache.difference import FirstDifference, first_difference, owner_of, sent_again
from windowpane.insight.cache.memory import PrefixMemory, Prompt
from windowpane.text.durations import in_units
from windowpane.text.tokens import count

LEAST_LOST = 128
"""Fewer tokens than providers count by are no break: what stood behind the end of the prefix anyway."""

COLLAPSE_SHARE, COLLAPSE_TOKENS = 0.05, 2000
"""By how much reported reads fall short of the expected ones when the cache collapsed: more than both."""

IMAGE_TOKENS = 1500
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{2000,}+={0,2}")
"""Files within a body. A provider counts an image by its size on the screen, not by its letters."""

COMPACTED = "the conversation was cut short: from here on its messages are fewer, and others"
REASONS: Mapping[BreakKind, str] = {
    "added": "it was not there before",
    "removed": "it is not there any more",
    "edited": "its text changed",
    "reordered": "it stands at another place",
    "reserialized": "it says the same, with the keys of its JSON in another order",
    "cache_control": "no mark for the cache stands within 20 blocks behind what was kept",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    """A call as it passed. Only calls of one `purpose` are compared. `price` tells what a usage of it would cost."""

    number: int
    purpose: str
    model: str
    url: str
    at: datetime
    body: str | None
    failed: bool
    usage: Usage | None
    price: Callable[[Usage], Decimal | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCache:
    """What is known of a call's cache. `difference` is where the prefix broke, if a block of the body is to blame."""

    call: SeenCall
    expected_tokens: int | None = None
    broke: PrefixBreak | None = None
    collapse: CacheCollapse | None = None
    difference: FirstDifference | None = None


def follow(calls: Sequence[SeenCall]) -> tuple[SeenCache, ...]:
    """Return what each call should have read from the provider's cache, and what broke the prefix."""
    follower = _Follower()
    return tuple(follower.follow(call) for call in calls)


def collapsed(expected_tokens: int, missing_tokens: int) -> bool:
    """Tell whether so many tokens were not read from the cache that it must have been lost."""
    return missing_tokens > max(COLLAPSE_TOKENS, expected_tokens * COLLAPSE_SHARE)


def with_owner(seen: SeenCache, before: SeenCall, spans: Mapping[int, Sequence[WireSpan]]) -> SeenCache:
    """Name whose the block is that broke a prefix. `spans` are the owners of the two bodies by the call's number."""
    broke, difference, body = seen.broke, seen.difference, seen.call.body
    if broke is None or difference is None or difference.compacted or body is None or before.body is None:
        return seen
    owned = owner_of(difference, (before.body, body), (spans[before.number], spans[seen.call.number]))
    if owned is None:
        return seen
    kind, item = owned
    return replace(seen, broke=replace(broke, kind=kind, item=item, reason=REASONS[kind]))


def with_rebase(seen: SeenCache, rebase: Rebase | None) -> SeenCache:
    """Tell that a break was a re-base that is on record, and why there was one."""
    if seen.broke is None or rebase is None:
        return seen
    reason = f"{seen.broke.reason} (re-base: {rebase.reason})"
    return replace(seen, broke=replace(seen.broke, reason=reason))


@dataclass(slots=True)
class _Follower:
    """Goes from call to call."""

    _memories: dict[tuple[str, bool], PrefixMemory] = field(default_factory=dict[tuple[str, bool], PrefixMemory])
    _before: dict[str, tuple[SeenCall, Prompt]] = field(default_factory=dict[str, tuple[SeenCall, Prompt]])
    _factors: dict[str, float] = field(default_factory=dict[str, float])
    _counted: dict[str, int] = field(default_factory=dict[str, int])
    _reporting: set[str] = field(default_factory=set[str])

    def follow(self, call: SeenCall) -> SeenCache:
        rule = rule_of(call.url, call.model)
        blocks = None if call.body is None or call.failed else blocks_of(call.body, rule)
        if blocks is None:
            return SeenCache(call=call)
        prompt = Prompt.of(blocks, self._tokens(call, blocks))
        memory = self._memories.setdefault((call.model, rule.marked), PrefixMemory(rule))
        readable = memory.readable(prompt, call.at)
        expected = _in_steps(readable, rule)
        seen = SeenCache(call=call, expected_tokens=expected)
        before = self._before.get(call.purpose)
        if before is not None:
            seen = self._broken(seen, prompt, before, rule, readable)
            seen = replace(seen, collapse=self._collapse(call, expected, before[0]))
        memory.read(prompt, call.at)
        self._before[call.purpose] = (call, prompt)
        return seen

    def _tokens(self, call: SeenCall, blocks: Sequence[CachedBlock]) -> list[float]:
        counted = [self._count(block.text) for block in blocks]
        if call.usage is not None and call.usage.input_tokens and sum(counted):
            self._factors[call.model] = call.usage.input_tokens / sum(counted)
        if call.usage is not None and (call.usage.cache_read_tokens or call.usage.cache_write_tokens):
            self._reporting.add(call.model)
        factor = self._factors.get(call.model, 1.0)
        return [tokens * factor for tokens in counted]

    def _count(self, text: str) -> int:
        if text not in self._counted:
            plain, files = _ENCODED.subn("", text)
            self._counted[text] = count(plain) + files * IMAGE_TOKENS
        return self._counted[text]

    def _broken(
        self, seen: SeenCache, prompt: Prompt, before: tuple[SeenCall, Prompt], rule: PrefixRule, readable: float
    ) -> SeenCache:
        call, (earlier, last) = seen.call, before
        again = sent_again(last, prompt, rule)
        lost = _billed(call, math.floor(again - readable + 1e-6))
        if lost < LEAST_LOST or again < rule.least_tokens:
            return seen
        difference = first_difference(last, prompt, rule)
        passed, ttl = call.at - earlier.at, _ttl(last, rule)
        texts = ("", "")
        kind: BreakKind
        if call.model != earlier.model:
            kind, at, difference = "model", "the model", None
            reason = f"the model changed from {earlier.model} to {call.model}"
        elif ttl is not None and passed > ttl:
            kind, at, difference = "expired", "the time between calls", None
            reason = f"{_minutes(passed)} passed since the call before; the provider keeps a prefix for {_minutes(ttl)}"
        elif difference is None:
            kind, at, reason = "cache_control", "the marks for the cache", REASONS["cache_control"]
        else:
            kind, at, texts = difference.kind, difference.block.name, difference.texts
            reason = COMPACTED if difference.compacted else REASONS[kind]
        broke = PrefixBreak(
            at=at,
            item=None,
            kind=kind,
            reason=reason,
            since=earlier.number,
            before=texts[0],
            after=texts[1],
            lost_tokens=lost,
            cost_usd=_extra_cost(call, lost),
        )
        return replace(seen, broke=broke, difference=difference)

    def _collapse(self, call: SeenCall, expected: int, before: SeenCall) -> CacheCollapse | None:
        if call.usage is None:
            return None
        missing = expected - call.usage.cache_read_tokens
        if not collapsed(expected, missing):
            return None
        cost = _extra_cost(call, missing)
        if call.model not in self._reporting and not cost:
            # A server that says nothing of its cache, and takes no other price for it.
            return None
        reason = (
            f"{_minutes(call.at - before.at)} after the call before, the beginning was the same; the provider dropped "
            "it early, or another of its machines took the call"
        )
        return CacheCollapse(missing_tokens=missing, reason=reason, cost_usd=cost)


def _in_steps(tokens: float, rule: PrefixRule) -> int:
    whole = math.floor(tokens + 1e-6)
    return whole - whole % rule.step_tokens if whole >= rule.least_tokens else 0


def _billed(call: SeenCall, lost: int) -> int:
    """Return how many of the tokens were billed again: not those that the provider read in spite of all."""
    if call.usage is None:
        return lost
    return min(lost, call.usage.input_tokens - call.usage.cache_read_tokens)


def _extra_cost(call: SeenCall, tokens: int) -> Decimal | None:
    """Return what tokens cost beyond the price of reading them from the cache. Those that were written come first."""
    if call.usage is None:
        return None
    used = call.usage
    cheaper = Usage(
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens + tokens,
        used.cache_write_tokens - min(tokens, used.cache_write_tokens),
        used.cache_write_1h_tokens - min(tokens, used.cache_write_1h_tokens),
    )
    paid, would = call.price(used), call.price(cheaper)
    return None if paid is None or would is None else paid - would


def _ttl(prompt: Prompt, rule: PrefixRule) -> timedelta | None:
    kept = prompt.kept(rule)
    return prompt.blocks[kept - 1].mark if rule.marked and kept else rule.ttl


def _minutes(time: timedelta) -> str:
    return in_units(round(time.total_seconds()))
