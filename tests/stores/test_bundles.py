"""Texts that many sessions have: kept once, there for as long as one of them is, and gone with the last."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, cast

import asyncpg as untyped_asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
import redis

from stores.kinds import BUNDLES, begin, begin_with, said, texts_of
from stores.processes import Place
from stores.redis_server import fresh_url
from windowpane.context.ids import BlobHash, SessionId, content_hash
from windowpane.context.items import AgentText, bundled
from windowpane.errors import SequenceConflictError, SessionNotFoundError
from windowpane.stores.base import Store
from windowpane.stores.redis.store import RedisStore
from windowpane.stores.redis.url import parse_redis_url

pytestmark = pytest.mark.anyio

asyncpg = cast("Any", untyped_asyncpg)

FIRST, SECOND = BUNDLES
OWN = texts_of("what one user said")
RULE = content_hash("a rule")


async def test_a_session_has_the_texts_of_its_bundles_like_its_own(store: Store) -> None:
    session, other = await begin_with(store, FIRST, own=OWN), await begin(store)
    await store.append(session, [said("The agent was changed.")], blobs=bundled(SECOND))
    await store.append(session, [said("And back.")], blobs=bundled(FIRST))
    both = {**FIRST, **SECOND}

    assert await store.blobs(session, [*both, *OWN, BlobHash("0" * 64)]) == {**both, **OWN}
    assert await store.blob_hashes(session) == sorted([*both, *OWN])
    assert (await store.blobs(other, [*both]), await store.blob_hashes(other)) == ({}, [])


async def test_a_bundle_stays_until_the_last_session_that_has_it_is_deleted(store: Store) -> None:
    sessions = [await begin_with(store, FIRST), await begin_with(store, FIRST, SECOND), await begin_with(store, SECOND)]
    expected = [FIRST, {**FIRST, **SECOND}, SECOND]

    while sessions:
        assert [await store.blobs(session, [*FIRST, *SECOND]) for session in sessions] == expected
        await store.delete(sessions.pop(0))
        expected.pop(0)
    again = await begin_with(store, FIRST)

    assert await store.blobs(again, [*FIRST, *SECOND]) == FIRST


async def test_what_is_erased_of_a_bundle_is_gone_from_that_session_alone(store: Store) -> None:
    session, other = await begin_with(store, FIRST, SECOND, own=OWN), await begin_with(store, FIRST)
    rest = {name: text for name, text in {**FIRST, **SECOND}.items() if name != RULE}

    await store.erase(session, [], blobs=[RULE])

    assert await store.blobs(session, [*FIRST, *SECOND, *OWN]) == {**rest, **OWN}
    assert await store.blob_hashes(session) == sorted([*rest, *OWN])
    assert await store.blobs(other, [*FIRST]) == FIRST
    await store.delete(other)
    assert await store.blobs(session, [*FIRST, *SECOND]) == rest
    await store.erase(session, [], blobs=[*rest, *OWN])
    assert await store.blob_hashes(session) == []


async def test_erasing_other_texts_leaves_bundles_alone(store: Store) -> None:
    session = await begin_with(store, FIRST, own=OWN)

    await store.erase(session, [1], blobs=[*OWN])
    await store.erase(session, [1])

    assert await store.blobs(session, [*FIRST, *OWN]) == FIRST


async def test_a_part_of_a_bundle_is_kept_as_what_it_is(store: Store) -> None:
    part = dict(list(bundled(FIRST).items())[:2])
    session = await begin(store)

    await store.append(session, [said("hello")], blobs=part)

    assert await store.blobs(session, [*FIRST]) == part
    assert await store.blob_hashes(session) == sorted(part)


async def test_texts_of_a_bundle_come_back_as_the_agents_where_that_is_known(store: Store) -> None:
    session = await begin_with(store, FIRST)

    if store.encrypted:
        assert {type(text) for text in (await store.blobs(session, [*FIRST])).values()} == {AgentText}


def redis_client(url: str) -> Any:
    return cast("Any", redis).Redis.from_url(url.partition("?")[0])


async def left_over(place: Place) -> object:
    """Return what is kept of shared texts and of references to them, as it stands in the engine."""
    if place.kind.name.startswith("sqlite"):
        tables = ("bundle", "bundle_blob", "session_bundle", "append_key", "text WHERE live")
        with closing(sqlite3.connect(place.name)) as db:
            return [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    if place.kind.name == "postgres":
        tables = ("bundle", "bundle_text", "session_bundle", "append_key", "blob")
        connection: Any = await asyncpg.connect(place.name)
        try:
            return [await connection.fetchval(f"SELECT count(*) FROM windowpane.{table}") for table in tables]
        finally:
            await connection.close()
    prefix = parse_redis_url(place.name).prefix
    with closing(redis_client(place.name)) as client:
        return [0 for _ in client.scan_iter(match=f"{prefix}:{{*", count=1000)] or [0] * 5


NOTHING = [0] * 5


async def test_nothing_is_left_of_texts_when_the_last_session_is_gone(place: Place) -> None:
    async with place.open() as store:
        sessions = [await begin_with(store, FIRST, SECOND, own=OWN) for _ in range(3)]
        await store.append(sessions[0], [said("again")], blobs=bundled(FIRST))
        with pytest.raises(SequenceConflictError):
            await store.append(sessions[0], [said("late")], expected_seq=1, blobs=bundled(texts_of("never stored")))
        with pytest.raises(SessionNotFoundError):
            await store.append(SessionId("ses_gone"), [said("hello?")], blobs=bundled(texts_of("never stored")))
        await store.append(sessions[1], [said("once")], key="k", blobs=bundled(FIRST))
        await store.append(sessions[1], [said("once")], key="k", blobs=bundled(FIRST))
        await store.erase(sessions[2], [], blobs=[*FIRST])
        before = await left_over(place)
        for session in sessions:
            await store.delete(session)

        assert before != NOTHING
        assert await left_over(place) == NOTHING


async def test_a_session_costs_as_much_however_many_texts_its_bundle_has(place: Place) -> None:
    async def grown(texts: Mapping[BlobHash, str]) -> int:
        """Return how many rows a further session adds."""
        await begin_with(store, texts)
        one = await rows(place)
        await begin_with(store, texts)
        return await rows(place) - one

    async with place.open() as store:
        few = await grown(texts_of("one", "two"))
        many = await grown(texts_of(*(f"text {number}" for number in range(100))))

    assert many == few


async def rows(place: Place) -> int:
    """Return how many rows, or keys and fields, there are in all."""
    if place.kind.name.startswith("sqlite"):
        with closing(sqlite3.connect(place.name)) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
    if place.kind.name == "postgres":
        connection: Any = await asyncpg.connect(place.name)
        try:
            tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'windowpane'")
            counts = [await connection.fetchval(f"SELECT count(*) FROM windowpane.{table}") for (table,) in tables]
            return sum(counts)
        finally:
            await connection.close()
    prefix = parse_redis_url(place.name).prefix
    with closing(redis_client(place.name)) as client:
        kinds = {b"hash": client.hlen, b"zset": client.zcard, b"stream": client.xlen}
        keys = list(client.scan_iter(match=f"{prefix}:*", count=1000))
        return len(keys) + sum(int(kinds[client.type(key)](key)) for key in keys)


async def test_no_session_ever_lacks_a_text_while_others_with_the_same_come_and_go(place: Place) -> None:
    """Each caller begins and deletes by turns, so the last one goes again and again while another comes."""
    expected = {**FIRST, **SECOND}

    async def come_and_go(store: Store, other: Store, times: int) -> None:
        for number in range(times):
            session = await begin_with(store, *(BUNDLES if number % 2 else reversed(BUNDLES)))
            assert await other.blobs(session, [*expected]) == expected
            if number % 3 == 0:
                await other.erase(session, [], blobs=[RULE])
                assert RULE not in await store.blob_hashes(session)
            await other.delete(session)

    async with place.open() as one, place.open() as other:
        await asyncio.gather(*(come_and_go(*pair, 25) for pair in ((one, other), (other, one), (one, one)) * 2))

    assert await left_over(place) == NOTHING


async def test_writers_that_are_killed_take_no_text_from_others(place: Place) -> None:
    async with place.open() as store:
        for _ in range(3):
            await begin_with(store, *BUNDLES)
        for lines in (1, 2, 5, 9):
            async with place.process("come_and_go") as one, place.process("come_and_go") as two:
                for process in (one, two):
                    for _ in range(lines):
                        await process.line()
                    process.process.kill()
            for row in (await store.sessions(limit=200)).rows:
                assert (await store.blobs(row.id, [*FIRST, *SECOND])).keys() == {**FIRST, **SECOND}.keys(), row
        # What the killed left over in Redis is looked at by those who come after, when it is old.
        if place.kind.name == "redis":
            make_old(place.name)
        for _ in range(30):
            await store.delete(await begin_with(store, *BUNDLES))
        for row in (await store.sessions(limit=200)).rows:
            with suppress(SessionNotFoundError):
                await store.delete(row.id)

    assert await left_over(place) == NOTHING


def make_old(url: str) -> None:
    """Let every reference to a bundle in Redis have been noted two hours ago."""
    held = f"{parse_redis_url(url).prefix}:{{texts}}:held"
    with closing(redis_client(url)) as client:
        for reference in list(client.zscan_iter(held)):
            client.zincrby(held, -7200, reference[0])


async def test_bundles_of_sessions_that_redis_expires_by_itself_go_when_others_come() -> None:
    url = fresh_url()
    prefix = parse_redis_url(url).prefix
    async with RedisStore(url) as store:
        with closing(redis_client(url)) as client:

            def bundles() -> int:
                return len(list(client.scan_iter(match=f"{prefix}:{{texts}}:of:*", count=1000)))

            living, expired = await begin_with(store, FIRST), await begin_with(store, FIRST, SECOND)
            for key in client.scan_iter(match=f"{prefix}:{{s:{expired}}}*", count=1000):
                client.delete(key)
            await begin_with(store, FIRST)
            counts = [bundles()]
            make_old(url)
            await begin_with(store, FIRST)
            counts.append(bundles())

        assert counts == [2, 1]
        assert await store.blobs(living, [*FIRST]) == FIRST
