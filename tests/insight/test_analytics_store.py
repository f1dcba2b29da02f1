"""The analytics store and the updater: everything is counted once, whoever counts and whenever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import anyio
import pytest

from insight.counted import PAPER, PAPER_ANSWER, REFUND, ask, counted, everything, talking
from stores.kinds import KINDS, Kind
from stores.postgres_server import PostgresServer, fresh_database
from windowpane.api.analytics import Filters
from windowpane.context.events import Recorded
from windowpane.context.ids import SessionId
from windowpane.context.items import reference_ref, rule_ref
from windowpane.engine import Engine
from windowpane.errors import InvalidSettingError, StoreUnavailableError
from windowpane.insight.analytics.count import Lesson
from windowpane.insight.analytics.report import dashboard
from windowpane.insight.analytics.store import AnalyticsStore, Remembered
from windowpane.insight.analytics.tables import OTHERS, TABLES
from windowpane.insight.analytics.update import AnalyticsUpdater, Kept
from windowpane.models.scripted import Call, Reply
from windowpane.stores.memory import MemoryStore
from windowpane.testing import World, drain, tool

PLACES = ("file", "postgres")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A fresh place of every kind that turns can be counted in."""
    return tmp_path / "analytics.db" if request.param == "file" else fresh_database()


@pytest.fixture
def analytics(place: Path | str) -> Iterator[AnalyticsStore]:
    """An empty analytics store of every kind."""
    with closing(AnalyticsStore(place)) as opened:
        yield opened


BILLING, PRINTING, HIDDEN = reference_ref("billing"), reference_ref("printing"), reference_ref("hidden")


@pytest.mark.parametrize("seed", range(6))
async def test_counting_bit_by_bit_gives_what_counting_at_once_gives(
    tmp_path: Path, analytics: AnalyticsStore, seed: int
) -> None:
    random = Random(seed)
    async with talking(tmp_path / "agents") as engine:
        sessions = [(await engine.sessions.create(owner=owner)).id for owner in ("ana", "ana", "ben")]
        waiting = None
        for _ in range(25):
            session = random.choice([one for one in sessions if waiting is None or one != waiting.session_id])
            act = random.choice(("ask", "ask", "ask", "wait", "add", "remove", "name", "fail", "count", "count"))
            if act == "ask":
                await ask(engine, session, *random.choice(((REFUND,), (PAPER, PAPER_ANSWER), ("Hello", "Hello."))))
            elif act == "wait" and waiting is None:
                waiting = await engine.prepared.begin(session, REFUND)
            elif act == "wait" and waiting is not None:
                await engine.prepared.record(waiting, "Five working days to reach the bank account.")
                waiting = None
            elif act == "add":
                await engine.items.add(session, random.choice((HIDDEN, PRINTING)))
            elif act == "remove":
                await engine.items.remove(session, random.choice((HIDDEN, PRINTING, rule_ref("tone"))))
            elif act == "name":
                await engine.sessions.update(session, {"name": f"named {random.random()}"})
            elif act == "fail":
                await engine.prepared.abandon(await engine.prepared.begin(session, PAPER), "no model")
            elif act == "count":
                await counted(engine, analytics)

        assert everything(await counted(engine, analytics)) == everything(await counted(engine))


@pytest.mark.spec("S0.89")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_every_store_is_counted_alike(tmp_path: Path, kind: Kind) -> None:
    async def told(engine: Engine) -> dict[str, object]:
        session = (await engine.sessions.create(owner="ana", session_id=SessionId("ses_everywhere"))).id
        await ask(engine, session)
        await engine.items.add(session, HIDDEN)
        first = await counted(engine)
        await ask(engine, session, PAPER, PAPER_ANSWER)
        rows = everything(await counted(engine, first))
        return {name: rows[name] for name in ("turn", "part", "item")}

    async with talking(tmp_path / "one", MemoryStore()) as engine:
        wanted = await told(engine)
    async with talking(tmp_path / "two", kind.open(kind.fresh(tmp_path))) as engine:
        assert await told(engine) == wanted


async def test_two_who_count_at_once_count_nothing_twice(tmp_path: Path, place: Path | str) -> None:
    async with talking(tmp_path / "agents") as engine:
        for _ in range(3):
            session = (await engine.sessions.create()).id
            for _ in range(4):
                await ask(engine, session)
        stores = [AnalyticsStore(place) for _ in range(4)]
        async with anyio.create_task_group() as tasks:
            for analytics in stores:
                tasks.start_soon(counted, engine, analytics)

        found = everything(await counted(engine, stores[0]))

        assert found == everything(await counted(engine))
        assert sum(row[5] for row in found["turn"]) == 12 * 4
        for analytics in stores:
            analytics.close()


async def test_a_turn_that_waits_for_a_person_is_counted_when_it_has_finished(
    tmp_path: Path, analytics: AnalyticsStore
) -> None:
    world = World(tmp_path / "agents")
    world.toolbox.put("files", [tool("read")])
    world.says(Reply("Reading.", calls=(Call("files__read", "{}"),)), "Done.")
    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        await drain(engine.turn(session, "Read it."))
        await counted(engine, analytics)
        before = analytics.rows("SELECT count(*) FROM turn")
        state = await engine.sessions.get(session)
        assert state.open_turn is not None
        waiting = state.open_turn.undecided[0].id
        await drain(engine.approve(session, {waiting: "allow_once"}))
        found = dashboard(
            await counted(engine, analytics), Filters(), await AnalyticsUpdater(engine.store, analytics).update()
        )

    assert before == [(0,)]
    assert (found.spent.turns, found.spent.calls, found.patterns.tool_calls) == (1, 2, 1)
    assert {row.stage for row in found.latency} == {"prepare", "model", "tools"}


async def test_what_deleted_sessions_cost_stays_counted_and_what_they_taught_is_forgotten(
    tmp_path: Path, analytics: AnalyticsStore
) -> None:
    async with talking(tmp_path / "agents") as engine:
        session, other = [(await engine.sessions.create(owner="ana")).id for _ in range(2)]
        await ask(engine, session)
        await ask(engine, other)
        await counted(engine, analytics)
        taught = analytics.lessons("ana", "pane", limit=10)
        await engine.sessions.delete(session)
        await engine.conversations.clear(other)
        analytics.rows("DELETE FROM mark")
        found = dashboard(
            await counted(engine, analytics), Filters(), await AnalyticsUpdater(engine.store, analytics).update()
        )

    assert {entry.session_id for entry in taught} == {session, other}
    assert analytics.lessons("ana", "pane", limit=10) == []
    assert found.spent.turns == 2
    assert (found.storage.sessions, analytics.known()) == (1, {other})


async def test_a_session_that_comes_back_is_not_counted_twice_and_a_new_one_of_its_name_is(
    tmp_path: Path, analytics: AnalyticsStore
) -> None:
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create(owner="ana", session_id=SessionId("ses_named"))).id
        for _ in range(3):
            await ask(engine, session)
        await counted(engine, analytics)
        analytics.forget(session)
        gone = analytics.known()
        await ask(engine, session)
        analytics.rows("DELETE FROM mark")
        back = dashboard(
            await counted(engine, analytics), Filters(), await AnalyticsUpdater(engine.store, analytics).update()
        )
        await engine.sessions.delete(session)
        await engine.sessions.create(owner="ana", session_id=session)
        await ask(engine, session)
        anew = dashboard(
            await counted(engine, analytics), Filters(), await AnalyticsUpdater(engine.store, analytics).update()
        )

    assert gone == set()
    assert (back.spent.turns, back.sessions, back.storage.turns) == (4, 1, 4)
    assert (anew.spent.turns, anew.sessions, anew.storage.turns) == (5, 2, 1)
    assert [entry.lesson.turn for entry in analytics.lessons("ana", "pane", limit=10)] == [1]


async def test_lessons_are_what_was_used_and_what_was_added_right_after_the_answer(
    tmp_path: Path, analytics: AnalyticsStore
) -> None:
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create(owner="ana")).id
        await engine.items.add(session, HIDDEN)
        await engine.items.remove(session, HIDDEN)
        await ask(engine, session)
        await counted(engine, analytics)
        await engine.items.add(session, PRINTING)
        await engine.items.add(session, BILLING)
        await counted(engine, analytics)
        day = (await engine.sessions.get(session)).updated_at
        start = (await engine.sessions.get(session)).turn_starts.of(1)

    assert day is not None
    assert start is not None
    lesson = Lesson(turn=1, seq=start, day=day.toordinal(), used=(BILLING,), added=(PRINTING,))
    assert analytics.lessons("ana", "pane", limit=10) == [Remembered(session, lesson)]
    assert analytics.lessons(None, "pane", limit=10) == [Remembered(session, lesson)]
    assert analytics.lessons("ben", "pane", limit=10) == []
    assert analytics.lessons("ana", "other", limit=10) == []


@pytest.mark.spec("S0.90", "S1.110")
async def test_no_word_of_what_was_said_is_in_the_analytics_store(tmp_path: Path, analytics: AnalyticsStore) -> None:
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create(name="Secret name")).id
        await ask(
            engine, session, "My password is xylophone-9, how long does a refund take?", "Xylophone-9? Five days."
        )
        await counted(engine, analytics)

    files = b"".join(file.read_bytes() for file in tmp_path.glob("analytics.db*")).decode(errors="replace").lower()
    written = files + str([analytics.rows(f"SELECT * FROM {table}") for table in (*OTHERS, *TABLES)]).lower()
    assert "billing" in written
    for word in ("xylophone", "password", "secret", "working days"):
        assert word not in written


@pytest.mark.parametrize("damage", ["garbage", "version"])
async def test_a_file_that_cannot_be_used_is_counted_again(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "cache" / "analytics.db"
    async with talking(tmp_path / "agents") as engine:
        await ask(engine, (await engine.sessions.create()).id)
        first = await counted(engine, AnalyticsStore(file))
        wanted = everything(first)
        if damage == "version":
            first.rows("PRAGMA user_version = 99")
        first.close()
        if damage == "garbage":
            file.write_bytes(b"This is no database." * 1000)
        again = await counted(engine, AnalyticsStore(file))

        assert everything(again) == wanted
        again.close()


async def test_only_what_is_new_is_read(tmp_path: Path, analytics: AnalyticsStore) -> None:
    class Watched(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[tuple[str, int]] = []

        async def read(self, session_id: SessionId, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
            self.asked.append((session_id, after))
            return await super().read(session_id, after=after, limit=limit)

    store = Watched()
    async with talking(tmp_path / "agents", store) as engine:
        one, two = [(await engine.sessions.create()).id for _ in range(2)]
        await ask(engine, one)
        await ask(engine, two)
        await counted(engine, analytics)
        seq = (await engine.sessions.get(one)).seq
        await ask(engine, one, PAPER, PAPER_ANSWER)
        store.asked.clear()
        await counted(engine, analytics)
        first = list(store.asked)
        store.asked.clear()
        await counted(engine, analytics)

    assert first == [(one, seq)]
    assert store.asked == []


async def test_both_kinds_of_place_answer_every_question_alike(tmp_path: Path) -> None:
    file, shared = AnalyticsStore(tmp_path / "analytics.db"), AnalyticsStore(fresh_database())
    with closing(file), closing(shared):
        async with talking(tmp_path / "agents") as engine:
            for owner in ("ana", "ben"):
                session = (await engine.sessions.create(owner=owner)).id
                await ask(engine, session)
                await engine.items.add(session, HIDDEN)
                await ask(engine, session, PAPER, PAPER_ANSWER)
                await engine.prepared.abandon(await engine.prepared.begin(session, PAPER), "no model")
            await counted(engine, file)
            await counted(engine, shared)
            (row, _) = (await engine.store.sessions(limit=2)).rows
            day = row.created_at.date()

        kept = Kept(datetime(2026, 1, 1, tzinfo=UTC), 0)
        for filters in (
            Filters(),
            Filters(owner="ana"),
            Filters(agent="pane", model="gpt-4o", since=day, until=day),
            Filters(until=day - timedelta(days=1)),
            Filters(since=day - timedelta(days=70), until=day + timedelta(days=70)),
            Filters(owner="nobody"),
        ):
            one, two = (dashboard(place, filters, kept) for place in (file, shared))
            assert one.storage.analytics_bytes > 0
            assert two.storage.analytics_bytes > 0
            assert replace(two, storage=replace(two.storage, analytics_bytes=one.storage.analytics_bytes)) == one
        for owner in (None, "ana", "nobody"):
            assert shared.lessons(owner, "pane", limit=3) == file.lessons(owner, "pane", limit=3)


async def test_counting_again_from_nothing_gives_the_same_and_tells_how_far_it_is(
    tmp_path: Path, analytics: AnalyticsStore
) -> None:
    async with talking(tmp_path / "agents") as engine:
        sessions = [(await engine.sessions.create(owner="ana")).id for _ in range(3)]
        for session in sessions:
            await ask(engine, session)
        whole = everything(await counted(engine, analytics))
        await engine.sessions.delete(sessions[0])
        told: list[tuple[int, int]] = []
        await AnalyticsUpdater(engine.store, analytics).rebuild(lambda done, total: told.append((done, total)))
        again = everything(analytics)
        wanted = everything(await counted(engine))

    assert sum(row[5] for row in whole["turn"]) == 3 * 4
    assert sum(row[5] for row in again["turn"]) == 2 * 4
    assert again == wanted
    assert told == [(1, 2), (2, 2)]


async def test_a_session_that_another_process_counts_is_left_to_it(tmp_path: Path, analytics: AnalyticsStore) -> None:
    now = datetime.now(UTC)
    async with talking(tmp_path / "agents") as engine:
        session = (await engine.sessions.create()).id
        await ask(engine, session)
        others = analytics.claim(session, "another", now + timedelta(minutes=1))
        mine = analytics.claim(session, "mine", now + timedelta(minutes=1))
        behind = (await AnalyticsUpdater(engine.store, analytics).update(within_s=0)).behind
        none = analytics.rows("SELECT count(*) FROM turn")
        analytics.release(session, "mine")  # not its own
        still = analytics.claim(session, "mine", now + timedelta(minutes=1))
        given_up = analytics.claim(session, "another", now - timedelta(minutes=1))

        assert (others, mine, still, given_up) == (True, False, False, True)
        assert (behind, none) == (1, [(0,)])
        assert everything(await counted(engine, analytics)) == everything(await counted(engine))
        assert analytics.rows("SELECT * FROM claim") == []


async def test_a_database_that_is_away_is_an_error_and_counting_goes_on_when_it_is_back(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path)
    server.start()
    try:
        async with talking(tmp_path / "agents") as engine:
            session = (await engine.sessions.create()).id
            await ask(engine, session)
            analytics = await counted(engine, AnalyticsStore(server.place))
            server.kill()
            await ask(engine, session)
            with pytest.raises(
                StoreUnavailableError, match=f"the analytics store postgresql://127.0.0.1:{server.port}"
            ):
                await counted(engine, analytics)
            server.start()

            assert everything(await counted(engine, analytics)) == everything(await counted(engine))
            analytics.close()
    finally:
        server.stop()


async def test_stores_that_share_a_database_have_a_name_each(tmp_path: Path) -> None:
    url = fresh_database()
    with closing(AnalyticsStore(f"{url}?name=one")) as one, closing(AnalyticsStore(f"{url}?name=two")) as two:
        async with talking(tmp_path / "agents") as engine:
            await ask(engine, (await engine.sessions.create()).id)
            await counted(engine, one)

        assert [len(place.known()) for place in (one, two)] == [1, 0]


@pytest.mark.parametrize(
    "url", ["mysql://host/x", "postgresql://host/x?name=Robert';--"], ids=["another engine", "a name"]
)
def test_a_url_that_cannot_be_used_is_an_invalid_setting(url: str) -> None:
    with pytest.raises(InvalidSettingError, match="analytics_url"):
        AnalyticsStore(url)


async def test_an_update_without_time_counts_one_turn_and_tells_how_many_sessions_are_left(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine:
        for _ in range(3):
            session = (await engine.sessions.create()).id
            await ask(engine, session)
            await ask(engine, session)
        analytics = AnalyticsStore()
        updater = AnalyticsUpdater(engine.store, analytics)
        behind = [(await updater.update(within_s=0)).behind for _ in range(6)]

        assert everything(analytics) == everything(await counted(engine))
        assert behind == [3, 2, 2, 1, 1, 0]


async def test_what_an_update_leaves_is_counted_in_the_background(tmp_path: Path) -> None:
    async with talking(tmp_path / "agents") as engine, anyio.create_task_group() as tasks:
        session = (await engine.sessions.create()).id
        for _ in range(4):
            await ask(engine, session)
        analytics = AnalyticsStore()
        updater = AnalyticsUpdater(engine.store, analytics)
        tasks.start_soon(updater.keep_counting)
        left = (await updater.update(within_s=0)).behind
        whole = everything(await counted(engine))
        while everything(analytics) != whole:  # noqa: ASYNC110 - the counting tells no one when it is done
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()

        assert left == 1
