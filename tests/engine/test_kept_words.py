"""The words that a turn had said are not lost with its worker."""

from __future__ import annotations

import pytest

from windowpane.context.events import ModelReplied, RequestBuilt, TurnFinished, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.engine import Engine
from windowpane.testing import World, drain, stored
from windowpane.turn.words import keep_words


async def left_behind(engine: Engine) -> SessionId:
    """Return a session whose worker died in the middle of a reply."""
    session = (await engine.sessions.create()).id
    await engine.store.append(session, [TurnStarted(turn=1, message="Hi", key="k1")])
    fence = await engine.store.acquire(session, "dead", 0) or 0
    state = await engine.sessions.get(session)
    assert state.open_turn is not None
    await keep_words(engine.store, state, state.open_turn, "Once upon a", fence)
    return session


@pytest.mark.parametrize("key", ["k1", "k2"])
async def test_the_words_of_a_turn_that_was_left_behind_are_in_its_answer(world: World, key: str) -> None:
    world.says("Hello.")
    async with world.engine(lease_s=0.1) as engine:
        session = await left_behind(engine)
        events = stored(await drain(engine.turn(session, "Hi", key=key)))

    replied, end = [event for event in events if not isinstance(event, TurnStarted | RequestBuilt)][:2]
    assert isinstance(replied, ModelReplied)
    assert isinstance(end, TurnFinished)
    assert (replied.turn, replied.step.text, replied.step.finish_reason) == (1, "Once upon a", "interrupted")
    assert (end.turn, end.outcome) == (1, "interrupted")
