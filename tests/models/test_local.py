"""The small model on this machine, with its real weights, where they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.agents.folder import FolderAgents
from windowpane.context.events import Delta
from windowpane.context.messages import AssistantMessage
from windowpane.context.request import CallSettings, RequestMessage
from windowpane.engine import Engine
from windowpane.models.base import LOCAL, ModelStep, ModelText
from windowpane.models.local.server import is_installed
from windowpane.models.provider import PydanticModels
from windowpane.testing import World

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
