"""What only the PostgreSQL store does: its schema, its batches, its connections and its settings."""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

import anyio
import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stores.faults import PATIENCE_S, serving, through
from stores.kinds import KINDS, begin, contents, created, said
from stores.postgres_server import fresh_database
from stores.processes import Place
from stores.proxy import proxy_to
from windowpane.context.ids import SessionId, new_session_id
from windowpane.errors import (
    InvalidInputError,
    InvalidSettingError,
    SessionNotFoundError,
    StoreTooNewError,
    StoreUnavailableError,
)
from windowpane.stores.append import checked_append
from windowpane.stores.postgres import schema
from windowpane.stores.postgres.connections import (
    ConnectionPool,
    DriverConnection,
    ServerAddress,
    parse_postgres_url,
)
from windowpane.stores.postgres.log import name_from_sql, name_in_sql
from windowpane.stores.postgres.store import PostgresStore
from windowpane.wiring import open_store

pytestmark = pytest.mark.anyio

POSTGRES = next(kind for kind in KINDS if kind.name == "postgres")


@asynccontextmanager
async def behind_its_back(url: str) -> AsyncGenerator[DriverConnection]:
    """A connection beside the store's."""
    connection = await ConnectionPool(parse_postgres_url(url)).connect()
    try:
        yield connection
    finally:
        await connection.close()


async def test_every_key_of_what_belongs_to_a_session_has_the_session_in_it() -> None:
    url = fresh_database()
    async with PostgresStore(url), behind_its_back(url) as db:
        keys = await db.fetch(
            """SELECT relname, ARRAY(
                SELECT attname::text FROM pg_attribute WHERE attrelid = indexrelid ORDER BY attnum
            ) AS columns
            FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
            WHERE relnamespace = 'windowpane'::regnamespace AND indisunique AND NOT relispartition AND EXISTS (
                SELECT FROM pg_attribute WHERE attrelid = indrelid AND attname = 'session')"""
        )

    # So each of these tables can be partitioned by its session, on one server or over several.
    assert {"event", "append_key", "snapshot", "lease"} <= {table for table, _ in keys}
    assert [(table, columns) for table, columns in keys if "session" not in columns] == []


async def test_events_of_a_new_store_are_in_partitions_and_one_session_is_looked_for_in_one_of_them() -> None:
    url = fresh_database()
    async with PostgresStore(url) as store, behind_its_back(url) as db:
        sessions = [await begin(store) for _ in range(40)]
        plans = [
            await db.fetchval(f"EXPLAIN (FORMAT JSON) {statement}")
            for statement in (
                "SELECT event.seq FROM windowpane.session LEFT JOIN windowpane.event ON event.session = session.id "
                f"WHERE session.id = '{sessions[0]}'",
                f"UPDATE windowpane.event SET body = NULL WHERE session = '{sessions[0]}' AND seq = 1",
            )
        ]
        used = await db.fetch("SELECT DISTINCT tableoid FROM windowpane.event")
        packed = await db.fetch(
            """SELECT DISTINCT attstorage::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
            WHERE relnamespace = 'windowpane'::regnamespace AND relname LIKE 'blob_%' AND relkind = 'r'
                AND attname = 'body'"""
        )
        kept = await db.fetchval("SELECT count(*) FROM windowpane.event")

    assert (len(used) > 4, kept) == (True, 40)
    assert [storage for (storage,) in packed] == ["e"]  # Texts are packed already.
    looked_into = [set(re.findall(r'"Relation Name": "(event_\d+)"', plan)) for plan in plans]
    assert [len(partitions) for partitions in looked_into] == [1, 1]
    assert looked_into[0] == looked_into[1]


async def test_a_store_that_has_events_keeps_them_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    url = fresh_database()
    folder = files("windowpane.stores.postgres") / "migrations"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    before = [(folder / name).read_text() for name in names if name < "0009"]
    with monkeypatch.context() as patched:
        patched.setattr(schema, "_migrations", lambda: before)
        async with PostgresStore(url) as store:
            session = await begin(store)
            await store.append(session, [said("before")])
    async with PostgresStore(url) as store, behind_its_back(url) as db:
        await store.append(session, [said("after")])
        log = await store.read(session)
        kind = await db.fetchval("SELECT relkind::text FROM pg_class WHERE oid = 'windowpane.event'::regclass")

    assert (contents(log), kind) == (["before", "after"], "r")


async def test_workers_that_start_at_once_on_an_empty_database_migrate_it_once() -> None:
    url = fresh_database()

    async def start(name: str) -> None:
        async with PostgresStore(url) as store:
            await begin(store, owner=name)

    await asyncio.gather(*(start(f"w{number}") for number in range(8)))

    async with PostgresStore(url) as store, behind_its_back(url) as db:
        assert len((await store.sessions()).rows) == 8
        applied = [number for (number,) in await db.fetch("SELECT number FROM windowpane.migration ORDER BY number")]
        folder = files("windowpane.stores.postgres") / "migrations"
        assert applied == list(range(1, sum(file.name.endswith(".sql") for file in folder.iterdir()) + 1))


async def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is() -> None:
    url = fresh_database()
    async with PostgresStore(url) as store:
        session = await begin(store)
    async with behind_its_back(url) as db:
        await db.execute("INSERT INTO windowpane.migration (number) VALUES (99)")

        with pytest.raises(StoreTooNewError, match=r"has schema 99 and this version knows \d+;.*Update Windowpane"):
            async with PostgresStore(url):
                pass

        assert await db.fetchval("SELECT max(number) FROM windowpane.migration") == 99
        assert await db.fetchval("SELECT id FROM windowpane.session") == session


async def test_what_cannot_be_used_is_refused_with_what_to_do_about_it() -> None:
    url = fresh_database()
    async with PostgresStore(url):
        pass
    async with behind_its_back(url) as db:
        await db.execute("""DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
                            current_database()); END $$""")

    for place, why in (
        (url, "name the primary server"),
        (f"{url}_missing", "create the database"),
        (fresh_database("--encoding", "SQL_ASCII"), "name a database in UTF8"),
        ("postgresql://me:secret@127.0.0.1:1/x?timeout_s=0.2", "postgresql://127.0.0.1:1/x gave no answer"),
    ):
        with pytest.raises(StoreUnavailableError, match=why) as caught:
            async with PostgresStore(place):
                pass
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("wrong", ["timeout_s=soon", "timeout_s=0", "connections=0", "pooler=maybe", "listen=5432"])
def test_a_parameter_that_cannot_be_used_is_refused_before_anything_is_opened(wrong: str) -> None:
    with pytest.raises(InvalidSettingError, match="store_url: timeout_s and connections are numbers above 0"):
        open_store(f"postgresql://me:secret@host/base?{wrong}")


def test_a_url_says_where_the_server_is_and_how_to_treat_it() -> None:
    plain = parse_postgres_url("postgresql://me:secret@host:6543/base")
    full = parse_postgres_url(
        "postgres://me:secret@pool/base?sslmode=require&timeout_s=2.5&connections=3&pooler=transaction&listen=db:5432"
    )

    assert plain == ServerAddress(
        "postgresql://me:secret@host:6543/base", "postgresql://host:6543/base", 10.0, 8, pooler=False, listen=None
    )
    assert full == ServerAddress(
        "postgres://me:secret@pool/base?sslmode=require",
        "postgres://pool/base",
        2.5,
        3,
        pooler=True,
        listen=("db", 5432),
    )
    assert "secret" not in repr(plain) + repr(full)


def test_without_the_driver_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["asyncpg"] = None
from windowpane.wiring import open_store
try:
    open_store("postgresql://host/base")
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""

    said_there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said_there == (
        "InvalidSettingError: store_url: PostgreSQL needs its driver; "
        "install it with `pip install windowpane[postgres]`\n"
    )


@given(st.text())
def test_any_name_comes_back_as_it_was_given_and_is_kept_without_nul(name: str) -> None:
    assert name_from_sql(name_in_sql(name)) == name
    assert "\0" not in name_in_sql(name)


async def test_names_may_hold_anything_that_is_unicode() -> None:
    odd = "a\0b\\0\\c'\"$1\n\u2028"
    session = SessionId(odd)
    async with PostgresStore(fresh_database()) as store:
        await store.append(session, [created(owner=odd, agent=odd)], expected_seq=0, key=odd)

        page = await store.sessions(odd, agent=odd)

        assert [(row.id, row.owner, row.agent) for row in page.rows] == [(odd, odd, odd)]
        assert await store.acquire(session, odd, 60)
        assert contents(await store.read(session)) == []
        with anyio.fail_after(PATIENCE_S):
            stream = store.subscribe(session, after=1)
            await store.append(session, [said("x")])
            assert contents([await anext(stream)]) == ["x"]
            await stream.aclose()


async def test_appends_that_wait_together_are_stored_together() -> None:
    url = fresh_database()
    async with PostgresStore(url) as store, behind_its_back(url) as db:
        sessions = [await begin(store) for _ in range(20)]
        (before,) = await db.fetchrow("SELECT number FROM windowpane.writer")

        await asyncio.gather(*(store.append(session, [said("x")]) for session in sessions * 30))

        (after,) = await db.fetchrow("SELECT number FROM windowpane.writer")
        assert after - before <= 10
        assert [(await store.row(session)).last_seq for session in sessions] == [31] * 20


async def test_an_append_that_cannot_be_kept_fails_alone() -> None:
    async with PostgresStore(fresh_database()) as store:
        session = await begin(store)
        # Longer than an index takes, and too varied to be made shorter.
        endless = "".join(uuid4().hex for _ in range(1000))

        answers = await asyncio.gather(
            store.append(session, [said("a")]),
            store.append(session, [said("b")], key=endless),
            store.append(session, [said("c")]),
            return_exceptions=True,
        )

        assert [type(answer).__name__ for answer in answers] == ["Appended", "InvalidInputError", "Appended"]
        with pytest.raises(InvalidInputError, match="cannot keep what was given"):
            raise answers[1] if isinstance(answers[1], Exception) else AssertionError
        assert contents(await store.read(session)) == ["a", "c"]


async def test_a_batch_that_comes_again_is_answered_again_and_one_that_comes_too_late_is_refused() -> None:
    url = fresh_database()
    async with PostgresStore(url) as store, behind_its_back(url) as db:
        session = await begin(store)
        (writer,) = await db.fetchrow("SELECT id FROM windowpane.writer")

        async def send(number: int, content: str) -> tuple[object, ...]:
            return tuple(
                await db.fetchrow(
                    """SELECT * FROM windowpane.append($1, $2, ARRAY[$3], ARRAY[NULL]::bigint[], ARRAY[NULL]::text[],
                       ARRAY[NULL]::text[], ARRAY[NULL]::text[], ARRAY[1], ARRAY[NULL]::timestamptz[],
                       ARRAY[NULL]::timestamptz[], ARRAY[NULL]::timestamptz[], ARRAY[$4], ARRAY[1], ARRAY[0],
                       ARRAY[NULL]::timestamptz[], '{}', '{}', '{}')""",
                    writer,
                    number,
                    session,
                    f'{{"type":"message","role":"user","content":"{content}"}}',
                )
            )

        first = await send(2, "once")
        assert await send(2, "once") == first
        await send(3, "next")
        with pytest.raises(asyncpg.SerializationError, match="batch 2 came too late"):
            await send(2, "once")

        assert await db.fetchval("SELECT count(*) FROM windowpane.event") == 3


async def test_a_slow_server_gives_a_clear_error_in_time_and_stores_nothing_twice(tmp_path: Path) -> None:
    async with serving(POSTGRES, tmp_path) as server, PostgresStore(server.place + "?timeout_s=1") as store:
        session = await begin(store)
        server.pause()

        with anyio.fail_after(PATIENCE_S):
            for ask in (
                store.append(session, [said("keyed")], key="k"),
                store.append(session, [said("plain")]),
                store.read(session),
            ):
                with pytest.raises(StoreUnavailableError, match="gave no answer within 1 s"):
                    await ask
            server.go_on()
            await store.append(session, [said("keyed")], key="k")
            await store.append(session, [said("last")])

        stored = contents(await store.read(session))
        assert stored.count("keyed") == 1
        assert stored.count("plain") <= 1
        assert stored[-1] == "last"


async def test_a_session_that_somebody_holds_locked_gives_an_error_in_time_and_stores_nothing() -> None:
    url = fresh_database()
    async with PostgresStore(f"{url}?timeout_s=1") as store, behind_its_back(url) as db:
        session, other = await begin(store), await begin(store)
        async with db.transaction():
            await db.execute("SELECT FROM windowpane.session WHERE id = $1 FOR UPDATE", session)

            with anyio.fail_after(PATIENCE_S), pytest.raises(StoreUnavailableError):
                await store.append(session, [said("locked out")])
            await store.append(other, [said("not held up")])

        await store.append(session, [said("free")])
        assert contents(await store.read(session)) == ["free"]


async def test_a_delete_whose_answer_is_lost_is_done_and_says_so(tmp_path: Path) -> None:
    async with serving(POSTGRES, tmp_path) as server, proxy_to(server.host, server.port) as proxy:
        place = through(proxy, Place(POSTGRES, server.place))
        async with place.open() as store:
            session, idle = new_session_id(), new_session_id()
            for one in (session, idle):
                await store.append(one, [created()], expected_seq=0)
                await store.row(one)
            with pytest.raises(SessionNotFoundError):
                await store.delete(new_session_id())

            proxy.cut(session, "answer")
            await store.delete(session)
            row = await store.row(idle)
            proxy.cut(idle, "answer")
            assert await store.delete_idle(replace(row)) is True

            assert proxy.cuts == 2
            assert (await store.sessions()).rows == ()


async def test_wake_ups_that_cannot_be_heard_are_made_up_for_by_looking() -> None:
    url = fresh_database()
    async with PostgresStore(url) as writing, PostgresStore(f"{url}?listen=127.0.0.1:1&pooler=transaction") as deaf:
        session = await begin(writing)
        stream = deaf.subscribe(session, after=1)

        with anyio.fail_after(PATIENCE_S):
            for number in range(10):
                waiting = asyncio.ensure_future(anext(stream))
                await writing.append(session, [said(str(number))])
                assert contents([await waiting]) == [str(number)]


async def test_many_sessions_that_change_at_once_wake_all_who_watch_them() -> None:
    url = fresh_database()
    async with PostgresStore(url) as writing, PostgresStore(url) as watching:
        sessions = [await begin(writing) for _ in range(400)]
        streams = [watching.subscribe(session, after=1) for session in sessions[::50]]
        waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]

        await asyncio.gather(*(writing.append(session, [said("x")]) for session in sessions))

        with anyio.fail_after(PATIENCE_S):
            assert [contents([recorded]) for recorded in await asyncio.gather(*waiting)] == [["x"]] * 8


async def test_an_append_that_cannot_be_sent_fails_by_itself_and_leaves_no_caller_waiting() -> None:
    async with PostgresStore(fresh_database()) as store:
        session = await begin(store)
        plain = partial(checked_append, expected_seq=None, key=None, blobs=None, original_times=None, fence=None)
        good = [plain(session, [said(f"{number}")]) for number in range(4)]
        broken = replace(plain(session, [said("broken")]), bodies=(b"\xff",))

        with anyio.fail_after(PATIENCE_S):
            told = await asyncio.gather(
                *(store.add(one) for one in (*good[:2], broken, *good[2:])), return_exceptions=True
            )

        assert [type(one).__name__ for one in told] == ["Appended"] * 2 + ["UnicodeDecodeError"] + ["Appended"] * 2
        assert sorted(contents(await store.read(session))) == ["0", "1", "2", "3"]


async def test_a_writer_that_ends_before_its_time_leaves_no_caller_waiting() -> None:
    store = PostgresStore(fresh_database())
    async with store:
        session = await begin(store)
        writer = store._writer  # pyright: ignore[reportPrivateUsage] no door ends it alone
        assert writer is not None
        waiting = asyncio.create_task(store.append(session, [said("on its way")]))
        await asyncio.sleep(0)
        writer._task.cancel()  # pyright: ignore[reportPrivateUsage]

        with pytest.raises(StoreUnavailableError, match="closed before it could answer"):
            await asyncio.wait_for(waiting, PATIENCE_S)
        with pytest.raises(StoreUnavailableError):
            await store.append(session, [said("too late")])
