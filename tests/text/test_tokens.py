from __future__ import annotations

from typing import Any

import pytest
from bpe_openai import get_encoding  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.items import ItemRef
from windowpane.context.request import CallSettings, OfferedTool
from windowpane.text.tokens import count, cut_to, family_for, tools_tokens
from windowpane.text.vocabulary import as_unicode, vocabulary


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


@given(st.text(max_size=300) | st.text(st.sampled_from("aé日👩\u200d\ud800 \n'<|>0"), max_size=300))
def test_tokens_are_those_of_the_package_that_the_vocabulary_comes_with(text: str) -> None:
    encoding: Any = get_encoding("o200k_base")

    assert count(text) == len(encoding.encode_ordinary(text))
    assert vocabulary().encode(as_unicode(text)) == encoding.encode_ordinary(text)


@pytest.mark.parametrize(
    ("model", "shown", "tokens"),
    [
        ("openai:gpt-5-mini", True, 33),
        ("openai-responses:o3", True, 33),
        ("openai:ft:gpt-4o:ours", True, 33),
        ("azure:our-deployment", True, 33),
        ("openai:smollm2", True, 46),
        ("openai:smollm2", False, 0),
        ("ollama:qwen3", True, 46),
        ("anthropic:claude-sonnet-4-5", True, 346 + 46),
        ("anthropic:claude-sonnet-4-5", False, 0),
    ],
)
def test_tools_are_counted_as_the_makers_of_the_model_show_them(model: str, shown: bool, tokens: int) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where the file is"}}}
    tool = OfferedTool("read", ItemRef("tool", "read", "files"), "Read a file", schema)

    assert tools_tokens([tool], family_for(CallSettings(model=model, tools_shown=shown))) == tokens
