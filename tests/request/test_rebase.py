"""When a prompt begins from another base, and that choosing so never costs more than twice the best choice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.carried import Carried, CarriedItem, SentPrefix
from windowpane.context.ids import BlobHash
from windowpane.context.items import reference_ref, tool_ref
from windowpane.models.base import CacheRules
from windowpane.request.stable.rebase import IDLE_TURNS, MOST_TOOLS, Circumstances, decide, history_limit, pays

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
RULES = CacheRules(read=0.1, write=1.25, ttl=timedelta(minutes=5), input_usd=0.000005)
PREFIX = SentPrefix(
    system="s", tools="t", tool_count=2, messages="m", message_count=9, tokens=2000, system_tokens=400, tools_tokens=600
)


def text(name: str, turn: int, tokens: int = 100, used: int | None = None) -> CarriedItem:
    return CarriedItem(
        type="reference",
        name=name,
        turn=turn,
        place=turn,
        used=used or turn,
        reason="good match",
        tokens=tokens,
        hash=BlobHash(f"h-{name}"),
    )


def added(name: str, turn: int, tokens: int = 100, used: int | None = None) -> CarriedItem:
    return replace(text(name, turn, tokens, used), type="tool", server="s", offered_name=f"s__{name}")


def carried(*items: CarriedItem, rent: float = 0.0) -> Carried:
    return Carried(items=items, prefix=PREFIX, model="m", turn=9, rent_tokens=rent, at=NOW)


BEFORE = Circumstances(turn=10, at=NOW, model="m", rules=RULES, window_tokens=100_000)


def test_nothing_stands_before_the_first_request() -> None:
    assert decide(Carried(), BEFORE).standing == ()
    assert decide(Carried(), BEFORE).rebase is None


def test_what_is_carried_stands_as_long_as_that_is_cheap_and_the_rent_is_counted() -> None:
    items = (text("a", 2), text("b", 9))

    plan = decide(carried(*items, rent=5.0), BEFORE)

    assert plan.standing == items
    assert plan.rebase is None
    assert plan.rent_tokens == 5.0 + 0.1 * 100


def test_idle_items_are_dropped_once_their_rent_is_more_than_rewriting() -> None:
    price = (1.25 - 0.1) * (2000 - 600 - 400 - 100)

    stays = decide(carried(text("a", 2), text("b", 9), rent=price - 10), BEFORE)
    goes = decide(carried(text("a", 2), text("b", 9), rent=price - 9), BEFORE)

    assert stays.rebase is None
    assert goes.rebase is not None
    assert (goes.rebase.code, goes.rebase.forced) == ("carrying_cost", False)
    assert goes.rebase.price_tokens == pytest.approx(price)
    assert goes.rebase.price_usd == pytest.approx(price * 0.000005)
    assert [item.name for item in goes.standing] == ["b"]
    assert [(str(item.ref), item.reason) for item in goes.dropped] == [("reference:a", "not needed since turn 2")]
    assert goes.rent_tokens == 0


def test_an_item_that_was_chosen_again_is_not_idle() -> None:
    plan = decide(carried(text("a", 2), rent=10_000), replace(BEFORE, chosen={reference_ref("a")}))

    assert plan.rebase is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"gone": {reference_ref("b"): "was edited"}}, "item"),
        ({"model": "another"}, "model"),
        ({"through_seq": 7}, "size"),
        ({"at": NOW + timedelta(minutes=6)}, "cold"),
        ({"window_tokens": 300}, "size"),
        ({"broken": ("system", "the system prompt changed")}, "system"),
        ({"turn": 9}, "size"),
    ],
)
def test_a_re_base_is_forced(change: dict[str, object], code: str) -> None:
    plan = decide(carried(text("a", 2), text("b", 8)), replace(BEFORE, **change))

    assert plan.rebase is not None
    assert (plan.rebase.code, plan.rebase.forced) == (code, True)
    assert "a" not in [item.name for item in plan.standing]


def test_what_is_lost_anyway_costs_nothing_more() -> None:
    for change in ({"model": "another"}, {"at": NOW + timedelta(hours=1)}):
        plan = decide(carried(text("a", 2)), replace(BEFORE, **change))
        assert plan.rebase is not None
        assert plan.rebase.price_tokens == 0


def test_a_cold_cache_without_anything_idle_is_no_reason() -> None:
    assert decide(carried(text("b", 9)), replace(BEFORE, at=NOW + timedelta(hours=1))).rebase is None


def test_texts_leave_with_the_message_that_they_were_for_and_tools_go_to_the_head() -> None:
    items = (added("old", 6), text("summed", 6), added("new", 9), text("kept", 9))

    plan = decide(carried(*items), replace(BEFORE, through_seq=5, first_turn=8))

    assert [(item.name, item.place) for item in plan.standing] == [("old", 0), ("new", 0), ("kept", 9)]
    assert plan.moved == (tool_ref("s", "old"), tool_ref("s", "new"))
    assert [(item.name, item.turn) for item in plan.dropped] == [("summed", 6)]


def test_a_re_base_takes_the_tools_along_that_were_used_last() -> None:
    tools = [added(f"t{n:02}", 9 - n % IDLE_TURNS) for n in range(MOST_TOOLS + 5)]

    plan = decide(carried(*tools), replace(BEFORE, model="another"))

    assert len(plan.standing) == MOST_TOOLS
    assert min(item.used for item in plan.standing) >= max(9 - IDLE_TURNS, 0)
    left = {item.ref for item in plan.dropped}
    assert {item.used for item in tools if item.ref in left} == {6}


def test_the_size_follows_from_price_and_window() -> None:
    assert 7_500 <= history_limit(CacheRules(read=0.1), 200_000) <= 8_500
    assert 2_800 <= history_limit(CacheRules(read=0.5), 200_000) <= 3_200
    assert history_limit(None, 200_000) == 3_000
    assert history_limit(CacheRules(read=0.1), 10_000) == 4_000


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=60), st.floats(0.1, 5000))
def test_with_one_price_the_choice_never_costs_more_than_twice_the_best_of_all_times(
    rents: list[float], price: float
) -> None:
    cost, bought = _played(rents, [price] * len(rents))
    paid = [0.0, *accumulate(rents)]

    best = min([paid[-1], *(paid[at] + price for at in range(len(rents)))])

    assert cost <= 2 * best + 1e-6
    assert bought is None or paid[bought] <= price


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 5000)), min_size=1, max_size=60))
def test_with_any_prices_it_never_costs_more_than_twice_renting_on(turns: list[tuple[float, float]]) -> None:
    rents, prices = [rent for rent, _ in turns], [price for _, price in turns]

    cost, bought = _played(rents, prices)

    assert cost <= 2 * sum(rents[: len(rents) if bought is None else bought + 1]) + 1e-6


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 500)), min_size=1, max_size=60), st.floats(0, 5000))
def test_while_the_price_only_grows_it_never_costs_more_than_twice_what_was_paid_for_rewriting(
    turns: list[tuple[float, float]], first: float
) -> None:
    rents, prices = [rent for rent, _ in turns], list(accumulate((growth for _, growth in turns), initial=first))[1:]

    cost, bought = _played(rents, prices)

    assert bought is None or cost <= 2 * prices[bought] + 1e-6


def _played(rents: list[float], prices: list[float]) -> tuple[float, int | None]:
    """Return what following the rule costs until its first re-base, and when that is."""
    paid = 0.0
    for at, (rent, price) in enumerate(zip(rents, prices, strict=True)):
        if pays(paid, rent, price):
            return paid + price, at
        paid += rent
    return paid, None
