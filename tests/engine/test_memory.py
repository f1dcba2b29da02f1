"""What a session remembers: the window, the summary, what is recalled, sources and related documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import numpy as np
import pytest

from patience import PATIENCE_S
from windowpane.context.events import MessageAdded, SummaryMade
from windowpane.context.fold import RECENT_MESSAGES
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage
from windowpane.engine import Engine
from windowpane.insight.debug import context_debug
from windowpane.memory.recent import RECENT, UNCOVERED
from windowpane.request.selector import FixedSelector
from windowpane.search.embedding.base import Vectors
from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.history import HistoryIndex
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, stored

FIXED_WINDOW = "model: scripted:test\nworking_context: false\nfinders: false\nmemory: {messages: 8}\n"

OPENING = "The build server is build-7.example and listens on port 8443."


def remembering(world: World) -> World:
    """Return a world whose sessions have the window of the design documents."""
    world.write("agent.yaml", FIXED_WINDOW)
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return remembering(World(tmp_path / "agents"))


async def talk(world: World, turns: int) -> SessionId:
    """Have a conversation of so many turns and return the session's id."""
    world.says(*[f"Noted, number {number}." for number in range(turns)])
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, OPENING))
        for number in range(1, turns):
            await drain(engine.turn(session.id, f"Let us talk about paint, shade {number}."))
        if turns * 2 > RECENT + UNCOVERED:
            await _summed_up(engine, session.id)
    return session.id


async def _summed_up(engine: Engine, session_id: SessionId) -> None:
    async for entry in engine.store.subscribe(session_id, after=0):
        if isinstance(entry.event, SummaryMade):
            return


@pytest.mark.spec("S3.26", "S3.31", "S4.86")
async def test_after_enough_messages_a_summary_carries_the_facts_and_the_window_the_rest(
    world: World, tmp_path: Path
) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    session_id = await talk(world, 7)
    after = remembering(World(world.root, store=SQLiteStore(tmp_path / "a.db")))
    after.says("On build-7.")
    async with after.engine() as engine:
        before = await engine.sessions.get(session_id)
        await drain(engine.turn(before.id, "Where do we build?"))
        request = await engine.past.request(before.id, 8)

    assert before.message_count == 14
    assert before.summary is not None
    assert any("build-7.example" in fact for fact in before.summary.key_facts)
    parts = [message.part for message in request.messages]
    assert parts.count("summary") == 1
    assert parts.count("history") == RECENT
    sent = [message for message in after.model.calls[0].messages if message.part == "summary"]
    assert sent[0].role == "user"
    assert "8443" in sent[0].content
    texts = [message.content for message in request.messages if message.part == "history"]
    assert not any("build server" in text for text in texts)


async def test_a_short_conversation_is_sent_whole_and_has_no_summary(world: World) -> None:
    session_id = await talk(world, 5)
    world.says("Yes.")
    async with world.engine() as engine:
        state = await engine.sessions.get(session_id)
        await drain(engine.turn(state.id, "Still there?"))

    assert state.summary is None
    assert [message.part for message in world.model.calls[0].messages].count("history") == 10


async def test_the_summary_is_made_after_the_reply_and_nobody_waits_for_it(world: World) -> None:
    world.says(*["Yes."] * 7)
    async with world.engine() as engine:
        session = await engine.sessions.create()
        events = [stored(await drain(engine.turn(session.id, f"Message {number}"))) for number in range(7)]
        await _summed_up(engine, session.id)

    assert not any(isinstance(event, SummaryMade) for turn in events for event in turn)


async def test_what_lies_before_the_window_is_recalled_when_a_message_needs_it(world: World, tmp_path: Path) -> None:
    world.says("The cat is called Miezi.")
    async with world.engine(history=HistoryIndex(MiniLM(tmp_path / "model"))) as engine:
        session = await engine.sessions.create()
        await engine.conversations.add(
            session.id, MessageAdded(role="user", content="My cat is called Miezi and eats tuna.")
        )
        await engine.conversations.add(session.id, MessageAdded(role="assistant", content="A fine name for a cat."))
        for number in range(RECENT_MESSAGES + 16):
            await engine.conversations.add(
                session.id, MessageAdded(role="user", content=f"Paint shade {number} is dull.")
            )
        await drain(engine.turn(session.id, "Remind me: what is my cat called and what does it eat?"))
        context = await engine.past.context(session.id, 1)

    recalled = [message for message in world.model.calls[0].messages if message.part == "recall"]
    assert any("My cat is called Miezi" in message.content for message in recalled)
    assert all(message.role == "user" for message in recalled)
    parts = [part for part in context.parts if part.kind == "recall" and part.status == "used"]
    assert parts
    assert all(part.evidence is not None and part.reason for part in parts)


async def _kept(engine: Engine, session_id: SessionId, count: int) -> None:
    with anyio.fail_after(PATIENCE_S):
        vectors: dict[int, bytes] = {}
        while len(vectors) < count:
            vectors = await engine.store.vectors(session_id)
            await anyio.sleep(0.01)


class Counting:
    """Gives every text the same meaning, and remembers which it was given."""

    model = "counting"
    language = None

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def vocabulary(self) -> dict[str, int]:
        return {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.array([[1.0, 0.0]] * len(texts), np.float32)


async def test_another_process_embeds_nothing_of_the_past_again_until_it_is_erased(
    world: World, tmp_path: Path
) -> None:
    world.store = SQLiteStore(tmp_path / "a.db")
    session_id = await talk(world, 7)
    world.says(*["Yes."] * 2)
    embedders = Counting(), Counting()
    for number, embedder in enumerate(embedders):
        async with world.engine(history=HistoryIndex(embedder)) as engine:
            await drain(engine.turn(session_id, f"Which port does server {number} use?"))
            await _kept(engine, session_id, 15 + 2 * number)
    async with world.engine() as engine:
        await engine.conversations.clear(session_id)
        left = await engine.store.vectors(session_id)

    # Messages of seven turns and of the one after them, all but the last; then the question and what it settles.
    assert [len(embedder.texts) for embedder in embedders] == [1 + 15, 1 + 2]
    assert left == {}


@pytest.mark.spec("S3.42")
async def test_an_answer_names_its_sources_and_what_is_related_to_them(world: World) -> None:
    world.reference("upload", include="agent", title="Photo Upload Guide", related="[resize]")
    world.reference("resize", include="agent", title="Photo Resizing Guide")
    world.selector = FixedSelector({"How do I upload?": {"reference:upload": 0.92}})
    world.says("With the button.", "Yes.")
    async with world.engine() as engine:
        session = await engine.sessions.create()
        await drain(engine.turn(session.id, "How do I upload?"))
        answer = (await engine.conversations.messages(session.id))[-1]
        await drain(engine.turn(session.id, "What about resizing?"))
        before = await engine.conversations.messages(session.id, before=answer.seq + 1)
        debug = context_debug(await engine.past.request(session.id, 2), before)

    assert isinstance(answer, AssistantMessage)
    assert [(source.title, source.score) for source in answer.sources] == [("Photo Upload Guide", 0.92)]
    assert answer.related == ("Photo Resizing Guide",)
    assert debug.conversation_context == (
        "=== RECENT MESSAGES ===\nUSER: How do I upload?\nASSISTANT: With the button.\n"
        "   📚 Sources: Photo Upload Guide (confidence: 0.92)\n   📌 Related: Photo Resizing Guide\n\n"
        "USER: What about resizing?"
    )
    assert (debug.message_count, debug.window_count) == (2, 2)
    assert debug.available_related_documents == ("Photo Resizing Guide",)


async def test_clearing_the_history_forgets_the_summary_too(world: World) -> None:
    session_id = await talk(world, 7)
    async with world.engine() as engine:
        before = await engine.sessions.get(session_id)
        cleared = await engine.conversations.clear(before.id)

    assert before.summary is not None
    assert cleared.summary is None
