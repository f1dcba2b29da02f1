"""Changes that turn a decision round: what they need, and one step less of it.

A step is 0.0001 for a score or a share, 1 for `top_n` and for tokens.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from windowpane.api.explanation import Change, Effect, Need, What
from windowpane.context.items import BUILT_IN_SERVER, CLIENT_SERVER, Domain
from windowpane.context.request import ContextItem
from windowpane.search.select import SCORE_DECIMALS, Decision
from windowpane.search.settings import SelectSettings
from windowpane.tools.finder_tools import FINDER_REFS

STEP = 10.0**-SCORE_DECIMALS


def change_of(effect: Effect, needs: tuple[Need, ...]) -> Change:
    """Return the change that consists of these needs."""
    search: dict[str, dict[str, Any]] = {}
    for need in needs:
        if need.domain is not None:
            search.setdefault(need.domain, {})[need.what] = need.value
    return Change(
        effect=effect,
        text=" and ".join(need.text for need in needs),
        needs=needs,
        search=search,
        tokens=sum(int(need.value or 0) for need in needs if need.what == "tokens"),
    )


def changed(settings: SelectSettings, change: Change) -> SelectSettings:
    """Return the settings of a domain after a change."""
    values = {need.what: need.value for need in change.needs if need.domain is not None}
    return replace(settings, **values)


def one_step_less(need: Need) -> Need:
    """Return the same need, one step short of what is needed."""
    step = 1 if need.what in ("top_n", "tokens") else STEP
    value = (need.value or 0) + (step if need.bound == "most" else -step)
    return replace(need, value=value if step == 1 else round(value, SCORE_DECIMALS))


def raised(domain: Domain, settings: SelectSettings, choice: Decision, best: float) -> Iterator[Need]:
    """Yield what makes an item relevant: a lower floor, a lower share of the best, a higher cap, whichever it needs."""
    floor = settings.floor
    if choice.score < floor:
        floor = choice.score
        yield setting_need(domain, "floor", floor)
    if _cut_off(floor, settings.share_of_best, best) > choice.score:
        yield setting_need(domain, "share_of_best", _largest_share(floor, best, choice.score))
    if choice.rank > settings.top_n:
        yield setting_need(domain, "top_n", choice.rank, least=True)


def lowered(domain: Domain, settings: SelectSettings, choice: Decision, best: float) -> Iterator[Need]:
    """Yield what makes an item no longer relevant, each by itself."""
    floor = one_step_up(choice.score)
    if floor <= 1:
        yield setting_need(domain, "floor", floor, least=True)
    share = round(_largest_share(settings.floor, best, choice.score) + STEP, SCORE_DECIMALS)
    if share <= 1:
        yield setting_need(domain, "share_of_best", share, least=True)
    yield setting_need(domain, "top_n", choice.rank - 1)


def _largest_share(floor: float, best: float, score: float) -> float:
    """Return the largest share of the best score, in whole steps, with which a score still reaches the cut-off."""
    whole = round(1 / STEP)
    # The cut-off is rounded, so a little more than the quotient may pass.
    steps = min(math.floor((score + STEP / 2) / best / STEP), whole) + 1 if best else whole + 1
    while steps and _cut_off(floor, steps * STEP, best) > score:
        steps -= 1
    return round(steps * STEP, SCORE_DECIMALS)


def _cut_off(floor: float, share: float, best: float) -> float:
    return round(max(floor, round(share, SCORE_DECIMALS) * best), SCORE_DECIMALS)


def one_step_up(score: float) -> float:
    """Return the score that is one step higher."""
    return round(score + STEP, SCORE_DECIMALS)


def setting_need(domain: Domain, what: What, value: float, *, least: bool = False) -> Need:
    """Return the need of another search setting."""
    group: Literal["text", "tools"] = "tools" if domain == "tool" else "text"
    if value is True:
        return Need(what=what, text="turn search on", value=True, domain=group)
    sign, bound = ("≥", "least") if least else ("≤", "most")
    return Need(what=what, text=f"{what} {sign} {value:.10g}", value=value, bound=bound, domain=group)


def tokens_need(more: int) -> Need:
    """Return the need of a larger window."""
    return Need(what="tokens", text=f"+{more} tokens", value=more, bound="least")


def by_agent(text: str) -> Change:
    """Return a change that includes an item and that only the agent can make."""
    return change_of(effect="includes", needs=(Need(what="agent", text=text),))


def removal(item: ContextItem) -> tuple[Change, ...]:
    """Return what leaves out an item that was not selected."""
    if item.ref in FINDER_REFS:
        need = Need(what="agent", text="`finders: false` in agent.yaml")
    elif item.server == BUILT_IN_SERVER:
        need = Need(what="agent", text="`working_context: false` in agent.yaml")
    elif item.server == CLIENT_SERVER:
        need = Need(what="agent", text="a client that does not provide it")
    else:
        need = Need(what="remove", text="remove it from the session")
    return (change_of(effect="leaves_out", needs=(need,)),)


def not_asked_for() -> tuple[Change, ...]:
    """Return what leaves out an item that the model asked for."""
    never = Need(what="remove", text="never in this session")
    off = Need(what="agent", text="`finders: false` in agent.yaml")
    return tuple(change_of(effect="leaves_out", needs=(need,)) for need in (never, off))
