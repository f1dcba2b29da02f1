from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.text.tokens import count, cut_to


@pytest.mark.spec("S4.69")
def test_tokens_are_counted_with_a_real_tokenizer() -> None:
    assert [count(text) for text in ("", "hello world", "<|endoftext|>", "日本語")] == [0, 2, 7, 2]


@pytest.mark.parametrize(("character", "tokens"), [("é", 1), ("\U0001f9ff", 3)])
def test_a_text_of_any_length_can_be_counted_and_cut(character: str, tokens: int) -> None:
    text = character * 1_000_001

    assert count(text) == tokens * 1_000_001
    assert cut_to(text, tokens * 400_000) == text[:400_000]


@given(st.text(max_size=200), st.integers(-3, 60))
def test_a_cut_text_is_a_beginning_and_costs_no_more_than_allowed(text: str, budget: int) -> None:
    cut = cut_to(text, budget)

    assert text.startswith(cut)
    assert count(cut) <= max(budget, 0)
    assert cut == text or count(text) > budget
