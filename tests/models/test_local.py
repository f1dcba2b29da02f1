"""The small model on this machine, with its real weights, where they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.agents.folder import FolderAgents
from windowpane.context.events import Delta
from windowpane.context.messages import AssistantMessage, Step
from windowpane.context.request import CallSettings, RequestMessage
from windowpane.engine import Engine
from windowpane.models.base import LOCAL, ModelStep, ModelText
from windowpane.models.local.server import is_installed
from windowpane.models.provider import PydanticModels
from windowpane.sessions.past import Exchange
from windowpane.testing import World, tool

pytestmark = pytest.mark.skipif(not is_installed(), reason="not installed: `make .venv/llama-installed` tries to")

SETTINGS = CallSettings(model=LOCAL, temperature=0.0, top_p=None, max_output_tokens=12, mode="normal")
QUESTION = (
    RequestMessage(role="system", content="You are brief.", part="core"),
    RequestMessage(role="user", content="Name a colour.", part="message"),
)


async def test_local_is_listed_streams_counts_with_its_own_tokenizer_and_ends_with_its_models() -> None:
    async with PydanticModels(environ={}) as models:
        model = models.open(LOCAL)
        first = [event async for event in model.stream(QUESTION, (), SETTINGS)]
        again = [event async for event in models.open(LOCAL).stream(QUESTION, (), SETTINGS)]
        known, window = models.known(), models.window_tokens(LOCAL)

    step = first[-1]
    assert isinstance(step, ModelStep)
    words = [event.text for event in first[:-1] if isinstance(event, ModelText)]
    assert ("".join(words), len(words) > 3) == (step.step.text, True)
    assert step.step.usage.input_tokens > 10
    assert 0 < step.step.usage.output_tokens <= 12
    assert isinstance(again[-1], ModelStep)
    assert (again[-1].step.text, known[:2], window) == (step.step.text, ("echo", LOCAL), 4096)


async def test_a_turn_with_it_is_recorded_to_the_byte_like_any_other(tmp_path: Path) -> None:
    world = World(tmp_path / "agents")
    models = PydanticModels(environ={})
    engine = Engine(store=world.store, agents=FolderAgents(world.root), models=models, toolbox=lambda: world.toolbox)
    async with engine:
        session = (await engine.sessions.create(settings={"model": LOCAL, "max_output_tokens": 8})).id
        said = [event.text async for event in engine.turn(session, "Name a colour.") if isinstance(event, Delta)]
        messages = await engine.conversations.messages(session)
        context = await engine.past.context(session, 1)
        calls = await engine.calls.of_turn(session, 1)

    (text,) = [each.model_reply.text for each in messages if isinstance(each, AssistantMessage)]
    assert ("".join(said), bool(text)) == (text, True)
    assert (context.settings.model, context.budget.window_tokens) == (LOCAL, 4096)
    assert [call.seen and bool(call.usage and call.usage.input_tokens) for call in calls] == [True]


TEXTS = (
    "Hello, world! It's 12345 o'clock.\n\n  def f(x):\n\treturn x**2  # don't",
    "그는 오늘 학교에 갔다. 我今天去了学校。 ผมไปโรงเรียน naïve “quoted” 😀👍🏽 ½ ٣٤",
    '{"a": [1, 2, 3]}\r\n\r\n   x' + "a" * 300,
)


@pytest.mark.parametrize("text", TEXTS)
async def test_its_tokens_are_counted_before_it_is_called_as_it_counts_them_itself(text: str) -> None:
    messages = (RequestMessage(role="system", content=text, part="core"), QUESTION[1])
    async with PydanticModels(environ={}) as models:
        counted = await models.own_tokens(LOCAL, messages)
        *_, last = [event async for event in models.open(LOCAL).stream(messages, (), SETTINGS)]
        elsewhere = await models.own_tokens("openai:gpt-4o", messages)

    assert isinstance(last, ModelStep)
    assert (counted, elsewhere) == (last.step.usage.input_tokens, None)


async def test_the_first_request_already_fits_by_its_count_and_tools_that_it_is_not_shown_count_for_nothing(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "agents")
    world.toolbox.put("files", [tool("read", "The file says {path}.", permission="required")])
    world.write("agent.yaml", "context_window: 1000\n")
    # By our count half of the window, by the model's more than all of it.
    past = [Exchange("당신은 친절합니다. " * 20, (Step("고맙습니다."),))] * 4
    models = PydanticModels(environ={})
    engine = Engine(store=world.store, agents=FolderAgents(world.root), models=models, toolbox=lambda: world.toolbox)
    async with engine:
        session = (await engine.sessions.create(settings={"model": LOCAL, "max_output_tokens": 8}, past=past)).id
        async for _ in engine.turn(session, "색깔 하나를 말해 주세요."):
            pass
        context = await engine.past.context(session, 5)
        calls = await engine.calls.of_turn(session, 5)

    assert [(call.outcome, call.usage is not None) for call in calls] == [("complete", True)]
    (usage,) = [call.usage for call in calls if call.usage]
    budget = context.budget
    assert usage.input_tokens + budget.reply_tokens <= budget.window_tokens
    assert usage.input_tokens <= budget.used_tokens * budget.token_factor
    assert not context.settings.tools_shown
    assert [note for note in context.degraded if "leaves tools out" in note] != []
