from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.turn.tokens import count, cut_to


@pytest.mark.spec("S4.69")
def test_tokens_are_counted_with_a_real_tokenizer() -> None:
    assert [count(text) for text in ("", "hello world", "<|endoftext|>", "日本語")] == [0, 2, 7, 2]


@given(st.text(max_size=200), st.integers(-3, 60))
def test_a_cut_text_is_a_beginning_and_costs_no_more_than_allowed(text: str, budget: int) -> None:
    cut = cut_to(text, budget)

    assert text.startswith(cut)
    assert count(cut) <= max(budget, 0)
    assert cut == text or count(text) > budget
