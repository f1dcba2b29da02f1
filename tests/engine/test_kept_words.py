"""The words that a turn had said are not lost with its worker."""

from __future__ import annotations

import pytest

from windowpane.context.events import ModelReplied, RequestBuilt, TurnFinished, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage
from windowpane.engine import Engine
from windowpane.testing import World, drain, stored
from windowpane.turn.words import keep_words


async def left_behind(engine: Engine, lease_s: float = 0) -> SessionId:
    """Return a session whose worker stopped in the middle of a reply, and holds it for so long."""
    session = (await engine.sessions.create()).id
    await engine.store.append(session, [TurnStarted(turn=1, message="Hi", key="k1")])
    fence = await engine.store.acquire(session, "another", lease_s) or 0
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


async def test_a_turn_that_was_left_behind_is_read_as_interrupted_with_its_words(world: World) -> None:
    async with world.pane() as pane:
        session = await left_behind(pane.engine)
        turn = await pane.turns.get(session, 1)

    assert (turn.outcome, turn.text) == ("interrupted", "Once upon a")


async def test_the_messages_of_a_session_have_the_words_of_a_turn_that_was_left_behind(world: World) -> None:
    async with world.pane() as pane:
        session = await left_behind(pane.engine)
        page = await pane.sessions.messages(session)

    replies = [message.model_reply.text for message in page.messages if isinstance(message, AssistantMessage)]
    assert [message.role for message in page.messages] == ["user", "assistant", "error"]
    assert replies == ["Once upon a"]


async def test_a_session_is_shown_and_exported_without_a_turn_that_was_left_behind(world: World) -> None:
    async with world.pane() as pane:
        shown = await pane.sessions.get(await left_behind(pane.engine))
        document = await pane.sessions.export(await left_behind(pane.engine))

    assert shown.open_turn is None
    replied, end = [entry.event for entry in document.events][-2:]
    assert isinstance(replied, ModelReplied)
    assert isinstance(end, TurnFinished)
    assert (replied.step.text, end.outcome) == ("Once upon a", "interrupted")


async def test_reading_does_not_close_a_turn_whose_worker_lives(world: World) -> None:
    async with world.pane() as pane:
        session = await left_behind(pane.engine, lease_s=600)
        turn = await pane.turns.get(session, 1)

    assert (turn.outcome, turn.text) == ("running", "")
