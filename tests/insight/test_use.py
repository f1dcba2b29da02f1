from __future__ import annotations

from collections.abc import Sequence

import pytest

from insight.turns import Scene as Turn
from insight.turns import played
from insight.use_worlds import LOOKED_AT, TUNED_ON, UNSEEN, Subject, scenes
from windowpane.api.turns import ItemUse
from windowpane.context.items import Reference, Rule, Tool, reference_ref, rule_ref, tool_ref
from windowpane.context.messages import Step, ToolCall, ToolResult
from windowpane.insight.use import use, uses, worth

BILLING = "A refund reaches the bank account after five working days. Vouchers are valid for 18 months at Tessera."


def judged(answer: str, *around: str, text: str = BILLING, name: str = "billing") -> ItemUse:
    (found,) = uses({reference_ref(name): text}, answer, around)
    return found


@pytest.mark.spec("S0.92", "S1.107")
@pytest.mark.parametrize(
    ("subjects", "seed"), [(TUNED_ON, 1), (LOOKED_AT, 2), (UNSEEN, 3)], ids=["tuned", "looked", "unseen"]
)
def test_what_an_answer_draws_on_is_found_and_hardly_anything_else(subjects: Sequence[Subject], seed: int) -> None:
    found = [
        (use.used, use.ref in scene.used)
        for scene in scenes(subjects, seed, 300)
        for use in uses(scene.texts, scene.answer, scene.around)
    ]

    hits = found.count((True, True))
    precision, recall = hits / (hits + found.count((True, False))), hits / (hits + found.count((False, True)))
    assert len(found) > 1000
    assert precision >= 0.95
    assert recall >= 0.95


@pytest.mark.parametrize(
    ("answer", "how", "trace"),
    [
        ("According to `billing`, you have to wait.", "cited", "billing"),
        ("See billing.md for that.", "cited", "billing.md"),
        ("The money reaches the bank account after five days, at most.", "quoted", "reaches the bank account after"),
        ("Vouchers of Tessera last for 18 months.", "drawn_upon", "vouchers, tessera, 18, months"),
        ("Billing is a word like any other.", None, ""),
        ("Money takes some days to get to a bank.", None, ""),
        ("", None, ""),
    ],
)
def test_each_rule_says_by_which_words_it_found_a_trace(answer: str, how: str | None, trace: str) -> None:
    found = judged(answer)

    assert (found.used, found.how, found.trace) == (how is not None, how, trace)


def test_words_that_the_model_could_have_from_elsewhere_are_no_trace() -> None:
    answer = "Vouchers of Tessera last for 18 months, and money reaches the bank account after five days."

    assert judged(answer).used
    assert not judged(
        answer, "What about the 18 months of vouchers at Tessera?", "It reaches the bank account after five."
    ).used
    twice = uses({reference_ref("one"): BILLING, reference_ref("two"): BILLING}, answer, ())
    assert [found.used for found in twice] == [False, False]


def test_common_words_are_worth_nothing_and_identifiers_are_enough() -> None:
    assert [worth(word) for word in ("the", "time", "people", "is", "ok")] == [0, 0, 0, 0, 0]
    assert 0 < worth("customer") < worth("refund") < worth("banneton") < worth("export-ledger")
    assert {worth(word) for word in ("max_retries", "t-1042", "config.yaml", "10,980", "e5x7")} == {3.0}


@pytest.mark.spec("S0.92", "S1.107")
def test_every_item_that_was_sent_is_judged_by_the_record_alone() -> None:
    called = ToolCall("c1", "bank__look_up", '{"voucher": "Tessera"}', tool_ref("bank", "look_up"))
    past = played(
        Turn(
            items=(
                Rule("tone", "Answer with courtesy and brevity.", include="always"),
                Reference("billing", BILLING, include="always"),
                Reference("prices", "A yearly subscription to Halcyon costs 119 euros.", include="always"),
                Tool("bank", "look_up", "Looks up an account."),
                Tool("bank", "pay", "Pays a bill."),
            ),
            message="What about my money?",
            steps=(
                Step(tool_calls=(called,), results=(ToolResult("c1", "Halcyon: 119 euros"),)),
                Step(text="A refund reaches the bank account after five working days. Halcyon is 119 euros."),
            ),
        )
    )

    assert use(past) == (
        ItemUse(ref=rule_ref("tone"), used=False),
        ItemUse(
            ref=reference_ref("billing"), used=True, how="quoted", trace="a refund reaches the bank", verdict="used"
        ),
        ItemUse(ref=reference_ref("prices"), used=False),
        ItemUse(ref=tool_ref("bank", "look_up"), used=True, how="called", trace="bank__look_up", verdict="used"),
        ItemUse(ref=tool_ref("bank", "pay"), used=False, verdict="not_called"),
    )
