"""The tokens that a provider reports steer the next request, and a refusal for length is not the end of a session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windowpane.context.messages import AssistantMessage, ErrorMessage
from windowpane.testing import World, drain
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
