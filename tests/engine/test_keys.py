"""An idempotency key counts for as long as its session lives, and all who send it join one turn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import pytest

from windowpane.api.turns import TurnView
from windowpane.context.events import Event, Recorded, TurnFinished, TurnStarted
from windowpane.context.ids import SessionId
from windowpane.context.session import TurnKeys
from windowpane.errors import KeyReusedError, WindowpaneError
from windowpane.local.pane import LocalPane
from windowpane.models.scripted import Call, Reply
from windowpane.stores.codec import encode_state
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, stored, tool

AT_ONCE = 50
TURNS = 300


def past_turns(count: int) -> list[Event]:
    """Return turns that were begun with the keys k1, k2, …"""
    return [
        event
        for turn in range(1, count + 1)
        for event in (
            TurnStarted(turn=turn, message=f"message {turn}", key=f"k{turn}"),
            TurnFinished(turn=turn, outcome="completed"),
        )
    ]


async def test_a_key_counts_however_many_turns_came_after_it(world: World) -> None:
    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        await engine.store.append(session, past_turns(TURNS))

        joined = [stored(await drain(engine.turn(session, f"message {n}", key=f"k{n}"))) for n in (1, 150, TURNS)]
        with pytest.raises(KeyReusedError, match="'k1' was used before for another message; use a new one"):
            await drain(engine.turn(session, "another message", key="k1"))
        state = await engine.sessions.get(session)

    assert [events[0] for events in joined] == [
        TurnStarted(turn=n, message=f"message {n}", key=f"k{n}") for n in (1, 150, TURNS)
    ]
    assert state.turn_count == TURNS
    assert sum(len(block) for block in state.turn_keys.blocks) == 16 * TURNS
    assert len(encode_state(state)) < 80 * TURNS


async def test_a_key_still_counts_when_its_message_was_erased(world: World) -> None:
    world.says("Hello.")
    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        await drain(engine.turn(session, "Hi", key="k1"))
        await engine.conversations.clear(session)
        with pytest.raises(KeyReusedError, match="'k1' was used before for a message that was erased since"):
            await drain(engine.turn(session, "Hi", key="k1"))
        state = await engine.sessions.get(session)

    assert state.turn_keys.of("k1") == 1
    assert state.message_count == 0


def test_keys_are_found_in_every_block_and_others_are_not() -> None:
    keys = TurnKeys()
    for turn in range(1, 1001):
        keys = keys.with_next(f"key {turn}", turn)

    assert [keys.of(f"key {turn}") for turn in range(1, 1001)] == list(range(1, 1001))
    assert [keys.of(f"other {turn}") for turn in range(1000)] == [None] * 1000
    assert TurnKeys.from_blocks(keys.blocks) == keys
    assert TurnKeys.from_blocks(TurnKeys().blocks) == TurnKeys()


async def test_all_who_send_one_key_at_once_to_two_workers_get_the_answer_of_one_turn(tmp_path: Path) -> None:
    worlds = [World(tmp_path / name, store=SQLiteStore(tmp_path / "sessions.db")) for name in ("one", "two")]
    for world in worlds:
        world.says(*["The answer."] * AT_ONCE)
    views: list[TurnView] = []
    async with worlds[0].pane() as one, worlds[1].pane() as two:
        session = (await one.sessions.create()).id

        async def ask(pane: LocalPane) -> None:
            views.append(await pane.ask(session, "Hi", key="k1"))

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE // 2):
                tasks.start_soon(ask, one)
                tasks.start_soon(ask, two)
        log = await one.engine.store.read(SessionId(session))

    assert Counter((view.turn, view.outcome, view.text) for view in views) == {(1, "completed", "The answer."): AT_ONCE}
    assert sum(isinstance(entry.event, TurnStarted) for entry in log) == 1


async def test_of_two_messages_that_are_sent_with_one_key_at_once_one_is_refused(world: World) -> None:
    world.says("The answer.")
    answers: dict[str, str] = {}
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id

        async def ask(message: str) -> None:
            try:
                answers[message] = (await pane.ask(session, message, key="k1", wait_s=60)).outcome
            except WindowpaneError as error:
                answers[message] = error.code

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "Hi")
            tasks.start_soon(ask, "Ho")

    assert sorted(answers.values()) == ["completed", "key_reused"]


class LateEnd(MemoryStore):
    """A store where the turn's end comes right after a read that had not found it."""

    end: TurnFinished | None = None

    async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        found = await super().read(session_id, after=after, limit=limit)
        if self.end is not None and any(isinstance(entry.event, TurnStarted) for entry in found):
            end, self.end = self.end, None
            await self.append(session_id, [end])
        return found


async def test_an_answer_never_says_that_its_turn_is_running(world: World) -> None:
    store = world.store = LateEnd()
    async with world.pane() as pane:
        session = SessionId((await pane.sessions.create()).id)
        await store.append(session, [TurnStarted(turn=1, message="Hi", key="k1")])
        await pane.engine.sessions.get(session)
        store.end = TurnFinished(turn=1, outcome="completed")

        view = await pane.ask(session, "Hi", key="k1")

    assert view.outcome == "completed"


async def test_one_who_joins_a_turn_that_waits_is_told_so_or_how_it_ended(world: World) -> None:
    world.toolbox.put("files", [tool("read", permission="required")])
    world.says(Reply(calls=(Call("files__read", "{}", "c1"),)), "Read.")
    async with world.pane() as pane:
        session = (await pane.sessions.create()).id
        waiting = [(await pane.ask(session, "Hi", key="k1")).outcome for _ in range(2)]
        await drain(pane.approve(session, {"c1": "allow_once"}))
        ended = (await pane.ask(session, "Hi", key="k1")).outcome

    assert (waiting, ended) == (["waiting", "waiting"], "completed")
