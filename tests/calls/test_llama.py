"""A real llama.cpp server takes what we send, counts as we count, and its refusal for length ends no session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from windowpane.context.messages import AssistantMessage
from windowpane.testing import World, drain, tool
from wire import llama

pytestmark = pytest.mark.skipif(not llama.is_installed(), reason=llama.MISSING)

WINDOW = 2048
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 8


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with llama.llama_server(WINDOW) as address:
        yield address


@pytest.fixture
def world(tmp_path: Path, url: str) -> World:
    world = World(tmp_path / "agents")
    world.write(
        "agent.yaml",
        "model: openai:smollm2\nworking_context: false\nfinders: false\nmax_output_tokens: 4\ntemperature: 0\n",
    )
    world.environ = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "none"}
    return world


async def test_its_template_takes_our_messages_and_its_count_is_ours_times_the_learned_factor(world: World) -> None:
    world.rule("tone", "Answer in short and plain sentences. Say so when you do not know.", include="always")
    world.toolbox.put("files", [tool("read", "The file says hello.", permission="never")])
    async with world.pane() as pane:
        session = await pane.sessions.create()
        for message in ("Hello, who are you?", "And what can you do for me today?", "Name one colour of the rainbow."):
            await drain(pane.turn(session.id, message))
        calls = (await pane.sessions.calls(session.id)).calls
        (last,) = (await pane.turns.calls(session.id, 3)).calls
        record = await pane.turns.call(session.id, 3, 1)
        factor = (await pane.turns.context(session.id, 3)).budget.token_factor

    assert [(call.outcome, call.status, call.attempt) for call in calls] == [("complete", 200, 1)] * 3
    assert all(isinstance(call.usage and call.usage.output_tokens, int) for call in calls)
    assert last.usage is not None
    assert last.counted_tokens is not None
    reported = last.usage.input_tokens
    # In its vocabulary each digit of the boundary code is a token, for example. The factor makes up for that.
    assert abs(sum(record.message_tokens) - reported) <= 0.25 * reported
    assert abs(last.counted_tokens * factor - reported) <= 0.05 * reported


async def test_its_template_leaves_tools_out_so_they_count_for_nothing_once_its_reports_have_shown_it(
    world: World,
) -> None:
    about = "Read a file of the project, and tell what it says about the question. " * 8
    world.toolbox.put("files", [tool(f"read{number}", description=about, include="always") for number in range(6)])
    async with world.pane() as pane:
        session = await pane.sessions.create()
        for message in ("Hello, who are you?", "What can you do for me?", "Name one colour.", "And another one?"):
            await drain(pane.turn(session.id, message))
        contexts = [await pane.turns.context(session.id, turn) for turn in (1, 2, 3, 4)]
        (last,) = (await pane.turns.calls(session.id, 4)).calls

    assert [context.settings.tools_shown for context in contexts] == [True, True, True, False]
    assert contexts[3].degraded == (
        "openai:smollm2: the model's server leaves tools out of the prompt, its chat template does not show them",
    )
    assert last.usage is not None
    budget, reported = contexts[3].budget, last.usage.input_tokens
    assert last.counted_tokens == budget.used_tokens
    assert abs(budget.used_tokens * budget.token_factor - reported) <= 0.05 * reported


async def test_its_refusal_of_russian_text_leads_to_one_smaller_request_and_the_session_lives(world: World) -> None:
    async with world.pane() as pane:
        session = await pane.sessions.create()
        for number in range(3):
            await pane.sessions.add_message(session.id, "user", f"{number} {RUSSIAN}")
            await pane.sessions.add_message(session.id, "assistant", f"{number} {RUSSIAN}")
        await drain(pane.turn(session.id, "Привет"))
        refused = (await pane.turns.calls(session.id, 1)).calls
        sizes = [(await pane.turns.call(session.id, 1, number)).call.size for number in (1, 2)]
        context = await pane.turns.context(session.id, 1)
        await drain(pane.turn(session.id, "hi"))
        after = (await pane.turns.calls(session.id, 2)).calls
        messages = (await pane.sessions.messages(session.id)).messages

    assert [(call.attempt, call.outcome, call.status) for call in refused] == [
        (1, "retried", 400),
        (2, "complete", 200),
    ]
    assert sizes[1] < sizes[0]
    assert (context.budget.window_tokens, context.budget.window_source) == (WINDOW, "refusal")
    assert [(call.outcome, call.status) for call in after] == [("complete", 200)]
    assert isinstance(messages[-1], AssistantMessage)
