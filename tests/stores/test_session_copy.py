"""Bringing a session to another store, whole and any number of times."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stores.kinds import begin, contents, created, said
from windowpane.context.events import Erased
from windowpane.context.ids import SessionId, content_hash, new_session_id
from windowpane.errors import DifferentSessionError, SessionNotFoundError
from windowpane.stores.append import OriginalTimes
from windowpane.stores.base import Store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.session_copy import PAGE, copy_new_session, copy_session, session_digest
from windowpane.stores.sqlite.store import SQLiteStore

pytestmark = pytest.mark.anyio

LONG_AGO = datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=UTC)


@pytest.fixture
def store(any_engine: Store) -> Store:
    return any_engine


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Store]:
    """A store to copy_session sessions to, beside every kind of store to copy_session them from."""
    async with SQLiteStore(tmp_path / "other.db") as opened:
        yield opened


async def talk(store: Store, messages: int, *, texts: int = 0) -> SessionId:
    """Return a session that was begun and last used long ago."""
    session = new_session_id()
    times = tuple(LONG_AGO + timedelta(seconds=number) for number in range(messages + 1))
    blobs = {content_hash(text): text for text in (f"text {number} of {session}" for number in range(texts))}
    await store.append(
        session,
        [created(), *(said(f"{number}") for number in range(messages))],
        expected_seq=0,
        original_times=OriginalTimes(times, times[-1] + timedelta(hours=1)),
        blobs=blobs,
    )
    return session


async def test_a_session_that_is_brought_is_the_same_with_its_times_its_texts_and_its_age(
    store: Store, other: Store
) -> None:
    session = await talk(store, 5, texts=3)
    await store.erase(session, [3], blobs=(await store.blob_hashes(session))[:1])

    assert await copy_session(store, other, session) == 6

    assert await other.read(session) == await store.read(session)
    assert await other.row(session) == await store.row(session)
    hashes = await store.blob_hashes(session)
    assert await other.blob_hashes(session) == hashes
    assert await other.blobs(session, hashes) == await store.blobs(session, hashes)
    assert await session_digest(other, session) == await session_digest(store, session)


async def test_bringing_it_again_adds_only_what_is_new_and_erases_what_was_erased(store: Store, other: Store) -> None:
    session = await talk(store, 3, texts=2)
    assert await copy_session(store, other, session) == 4
    assert await copy_session(store, other, session) == 0
    gone = (await store.blob_hashes(session))[0]
    await store.append(session, [said("new")], blobs={content_hash("new text"): "new text"})
    await store.erase(session, [2], blobs=[gone])

    assert await copy_session(store, other, session) == 1

    assert [type(entry.event) for entry in await other.read(session)][1] is Erased
    assert content_hash("new text") in await other.blob_hashes(session)
    assert gone not in await other.blob_hashes(session)
    assert await session_digest(other, session) == await session_digest(store, session)


async def test_a_session_of_many_pages_is_brought_whole_from_wherever_the_copy_was_stopped() -> None:
    async with MemoryStore() as source, MemoryStore() as target:
        session = await talk(source, PAGE * 2 + 7, texts=30)
        whole = await source.read(session)
        some = (await source.blob_hashes(session))[:4]
        for stopped_after in (1, PAGE, PAGE + 1, PAGE * 2 + 7):
            part = whole[:stopped_after]
            await target.append(
                session,
                [entry.event for entry in part],
                expected_seq=0,
                original_times=OriginalTimes(tuple(entry.at for entry in part), LONG_AGO),
                blobs=await source.blobs(session, some),
            )

            assert await copy_session(source, target, session) == len(whole) - stopped_after

            assert await session_digest(target, session) == await session_digest(source, session)
            await target.delete(session)


async def test_another_session_of_the_same_id_is_refused_and_left_alone(store: Store, other: Store) -> None:
    session = await talk(store, 2)
    await other.append(session, [created("bob")], expected_seq=0)
    before = await other.read(session)

    with pytest.raises(DifferentSessionError, match="its event 1 is another one"):
        await copy_session(store, other, session)

    assert await other.read(session) == before


async def test_a_copy_that_went_on_by_itself_is_refused_and_left_alone(store: Store, other: Store) -> None:
    session = await talk(store, 2)
    await copy_session(store, other, session)
    await other.append(session, [said("only there")])

    with pytest.raises(DifferentSessionError, match="it goes on after event 3"):
        await copy_session(store, other, session)

    assert contents(await other.read(session)) == ["0", "1", "only there"]


async def test_a_session_that_is_not_there_cannot_be_brought(store: Store, other: Store) -> None:
    with pytest.raises(SessionNotFoundError):
        await copy_session(store, other, SessionId("ses_nobody"))
    with pytest.raises(SessionNotFoundError):
        await copy_new_session(store, other, SessionId("ses_nobody"), touched_at=LONG_AGO)


async def test_brought_at_once_a_session_is_there_wholly_and_one_that_is_there_stays_as_it_is(
    store: Store, other: Store
) -> None:
    session = await talk(store, PAGE + 3, texts=4)
    now = datetime.now(UTC)

    await copy_new_session(store, other, session, touched_at=now)
    await copy_new_session(store, other, session, touched_at=LONG_AGO)

    assert await session_digest(other, session) == await session_digest(store, session)
    assert await other.row(session) == replace(await store.row(session), touched_at=now)


@given(st.lists(st.sampled_from(["append", "erase", "copy_session"]), max_size=12))
async def test_however_often_and_whenever_it_is_brought_the_copy_ends_up_the_same(acts: list[str]) -> None:
    async with MemoryStore() as source, MemoryStore() as target:
        session = await begin(source)
        for number, act in enumerate([*acts, "copy_session"]):
            last_seq = (await source.row(session)).last_seq
            if act == "append":
                text = f"text {number}"
                await source.append(session, [said(text)], blobs={content_hash(text): text})
            elif act == "erase" and last_seq > 1:
                await source.erase(session, [last_seq], blobs=(await source.blob_hashes(session))[-1:])
            elif act == "copy_session":
                await copy_session(source, target, session)
        assert await session_digest(target, session) == await session_digest(source, session)
