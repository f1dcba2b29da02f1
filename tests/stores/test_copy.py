"""Copying a whole store: in use, stopped, refused, verified."""

from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from stores.kinds import begin, created, said
from windowpane.context.ids import SessionId, content_hash, unlisted
from windowpane.errors import StoreUnavailableError
from windowpane.stores.base import Cost, Store
from windowpane.stores.copy import Copied, Step, copy_store
from windowpane.stores.memory import MemoryStore
from windowpane.stores.session_copy import copy_session, session_digest
from windowpane.stores.sqlite.store import SQLiteStore

pytestmark = pytest.mark.anyio

T = TypeVar("T")


@pytest.fixture
def store(any_engine: Store) -> Store:
    return any_engine


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[Store]:
    async with SQLiteStore(tmp_path / "target.db") as opened:
        yield opened


async def talk(store: Store, number: int) -> SessionId:
    session = await begin(store, owner=f"owner {number % 3}", agent=f"agent {number % 2}")
    text = f"text {number}"
    await store.append(session, [said(text), said("more")], blobs={content_hash(text): text})
    return session


async def digests(store: Store) -> dict[SessionId, str]:
    return {row.id: await session_digest(store, row.id) for row in (await store.sessions(limit=10_000)).rows}


@pytest.mark.spec("S4.23", "S4.85")
async def test_every_session_is_copied_in_the_same_order_of_use_and_verified(store: Store, target: Store) -> None:
    for number in range(20):
        await talk(store, number)
    seen: list[tuple[Step, int, int]] = []

    copied = await copy_store(store, target, lambda step, done, total: seen.append((step, done, total)))

    assert copied == Copied(sessions=20, copied=20, events=60, verified=20)
    assert copied.complete
    assert await digests(target) == await digests(store)
    assert (await target.sessions(limit=100)).rows == (await store.sessions(limit=100)).rows
    assert [seen[0], seen[20], seen[21], seen[-1]] == [
        ("copy", 0, 20),
        ("copy", 20, 20),
        ("verify", 0, 20),
        ("verify", 20, 20),
    ]


async def test_it_can_go_there_and_back(store: Store, target: Store) -> None:
    for number in range(5):
        await talk(store, number)
    before = await digests(store)
    await copy_store(store, target)
    for row in (await store.sessions()).rows:
        await store.delete(row.id)

    assert await copy_store(target, store) == Copied(sessions=5, copied=5, events=15, verified=5)

    assert await digests(store) == before


async def test_a_second_copy_finds_everything_there_and_copies_only_what_is_new(store: Store, target: Store) -> None:
    sessions = [await talk(store, number) for number in range(5)]
    await copy_store(store, target)
    await store.append(sessions[2], [said("new")])

    assert await copy_store(store, target) == Copied(sessions=5, copied=1, events=1, verified=5)
    assert await copy_store(store, target) == Copied(sessions=5, copied=0, events=0, verified=5)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run work on a memory store, which waits for nothing, in the middle of something else."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


async def test_a_copy_that_was_stopped_goes_on_where_it_was() -> None:
    async with MemoryStore() as store, MemoryStore() as target:
        for number in range(30):
            await talk(store, number)

        def fail(step: Step, done: int, total: int) -> None:
            if done == 11:
                at_once(target.__aexit__())

        with pytest.raises(StoreUnavailableError):
            await copy_store(store, target, fail)
        async with target:
            there = len((await target.sessions()).rows)

            copied = await copy_store(store, target)

            assert 11 <= there < 30
            assert copied == Copied(sessions=30, copied=30 - there, events=90 - 3 * there, verified=30)
            assert await digests(target) == await digests(store)


async def test_sessions_that_go_on_begin_or_are_deleted_meanwhile_are_caught_up_with() -> None:
    async with MemoryStore() as store, MemoryStore() as target:
        sessions = [await talk(store, number) for number in range(6)]
        first, second, third, *_ = reversed(sessions)
        meddled: list[Step] = []

        def meddle(step: Step, done: int, total: int) -> None:
            if not meddled and done == 4:
                meddled.append(step)
                at_once(store.append(first, [said("on and on")]))
                at_once(store.erase(second, [2]))
                at_once(store.append(second, [said("and on")]))
                at_once(store.delete(third))
                at_once(talk(store, 7))

        copied = await copy_store(store, target, meddle)

        assert meddled == ["copy"]
        assert (copied.sessions, copied.verified, copied.others, copied.complete) == (6, 6, 0, True)
        assert await digests(target) == await digests(store)


async def test_a_session_that_went_on_after_it_was_copied_is_named() -> None:
    async with MemoryStore() as store, MemoryStore() as target:
        session = await talk(store, 1)

        def meddle(step: Step, done: int, total: int) -> None:
            if step == "verify" and done == 0:
                at_once(store.append(session, [said("on and on")]))

        copied = await copy_store(store, target, meddle)

        assert copied == Copied(sessions=1, copied=1, events=3, verified=0, behind=(session,))
        assert not copied.complete
        assert (await copy_store(store, target)).complete


async def test_another_session_of_the_same_id_is_refused_by_name_and_the_rest_is_copied(
    store: Store, target: Store
) -> None:
    sessions = [await talk(store, number) for number in range(3)]
    await target.append(sessions[1], [created("somebody else")], expected_seq=0)
    mine = await begin(target)

    copied = await copy_store(store, target)

    assert [error.session_id for error in copied.refused] == [sessions[1]]
    assert (copied.sessions, copied.copied, copied.verified, copied.others) == (3, 2, 2, 1)
    assert not copied.complete
    assert (await target.row(sessions[1])).owner == "somebody else"
    assert (await target.row(mine)).last_seq == 1


async def test_a_copy_that_lost_something_is_noticed(store: Store, target: Store) -> None:
    session = await talk(store, 1)
    await copy_session(store, target, session)
    await target.erase(session, [], blobs=await target.blob_hashes(session))

    copied = await copy_store(store, target)

    assert (copied.verified, [str(error) for error in copied.refused]) == (
        0,
        [
            f"another session {session!r} already exists there: it lacks 1 of its texts; it was not changed. "
            "Delete it there, or copy to an empty store."
        ],
    )


async def test_what_owners_have_spent_comes_along_once(store: Store, target: Store) -> None:
    today = datetime.now(UTC).date()
    await begin(store, owner="ann", agent="guide")
    await store.add_cost("ann", today, Cost(500, 1))
    await store.add_cost("ann", today - timedelta(days=1), Cost(20))
    await target.add_cost("ann", today, Cost(100, 3))

    await copy_store(store, target)
    await copy_store(store, target)

    assert await target.costs("ann", since=today - timedelta(days=31)) == {
        today: Cost(500, 3),
        today - timedelta(days=1): Cost(20),
    }


async def test_what_an_owner_of_single_requests_has_spent_comes_along(store: Store, target: Store) -> None:
    today = datetime.now(UTC).date()
    await begin(store, owner=unlisted("ann"), agent="guide")
    await store.add_cost("ann", today, Cost(500))

    await copy_store(store, target)

    assert await target.costs("ann", since=today) == {today: Cost(500)}
