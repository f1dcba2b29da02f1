"""A worker that is killed before it has erased what was cleared leaves nothing behind for long."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from windowpane.context.events import Erased, RequestBuilt
from windowpane.context.ids import BlobHash, SessionId
from windowpane.errors import StoreUnavailableError
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain

SECRET = "My cat is called Miezi."


class KilledStore(SQLiteStore):
    """The store of a process that is killed before it erases something. Its lease is not given back either."""

    killed = False

    async def erase(
        self, session_id: SessionId, seqs: Sequence[int], *, blobs: Sequence[BlobHash] = (), fence: int | None = None
    ) -> None:
        self.killed = True
        raise StoreUnavailableError("killed")

    async def release(self, session_id: SessionId, holder: str) -> None:
        if not self.killed:
            await super().release(session_id, holder)


@pytest.mark.parametrize("knew", [True, False], ids=["a worker that knew the session", "a new worker"])
async def test_what_a_killed_worker_did_not_erase_is_erased_by_the_next_that_reads_the_session(
    world: World, tmp_path: Path, *, knew: bool
) -> None:
    path = tmp_path / "sessions.db"
    world.says("Hello.", "Hello again.")
    world.store = KilledStore(path)
    async with world.engine(lease_s=0.3) as first:
        session = (await first.sessions.create()).id
        world.store = SQLiteStore(path)
        async with world.engine(lease_s=0.3) as second:
            if knew:
                await second.sessions.get(session)
            await drain(first.turn(session, SECRET))
            with pytest.raises(StoreUnavailableError):
                await first.conversations.clear(session)
            left = SECRET in str(await second.store.read(session))

            # The lease of the killed worker runs out, the conversation goes on, and the session is read again.
            await drain(second.turn(session, "Hi", wait_s=10))
            await second.sessions.get(session)
            log = await second.store.read(session)
            (request,) = [entry.event for entry in log if isinstance(entry.event, RequestBuilt)]
            context = await second.past.context(session, request.turn)
            prompt = (await second.past.request(session, request.turn)).messages[0].content

    assert left
    assert any(isinstance(entry.event, Erased) for entry in log)
    assert not [file for file in (path, path.with_name("sessions.db-wal")) if has(file, SECRET)]
    assert (context.turn, "You are Pane." in prompt) == (request.turn, True)


def has(file: Path, text: str) -> bool:
    return file.exists() and text.encode() in file.read_bytes()
