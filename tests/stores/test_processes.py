"""What stores promise that several processes share."""

from contextlib import AsyncExitStack

import anyio
import pytest

from patience import PATIENCE_S
from stores.kinds import begin, contents, said
from stores.processes import Place
from windowpane.context.events import Recorded

pytestmark = pytest.mark.anyio


@pytest.mark.spec("S4.1", "S4.5", "S4.61")
async def test_eight_processes_append_to_one_session_while_others_read_and_nothing_is_lost(place: Place) -> None:
    async with place.open() as store, AsyncExitStack() as stack:
        session = await begin(store)
        readers = [await stack.enter_async_context(place.process("list_until_told", session)) for _ in range(2)]
        writers = [await stack.enter_async_context(place.process("append", session, f"w{n}", "100")) for n in range(8)]

        for writer in writers:
            await writer.go_on()
        assert [await writer.process.wait() for writer in writers] == [0] * 8
        for reader in readers:
            await reader.go_on()

        assert [await reader.rest() for reader in readers] == [["fine"], ["fine"]]
        log = await store.read(session)
        assert [recorded.seq for recorded in log] == list(range(1, 802))
        for n in range(8):
            of_writer = [content for content in contents(log) if content.startswith(f"w{n}:")]
            assert of_writer == [f"w{n}:{number}" for number in range(100)]


async def test_a_subscriber_sees_what_another_process_appends_and_that_it_deletes_the_session(place: Place) -> None:
    async with place.open() as store:
        session = await begin(store)
        async with place.process("watch", session) as watcher:
            assert await watcher.line() == "1 "
            for number in range(2, 30):
                await store.append(session, [said(f"said {number}")])
                assert await watcher.line() == f"{number} said {number}"
            await store.delete(session)
            assert await watcher.rest() == ["over"]


async def test_subscribers_miss_nothing_and_see_nothing_twice_while_other_processes_append(place: Place) -> None:
    async with place.open() as store, AsyncExitStack() as stack:
        session = await begin(store)
        watcher = await stack.enter_async_context(place.process("watch", session))
        writers = [await stack.enter_async_context(place.process("append", session, f"w{n}", "100")) for n in range(2)]
        for writer in writers:
            await writer.go_on()

        seen: list[Recorded] = []
        async for recorded in store.subscribe(session, after=0):
            seen.append(recorded)
            if recorded.seq == 201:
                break

        seen_elsewhere = [await watcher.line() for _ in range(201)]
        assert seen == await store.read(session)
        assert seen_elsewhere == [f"{one.seq} {' '.join(contents([one]))}" for one in seen]


async def test_a_lease_held_in_one_process_cannot_be_taken_in_another(place: Place) -> None:
    async with place.open() as store:
        session = await begin(store)
        async with place.process("hold", session, "there") as holder:
            assert await holder.line() == "True"
            assert await store.acquire(session, "here", 600) is None

            await holder.go_on()
            assert await holder.rest() == []
            assert await store.acquire(session, "here", 600)


async def test_two_stores_open_on_one_place_in_one_process_see_each_other(place: Place) -> None:
    async with place.open() as one, place.open() as other:
        session = await begin(one)
        stream = other.subscribe(session, after=1)

        with anyio.fail_after(PATIENCE_S):
            await one.append(session, [said("a")])
            assert contents([await anext(stream)]) == ["a"]
            await other.append(session, [said("b")], expected_seq=2)
            assert contents(await one.read(session)) == ["a", "b"]


async def test_what_was_stored_is_there_after_closing_and_opening_again(place: Place) -> None:
    async with place.open() as store:
        session = await begin(store)
        await store.append(session, [said("kept")])
        before = (await store.read(session), await store.row(session))

    async with place.open() as store:
        assert (await store.read(session), await store.row(session)) == before
