"""A lease that is taken with an append, given back with another, and renewed with others."""

import asyncio

import anyio
import pytest

from patience import PATIENCE_S
from stores.kinds import begin, contents, created, said
from windowpane.context.ids import content_hash, new_session_id
from windowpane.errors import LeaseLostError, SequenceConflictError, SessionBusyError, SessionNotFoundError
from windowpane.stores.append import TakeLease
from windowpane.stores.base import Store

pytestmark = pytest.mark.anyio


async def test_an_append_takes_the_lease_and_another_gives_it_back(store: Store) -> None:
    session = await begin(store)

    first = await store.append(session, [said("one")], expected_seq=1, take=TakeLease("a", 600))
    held = await store.acquire(session, "b", 600)
    same = await store.acquire(session, "a", 600)
    last = await store.append(session, [said("two")], fence=first.fence, release="a")
    free = await store.acquire(session, "b", 600)

    assert (held, same, last.fence) == (None, first.fence, None)
    assert 0 < (first.fence or 0) < (free or 0)
    assert contents(await store.read(session)) == ["one", "two"]


async def test_an_append_that_cannot_take_the_lease_stores_nothing(store: Store) -> None:
    session = await begin(store)
    text = "never stored"
    fence = await store.acquire(session, "a", 600)

    with pytest.raises(SessionBusyError) as caught:
        await store.append(
            session, [said("x")], key="k", blobs={content_hash(text): text}, take=TakeLease("b", 600), release="a"
        )

    assert caught.value.session_id == session
    assert await store.acquire(session, "a", 600) == fence
    assert contents(await store.read(session)) == []
    assert await store.blobs(session, [content_hash(text)]) == {}


async def test_an_append_that_is_refused_or_was_stored_before_takes_and_gives_back_nothing(store: Store) -> None:
    session = await begin(store)
    await store.append(session, [said("one")], key="k", take=TakeLease("a", 600))
    await store.release(session, "a")

    with pytest.raises(SequenceConflictError):
        await store.append(session, [said("x")], expected_seq=1, take=TakeLease("b", 600))
    again = await store.append(session, [said("one")], key="k", take=TakeLease("b", 600))
    with pytest.raises(SessionNotFoundError):
        await store.append(new_session_id(), [said("x")], take=TakeLease("b", 600))
    fence = await store.acquire(session, "c", 600)
    with pytest.raises(SequenceConflictError):
        await store.append(session, [said("x")], expected_seq=1, take=TakeLease("b", 600), release="c")

    assert (again.repeated, again.fence) == (True, None)
    assert await store.acquire(session, "c", 600) == fence
    assert contents(await store.read(session)) == ["one"]


async def test_a_lease_that_ran_out_is_taken_by_an_append_and_its_old_holder_writes_no_more(store: Store) -> None:
    session = await begin(store)
    old = await store.append(session, [said("old")], take=TakeLease("a", 0))

    new = await store.append(session, [said("new")], take=TakeLease("b", 600))
    with pytest.raises(LeaseLostError):
        await store.append(session, [said("late")], fence=old.fence, release="a")

    assert (old.fence or 0) < (new.fence or 0)
    assert await store.acquire(session, "b", 600) == new.fence
    assert contents(await store.read(session)) == ["old", "new"]


async def test_of_many_who_take_the_lease_with_an_append_at_once_one_does(store: Store) -> None:
    session = await begin(store)

    answers = await asyncio.gather(
        *(store.append(session, [said(f"from {n}")], take=TakeLease(f"holder {n}", 600)) for n in range(20)),
        return_exceptions=True,
    )

    stored = [n for n, answer in enumerate(answers) if not isinstance(answer, BaseException)]
    assert [type(answer) for n, answer in enumerate(answers) if n not in stored] == [SessionBusyError] * 19
    assert contents(await store.read(session)) == [f"from {stored[0]}"]


async def test_a_session_begins_with_its_lease_taken(store: Store) -> None:
    session = new_session_id()

    begun = await store.append(session, [created()], expected_seq=0, take=TakeLease("a", 600), lasting=False)

    assert await store.acquire(session, "b", 600) is None
    assert await store.acquire(session, "a", 600) == begun.fence


async def test_leases_are_renewed_together_and_none_is_taken_by_that(store: Store) -> None:
    held, late, lost, given_back = [await begin(store) for _ in range(4)]
    fences = [await store.acquire(session, "a", 0) for session in (held, late, lost, given_back)]
    taken = await store.acquire(lost, "b", 600)
    await store.release(given_back, "a")

    renewed = await store.renew({held: "a", late: "a", lost: "a", given_back: "a", new_session_id(): "a"}, ttl_s=600)

    assert renewed == {held, late}
    assert [await store.acquire(session, "b", 600) for session in (held, late, lost)] == [None, None, taken]
    assert [await store.acquire(session, "a", 600) for session in (held, late)] == fences[:2]
    assert await store.acquire(given_back, "b", 600)
    assert await store.renew({}, ttl_s=600) == set()


async def test_one_who_has_just_seen_the_log_gets_what_comes_once_and_in_order(store: Store) -> None:
    session = await begin(store)
    seen: list[int] = []

    async def watch() -> None:
        async for recorded in store.subscribe(session, after=1, unread=True):
            seen.append(recorded.seq)
            if recorded.seq == 41:
                return

    async def append() -> None:
        for _ in range(5):
            await store.append(session, [said("x"), said("y")], lasting=False)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            for _ in range(4):
                tasks.start_soon(append)

    assert seen == list(range(2, 42))
