"""What requests cost, and how far our count is from the provider's."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.api.turns import UsageAnalysis
from windowpane.calls.ledger import RecordedCall, calls_of
from windowpane.context.calls import ModelPrice
from windowpane.context.events import ModelReplied, Recorded
from windowpane.context.ids import RequestId
from windowpane.context.items import tool_ref
from windowpane.context.messages import Step, ToolCall, ToolResult, Usage
from windowpane.context.request import (
    Budget,
    CallSettings,
    OfferedTool,
    Query,
    Request,
    RequestContext,
    RequestMessage,
)
from windowpane.insight.usage import Residual, analyse_usage, residuals, spending
from windowpane.models.prices import price
from windowpane.request.messages import messages_now
from windowpane.text.tokens import count, counted_tokens, family_for

AT = datetime(2026, 2, 3, tzinfo=UTC)
READ = OfferedTool("files_read", tool_ref("files", "read"), "Reads a file.", {"type": "object"})
STEPS = (
    Step(
        text="Reading.",
        tool_calls=(ToolCall("c1", "files_read", '{"path": "a"}'),),
        results=(ToolResult("c1", "The file's text."),),
        usage=Usage(60, 12),
        model="gpt-4o-2024-08-06",
    ),
    Step(text="It says so.", usage=Usage(90, 5, cache_read_tokens=30), model="gpt-4o-2024-08-06"),
    Step(text="And more.", model="gpt-4o-2024-08-06"),
)


def request() -> Request:
    messages = (
        RequestMessage(role="system", content="You are Pane.", part="core"),
        RequestMessage(role="user", content="What does it say?", part="message"),
    )
    used = counted_tokens(messages, (READ,), "openai")
    context = RequestContext(
        id=RequestId("req_test"),
        turn=1,
        timestamp=AT,
        agent="pane",
        settings=CallSettings(model="openai:gpt-4o"),
        query=Query(text="What does it say?"),
        items=(),
        budget=Budget(window_tokens=1000, reply_tokens=100, used_tokens=used),
    )
    return Request(messages=messages, tools=(READ,), context=context)


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        ("openai:gpt-4o", Usage(1_000_000, 0), "2.5"),
        ("openai:gpt-4o", Usage(0, 1_000_000), "10"),
        ("openai:gpt-4o", Usage(1_000_000, 0, cache_read_tokens=1_000_000), "1.25"),
        ("openai-chat:gpt-4o", Usage(1000, 100), "0.0035"),
        ("openai-responses:gpt-4o", Usage(1000, 100), "0.0035"),
        ("openai:gpt-4o-2024-08-06", Usage(1000, 100), "0.0035"),
        ("anthropic:claude-haiku-4-5", Usage(1000, 100), "0.0015"),
        ("google:gemini-2.5-flash", Usage(1000, 100), "0.00055"),
        ("gpt-4o", Usage(1000, 100), "0.0035"),
        ("openai:gpt-4o", Usage(), "0"),
    ],
)
def test_a_listed_model_has_its_real_price(model: str, usage: Usage, dollars: str) -> None:
    assert price(model, usage, at=AT) == Decimal(dollars)


@pytest.mark.parametrize("model", ["ollama:qwen3", "openai:my-own", "nobody:gpt-4o", "ollama:echo", "", ":"])
def test_a_model_that_is_not_listed_has_no_price(model: str) -> None:
    assert price(model, Usage(1000, 100), at=AT) is None


@pytest.mark.parametrize("model", ["echo", "scripted:gpt-4o"])
def test_a_built_in_model_is_free_unless_its_agent_sets_a_price(model: str) -> None:
    used = Usage(1000, 100)

    assert price(model, used, at=AT) == 0
    assert price(model, used, own=ModelPrice(input=1, output=10)) == Decimal("0.002")
    assert price(model, used, at=AT, url="https://echo.example/v1") is None, "another server's model of that name"


def test_calls_of_a_built_in_model_cost_nothing_and_miss_nothing_but_those_of_others_do() -> None:
    events = [
        Recorded(n, AT, ModelReplied(turn=1, step=Step(model=model))) for n, model in enumerate(("echo", "qwen3"), 1)
    ]
    built_in, other = calls_of(events)

    free, unknown = spending([built_in], "echo"), spending([other], "echo")

    assert (free.cost_usd, free.without_usage, free.without_price) == (Decimal(0), 0, 0)
    assert (unknown.cost_usd, unknown.without_usage, unknown.without_price) == (None, 1, 0)
    reported = spending([replace(other, usage=Usage(10, 1))], "echo")
    assert (reported.cost_usd, reported.without_price) == (None, 1), (
        "echo was asked, and a model of the caller's answered"
    )


def test_a_usage_that_cannot_be_has_no_price() -> None:
    assert price("openai:gpt-4o", Usage(1000, -1), at=AT) is None


@given(st.builds(Usage, *[st.integers(0, 10**9)] * 4))
def test_any_usage_of_a_listed_model_has_a_price(usage: Usage) -> None:
    found = price("openai:gpt-4o", usage, at=AT)

    assert found is not None
    assert found >= 0


@pytest.mark.parametrize("asked", ["openai:gpt-4o", "openai:a-name-of-ours"])
def test_calls_whose_wire_was_not_seen_cost_what_they_cost_under_the_name_that_answered(asked: str) -> None:
    found = spending(_calls(), asked)

    # (60 + 60) × 2.50, 30 × 1.25 and 17 × 10.00 dollars per million.
    assert (found.cost_usd, found.without_price) == (Decimal("0.0005075"), 0)


def test_a_call_without_a_price_is_counted_as_such_unless_the_agent_sets_one() -> None:
    own = ModelPrice(input=2.5, output=10, cache_read=1.25)

    found = spending(_calls(), "ollama:qwen3")
    priced = spending([replace(call, price=own) for call in _calls()], "ollama:qwen3")

    assert (found.cost_usd, found.without_price) == (None, 2)
    assert (priced.cost_usd, priced.without_price) == (Decimal("0.0005075"), 0)


@given(
    st.builds(Usage, *[st.integers(0, 10**9)] * 4),
    st.builds(ModelPrice, input=st.floats(0, 100), output=st.floats(0, 100)),
)
def test_an_agents_price_counts_each_token_once(usage: Usage, own: ModelPrice) -> None:
    found = price("mine:own", usage, own=own)

    cached = usage.cache_read_tokens + usage.cache_write_tokens
    taken = max(usage.input_tokens, cached) * Decimal(str(own.input)) + usage.output_tokens * Decimal(str(own.output))
    assert found == taken / 1_000_000


def _calls() -> tuple[RecordedCall, ...]:
    events = (ModelReplied(turn=1, step=step) for step in STEPS)
    return calls_of(Recorded(seq=number, at=AT, event=event) for number, event in enumerate(events, 1))


def test_the_residual_is_what_the_provider_counted_beyond_us_call_by_call() -> None:
    asked = request()
    first = asked.context.budget.used_tokens
    family = family_for(asked.context.settings)
    second = counted_tokens(messages_now(asked, STEPS[:1]), asked.tools, family)
    third = counted_tokens(messages_now(asked, STEPS[:2]), asked.tools, family)

    found = residuals(asked, STEPS)

    assert found == (Residual(first, 60), Residual(second, 90), Residual(third, None))
    assert [entry.residual_tokens for entry in found] == [60 - first, 90 - second, None]
    assert first < second < third


@pytest.mark.spec("S3.35", "S3.54", "S3.63", "S3.67")
def test_the_analysis_gives_size_real_tokens_and_the_real_price() -> None:
    text = "=== CONVERSATION ===\nUser: How do I resize it?\nAssistant: Drag the corner.\n" * 50

    found = analyse_usage(text, messages_stored=42, has_summary=True, model="openai:gpt-4o", at=AT)

    assert found == UsageAnalysis(
        context_size=len(text),
        estimated_tokens=count(text),
        messages_stored=42,
        is_compressed=True,
        cost_estimate=count(text) * Decimal("0.0000025"),
    )


@pytest.mark.spec("S3.54")
def test_the_analysis_of_an_unlisted_model_says_that_the_price_is_not_known() -> None:
    assert analyse_usage("", messages_stored=0, has_summary=False, model="ollama:qwen3") == UsageAnalysis(
        context_size=0, estimated_tokens=0, messages_stored=0, is_compressed=False, cost_estimate=None
    )


@pytest.mark.spec("S3.67")
@given(st.text(max_size=200))
def test_the_cost_of_a_conversation_follows_its_tokens(text: str) -> None:
    found = analyse_usage(text, messages_stored=1, has_summary=False, model="openai:gpt-4o", at=AT)

    assert found.estimated_tokens <= len(text.encode())
    assert found.cost_estimate == found.estimated_tokens * Decimal("0.0000025")
