"""What only the Redis store promises, on real Valkey servers, replicas and clusters."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
import structlog
from redis.crc import key_slot

from cli.running import windowpane
from fetch.certificates import authority
from patience import PATIENCE_S
from ports import free_port
from stores import redis_server
from stores.kinds import begin, contents, created, said
from stores.proxy import proxy_to
from stores.redis_server import RedisServer, wait_until
from windowpane.context.events import Event, Recorded
from windowpane.context.ids import SessionId, content_hash
from windowpane.context.session import SessionState
from windowpane.errors import (
    InvalidSettingError,
    SequenceConflictError,
    SessionNotFoundError,
    StoreRolledBackError,
    StoreUnavailableError,
)
from windowpane.stores.redis.durability import Durability
from windowpane.stores.redis.store import RedisStore
from windowpane.stores.redis.url import HostPort, RedisLogin, RedisUrl, Tls, parse_redis_url
from windowpane.stores.sessions import Sessions
from windowpane.wiring import open_store

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server.server() as one:
        yield one


@pytest.fixture(scope="module")
def masters() -> Iterator[list[RedisServer]]:
    with redis_server.cluster() as three:
        yield three


def cluster_url(masters: list[RedisServer]) -> str:
    return f"redis+cluster://{','.join(f'{one.host}:{one.port}' for one in masters)}"


async def until(holds: Callable[[], bool]) -> None:
    await anyio.to_thread.run_sync(wait_until, holds)


# The URL


@pytest.mark.spec("S4.23")
@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "rediss://h:1/2",
        "valkey://h",
        "valkeys://u:p@h",
        "redis+cluster://a,b:7001",
        "redis+sentinel://a/s",
    ],
)
def test_a_url_names_the_store_and_nothing_else_changes(url: str) -> None:
    assert isinstance(open_store(url), RedisStore)


def test_a_url_says_where_the_servers_are_and_how_to_use_them() -> None:
    cluster = "rediss+cluster://ana:s%20cret@[::1]:7000,b?prefix=mine&durable=no&expire_after_s=1.5&db=2"
    sentinels = "valkey+sentinel://:secret@a,b:26380/my%20service/3?sentinel_auth=yes&patience_s=2"

    assert parse_redis_url(cluster) == RedisUrl(
        hosts=(HostPort("::1", 7000), HostPort("b", 6379)),
        topology="cluster",
        service="",
        login=RedisLogin("ana", "s cret", 2),
        sentinel_auth=False,
        tls=Tls(),
        prefix="mine",
        durable=False,
        expire_ms=1500,
        patience_s=15.0,
    )
    assert parse_redis_url(sentinels) == RedisUrl(
        hosts=(HostPort("a", 26379), HostPort("b", 26380)),
        topology="sentinel",
        service="my service",
        login=RedisLogin(None, "secret", 3),
        sentinel_auth=True,
        tls=None,
        prefix="windowpane",
        durable=True,
        expire_ms=None,
        patience_s=2.0,
    )


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://u:secret@h",
        "redis://u:secret@h:port",
        "redis+other://u:secret@h",
        "redis+sentinel://u:secret@h/service?sentinel_auth=maybe",
        "redis://u:secret@h?prefix=",
        "redis://u:secret@h?prefix={a}",
        "redis://u:secret@h?durable=maybe",
        "redis://u:secret@h?expire_after_s=soon",
        "redis://u:secret@h?expire_after_s=0",
        "redis://u:secret@h?patience_s=nan",
        "redis://u:secret@h?no_such_option=1",
        "redis://u:secret@h/zero",
        "rediss://u:secret@h?ssl_ca_certs=/no/such/file",
        "rediss://u:secret@h?ssl_check_hostname=maybe",
    ],
)
def test_a_url_that_says_nothing_useful_is_refused_without_repeating_the_password(url: str) -> None:
    with pytest.raises(InvalidSettingError) as caught:
        parse_redis_url(url)

    assert caught.value.name == "store_url"
    assert "secret" not in str(caught.value)


def test_without_the_client_the_next_step_is_named() -> None:
    program = (
        "import sys; sys.modules['redis'] = None; from windowpane.wiring import open_store; open_store('redis://h')"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert "InvalidSettingError: store_url: Redis and Valkey need a client" in done.stderr
    assert "pip install windowpane[redis]" in done.stderr


async def test_nobody_there_and_a_wrong_password_are_told_apart_without_repeating_it() -> None:
    with pytest.raises(StoreUnavailableError, match=r"Redis at 127\.0\.0\.1:\d+ does not answer"):
        async with RedisStore(f"redis://127.0.0.1:{free_port()}?patience_s=0.1"):
            pass
    with redis_server.server("--requirepass", "open sesame") as locked:
        with pytest.raises(StoreUnavailableError, match="refuses") as caught:
            async with RedisStore(f"redis://:wrong@127.0.0.1:{locked.port}"):
                pass
        assert "wrong@" not in str(caught.value)
        async with RedisStore(f"redis://:open%20sesame@127.0.0.1:{locked.port}") as store:
            await begin(store)


@pytest.mark.spec("S4.23")
async def test_a_server_behind_tls_is_used_when_it_proves_its_name_to_those_who_trust_its_signer(
    server: RedisServer, tmp_path: Path
) -> None:
    signer = authority(tmp_path)
    async with proxy_to(server.host, server.port, signer.server_context("localhost")) as proxy:
        async with RedisStore(f"rediss://localhost:{proxy.port}/1?ssl_ca_certs={signer.ca_file}") as store:
            session = await begin(store)
            await store.append(session, [said("x" * 1_000_000)])
            watching = store.subscribe(session, after=1)
            assert contents([await anext(watching)]) == ["x" * 1_000_000]
            await store.append(session, [said("y")])
            assert contents([await anext(watching)]) == ["y"]

        for url in (
            f"rediss://127.0.0.1:{proxy.port}?patience_s=0.1&ssl_ca_certs={signer.ca_file}",
            f"rediss://localhost:{proxy.port}?patience_s=0.1",
        ):
            with pytest.raises(StoreUnavailableError, match="certificate verify failed"):
                async with RedisStore(url):
                    pass


# What the server promises


@pytest.mark.parametrize(
    ("durability", "keeps", "words"),
    [
        ("always", True, "an acknowledged write survives a kill and a power cut"),
        ("everysec", True, "the last two seconds"),
        ("no", True, "often 30 s"),
        ("none", False, "a restart loses"),
    ],
)
async def test_the_store_tells_what_the_servers_settings_promise(durability: str, keeps: bool, words: str) -> None:
    with redis_server.server(durability=durability) as one:
        async with RedisStore(f"{one.place}?durable=no") as store:
            assert store.durability.keeps is keeps
            assert words in str(store.durability)


async def test_a_server_that_would_forget_is_refused_unless_the_url_accepts_it_and_then_a_warning_is_logged() -> None:
    evicting = ("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
    for settings, durability, words in (((), "none", "--appendonly yes"), (evicting, "always", "noeviction")):
        with redis_server.server(*settings, durability=durability) as one:
            with pytest.raises(InvalidSettingError, match=words):
                async with RedisStore(one.place):
                    pass
            with structlog.testing.capture_logs() as logged:
                async with RedisStore(f"{one.place}?durable=no") as store:
                    await begin(store)
            assert [entry["event"] for entry in logged] == ["redis.not_durable"]


async def test_replicas_are_counted_because_one_that_takes_over_can_miss_writes(server: RedisServer) -> None:
    async with RedisStore(server.place) as store:
        assert store.durability == Durability(appendfsync="always", evicts=False, replicas=0)


# One server


async def test_the_log_is_a_stream_whose_ids_are_the_sequence_numbers(server: RedisServer) -> None:
    async with RedisStore(f"{server.place}?prefix=ids") as store:
        session = await begin(store)
        await store.append(session, [said("one"), said("two")])

    entries = server.run("XRANGE", f"ids:{{s:{session}}}:log", "-", "+")
    assert [one for one, _ in entries] == [b"1-0", b"2-0", b"3-0"]


@pytest.mark.parametrize("name", ["", "}", "{}", "a}b{c", "a:log", "日本", "\0", "*?[x]"])
async def test_any_name_is_a_session_of_its_own(masters: list[RedisServer], name: str) -> None:
    async with RedisStore(f"{cluster_url(masters)}&prefix=names".replace("&", "?")) as store:
        session = SessionId(name)
        await store.append(session, [created(owner=name, agent=name)], expected_seq=0)
        await store.append(session, [said(name)], key=name, blobs={content_hash(name): name})

        assert contents(await store.read(session)) == [name]
        assert session in [row.id for row in (await store.sessions(name, agent=name)).rows]
        await store.delete(session)
        assert [row.id for row in (await store.sessions(name)).rows] == []


async def test_what_waits_goes_out_together(server: RedisServer) -> None:
    async with RedisStore(server.place) as store:
        session = await begin(store)
        before = server.run("INFO", "stats")["total_reads_processed"]
        await asyncio.gather(*(store.append(session, [said(str(n))]) for n in range(200)))
        reads = server.run("INFO", "stats")["total_reads_processed"] - before

        assert len(await store.read(session)) == 201
        assert reads < 50


async def test_a_server_that_forgot_the_scripts_is_given_them_again(server: RedisServer) -> None:
    async with RedisStore(server.place) as store:
        session = await begin(store)
        server.run("SCRIPT", "FLUSH")

        await asyncio.gather(*(store.append(session, [said("x")], key=f"{n}") for n in range(20)))

        assert len(await store.read(session)) == 21


async def test_an_append_that_is_given_again_before_a_slow_server_did_the_first_is_stored_once() -> None:
    with redis_server.server() as one:
        async with RedisStore(one.place, answer_s=0.3) as store:
            session = await begin(store)
            one.pause()
            appending = [asyncio.create_task(store.append(session, [said(f"{n}"), said(f"{n}")])) for n in range(5)]
            # Until the first attempt has been given up, and the second waits behind it in the server's sockets.
            await asyncio.sleep(1)
            one.go_on()
            with anyio.fail_after(PATIENCE_S):
                answers = await asyncio.gather(*appending)

            said_now = contents(await store.read(session))
            assert one.run("INFO", "commandstats")["cmdstat_evalsha"]["calls"] >= 10
            assert sorted(said_now) == sorted(f"{n}" for n in range(5) for _ in range(2))
            assert [said_now[answer.first_seq - 2] for answer in answers] == [f"{n}" for n in range(5)]
            assert not any(answer.repeated for answer in answers)


@pytest.mark.parametrize("erasing", ["delete", "erase"])
async def test_erased_text_leaves_the_servers_files(erasing: str) -> None:
    with redis_server.server() as one:

        def in_files(text: str) -> bool:
            found = False
            for file in one.directory.rglob("*"):
                with suppress(FileNotFoundError):
                    found = found or (file.is_file() and text.encode() in file.read_bytes())
            return found

        async with RedisStore(one.place) as store:
            session, other = await begin(store), await begin(store)
            await store.append(session, [said("the secret")], blobs={content_hash("secret too"): "secret too"})
            await store.append(other, [said("stays")])
            assert in_files("the secret")
            assert in_files("secret too")

            if erasing == "delete":
                await store.delete(session)
            else:
                await store.erase(session, [2], blobs=[content_hash("secret too")])

            await until(lambda: not in_files("the secret") and not in_files("secret too"))
            assert in_files("stays")


async def test_a_store_that_is_closed_at_once_still_has_the_files_written_anew() -> None:
    with redis_server.server() as one:
        for _ in range(2):
            async with RedisStore(one.place) as store:
                session = await begin(store)
                await store.append(session, [said("the secret")])
                await store.delete(session)

        def has_the_secret() -> bool:
            files = [file for file in one.directory.rglob("*") if file.is_file()]
            with suppress(FileNotFoundError):
                return any(b"the secret" in file.read_bytes() for file in files)
            return True

        await until(lambda: not has_the_secret())


@pytest.mark.spec("S4.65", "S4.66")
async def test_a_session_that_nobody_uses_goes_by_itself_and_using_it_rewrites_nothing(server: RedisServer) -> None:
    async with RedisStore(f"{server.place}?prefix=expire&expire_after_s=600") as store:
        session = await begin(store)
        await store.append(session, [said("x")], key="k", blobs={content_hash("blob"): "blob"})
        keys: list[bytes] = server.run("KEYS", f"expire:{{s:{session}}}*")
        assert len(keys) == 3
        assert all(500_000 < server.run("PTTL", key) <= 600_000 for key in keys)
        for key in keys:
            server.run("PEXPIRE", key, 100_000)
        await store.touch(session)
        assert all(server.run("PTTL", key) > 500_000 for key in keys)
        for key in keys:
            server.run("PEXPIRE", key, 1)
        await until(lambda: server.run("EXISTS", *keys) == 0)

        with pytest.raises(SessionNotFoundError):
            await store.row(session)
        assert (await store.sessions()).rows == ()
        assert await store.blobs(session, [content_hash("blob")]) == {}


async def test_a_watcher_is_told_that_a_session_expired(server: RedisServer) -> None:
    async with RedisStore(f"{server.place}?prefix=watched&expire_after_s=0.3", check_every_s=0.1) as store:
        session = await begin(store)

        with anyio.fail_after(PATIENCE_S):
            seen = [recorded.seq async for recorded in store.subscribe(session, after=0)]

        assert seen == [1]


# A replica that takes over


async def test_a_replica_that_took_over_without_the_last_writes_is_noticed_by_whoever_had_seen_them() -> None:
    with redis_server.server("--repl-diskless-sync-delay", "0") as primary:
        async with proxy_to(primary.host, primary.port) as replication, proxy_to(primary.host, primary.port) as name:
            with redis_server.server("--replicaof", "127.0.0.1", str(replication.port)) as replica:
                await until(lambda: replica.run("INFO", "replication")["master_link_status"] == "up")
                async with RedisStore(f"redis://127.0.0.1:{name.port}") as store:
                    assert store.durability.replicas == 1
                    sessions = Sessions(store)
                    session, untouched = await begin(store), await begin(store)
                    await sessions.change(session, saying("replicated"))
                    assert primary.run("WAIT", 1, 60_000) == 1
                    replication.stall()
                    await sessions.change(session, saying("lost 1"))
                    await sessions.change(session, saying("lost 2"))
                    watching = store.subscribe(session, after=0)
                    with anyio.fail_after(PATIENCE_S):
                        seen = [(await anext(watching)).seq for _ in range(4)]
                    last = await store.row(session)

                    primary.kill()
                    name.to_port = replica.port
                    name.cut_all()
                    appending = asyncio.create_task(store.append(untouched, [said("as soon as it is a primary")]))
                    await anyio.sleep(0.1)
                    replica.run("REPLICAOF", "NO", "ONE")

                    with anyio.fail_after(PATIENCE_S):
                        await appending
                        with pytest.raises(StoreRolledBackError, match="seen up to 4; it stands at 2"):
                            await store.append(session, [said("on top of what was lost")], expected_seq=4)
                        with pytest.raises(StoreRolledBackError):
                            await sessions.change(session, saying("on top of what was lost"))
                        changed = await sessions.change(session, saying("a new history"))
                        await store.append(session, [said("goes"), said("on")])
                        with pytest.raises(StoreRolledBackError):
                            await anext(watching)

                    assert (seen, last.last_seq, changed.state.seq) == ([1, 2, 3, 4], 4, 3)
                    assert contents(await store.read(session)) == ["replicated", "a new history", "goes", "on"]


@pytest.mark.spec("S4.23")
async def test_a_store_behind_sentinels_goes_on_with_the_replica_that_they_promote() -> None:
    with (
        redis_server.server("--repl-diskless-sync-delay", "0") as primary,
        redis_server.server("--replicaof", primary.host, str(primary.port)) as replica,
        redis_server.sentinel(primary) as sentinel,
    ):
        await until(lambda: replica.run("INFO", "replication")["master_link_status"] == "up")
        await until(sentinel.knows_a_replica)
        url = f"redis+sentinel://127.0.0.1:{free_port()},127.0.0.1:{sentinel.port}/sessions?patience_s={PATIENCE_S}"
        async with RedisStore(url) as store:
            session = await begin(store)
            await store.append(session, [said("before")])
            watching = store.subscribe(session, after=1)
            heard = [(await anext(watching)).seq]
            assert primary.run("WAIT", 1, 60_000) == 1

            primary.kill()
            sentinel.be_impatient()
            with anyio.fail_after(PATIENCE_S):
                await store.append(session, [said("after")])
                heard.append((await anext(watching)).seq)

            assert heard == [2, 3]
            assert contents(await store.read(session)) == ["before", "after"]
            assert replica.run("ROLE")[0] == b"master"


async def test_sentinels_that_do_not_know_the_service_are_named(server: RedisServer) -> None:
    with (
        redis_server.sentinel(server) as sentinel,
        pytest.raises(StoreUnavailableError, match="No master found for 'other'"),
    ):
        async with RedisStore(f"redis+sentinel://127.0.0.1:{sentinel.port}/other?patience_s=0.1"):
            pass


def saying(content: str) -> Callable[[SessionState], list[Event]]:
    return lambda state: [said(content)]


async def test_a_log_that_stands_before_what_was_seen_is_a_conflict_for_a_process_that_has_not_seen_it(
    server: RedisServer,
) -> None:
    async with RedisStore(server.place) as store:
        session = await begin(store)

        with pytest.raises(SequenceConflictError, match="is at 1, not at 7"):
            await store.append(session, [said("x")], expected_seq=7)


# A cluster


async def test_a_sessions_keys_are_on_one_server_and_sessions_are_spread_over_all(masters: list[RedisServer]) -> None:
    async with RedisStore(f"{cluster_url(masters)}?prefix=spread") as store:
        sessions = [await begin(store) for _ in range(30)]
        for session in sessions:
            await store.append(session, [said("x")], key="k", blobs={content_hash("blob"): "blob"})

        slots: dict[SessionId, set[int]] = {session: set() for session in sessions}
        filled: list[int] = []
        for one in masters:
            keys: list[bytes] = one.run("KEYS", "spread:{*")
            filled.append(len(keys))
            for key in keys:
                slots[SessionId(key.partition(b"{s:")[2].partition(b"}")[0].decode())].add(key_slot(key))
        assert all(len(of_session) == 1 for of_session in slots.values())
        assert all(filled)
        assert [row.id for row in (await store.sessions(limit=100)).rows] == sessions[::-1]


async def test_the_index_is_put_right_after_a_process_died_between_two_servers(masters: list[RedisServer]) -> None:
    async with RedisStore(f"{cluster_url(masters)}?prefix=torn") as store:
        one, two, three = [await begin(store) for _ in range(3)]
        index = next(one for one in masters if has(one, "torn:index:all"))
        now_us: float = index.run("ZSCORE", "torn:index:all", three)
        # One was used, and its process died before it was put on top; two others died before they began theirs.
        for name, at_us in ((one, now_us - 60_000_000), ("ses_just_now", now_us), ("ses_long_ago", 1)):
            index.run("ZADD", "torn:index:all", f"{at_us:.0f}", name)

        listed = [row.id for row in (await store.sessions()).rows]
        put_right = index.run("ZSCORE", "torn:index:all", one)
        named = set(index.run("ZRANGE", "torn:index:all", 0, -1))

        assert listed == [three, two, one]
        assert put_right > now_us - 30_000_000
        assert named == {name.encode() for name in (one, two, three, "ses_just_now")}


async def test_an_index_that_a_cluster_lost_is_made_again_from_the_sessions(
    masters: list[RedisServer], tmp_path: Path
) -> None:
    url = f"{cluster_url(masters)}?prefix=lost[index]"
    async with RedisStore(url) as store:
        sessions = [await begin(store, "ana" if n % 2 else "bob") for n in range(12)]
        for one in masters:
            for key in one.run("KEYS", "lost?index?:index:*"):
                one.run("DEL", key)
        assert (await store.sessions()).rows == ()

        reindex = partial(windowpane, tmp_path, "store", "reindex", WINDOWPANE_STORE_URL=url)
        listed = await anyio.to_thread.run_sync(reindex)
        elsewhere = await anyio.to_thread.run_sync(windowpane, tmp_path, "store", "reindex")

        assert (listed.code, listed.out) == (0, "12 sessions listed.\n")
        assert (elsewhere.code, "only a Redis store has a list" in elsewhere.err) == (1, True)
        assert [row.id for row in (await store.sessions()).rows] == sessions[::-1]
        assert [row.id for row in (await store.sessions("bob")).rows] == sessions[-2::-2]


async def test_a_slot_that_moves_to_another_server_takes_its_session_and_its_watchers_along() -> None:
    with redis_server.cluster() as masters:
        async with RedisStore(f"{cluster_url(masters)}?prefix=moving") as store:
            session = await begin(store)
            slot = key_slot(f"moving:{{s:{session}}}".encode())
            source = next(one for one in masters if has(one, f"moving:{{s:{session}}}"))
            target = next(one for one in masters if one is not source)
            watching = store.subscribe(session, after=0)
            moved = anyio.Event()

            async def write() -> None:
                number = 0
                while not moved.is_set():
                    await store.append(session, [said(str(number))])
                    number += 1
                for last in ("and", "after", "it"):
                    await store.append(session, [said(last)])

            async def move() -> None:
                await anyio.to_thread.run_sync(move_slot, slot, source, target, masters)
                moved.set()

            seen: list[Recorded] = []
            with anyio.fail_after(PATIENCE_S):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(write)
                    async for recorded in watching:
                        seen.append(recorded)
                        if len(seen) == 10:
                            tasks.start_soon(move)
                        if contents([recorded]) == ["it"]:
                            break

            said_while_moving = len(seen) - 4
            assert contents(seen) == [*(str(number) for number in range(said_while_moving)), "and", "after", "it"]
            assert await store.read(session) == seen
            assert has(target, f"moving:{{s:{session}}}")


def has(one: RedisServer, key: str) -> bool:
    return key.encode() in one.run("KEYS", "*")


def move_slot(slot: int, source: RedisServer, target: RedisServer, masters: list[RedisServer]) -> None:
    """Move a slot as an administrator does, while it is used."""
    source_id, target_id = source.run("CLUSTER", "MYID"), target.run("CLUSTER", "MYID")
    target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
    source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
    while keys := source.run("CLUSTER", "GETKEYSINSLOT", slot, 100):
        for key in keys:
            source.run("MIGRATE", "127.0.0.1", target.port, key, 0, 10_000)
    for one in (target, source, *masters):
        one.run("CLUSTER", "SETSLOT", slot, "NODE", target_id)
