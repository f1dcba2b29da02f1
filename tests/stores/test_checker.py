"""The history checker finds each kind of fault, and nothing in a log without one."""

from datetime import UTC, datetime

import pytest

from stores.checker import Ack, History, Try, Verdict, check
from stores.kinds import created, said
from windowpane.context.events import Recorded

AT = datetime(2026, 1, 1, tzinfo=UTC)


def log_of(*contents: str) -> list[Recorded]:
    return [Recorded(1, AT, created()), *(Recorded(seq, AT, said(one)) for seq, one in enumerate(contents, 2))]


def test_a_log_that_holds_what_was_acknowledged_once_and_in_order_is_whole_whether_the_rest_is_there_or_not() -> None:
    history = History()
    history.hear(["ready", "try a 0 2", "ack a 0 2 3", "try b 0 1", "try a 1 1", "fail", "try a 1 1", "try c 0 1"])

    assert check(history, log_of("a:0.0", "a:0.1", "b:0.0")) == Verdict(tried=4, acknowledged=1)
    assert check(history, log_of("a:0.0", "a:0.1", "a:1.0")).faults == {}


@pytest.mark.parametrize(
    ("contents", "faults"),
    [
        (["b:0.0"], {"lost": ("a:0", "a:1")}),
        (["a:0.0", "a:0.1", "a:1.0", "a:1.0"], {"duplicated": ("a:1.0",)}),
        (["a:0.0", "b:0.0", "a:1.0"], {"torn": ("a:0",), "misplaced": ("a:0",)}),
        (["a:0.0", "b:0.0", "a:0.1", "a:1.0"], {"torn": ("a:0",), "misplaced": ("a:0", "a:1")}),
        (["a:1.0", "a:0.0", "a:0.1"], {"misplaced": ("a:0", "a:1"), "disordered": ("a:1",)}),
        (["a:0.0", "a:0.1", "a:1.0", "x"], {"strangers": ("x",)}),
    ],
    ids=["lost", "duplicated", "half of it", "in two pieces", "in another order", "from nobody"],
)
def test_each_kind_of_fault_is_named(contents: list[str], faults: dict[str, tuple[str, ...]]) -> None:
    history = History([Try("a", 0, 2), Ack("a", 0, 2, 3), Try("b", 0), Try("a", 1), Ack("a", 1, 4, 4)])

    assert check(history, log_of(*contents)).faults == faults


def test_a_number_that_is_missing_in_the_log_is_a_gap() -> None:
    log = log_of("a:0.0", "a:1.0")
    del log[1]

    assert check(History([Try("a", 1)]), log).faults == {"gaps": (3,)}
