"""What an earlier version stored is read, shown and gone on with.

`earlier/` holds a SQLite file, as SQL, and an export, both written by the code from before leases had numbers, before
words were kept while they stream, and before calls were recorded. Three sessions are in the file: one that is finished,
one that waits for an approval, and one whose worker was killed in the middle of an answer.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from windowpane.api.export import EXPORT, read_export
from windowpane.context.ids import SessionId
from windowpane.context.messages import AssistantMessage, UserMessage
from windowpane.engine import Engine
from windowpane.models.scripted import Reply
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool

EARLIER = Path(__file__).parent / "earlier"
FINISHED, WAITING, LEFT = map(SessionId, ("ses_finished", "ses_waiting", "ses_left"))
TALK = [
    "When is high tide?",
    "High tide is at noon.",
    "And what does the file say?",
    "Let me look.\n\nIt says low tide.",
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The agent that the earlier version had, and its store."""
    file = tmp_path / "windowpane.db"
    with closing(sqlite3.connect(file)) as db:
        db.executescript((EARLIER / "sessions.sql").read_text())
    world = World(tmp_path / "agents", store=SQLiteStore(file))
    world.rule("tone", "Be kind.", include="always")
    world.reference("tides", "High tide is at noon.", include="always")
    world.toolbox.put("files", [tool("read", "It says: low tide.", permission="required")])
    return world


async def said(engine: Engine, session: SessionId) -> list[str]:
    """Return what user and model said."""
    messages = await engine.conversations.messages(session)
    return [
        message.content if isinstance(message, UserMessage) else message.model_reply.text
        for message in messages
        if isinstance(message, UserMessage | AssistantMessage)
    ]


async def test_a_session_of_an_earlier_version_is_shown_as_it_was_and_goes_on(world: World) -> None:
    world.says("Low tide is at six.")
    async with world.engine() as engine:
        listed = {state.id: state.name for state in (await engine.sessions.list()).sessions}
        before = await said(engine, FINISHED)
        request = await engine.past.request(FINISHED, 2)
        again = await drain(engine.turn(FINISHED, "When is high tide?", key="k1"))
        await drain(engine.turn(FINISHED, "And low tide?"))
        state = await engine.sessions.get(FINISHED)
        after = await said(engine, FINISHED)

    assert listed == {FINISHED: "Tides", WAITING: "", LEFT: ""}
    assert before == TALK
    assert request.messages[-1].content == "And what does the file say?"
    assert [str(item.ref) for item in request.context.items][:2] == ["rule:tone", "reference:tides"]
    assert again
    assert (state.turn_count, state.settings.temperature, state.sets) == (3, 0.5, {"files": ("/srv/tides.md",)})
    assert after == [*TALK, "And low tide?", "Low tide is at six."]


async def test_an_approval_that_an_earlier_version_asked_for_can_be_given(world: World) -> None:
    world.says("It says low tide.")
    async with world.engine() as engine:
        await drain(engine.approve(WAITING, {"c2": "allow_once"}))

        assert await said(engine, WAITING) == ["Look into b", "I would look.\n\nIt says low tide."]
        assert (await engine.sessions.get(WAITING)).open_turn is None


async def test_a_turn_that_an_earlier_version_left_behind_is_closed_and_its_session_goes_on(world: World) -> None:
    world.says(Reply("Here is more."))
    async with world.engine(lease_s=0.1) as engine:
        await drain(engine.turn(LEFT, "Once more", wait_s=600))

        assert await said(engine, LEFT) == ["Tell me more", "Once more", "Here is more."]


async def test_an_export_of_an_earlier_version_is_imported_and_goes_on(world: World) -> None:
    world.says("Low tide is at six.")
    written = (EARLIER / "session.json").read_text()
    async with world.engine() as engine:
        copy = (await engine.sessions.import_(read_export(json.loads(written)))).id
        before = await said(engine, copy)
        exported = EXPORT.adapter.dump_json(await engine.sessions.export(copy))
        await drain(engine.turn(copy, "And low tide?"))
        after = await said(engine, copy)

    assert before == TALK
    assert [entry["event"]["type"] for entry in json.loads(exported)["events"]] == [
        entry["event"]["type"] for entry in json.loads(written)["events"]
    ]
    assert after == [*TALK, "And low tide?", "Low tide is at six."]
