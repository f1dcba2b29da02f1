"""Two workers of one store know the same of a session, whichever of them did what was done to it."""

from __future__ import annotations

from pathlib import Path

from windowpane.models.scripted import Call, Reply
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, tool


def worker(folder: Path) -> World:
    world = World(folder / "agents", store=SQLiteStore(folder / "windowpane.db"))
    world.rule("tone", "Be kind.", include="always")
    world.toolbox.put("files", [tool("read", "contents of {path}")])
    return world


async def test_what_one_worker_erases_is_gone_for_the_other_and_so_is_what_it_allowed(tmp_path: Path) -> None:
    read = Call("files__read", '{"path": "/srv/a"}', id="c1")
    one, two = worker(tmp_path), worker(tmp_path)
    one.says(Reply(calls=(read,)), "Read.")
    two.says(Reply(calls=(read,)))
    async with one.engine() as first, two.engine() as second:
        session = (await first.sessions.create()).id
        await drain(first.turn(session, "Read it"))
        await drain(first.approve(session, {"c1": "allow_session"}))
        before = await second.sessions.get(session)

        cleared = await first.conversations.clear(session)
        known = await second.sessions.get(session)
        await drain(second.turn(session, "Read it again"))
        waits = (await second.sessions.get(session)).open_turn

    assert (before.message_count, len(before.allowed_tools)) == (3, 1)
    assert known == cleared
    assert waits is not None
    assert [call.id for call in waits.undecided] == ["c1"]
