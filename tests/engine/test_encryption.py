"""Sessions with a key: nothing that is said in them can be found in anything that is written."""

import base64
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from stores.kinds import KEY, KINDS, Kind
from windowpane.context.events import MessageAdded, SummaryMade, TurnError, TurnFinished, TurnStarted
from windowpane.context.fetched import Fetched
from windowpane.context.ids import SessionId, content_hash
from windowpane.context.summary import Summary
from windowpane.errors import StoreEncryptedError
from windowpane.insight.analytics.store import AnalyticsStore
from windowpane.insight.analytics.update import AnalyticsUpdater
from windowpane.local.pane import LocalPane
from windowpane.models.scripted import Call, Reply
from windowpane.stores.base import Snapshot, Store
from windowpane.stores.codec import encode_state
from windowpane.stores.copy import copy_store
from windowpane.stores.encrypted.keys import KeyRing
from windowpane.stores.encrypted.store import EncryptedStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, tool

pytestmark = pytest.mark.anyio

PLANTED = (
    "message",
    "answer",
    "thinking",
    "argument",
    "result",
    "page",
    "address",
    "headline",
    "rule",
    "reference",
    "prompt",
    "override",
    "working",
    "overview",
    "fact",
    "topic",
    "name",
    "outside",
    "source",
    "key",
    "partial",
    "client",
)


def planted(place: str) -> str:
    """Return a word that stands nowhere else."""
    return f"quaggasaurus{place}"


def forms(word: str) -> list[bytes]:
    """Return what to look for: the word, and how it looks in base64, wherever it begins there."""
    shifted = [base64.b64encode(b"\0" * shift + word.encode())[4:-4] for shift in range(3)]
    return [word.encode(), word.encode("utf-16-le"), word.encode().hex().encode(), *shifted]


@dataclass
class Place:
    """A store, and every file that is written for it."""

    store: Store
    files: Path

    def found(self) -> set[str]:
        """Return the planted places of which a word can be found in a file, and any hash of a whole planted text."""
        written = b"".join(file.read_bytes() for file in sorted(self.files.rglob("*")) if file.is_file())
        assert len(written) > 10_000
        hashes = {"hash": content_hash(planted("message")).encode()}
        return {place for place in PLANTED for form in forms(planted(place)) if form in written} | {
            what for what, form in hashes.items() if form in written
        }


@pytest.fixture(params=["sqlite", "postgres", "redis"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """A place of every store that writes, with a server of its own where it is one."""
    kind: Kind = next(kind for kind in KINDS if kind.name == request.param)
    files = tmp_path / "files"
    files.mkdir()
    if kind.serve is None:
        yield Place(kind.open(kind.fresh(files)), files)
        return
    server = kind.serve(files)
    server.start()
    try:
        yield Place(kind.open(server.place), server.files)
    finally:
        server.stop()


async def converse(world: World, place: Place) -> tuple[SessionId, set[str]]:
    """Say something in every way that a session keeps; return what can be found while everything is still open."""
    world.rule("tone", f"Always {planted('rule')}.", include="always")
    world.reference("guide", f"About {planted('reference')}.", include="always")
    world.write("prompts/core.md", f"You are {planted('prompt')}.")
    world.toolbox.put("eyes", [tool("look", f"saw {planted('result')}", permission="not_required")])
    world.says(
        Reply(
            "",
            thinking=f"so {planted('thinking')}",
            calls=(Call("eyes__look", f'{{"what": "{planted("argument")}"}}'),),
        ),
        f"It is {planted('answer')}.",
    )
    async with world.engine() as engine:
        pane = LocalPane(engine, owner="local")
        session = SessionId((await pane.sessions.create(name=planted("name"))).id)
        await pane.sessions.update(session, {"system_prompt": f"Be {planted('override')}."})
        page = Fetched(
            kind="page",
            url=f"https://example.org/{planted('address')}",
            content=planted("page"),
            title=planted("headline"),
        )
        await pane.sessions.add_fetched(session, [page])
        await pane.sessions.set_context(session, "topics", [planted("working")])
        await pane.ask(session, planted("message"), key=planted("key"))
        summary = Summary(
            overview=planted("overview"), current_topic=planted("topic"), key_facts=(planted("fact"),), through_seq=3
        )
        failure = TurnError(code="model_error", message="It broke off.", partial=planted("partial"))
        await engine.store.append(
            session,
            [
                MessageAdded(role="user", content=planted("outside"), source=planted("source")),
                SummaryMade(summary=summary),
                TurnStarted(turn=2, message="And then?", key=planted("client")),
                TurnFinished(turn=2, outcome="failed", error=failure),
            ],
            key=planted("key"),
        )
        state = await engine.sessions.get(session)
        await engine.store.put_snapshot(session, Snapshot(state.seq, encode_state(state)))
        analytics = AnalyticsStore(place.files / "analytics.db")
        await AnalyticsUpdater(engine.store, analytics).update(within_s=None)
        analytics.close()
        return session, place.found()


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
async def test_of_what_is_said_nothing_can_be_found_in_what_is_written(
    place: Place, tmp_path: Path, key: str | None
) -> None:
    store = place.store if key is None else EncryptedStore(place.store, KeyRing.parse(key, "encryption_key"))
    world = World(tmp_path / "agents", store=store)

    session, found = await converse(world, place)

    if key is None:
        # What stands in the small texts of a plain store is found, so looking is worth something.
        assert {"message", "answer", "result", "page", "fact", "name", "hash"} <= found
    else:
        assert found | place.found() == set()
        async with world.engine() as engine:
            state = await engine.sessions.get(session)
            assert (state.name, state.opening) == (planted("name"), planted("message"))
            request = await LocalPane(engine, owner="local").turns.request(session, 1)
            assert planted("rule") in "".join(message.content for message in request.messages)


async def test_everything_in_the_file_of_an_encrypted_store_is_sealed(tmp_path: Path) -> None:
    file = tmp_path / "files" / "sessions.db"
    world = World(tmp_path / "agents", store=EncryptedStore(SQLiteStore(file), KeyRing.parse(KEY, "encryption_key")))

    await converse(world, Place(world.store, file.parent))

    base = r"[A-Za-z0-9+/]+=*"
    sealed_event = re.compile(rf'\{{"type":"sealed","key":"{base}","box":"{base}"\}}')
    with closing(sqlite3.connect(file)) as db:
        bodies = [body for (body,) in db.execute("SELECT body FROM text WHERE typeof(body) = 'text'")]
        names = {name for (name,) in db.execute("SELECT hash FROM blob")}
        keys = [name for (name,) in db.execute("SELECT key FROM append_key")]
    assert len(bodies) > 8
    assert all(sealed_event.fullmatch(body) for body in bodies)
    assert {name[0] for name in names} == {"a", "k", "s"}
    assert [bool(re.fullmatch(base, key)) for key in keys] == [True]


async def test_an_engine_without_the_key_does_not_open_and_leaves_the_store_closed(tmp_path: Path) -> None:
    file = tmp_path / "sessions.db"
    world = World(tmp_path / "agents", store=EncryptedStore(SQLiteStore(file), KeyRing.parse(KEY, "encryption_key")))
    async with world.pane() as pane:
        await pane.sessions.create()
    plain = World(tmp_path / "agents", store=SQLiteStore(file))

    with pytest.raises(StoreEncryptedError, match="WINDOWPANE_ENCRYPTION_KEY"):
        async with plain.pane():
            pass

    assert not file.with_name("sessions.db-wal").exists()


async def test_the_search_for_sessions_looks_at_names_only_and_says_so(tmp_path: Path) -> None:
    found: list[tuple[list[str], bool]] = []
    for store in (
        SQLiteStore(tmp_path / "plain.db"),
        EncryptedStore(SQLiteStore(tmp_path / "sealed.db"), KeyRing.parse(KEY, "encryption_key")),
    ):
        world = World(tmp_path / "agents", store=store)
        world.says("Tomatoes.", "Cucumbers.")
        async with world.pane() as pane:
            named = await pane.sessions.create(name="Garden")
            await pane.ask(named.id, "What is red?")
            await pane.ask((await pane.sessions.create()).id, "What is green?")
            for words in ("garden", "green", "tomatoes"):
                listed = await pane.sessions.list(query=words)
                found.append(([session.title for session in listed.sessions], listed.names_only))

    assert found == [
        (["Garden"], False),
        (["What is green?"], False),
        (["Garden"], False),
        (["Garden"], True),
        (["What is green?"], True),
        ([], True),
    ]


async def test_sessions_that_are_copied_from_a_plain_store_share_the_texts_of_their_agent(tmp_path: Path) -> None:
    file = tmp_path / "sealed.db"
    world = World(tmp_path / "agents", store=SQLiteStore(tmp_path / "plain.db"))
    world.rule("tone", "Be kind.", include="always")
    world.says("One.", "Two.")
    async with world.pane() as pane:
        for _ in range(2):
            await pane.ask((await pane.sessions.create()).id, "Hello?")
    async with (
        SQLiteStore(tmp_path / "plain.db") as plain,
        EncryptedStore(SQLiteStore(file), KeyRing.parse(KEY, "encryption_key")) as target,
    ):
        assert (await copy_store(plain, target)).verified == 2

    with closing(sqlite3.connect(file)) as db:
        bundles = db.execute("SELECT count(*) FROM session_bundle GROUP BY bundle").fetchall()
        shared = db.execute("SELECT count(*) FROM blob WHERE hash LIKE 'a%'").fetchall()
    # The rule and the catalog.
    assert (bundles, shared) == ([(2,)], [(2,)])
