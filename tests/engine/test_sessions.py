"""Sessions: made, listed, changed, read, cleared and deleted."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

from windowpane.context.events import (
    AgentChanged,
    Erased,
    HistoryCleared,
    MessageAdded,
    Recorded,
    SessionCreated,
    SessionItem,
    SessionUpdated,
    TurnFinished,
)
from windowpane.context.ids import SessionId
from windowpane.context.items import rule_ref, tool_ref
from windowpane.context.messages import AssistantMessage, UserMessage
from windowpane.context.session import SessionSettings
from windowpane.errors import (
    AgentNotFoundError,
    InvalidInputError,
    InvalidSettingError,
    MissingCorePromptError,
    SequenceConflictError,
    SessionBusyError,
    SessionNotFoundError,
    TurnNotFoundError,
    UnreadableAgentError,
)
from windowpane.insight.past import past_turn
from windowpane.models.scripted import Call, Reply
from windowpane.stores.sessions import SNAPSHOT_EVERY
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool


@pytest.mark.spec("S1.13", "S4.62")
async def test_a_session_begins_with_its_agent_its_name_and_its_settings(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create("pane", owner="ann", name=" My chat ", settings={"temperature": 1})

    assert (session.agent, session.owner, session.name, session.seq) == ("pane", "ann", "My chat", 1)
    assert session.settings == SessionSettings(temperature=1)
    assert (session.message_count, session.turn_count, session.open_turn) == (0, 0, None)


async def test_session_ids_cannot_be_guessed_and_are_never_shared(world: World) -> None:
    async with world.engine() as engine:
        ids = {(await engine.sessions.create()).id for _ in range(50)}
        with pytest.raises(SequenceConflictError):
            await engine.sessions.create(session_id=next(iter(ids)))
        with pytest.raises(SessionNotFoundError):
            await engine.sessions.get(SessionId("None"))

    assert len(ids) == 50
    assert all(len(session_id) == 30 for session_id in ids)


async def test_an_agent_that_is_not_there_is_named_with_those_that_are(world: World) -> None:
    async with world.engine() as engine:
        with pytest.raises(AgentNotFoundError, match=r"no agent 'pain'; available: pane"):
            await engine.sessions.create("pain")


async def test_a_session_is_given_another_agent_and_its_old_turns_keep_what_they_were_given(world: World) -> None:
    for name in ("tone", "pane-only"):
        world.rule(name, f"The {name} of pane.", include="always")
    world.says("Hello.", "Hello again.")
    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        await drain(engine.turn(session, "Hi"))
        (world.root / "pane").rename(world.root / "sill")
        (world.root / "sill" / "rules" / "pane-only.md").unlink()
        world_rule = "---\ninclude: always\n---\nThe new rule.\n"
        (world.root / "sill" / "rules" / "new.md").write_text(world_rule)
        with pytest.raises(AgentNotFoundError):
            await drain(engine.turn(session, "Still there?"))
        with pytest.raises(AgentNotFoundError):
            await engine.sessions.change(session, {"agent": "nobody", "name": "Not kept"})
        before = await engine.sessions.get(session)
        state, _ = await engine.sessions.change(session, {"agent": "sill"})
        same, _ = await engine.sessions.change(session, {"agent": "sill"})
        await drain(engine.turn(session, "Hi again"))
        log = await engine.store.read(session)
        first, second = [(await past_turn(engine, session, turn)).request for turn in (1, 2)]

    assert (before.agent, before.name) == ("pane", "")
    assert state.agent == "sill"
    assert same.seq == state.seq
    items = (SessionItem(rule_ref("tone"), "always"), SessionItem(rule_ref("new"), "always"))
    assert [entry.event for entry in log if isinstance(entry.event, AgentChanged)] == [
        AgentChanged(agent="sill", items=items)
    ]
    assert state.context_items == items
    said = [" ".join(message.content for message in request.messages) for request in (first, second)]
    assert "The pane-only of pane." in said[0]
    assert "The pane-only of pane." not in said[1]
    assert "The new rule." in said[1]


async def test_a_session_whose_turn_waits_gets_no_other_agent(world: World) -> None:
    world.toolbox.put("files", [tool("read", permission="required")])
    world.says(Reply("Reading.", calls=(Call("files__read", "{}"),)))
    async with world.engine() as engine:
        engine.agents.create("sill", description='The "other" agent')
        session = (await engine.sessions.create()).id
        await engine.items.add(session, tool_ref("files", "read"))
        await drain(engine.turn(session, "Read"))
        with pytest.raises(SessionBusyError):
            await engine.sessions.change(session, {"agent": "sill", "name": "Not kept"})
        kept = await engine.sessions.get(session)

    assert (kept.agent, kept.name) == ("pane", "")


async def test_an_agent_without_a_core_prompt_does_not_start_and_says_what_to_write(world: World) -> None:
    (world.root / "pane" / "prompts" / "core.md").unlink()

    async with world.engine() as engine:
        with pytest.raises(MissingCorePromptError, match=r"write .*/pane/prompts/core\.md and state who the agent"):
            await engine.sessions.create()
        assert (await engine.sessions.list()).sessions == ()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("model: scripted:test\nsearch: [\n", r"agent\.yaml, line \d"),
        ("- a list\n", r"agent\.yaml, line 1: the file must be a table of names and values"),
        ("description: x\nmodel: [scripted:test]\n", r"agent\.yaml, line 2: model must be a text, not a list"),
        ("model: \xff\n", r"agent\.yaml, line 1: not UTF-8 text"),
    ],
)
async def test_an_agent_whose_manifest_cannot_be_read_answers_nothing_until_it_is_corrected(
    world: World, written: str, told: str
) -> None:
    manifest = world.root / "pane" / "agent.yaml"
    good = manifest.read_text()
    world.says("Yes.")

    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        manifest.write_bytes(written.encode("latin-1"))
        refused = (await drain(engine.turn(session, "Hi")))[-1]
        with pytest.raises(UnreadableAgentError, match=told):
            await engine.sessions.create()
        with pytest.raises(UnreadableAgentError, match=told):
            await engine.preview(session, "Hi")
        asked = len(world.model.calls)
        manifest.write_text(good)
        answered = (await drain(engine.turn(session, "And now?")))[-1]

    assert isinstance(refused, Recorded)
    assert isinstance(refused.event, TurnFinished)
    assert refused.event.error is not None
    assert (refused.event.outcome, refused.event.error.code, asked) == ("failed", "unreadable_agent", 0)
    assert re.search(told, refused.event.error.message)
    assert isinstance(answered, Recorded)
    assert isinstance(answered.event, TurnFinished)
    assert answered.event.outcome == "completed"


@pytest.mark.spec("S4.39")
async def test_settings_change_by_an_explicit_act_that_names_its_actor(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"current_url": "https://example.org"})
        changed = await engine.sessions.update(session.id, {"name": "New", "current_url": None, "mode": "thinking"})
        log = await engine.store.read(session.id)

    assert (changed.name, changed.settings) == ("New", SessionSettings(mode="thinking"))
    assert log[-1].event == SessionUpdated(
        changes={"name": "New", "current_url": None, "mode": "thinking"}, actor="user"
    )


@pytest.mark.parametrize("changes", [{"temperature": 9}, {"colour": "red"}, {"name": "x" * 201}])
async def test_a_change_that_cannot_be_made_changes_nothing(world: World, changes: dict[str, object]) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        with pytest.raises(InvalidInputError):
            await engine.sessions.update(session.id, {"mode": "thinking", **changes})
        assert await engine.sessions.get(session.id) == session
        with pytest.raises(InvalidSettingError):
            await engine.sessions.create(settings={"temperature": 9})


async def test_no_list_shows_a_session_that_was_made_for_a_single_request(world: World) -> None:
    async with world.engine() as engine:
        ours = [(await engine.sessions.create()).id for _ in range(2)]
        for _ in range(3):
            await engine.sessions.create(listed=False)
        latest = (await engine.sessions.create()).id

        page = await engine.sessions.list(limit=2)
        rest = await engine.sessions.list(limit=2, cursor=page.cursor)

    assert [state.id for state in page.sessions] == [latest, ours[1]]
    assert ([state.id for state in rest.sessions], rest.cursor) == ([ours[0]], None)


async def test_sessions_are_listed_last_used_first_with_a_cursor(world: World) -> None:
    world.says("Hello.")
    async with world.engine() as engine:
        first, second, third = [await engine.sessions.create(owner="ann") for _ in range(3)]
        await engine.sessions.create(owner="bob")
        await drain(engine.turn(first.id, "Hi"))
        page = await engine.sessions.list("ann", limit=2)
        rest = await engine.sessions.list("ann", limit=2, cursor=page.cursor)

    assert [state.id for state in page.sessions] == [first.id, third.id]
    assert ([state.id for state in rest.sessions], rest.cursor) == ([second.id], None)


@pytest.mark.spec("S4.49")
async def test_a_deleted_session_leaves_nothing(world: World) -> None:
    world.says("Hello.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "Hi"))
        await engine.sessions.delete(session.id)

        for look in (engine.sessions.get, engine.store.read, engine.store.row, engine.sessions.delete):
            with pytest.raises(SessionNotFoundError):
                await look(session.id)
        assert (await engine.sessions.list()).sessions == ()


@pytest.mark.spec("S4.48", "S4.58")
async def test_clearing_the_history_erases_the_text_and_keeps_items_and_settings(world: World, tmp_path: Path) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    world.rule("tone", include="always")
    world.says("The secret answer.", "Fresh.")
    async with world.engine() as engine:
        session = await engine.sessions.create(settings={"mode": "thinking"})
        await drain(engine.turn(session.id, "The secret question"))
        cleared = await engine.conversations.clear(session.id)
        log = await engine.store.read(session.id)
        with pytest.raises(TurnNotFoundError):
            await engine.past.context(session.id, 1)
        await drain(engine.turn(session.id, "Hello"))
        messages = await engine.conversations.messages(session.id)
    on_disk = b"".join(path.read_bytes() for path in tmp_path.glob("a.db*"))

    assert (cleared.message_count, cleared.recent, cleared.rules) == (0, (), ("tone",))
    assert cleared.settings == SessionSettings(mode="thinking")
    assert [type(entry.event) for entry in log] == [SessionCreated, Erased, Erased, Erased, Erased, HistoryCleared]
    assert [message.role for message in messages] == ["user", "assistant"]
    assert b"secret" not in on_disk
    sent = [message.content for message in world.model.calls[1].messages if message.role != "system"]
    assert sent == ["Hello"]


async def test_after_a_clear_every_worker_sees_the_same_turns(world: World, tmp_path: Path) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    other = World(world.root, store=SQLiteStore(tmp_path / "a.db"))
    world.says("One.")
    other.says("Two.")
    async with world.engine() as one, other.engine() as two:
        session = await one.sessions.create()
        await drain(one.turn(session.id, "First", key="k"))
        await two.sessions.get(session.id)
        await one.conversations.clear(session.id)
        await drain(two.turn(session.id, "Second"))
        seen = [await engine.sessions.get(session.id) for engine in (one, two)]
        contexts = [await engine.past.context(session.id, 2) for engine in (one, two)]

    assert seen[0] == seen[1]
    assert (seen[0].turn_count, seen[0].last_turn) == (1, 2)
    assert contexts[0] == contexts[1]


async def test_messages_are_read_in_pages_from_the_latest_back(world: World) -> None:
    world.says(*[f"answer {number}" for number in range(1, 6)])
    async with world.engine() as engine:
        session = await engine.sessions.create()
        for number in range(1, 6):
            await drain(engine.turn(session.id, f"question {number}"))
        latest = await engine.conversations.messages(session.id, limit=3)
        before = await engine.conversations.messages(session.id, before=latest[0].seq, limit=4)
        first = await engine.conversations.messages(session.id, before=before[0].seq, limit=50)

    assert [_text(message) for message in (*first, *before, *latest)] == [
        text for number in range(1, 6) for text in (f"question {number}", f"answer {number}")
    ]


@pytest.mark.spec("S0.87", "S4.40")
async def test_a_message_from_outside_is_part_of_the_conversation_and_has_no_request(world: World) -> None:
    world.says("Indeed.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await engine.conversations.add(session.id, MessageAdded(role="user", content="Imported question"))
        await engine.conversations.add(session.id, MessageAdded(role="assistant", content="Imported answer"))
        await engine.conversations.add(session.id, MessageAdded(role="system", content="A note for people"))
        await drain(engine.turn(session.id, "And now?"))
        messages = await engine.conversations.messages(session.id)

    assert [(message.role, _text(message)) for message in messages] == [
        ("user", "Imported question"),
        ("assistant", "Imported answer"),
        ("system", "A note for people"),
        ("user", "And now?"),
        ("assistant", "Indeed."),
    ]
    assert isinstance(messages[1], AssistantMessage)
    assert messages[1].request is None
    sent = [message.content for message in world.model.calls[0].messages if message.role != "system"]
    assert sent == ["Imported question", "Imported answer", "And now?"]


async def test_a_cold_start_from_a_snapshot_gives_the_same_state_as_the_whole_log(world: World) -> None:
    async with world.engine() as engine:
        session = await engine.sessions.create()
        for number in range(SNAPSHOT_EVERY + 10):
            await engine.conversations.add(session.id, MessageAdded(role="user", content=f"message {number}"))
        warm = await engine.sessions.get(session.id)
        snapshot = await engine.store.snapshot(session.id)

    async with World(world.root, store=world.store).engine() as engine:
        cold = await engine.sessions.get(session.id)

    assert snapshot is not None
    assert snapshot.seq >= SNAPSHOT_EVERY
    assert cold == warm


async def test_two_engines_changing_one_session_lose_nothing(world: World, tmp_path: Path) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    other = World(world.root, store=SQLiteStore(tmp_path / "a.db"))
    names = [f"rule-{number}" for number in range(40)]
    for name in names:
        world.rule(name)
    async with world.engine() as one, other.engine() as two:
        session = await one.sessions.create()

        async def add(engine_number: int, name: str) -> None:
            await (one, two)[engine_number].items.add(session.id, rule_ref(name))

        async with anyio.create_task_group() as tasks:
            for number, name in enumerate(names):
                tasks.start_soon(add, number % 2, name)
        seen = [(await engine.sessions.get(session.id)).rules for engine in (one, two)]

    assert [sorted(rules) for rules in seen] == [sorted(names)] * 2
    assert seen[0] == seen[1]


def _text(message: object) -> str:
    if isinstance(message, AssistantMessage):
        return message.model_reply.text
    return message.content if isinstance(message, UserMessage) else str(getattr(message, "content", ""))
