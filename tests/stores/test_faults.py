"""What processes that share a store do to one another, and what a server and a network do to them: nothing is lost.

Every store that processes can share goes through this. What only one of them can suffer is in its own test file.
"""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

import anyio
import pytest

from stores.faults import (
    PATIENCE_S,
    cut_connections,
    killed_server,
    killed_writers,
    many_writers,
    serving,
    through,
)
from stores.kinds import KINDS, Kind, begin, contents, said
from stores.processes import Place
from stores.proxy import Moment, proxy_to
from windowpane.errors import StoreUnavailableError

pytestmark = pytest.mark.anyio

DAY_S = 86_400.0

served = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.serve], ids=lambda kind: kind.name)


@pytest.mark.spec("S4.5", "S4.61")
async def test_processes_that_write_to_one_session_at_once_lose_nothing_and_keep_their_order(place: Place) -> None:
    outcome = await many_writers(place, 4, appends=200)

    assert outcome.verdict.faults == {}
    assert outcome.verdict.acknowledged >= 200


@pytest.mark.spec("S4.5")
async def test_a_writer_killed_between_any_two_steps_leaves_nothing_half_done_and_takes_nothing_acknowledged_with_it(
    place: Place,
) -> None:
    outcome = await killed_writers(place, kills=4)

    assert outcome.verdict.faults == {}


@served
@pytest.mark.parametrize("keyed", ["keyed", "plain"])
async def test_a_server_that_is_killed_and_started_again_has_everything_that_was_acknowledged_once(
    kind: Kind, keyed: Literal["keyed", "plain"], tmp_path: Path
) -> None:
    outcome = await killed_server(kind, tmp_path, kills=3, keyed=keyed)

    assert outcome.verdict.faults == {}


@served
@pytest.mark.parametrize("keyed", ["keyed", "plain"])
async def test_connections_that_are_cut_while_many_write_lose_nothing_and_store_nothing_twice(
    kind: Kind, keyed: Literal["keyed", "plain"], tmp_path: Path
) -> None:
    outcome = await cut_connections(kind, tmp_path, cuts=8, keyed=keyed)

    assert outcome.verdict.faults == {}


@served
@pytest.mark.parametrize("moment", ["request", "answer"])
async def test_an_append_whose_request_or_whose_answer_is_lost_is_stored_once_and_answered_as_if_nothing_had_happened(
    kind: Kind, moment: Moment, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(kind, tmp_path))
        proxy = await stack.enter_async_context(proxy_to(server.host, server.port))
        async with through(proxy, Place(kind, server.place)).open() as store:
            session = await begin(store)
            await store.append(session, [said("the connection is warm")])

            proxy.cut("plain", moment)
            plain = await store.append(session, [said("plain")])
            proxy.cut("keyed", moment)
            keyed = await store.append(session, [said("keyed")], key="k")
            proxy.cut("expected", moment, times=2)
            expected = await store.append(session, [said("expected"), said("and more")], expected_seq=4)

            assert proxy.cuts == 4
            answers = [(one.first_seq, one.last_seq, one.repeated) for one in (plain, keyed, expected)]
            assert answers == [(3, 3, False), (4, 4, False), (5, 6, False)]
            assert contents(await store.read(session)) == [
                "the connection is warm",
                "plain",
                "keyed",
                "expected",
                "and more",
            ]


@served
async def test_a_server_that_is_gone_gives_a_clear_error_and_the_store_works_again_when_it_is_back(
    kind: Kind, tmp_path: Path
) -> None:
    async with serving(kind, tmp_path) as server, kind.open(server.place + kind.hasty) as store:
        session = await begin(store)
        server.kill()

        with anyio.fail_after(PATIENCE_S), pytest.raises(StoreUnavailableError, match=str(server.port)):
            await store.append(session, [said("nobody is there")], key="k")
        with anyio.fail_after(PATIENCE_S), pytest.raises(StoreUnavailableError, match=str(server.port)):
            await store.read(session)

        await anyio.to_thread.run_sync(server.start)
        with anyio.fail_after(PATIENCE_S):
            await store.append(session, [said("nobody is there")], key="k")
            assert contents(await store.read(session)) == ["nobody is there"]


@served
async def test_a_subscriber_that_loses_its_connection_misses_nothing_and_sees_nothing_twice(
    kind: Kind, tmp_path: Path
) -> None:
    async with serving(kind, tmp_path) as server, proxy_to(server.host, server.port) as proxy:
        direct = Place(kind, server.place)
        async with direct.open() as writing, through(proxy, direct).open() as store:
            session = await begin(writing)
            seen: list[str] = []
            reached = [anyio.Event() for _ in range(41)]

            async def watch() -> None:
                async for recorded in store.subscribe(session, after=1):
                    seen.extend(contents([recorded]))
                    reached[len(seen) - 1].set()
                    if seen[-1] == "last":
                        return

            with anyio.fail_after(PATIENCE_S):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(watch)
                    for number in range(40):
                        await writing.append(session, [said(str(number))])
                        if number % 8 == 7:
                            await reached[number - 4].wait()
                            proxy.cut_all()
                    await writing.append(session, [said("last")])

            assert seen == [*(str(number) for number in range(40)), "last"]
            assert proxy.cuts > 0


@served
async def test_a_subscriber_in_another_process_sees_all_that_was_written_before_and_after_the_server_was_killed(
    kind: Kind, tmp_path: Path
) -> None:
    async with serving(kind, tmp_path) as server:
        place = Place(kind, server.place)
        async with place.open() as store:
            session = await begin(store)
            async with place.process("watch", session) as watcher:
                with anyio.fail_after(PATIENCE_S):
                    assert await watcher.line() == "1 "
                    await store.append(session, [said("before")])
                    assert await watcher.line() == "2 before"

                    await anyio.to_thread.run_sync(server.kill)
                    await anyio.to_thread.run_sync(server.start)
                    await store.append(session, [said("after")])
                    assert await watcher.line() == "3 after"


@served
@pytest.mark.parametrize("skew_s", [-DAY_S, DAY_S], ids=["a day behind", "a day ahead"])
async def test_a_worker_whose_clock_is_wrong_breaks_neither_the_order_nor_a_lease(
    kind: Kind, skew_s: float, tmp_path: Path
) -> None:
    place = Place(kind, kind.fresh(tmp_path))
    async with place.open() as store:
        session = await begin(store)
        created_at = (await store.row(session)).created_at
        async with place.process("hold", session, "there", skew_s=skew_s) as holder:
            assert await holder.line() == "True"
            assert await store.acquire(session, "here", 600) is None
            await holder.go_on()
            assert await holder.rest() == []
        assert await store.acquire(session, "here", 600)
        async with place.process("hold", session, "there", skew_s=skew_s) as holder:
            assert await holder.line() == "False"

        async with place.process("append", session, "skewed", "20", skew_s=skew_s) as skewed:
            await skewed.go_on()
            await store.append(session, [said("right")])
            assert await skewed.rest() == []
        await store.append(session, [said("right again")])

        times = [recorded.at for recorded in await store.read(session)]
        assert times == sorted(times)
        assert (times[-1] - created_at).total_seconds() < DAY_S / 2
        assert (await store.row(session)).touched_at == times[-1]
