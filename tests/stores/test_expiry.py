"""Sessions that expire: which, when, in what order, and how they come back.

A store that was not entered does not sweep by itself: these tests sweep.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.abc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from patience import PATIENCE_S
from stores.kinds import begin, contents, created, said
from windowpane.context.ids import BlobHash, SessionId, content_hash, new_session_id
from windowpane.errors import InvalidSettingError, SequenceConflictError, SessionNotFoundError, StoreUnavailableError
from windowpane.stores.append import OriginalTimes
from windowpane.stores.base import Store
from windowpane.stores.expiry import SESSIONS, UNUSED_S, ExpiringStore, Limits
from windowpane.stores.memory import MemoryStore
from windowpane.stores.session_copy import session_digest
from windowpane.stores.sqlite.store import SQLiteStore

pytestmark = pytest.mark.anyio


async def used(store: Store, seconds_ago: float, *messages: str, blobs: Sequence[str] = ()) -> SessionId:
    """Return a session that was last used some time ago."""
    session = new_session_id()
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    events = [created(), *(said(message) for message in messages)]
    texts = {content_hash(text): text for text in blobs}
    await store.append(
        session, events, expected_seq=0, original_times=OriginalTimes((at,) * len(events), at), blobs=texts
    )
    return session


async def listed(store: Store) -> list[SessionId]:
    return [row.id for row in (await store.sessions(limit=10_000)).rows]


async def until(store: Store, most: int) -> None:
    """Wait until somebody else has swept away all but so many sessions."""
    with anyio.fail_after(PATIENCE_S):
        while len(await listed(store)) > most:  # noqa: ASYNC110 - it happens in the store, often in another process
            await anyio.sleep(0.001)


async def swept(store: ExpiringStore) -> list[SessionId]:
    return [one.row.id for one in await store.sweep()]


@pytest.fixture
def store(any_engine: Store) -> Store:
    return any_engine


@pytest.fixture(params=["memory", "sqlite"])
async def archive(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "archive.db") as opened:
        yield opened


@pytest.mark.spec("S4.19", "S4.65", "S4.68")
async def test_a_session_expires_an_hour_after_its_last_use(store: Store) -> None:
    expiring = ExpiringStore(store)
    old = await used(store, UNUSED_S + 1)
    young = await used(store, UNUSED_S - 300)

    expired = await expiring.sweep()

    assert [(one.row.id, one.why) for one in expired] == [(old, "unused")]
    assert await listed(store) == [young]
    with pytest.raises(SessionNotFoundError):
        await expiring.read(old)


@pytest.mark.spec("S4.66")
async def test_using_a_session_gives_it_another_hour(store: Store) -> None:
    expiring = ExpiringStore(store)
    read, written, left = [await used(store, UNUSED_S - 300) for _ in range(3)]

    await expiring.touch(read)
    await expiring.append(written, [said("still here")])

    ages = {row.id: datetime.now(UTC) - row.touched_at for row in (await store.sessions()).rows}
    assert {session for session, age in ages.items() if age < timedelta(seconds=UNUSED_S / 2)} == {read, written}
    assert ages[left] >= timedelta(seconds=UNUSED_S - 300)


async def test_it_is_too_late_to_use_a_session_that_is_over_also_before_it_was_swept(store: Store) -> None:
    expiring = ExpiringStore(store)
    over = await used(store, UNUSED_S + 1)

    with pytest.raises(SessionNotFoundError):
        await expiring.touch(over)

    assert await listed(store) == []


@pytest.mark.spec("S4.20", "S4.68")
async def test_of_more_than_five_hundred_exactly_the_least_recently_used_go() -> None:
    async with MemoryStore() as store:
        expiring = ExpiringStore(store)
        sessions = [await used(store, 3000 - number) for number in range(SESSIONS)]
        await expiring.touch(sessions[0])

        for _ in range(3):
            await begin(expiring)

        left = await listed(store)
        assert len(left) == SESSIONS
        assert set(sessions) - set(left) == set(sessions[1:4])


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 5))
async def test_whatever_is_used_in_whatever_order_those_used_last_stay(uses: list[int], most: int) -> None:
    async with MemoryStore() as store:
        expiring = ExpiringStore(store, Limits(sessions=most))
        start = datetime.now(UTC) - timedelta(seconds=1000)
        known: dict[int, SessionId] = {}
        order: list[int] = []
        for moment, name in enumerate(uses):
            at = start + timedelta(seconds=moment)
            if name in order:
                await expiring.append(known[name], [said("again")], original_times=OriginalTimes((at,), at))
                order.remove(name)
            else:
                known[name] = new_session_id()
                await expiring.append(known[name], [created()], expected_seq=0, original_times=OriginalTimes((at,), at))
            order = [*order, name][-most:]
            assert await listed(store) == [known[one] for one in reversed(order)]


async def test_many_who_sweep_and_begin_at_once_leave_exactly_as_many_as_are_allowed(store: Store) -> None:
    workers = [ExpiringStore(store, Limits(sessions=10)) for _ in range(4)]
    begun = [begin(worker) for worker in workers for _ in range(10)]
    sweeps = [worker.sweep() for worker in workers for _ in range(5)]

    await asyncio.gather(*begun, *sweeps)

    assert len(await listed(store)) == 10


@pytest.mark.parametrize("archives", [False, True])
async def test_a_session_that_is_held_does_not_expire_until_it_is_given_back(
    store: Store, archive: Store, archives: bool
) -> None:
    expiring = ExpiringStore(store, archive=archive if archives else None)
    busy = await used(store, UNUSED_S + 60)
    await store.acquire(busy, "somebody", 600)

    assert await swept(expiring) == []
    await store.release(busy, "somebody")
    assert await swept(expiring) == [busy]


async def test_what_expired_is_in_the_log() -> None:
    async with MemoryStore() as store:
        over = await used(store, UNUSED_S + 60)
        row = await store.row(over)

        with capture_logs() as lines:
            await ExpiringStore(store).sweep()

        assert lines == [
            {
                "event": "session.expired",
                "log_level": "info",
                "session": over,
                "why": "unused",
                "last_used": row.touched_at.isoformat(),
                "archived": False,
            }
        ]


Ask = Callable[[Store, SessionId], Awaitable[object]]
ASKS: Mapping[str, Ask] = {
    "read": lambda store, session: store.read(session),
    "row": lambda store, session: store.row(session),
    "touch": lambda store, session: store.touch(session),
    "acquire": lambda store, session: store.acquire(session, "me", 60),
    "blob": lambda store, session: store.blob(session, content_hash("a text")),
    "blob_hashes": lambda store, session: store.blob_hashes(session),
    "subscribe": lambda store, session: anext(aiter(store.subscribe(session, after=0))),
}


@pytest.mark.spec("S4.88")
@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
async def test_an_archived_session_comes_back_whole_when_it_is_asked_for_in_whatever_way(
    store: Store, archive: Store, ask: Ask
) -> None:
    expiring = ExpiringStore(store, archive=archive)
    session = await used(store, UNUSED_S + 60, "one", "two", blobs=["a text", "another"])
    log, whole = await store.read(session), await session_digest(store, session)
    assert await swept(expiring) == [session]
    assert await listed(expiring) == []

    await ask(expiring, session)

    assert await listed(expiring) == [session]
    assert (await store.read(session), await session_digest(store, session)) == (log, whole)
    assert (await store.row(session)).created_at == log[0].at
    assert await swept(expiring) == []


async def test_an_archived_session_goes_on_where_it_was_left(store: Store, archive: Store) -> None:
    expiring = ExpiringStore(store, archive=archive)
    session = await used(store, UNUSED_S + 60, "one", "two")
    await expiring.sweep()

    appended = await expiring.append(session, [said("three")])

    assert (appended.first_seq, contents(await expiring.read(session))) == (4, ["one", "two", "three"])


async def test_many_who_ask_at_once_bring_it_back_once(store: Store, archive: Store) -> None:
    workers = [ExpiringStore(store, archive=archive) for _ in range(8)]
    session = await used(store, UNUSED_S + 60, "one", blobs=["a text"])
    log, whole = await store.read(session), await session_digest(store, session)
    assert await swept(workers[0]) == [session]

    logs = await asyncio.gather(*(worker.read(session) for worker in workers))

    assert logs == [log] * 8
    assert await session_digest(store, session) == whole


async def test_the_second_time_what_is_new_is_added_to_the_archive(store: Store, archive: Store) -> None:
    expiring = ExpiringStore(store, Limits(sessions=1), archive=archive)
    session = await used(store, UNUSED_S + 60, "one")
    await expiring.sweep()
    await expiring.append(session, [said("two")])
    whole = await session_digest(store, session)

    await begin(expiring)

    assert session not in await listed(store)
    assert await session_digest(archive, session) == whole


async def test_the_id_of_an_archived_session_is_taken(store: Store, archive: Store) -> None:
    expiring = ExpiringStore(store, archive=archive)
    session = await used(store, UNUSED_S + 60, "one")
    await expiring.sweep()

    with pytest.raises(SequenceConflictError):
        await expiring.append(session, [created("bob")], expected_seq=0)

    assert (await expiring.row(session)).owner == "ana"


@pytest.mark.parametrize("where", ["both", "archive"])
async def test_deleting_leaves_nothing_here_or_in_the_archive(tmp_path: Path, where: str) -> None:
    async with SQLiteStore(tmp_path / "here.db") as store, SQLiteStore(tmp_path / "there.db") as archive:
        expiring = ExpiringStore(store, archive=archive)
        session = await used(store, UNUSED_S + 60, "the secret word", blobs=["the secret text"])
        await expiring.sweep()
        if where == "both":
            await expiring.read(session)

        await expiring.delete(session)

        assert (await listed(store), await listed(archive)) == ([], [])
        for ask in (expiring.read(session), expiring.delete(session)):
            with pytest.raises(SessionNotFoundError):
                await ask
    assert [file.name for file in tmp_path.iterdir() if b"secret" in file.read_bytes()] == []


async def test_erasing_reaches_the_archive_too(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "here.db") as store, SQLiteStore(tmp_path / "there.db") as archive:
        expiring = ExpiringStore(store, archive=archive)
        session = await used(store, UNUSED_S + 60, "the secret word", blobs=["the secret text"])
        await expiring.sweep()

        await expiring.erase(session, [2], blobs=[content_hash("the secret text")])

        assert await session_digest(archive, session) == await session_digest(store, session)
    assert [file.name for file in tmp_path.iterdir() if b"secret" in file.read_bytes()] == []


class DiedError(Exception):
    pass


class _Dies(SQLiteStore):
    """A store whose worker dies as soon as something is erased."""

    async def erase(
        self, session_id: SessionId, seqs: Sequence[int], *, blobs: Sequence[BlobHash] = (), fence: int | None = None
    ) -> None:
        await super().erase(session_id, seqs, blobs=blobs, fence=fence)
        raise DiedError


async def test_the_archive_keeps_no_erased_text_when_a_worker_dies_between_the_two(tmp_path: Path) -> None:
    async with _Dies(tmp_path / "here.db") as store, SQLiteStore(tmp_path / "there.db") as archive:
        expiring = ExpiringStore(store, archive=archive)
        session = await used(store, UNUSED_S + 60, "the secret word", blobs=["the secret text"])
        await expiring.sweep()
        await expiring.read(session)

        with pytest.raises(DiedError):
            await expiring.erase(session, [2], blobs=[content_hash("the secret text")])

        assert await session_digest(archive, session) == await session_digest(store, session)
    assert [file.name for file in tmp_path.iterdir() if b"secret" in file.read_bytes()] == []


async def test_what_cannot_be_archived_is_not_removed(store: Store) -> None:
    closed = MemoryStore()
    await closed.__aexit__()
    session = await used(store, UNUSED_S + 60, "one")

    with pytest.raises(StoreUnavailableError):
        await ExpiringStore(store, archive=closed).sweep()

    assert await listed(store) == [session]


async def test_an_open_store_sweeps_by_itself_also_what_was_left_before_it_was_opened(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "here.db") as store:
        left = [await used(store, UNUSED_S * 2) for _ in range(3)]
        kept = await begin(store)

    async with ExpiringStore(SQLiteStore(tmp_path / "here.db"), archive=SQLiteStore(tmp_path / "there.db")) as store:
        await until(store, 1)

        assert await listed(store) == [kept]
        assert [(await store.row(session)).id for session in left] == left


async def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="expire_after_s"):
        Limits(unused_s=0)
    with pytest.raises(InvalidSettingError, match="max_sessions"):
        Limits(sessions=0)


async def test_sweepers_that_are_killed_lose_no_session_and_leave_each_whole(tmp_path: Path) -> None:
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    async with SQLiteStore(here, "NORMAL") as store, SQLiteStore(there, "NORMAL") as archive:
        sessions = [await used(store, UNUSED_S * 2, *"abc", blobs=[f"{number}", "shared"]) for number in range(60)]
        wholes = {session: await session_digest(store, session) for session in sessions}
        for round_ in range(3):
            async with sweeping(here, there) as first, sweeping(here, there) as second:
                await until(store, 45 - 15 * round_)
                first.kill()
                second.kill()

        expiring = ExpiringStore(store, archive=archive)
        assert {session: await session_digest(expiring, session) for session in sessions} == wholes


@asynccontextmanager
async def sweeping(here: Path, there: Path) -> AsyncGenerator[anyio.abc.Process]:
    """Run a process that sweeps until it is killed."""
    command = [sys.executable, "-c", SWEEPER, str(here), str(there)]
    async with await anyio.open_process(command, stdout=None, stderr=None) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


SWEEPER = """
import sys, anyio
from windowpane.stores.expiry import ExpiringStore
from windowpane.stores.sqlite.store import SQLiteStore

async def main():
    async with ExpiringStore(SQLiteStore(sys.argv[1], "NORMAL"), archive=SQLiteStore(sys.argv[2], "NORMAL")):
        await anyio.sleep(600)

anyio.run(main)
"""
