"""A cleared or deleted conversation is in no byte of the store's files: no message, result or thought of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from windowpane.context.events import MessageAdded
from windowpane.local.pane import LocalPane
from windowpane.stores.packing import unpack
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool
from wire import anthropic_messages
from wire.reply import WireCall, WireReply
from wire.server import running

WORDS = ("quartzasked", "quartzanswer", "quartzthought", "quartzargument", "quartzresult", "quartzadded")

DOORS: dict[str, Callable[[LocalPane, str], Awaitable[object]]] = {
    "clear": lambda pane, session: pane.sessions.clear_history(session),
    "delete": lambda pane, session: pane.sessions.delete(session),
}


def found_in(place: Path) -> list[str]:
    """Return the planted words that stand in any byte of the files, or in a text that is packed there."""
    written = b"".join(file.read_bytes() for file in place.glob("a.db*"))
    with closing(sqlite3.connect(place / "a.db")) as db:
        for (body,) in db.execute("SELECT body FROM text WHERE live AND typeof(body) = 'blob'"):
            if body[:1] in (b"\1", b"\2"):
                written += unpack(body)
    return [word for word in WORDS if word.encode() in written]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
async def test_nothing_of_a_conversation_is_left_in_the_files(
    tmp_path: Path, door: Callable[[LocalPane, str], Awaitable[object]]
) -> None:
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "a.db"))
    world.write("agent.yaml", "model: anthropic:claude-haiku-4-5\nworking_context: false\nfinders: false\n")
    world.toolbox.put("files", [tool("read", "It says quartzresult. " * 40, permission="not_required")])
    call = WireCall("c1", "files__read", ('{"path": "quartzargument"}',))
    replies = [
        WireReply(("Let me see.",), thinking=("I think of quartzthought.",), calls=(call,)),
        WireReply(("It is quartzanswer.",)),
        WireReply(("Yes.",)),
    ]
    async with running(*map(anthropic_messages.answer, replies)) as server:
        world.environ = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        async with world.pane() as pane:
            session = (await pane.sessions.create()).id
            await drain(pane.turn(session, "What of quartzasked?"))
            await pane.engine.conversations.add(session, MessageAdded(role="user", content="And quartzadded."))
            await drain(pane.turn(session, "Is it so?"))
            assert found_in(tmp_path) == list(WORDS)

            await door(pane, session)

            assert found_in(tmp_path) == []
