"""The tokens that a provider reports steer the next request, and a refusal for length is not the end of a session."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.calls import CallEnded, TokenFactor, reported_factor
from windowpane.context.messages import AssistantMessage, ErrorMessage, Usage
from windowpane.testing import World, drain, tool
from wire import openai_chat
from wire.reply import WireReply
from wire.server import running

LONG = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 16


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents")
    world.write(
        "agent.yaml",
        "model: openai:small\nworking_context: false\ncontext_window: 4000\nmax_output_tokens: 200\n",
    )
    return world


async def test_the_factor_is_learned_from_what_the_provider_reports_and_shrinks_the_budget(world: World) -> None:
    async with running(*(openai_chat.answer(WireReply(("Yes.",), input_tokens=900)) for _ in range(3))) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "Hello"))
            await drain(pane.turn(session.id, "Hello again"))
            (call,) = (await pane.turns.calls(session.id, 1)).calls
            first, second = [(await pane.turns.context(session.id, turn)).budget for turn in (1, 2)]
            await pane.sessions.update(session.id, {"model": "openai:other"})
            await drain(pane.turn(session.id, "Hello, other"))
            other = (await pane.turns.context(session.id, 3)).budget

    assert call.counted_tokens is not None
    assert call.usage is not None
    assert (first.token_factor, other.token_factor) == (1.0, 1.0)
    assert second.token_factor == pytest.approx(min(900 / call.counted_tokens, 4.0), abs=0.001)
    assert second.pieces_tokens == int(3800 / second.token_factor) - 160


@pytest.mark.parametrize("refusal", ["llama.cpp", "openai", "without numbers"])
async def test_a_request_that_is_refused_as_too_long_is_made_smaller_once_and_the_session_lives(
    world: World, refusal: str
) -> None:
    said = {
        "llama.cpp": "the request exceeds the available context size (2048 tokens), try increasing it: 2900 tokens",
        "openai": "This model's maximum context length is 2048 tokens. However, your messages resulted in 2900 tokens.",
        "without numbers": "the request exceeds the available context size. try increasing the context size",
    }[refusal]
    refused = openai_chat.problem(400, said, code="context_length_exceeded" if refusal == "openai" else "")
    ok = openai_chat.answer(WireReply(("Да.",), input_tokens=1500))
    async with running(*[openai_chat.answer(WireReply(("Да.",), input_tokens=0))] * 3, refused, ok, ok) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            for number in range(3):
                await drain(pane.turn(session.id, f"{number} {LONG}"))
            await drain(pane.turn(session.id, "hi"))
            await drain(pane.turn(session.id, "hi again"))
            answer = (await pane.sessions.messages(session.id)).messages[-1]
            calls = (await pane.turns.calls(session.id, 4)).calls
            context = await pane.turns.context(session.id, 4)
            after = await pane.turns.context(session.id, 5)

    assert isinstance(answer, AssistantMessage)
    assert [(call.step, call.attempt, call.outcome, call.status) for call in calls] == [
        (1, 1, "retried", 400),
        (1, 2, "complete", 200),
    ]
    sizes = [len(asked.raw) for asked in server.asked]
    assert sizes[4] < sizes[3]
    assert context.budget.window_source == "refusal"
    assert any("refused the request as too long" in note for note in context.degraded)
    assert after.budget.window_tokens == context.budget.window_tokens
    assert len(server.asked) == 6


async def test_a_second_refusal_says_what_to_do(world: World) -> None:
    refused = openai_chat.problem(400, "prompt is too long", code="context_length_exceeded")
    async with running(refused, refused) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            await drain(pane.turn(session.id, "hi"))
            error = (await pane.sessions.messages(session.id)).messages[-1]

    assert isinstance(error, ErrorMessage)
    assert error.code in ("request_too_long", "context_too_large")
    assert len(server.asked) <= 2


async def test_a_model_that_reports_far_fewer_tokens_than_it_was_sent_is_told_of_in_the_record(world: World) -> None:
    world.rule("long", "Say what you know, and no more than that. " * 60, include="always")
    async with running(*(openai_chat.answer(WireReply(("Yes.",), input_tokens=90)) for _ in range(4))) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            for _ in range(4):
                await drain(pane.turn(session.id, "Hello"))
            notes = [(await pane.turns.context(session.id, turn)).degraded for turn in range(1, 5)]
            replays = [(await pane.turns.rebuild(session.id, turn)).identical for turn in range(1, 5)]

    assert notes[:3] == [(), (), ()]
    assert [re.sub(r"\d+%", "N%", note) for note in notes[3]] == [
        "openai:small reports N% of the tokens that were sent to it: its server may leave parts of the prompt out, "
        "such as tools; `windowpane doctor --ask` tries it"
    ]
    assert replays == [True] * 4


def _learned(calls: list[tuple[int, int, int]]) -> list[TokenFactor]:
    """Return what is known after each call: tokens of messages and of tools by our count, and what was reported."""
    known: list[TokenFactor] = []
    for messages, tools, reported in calls:
        usage = Usage(input_tokens=reported)
        counted = messages + tools
        call = CallEnded(id="", outcome="complete", usage=usage, counted_tokens=counted, tools_tokens=tools)
        last = reported_factor(call)
        assert last is not None
        known.append(known[-1].after(last) if known else last)
    return known


_factors = st.floats(0.5, 4.0)
_messages, _tools = st.integers(20, 20_000), st.integers(0, 50_000)


@given(st.lists(st.tuples(_messages, _tools, _factors, _factors), min_size=1, max_size=12))
def test_tools_are_never_thought_to_be_left_out_where_the_reports_fit_tools_that_are_shown(
    calls: list[tuple[int, int, float, float]],
) -> None:
    known = _learned([(said, tools, math.ceil(said * one + tools * other)) for said, tools, one, other in calls])

    assert all(each.tools_shown for each in known)


@given(
    st.floats(0.6, 2.0),
    st.integers(100, 20_000),
    st.lists(st.tuples(st.floats(1.01, 1.1), st.floats(1.0, 1.4), st.floats(8, 50)), min_size=3, max_size=12),
)
def test_tools_that_are_left_out_are_found_after_three_calls_and_until_a_report_has_them(
    factor: float, said: int, calls: list[tuple[float, float, float]]
) -> None:
    reports: list[tuple[int, int, int]] = []
    for grows, wobble, share in calls:
        said = math.ceil(said * grows)
        reports.append((said, int(said * share), math.ceil(said * factor * wobble)))
    *_, (said, tools, reported) = reports

    known = _learned([*reports, (said, tools, reported + 2 * tools)])

    assert [each.tools_shown for each in known] == [True, True, *[False] * (len(calls) - 2), True]
    assert factor <= known[-2].factor <= factor * 1.4 * 1.01


@given(_factors, _tools, st.lists(st.tuples(_messages, st.floats(0.01, 1)), min_size=1, max_size=12))
def test_a_server_that_reports_only_what_it_had_not_read_before_is_not_thought_to_leave_tools_out(
    factor: float, tools: int, grown: list[tuple[int, float]]
) -> None:
    said, reports = 0, list[tuple[int, int, int]]()
    for new, unread in grown:
        said += new
        reports.append((said, tools, math.ceil(new * unread * factor)))

    assert all(each.tools_shown for each in _learned(reports))


def test_a_server_that_counts_cached_tokens_apart_is_not_thought_to_leave_tools_out() -> None:
    known: TokenFactor | None = None
    for said in (1000, 1010, 1020, 1030):
        usage = Usage(input_tokens=said, cache_read_tokens=900)
        call = CallEnded(id="", outcome="complete", usage=usage, counted_tokens=said + 2000, tools_tokens=2000)
        last = reported_factor(call)
        assert last is not None
        known = known.after(last) if known else last

    assert known is not None
    assert known.tools_shown


async def test_tools_that_the_server_leaves_out_of_the_prompt_count_for_nothing_and_the_record_says_so(
    world: World,
) -> None:
    about = "Read a file, and tell what it says. " * 20
    world.toolbox.put("files", [tool(f"read{n}", description=about, include="always") for n in range(9)])
    world.write("agent.yaml", "model: openai:small\nworking_context: false\nfinders: false\n")
    reported = [110, 120, 130, 140, 2500, 2500]
    async with running(*(openai_chat.answer(WireReply(("Yes.",), input_tokens=count)) for count in reported)) as server:
        world.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}
        async with world.pane() as pane:
            session = await pane.sessions.create()
            for _ in reported:
                await drain(pane.turn(session.id, "Hello"))
            turns = range(1, len(reported) + 1)
            contexts = [await pane.turns.context(session.id, turn) for turn in turns]
            replays = [(await pane.turns.rebuild(session.id, turn)).identical for turn in turns]

    assert [context.settings.tools_shown for context in contexts] == [True, True, True, False, False, True]
    assert [[item.tokens for item in context.items] for context in contexts] == [
        [228 if context.settings.tools_shown else 0] * 9 for context in contexts
    ]
    parts = [part.tokens for context in contexts for part in context.parts if part.kind == "tools"]
    assert parts == [2052, 2052, 2052, 0, 0, 2052]
    assert [context.budget.used_tokens < 500 for context in contexts] == [False, False, False, True, True, False]
    assert [context.degraded for context in contexts[3:5]] == [
        ("openai:small: the model's server leaves tools out of the prompt, its chat template does not show them",)
    ] * 2
    assert contexts[3].budget.token_factor == pytest.approx(1, abs=0.35)
    assert replays == [True] * len(reported)
    assert all(len(json.loads(asked.raw)["tools"]) == 9 for asked in server.asked)
