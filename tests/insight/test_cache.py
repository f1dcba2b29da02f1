"""What broke a prefix is found in the bodies, named, and priced by what the provider reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.api.comparison import CacheCollapse, PrefixBreak
from windowpane.context.calls import ModelPrice
from windowpane.context.messages import Usage
from windowpane.insight.cache.report import SeenCache, SeenCall, follow
from windowpane.models.prices import price

CLAUDE = "https://api.anthropic.com/v1/messages"
CHAT = "https://api.openai.com/v1/chat/completions"
RESPONSES = "https://api.openai.com/v1/responses"
START = datetime(2026, 1, 1, tzinfo=UTC)
PRICES = ModelPrice(input=10, output=0, cache_read=1, cache_write=12.5)
MARK = {"cache_control": {"type": "ephemeral"}}
LONG = "word " * 3000


def call(
    number: int,
    body: object,
    *,
    url: str = CHAT,
    usage: Usage | None = None,
    after: float = 0,
    model: str = "some:model",
) -> SeenCall:
    return SeenCall(
        number=number,
        purpose="answer",
        model=model,
        url=url,
        at=START + timedelta(seconds=after),
        body=json.dumps(body),
        failed=False,
        usage=usage,
        price=lambda usage: price("", usage, own=PRICES),
    )


def tool(name: str, *, text: str = LONG, marked: bool = False) -> dict[str, Any]:
    return {"name": name, "description": text, "input_schema": {"type": "object"}, **(MARK if marked else {})}


def claude(
    *said: str, tools: Sequence[dict[str, Any]] = (), system: str = LONG, mark: int | None = -1, **more: Any
) -> dict[str, Any]:
    """Return a body with one message for each text, marked at the end of the system prompt and at one message."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in said]
    if mark is not None:
        blocks[mark] |= MARK
    messages = [{"role": ("user", "assistant")[at % 2], "content": [block]} for at, block in enumerate(blocks)]
    return {"tools": list(tools), "system": [{"type": "text", "text": system, **MARK}], "messages": messages, **more}


def second(first: object, then: object, *, url: str, **more: Any) -> SeenCache:
    """Return what is known of the second of two calls, a minute apart."""
    seconds: dict[str, Any] = {"after": 60, "usage": Usage(20_000, 0), **more}
    return follow([call(1, first, url=url, usage=Usage(20_000, 0)), call(2, then, url=url, **seconds)])[1]


TWO = [tool("read"), tool("write")]


@pytest.mark.parametrize(
    ("then", "kind", "at"),
    [
        (claude("Hi", "Hello", "Go on", tools=[tool("find"), *TWO]), "added", "tool find"),
        (claude("Hi", "Hello", "Go on", tools=TWO[1:]), "removed", "tool read"),
        (claude("Hi", "Hello", "Go on", tools=[tool("read", text=f"{LONG} It."), TWO[1]]), "edited", "tool read"),
        (claude("Hi", "Hello", "Go on", tools=TWO[::-1]), "reordered", "tool write"),
        (
            claude("Hi", "Hello", "Go on", tools=[dict(reversed(TWO[0].items())), TWO[1]]),
            None,
            None,
        ),
        (claude("Hi", "Hello", "Go on", tools=TWO, system=f"{LONG}Be brief."), "edited", "system block 1"),
        (claude("Hi", "Hello", "Go on", tools=TWO, tool_choice={"type": "any"}), None, None),
        (claude("Hi", "Hello", "Go on", tools=TWO), None, None),
    ],
)
def test_the_block_that_broke_a_prefix_is_named_with_the_kind_of_its_change(
    then: object, kind: str | None, at: str | None
) -> None:
    seen = second(claude("Hi", tools=TWO), then, url=CLAUDE)

    assert (seen.broke and seen.broke.kind, seen.broke and seen.broke.at) == (kind, at)


def test_a_schema_whose_keys_were_written_in_another_order_is_told_apart_from_an_edited_one() -> None:
    one, other = ({"type": "object", "title": LONG}, {"title": LONG, "type": "object"})
    body = {"messages": [{"role": "user", "content": "Hi"}]}

    seen = second(
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": one}}], **body},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": other}}], **body},
        url=CHAT,
    )

    assert seen.broke is not None
    assert (seen.broke.kind, seen.broke.at) == ("reserialized", "tool f")
    assert seen.broke.reason == "it says the same, with the keys of its JSON in another order"


def test_a_broken_prefix_costs_what_was_billed_again_beyond_the_price_of_reading_it() -> None:
    first, then = claude("Hi", system="Be brief. " + LONG), claude("Hi", LONG, "Go on", system="Be polite. " + LONG)
    used = Usage(10_000, 0, cache_read_tokens=0, cache_write_tokens=9_000)

    broke = second(first, then, url=CLAUDE, usage=used).broke

    assert broke is not None
    assert broke == PrefixBreak(
        at="system block 1",
        item=None,
        kind="edited",
        reason="its text changed",
        since=1,
        before="Be brief. word word word word word word wor…",
        after="Be polite. word word word word word word wo…",
        lost_tokens=broke.lost_tokens,
        cost_usd=broke.lost_tokens * (Decimal("12.5") - 1) / 1_000_000,
    )
    # Half of the prompt is the system prompt, all of it but one word as before; the other half is new.
    assert broke.lost_tokens == pytest.approx(5_000, rel=0.01)  # pyright: ignore[reportUnknownMemberType]


def test_what_the_provider_read_all_the_same_was_not_lost() -> None:
    first, then = claude("Hi", system="Be brief. " + LONG), claude("Hi", system="Be polite. " + LONG)

    seen = second(first, then, url=CLAUDE, usage=Usage(5_000, 0, cache_read_tokens=4_990))

    assert seen.broke is None


def test_marks_that_do_not_reach_what_is_kept_break_the_prefix() -> None:
    said = [f"{n} {'word ' * 100}" for n in range(60)]

    near = second(claude(*said[:21]), claude(*said[:39]), url=CLAUDE)
    far = second(claude(*said[:21]), claude(*said[:43]), url=CLAUDE)
    unmarked = second(claude(*said[:21]), claude(*said[:22], mark=None), url=CLAUDE)

    assert near.broke is None
    assert [seen.broke and (seen.broke.kind, seen.broke.at) for seen in (far, unmarked)] == [
        ("cache_control", "the marks for the cache")
    ] * 2


@pytest.mark.parametrize(
    ("url", "first", "kept_s"),
    [
        (CLAUDE, claude("Hi"), 300),
        (CLAUDE, {"messages": [{"role": "user", "content": LONG}], "cache_control": {"ttl": "1h"}}, 3600),
        (RESPONSES, {"instructions": LONG, "input": "Hi"}, 600),
    ],
)
def test_a_prefix_is_expected_for_as_long_as_the_provider_keeps_it(url: str, first: object, kept_s: int) -> None:
    model = "openai-responses:gpt-4o" if url == RESPONSES else "anthropic:claude-haiku-4-5"
    used = Usage(10_000, 0)

    warm, cold = (
        follow(
            [
                call(1, first, url=url, usage=used, model=model),
                call(2, first, url=url, usage=used, after=s, model=model),
            ]
        )[1]
        for s in (kept_s, kept_s + 1)
    )

    assert warm.broke is None
    assert warm.expected_tokens == (9984 if url == RESPONSES else 10_000)
    assert cold.broke is not None
    assert (cold.broke.kind, cold.broke.lost_tokens, cold.expected_tokens) == ("expired", 10_000, 0)


def test_another_model_has_read_nothing() -> None:
    seen = second(claude("Hi"), claude("Hi"), url=CLAUDE, model="some:other")

    assert seen.broke is not None
    assert (seen.broke.kind, seen.broke.reason) == ("model", "the model changed from some:model to some:other")


def test_a_collapse_is_named_when_reads_fall_short_by_more_than_a_twentieth_and_two_thousand_tokens() -> None:
    body = claude("Hi")

    def reported(read: int, total: int) -> CacheCollapse | None:
        return second(body, body, url=CLAUDE, usage=Usage(total, 0, cache_read_tokens=read)).collapse

    assert reported(8_000, 10_000) is None
    assert reported(95_000, 100_000) is None
    collapse = reported(7_999, 10_000)
    assert collapse is not None
    assert (collapse.missing_tokens, collapse.cost_usd) == (2_001, Decimal(2_001) * 9 / 1_000_000)
    assert collapse.reason.startswith("60 s after the call before, the beginning was the same")


def test_a_conversation_that_the_provider_keeps_itself_and_a_body_that_is_no_json_expect_nothing() -> None:
    kept = follow([call(1, {"input": "Hi", "previous_response_id": "resp_1"}, url=RESPONSES)])
    garbage = follow([replace(call(1, {}), body="{")])

    assert [each.expected_tokens for each in (*kept, *garbage)] == [None, None]


texts = st.text(st.sampled_from("abc “ä”\n"), min_size=1, max_size=12).map(lambda text: text * 200)
URLS = st.sampled_from([CLAUDE, CHAT, RESPONSES, "http://localhost/api/chat"])


def _body(url: str, system: str, said: Sequence[str]) -> dict[str, Any]:
    if url == CLAUDE:
        return claude(*said, system=system)
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    if url == RESPONSES:
        return {"instructions": system, "input": messages}
    return {"messages": [{"role": "system", "content": system}, *messages]}


@given(URLS, texts, st.lists(texts, min_size=1, max_size=8), st.lists(texts, max_size=8))
def test_a_call_that_only_goes_on_never_breaks_the_prefix(
    url: str, system: str, said: list[str], more: list[str]
) -> None:
    seen = second(_body(url, system, said), _body(url, system, [*said, *more]), url=url)

    assert seen.broke is None


@given(URLS, st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=5)), min_size=1, max_size=6))
def test_what_is_expected_and_what_was_lost_are_together_never_more_than_what_was_sent(
    url: str, bodies: list[tuple[str, list[str]]]
) -> None:
    used = Usage(30_000, 0)
    calls = [call(n, _body(url, *body), url=url, usage=used, after=n) for n, body in enumerate(bodies)]

    for seen in follow(calls):
        lost = seen.broke.lost_tokens if seen.broke else 0
        assert seen.expected_tokens is not None
        assert 0 <= seen.expected_tokens <= seen.expected_tokens + lost <= used.input_tokens
        assert lost == 0 or lost >= 128


@given(URLS, texts, texts, st.lists(texts, min_size=1, max_size=5))
def test_a_broken_prefix_is_a_block_that_differs(url: str, one: str, other: str, said: list[str]) -> None:
    seen = second(_body(url, one, said), _body(url, other, said), url=url)

    if seen.broke is not None:
        assert one != other
        assert seen.difference is not None
        assert seen.difference.before.text != seen.difference.after.text
