"""A worker that is killed before it has erased what was cleared leaves nothing behind for long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from windowpane.context.events import Erased, FetchedAdded, FetchedCleared, MessageAdded, RequestBuilt
from windowpane.context.fetched import Fetched
from windowpane.context.ids import BlobHash, SessionId
from windowpane.engine import Engine
from windowpane.errors import StoreUnavailableError
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain

SECRET = "My cat is called Miezi."
FIRST = 2
"""The number of the event that follows the session's beginning."""


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


@dataclass(frozen=True)
class Erasure:
    """A way to erase a text: how it comes in, and how it is erased."""

    put_in: Callable[[Engine, SessionId], Awaitable[object]]
    erase: Callable[[Engine, SessionId], Awaitable[object]]


ERASURES = {
    "a cleared conversation": Erasure(
        lambda engine, session: drain(engine.turn(session, SECRET)),
        lambda engine, session: engine.conversations.clear(session),
    ),
    "a removed message": Erasure(
        lambda engine, session: engine.conversations.add(session, MessageAdded(role="user", content=SECRET)),
        lambda engine, session: engine.conversations.remove(session, FIRST),
    ),
    "a cleared page": Erasure(
        lambda engine, session: engine.fetched.add(
            session, [Fetched(kind="page", url="https://e.org", content=SECRET)]
        ),
        lambda engine, session: engine.fetched.clear(session),
    ),
}


@pytest.mark.parametrize("erasure", ERASURES.values(), ids=ERASURES)
@pytest.mark.parametrize("knew", [True, False], ids=["a worker that knew the session", "a new worker"])
async def test_what_a_killed_worker_did_not_erase_is_erased_by_the_next_that_reads_the_session(
    world: World, tmp_path: Path, erasure: Erasure, *, knew: bool
) -> None:
    path = tmp_path / "sessions.db"
    world.says("Hello.", "Hello again.", "Goodbye.")
    world.store = KilledStore(path)
    async with world.engine(lease_s=0.3) as first:
        session = (await first.sessions.create()).id
        world.store = SQLiteStore(path)
        async with world.engine(lease_s=0.3) as second:
            if knew:
                await second.sessions.get(session)
            await erasure.put_in(first, session)
            await drain(first.turn(session, "What do you know?"))
            with pytest.raises(StoreUnavailableError):
                await erasure.erase(first, session)
            left = SECRET in str(await second.store.read(session)), SECRET in await texts(second, session)

            # The lease of the killed worker runs out, the conversation goes on, and the session is read again.
            await drain(second.turn(session, "Hi", wait_s=10))
            await second.sessions.get(session)
            log = await second.store.read(session)
            request = [entry.event for entry in log if isinstance(entry.event, RequestBuilt)][-1]
            context = await second.past.context(session, request.turn)
            prompt = (await second.past.request(session, request.turn)).messages[0].content
            kept = await texts(second, session)
            # What is gone can be asked to go again.
            await erasure.erase(second, session)

    assert left == (True, True)
    assert any(isinstance(entry.event, Erased) for entry in log)
    assert SECRET not in kept
    assert not [file for file in (path, path.with_name("sessions.db-wal")) if has(file, SECRET)]
    assert (context.turn, "You are Pane." in prompt) == (request.turn, True)


async def test_a_page_that_stays_is_not_erased_with_the_ones_of_another_kind(world: World, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    page = Fetched(kind="page", url="https://e.org", content=SECRET)
    result = Fetched(kind="web_search", url="https://e.org/found", content="Cats sleep a lot.", query="cats")
    world.store = KilledStore(path)
    async with world.engine(lease_s=0.3) as first:
        session = (await first.sessions.create()).id
        # An earlier version left what came in together with a page where it was.
        events = (FetchedAdded(items=(page, result), actor="user"), FetchedCleared(kind="page"))
        await first.store.append(session, events)
        await first.fetched.add(session, [page, replace(result, url="https://e.org/other")])
        with pytest.raises(StoreUnavailableError):
            await first.fetched.clear(session, "page")
        world.store = SQLiteStore(path)
        async with world.engine(lease_s=0.3) as second:
            async with asyncio.timeout(20):
                while SECRET in str((await second.store.read(session))[3:]):
                    await second.sessions.get(session)
            state = await second.sessions.get(session)

    assert [held.item.url for held in state.fetched] == ["https://e.org/found", "https://e.org/other"]


async def texts(engine: Engine, session: SessionId) -> str:
    return str(await engine.store.blobs(session, await engine.store.blob_hashes(session)))


def has(file: Path, text: str) -> bool:
    return file.exists() and text.encode() in file.read_bytes()
