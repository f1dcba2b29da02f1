"""The profile of a process: sessions that stay, and sessions that expire when nobody uses them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from windowpane.context.events import Event, RequestBuilt, SessionCreated, TurnFinished
from windowpane.context.ids import SessionId, new_session_id
from windowpane.errors import InvalidSettingError, SessionNotFoundError
from windowpane.models.scripted import Reply
from windowpane.settings import Settings
from windowpane.stores.append import OriginalTimes
from windowpane.stores.expiry import ExpiringStore, Limits
from windowpane.stores.memory import MemoryStore
from windowpane.stores.sqlite.store import SQLiteStore
from windowpane.testing import World, drain, stored
from windowpane.wiring import open_sessions

pytestmark = pytest.mark.anyio


async def left_alone(store: MemoryStore, seconds: float) -> SessionId:
    """Return a session of the agent that nobody has used for some time."""
    session, at = new_session_id(), datetime.now(UTC) - timedelta(seconds=seconds)
    made = SessionCreated(agent="pane", owner="local", settings={}, items=())
    await store.append(session, [made], expected_seq=0, original_times=OriginalTimes((at,), at))
    return session


async def unused_s(store: MemoryStore, session: SessionId) -> float:
    return (datetime.now(UTC) - (await store.row(session)).touched_at).total_seconds()


@pytest.mark.spec("S4.66")
async def test_looking_at_a_session_is_using_it_and_listing_sessions_is_not(tmp_path: Path) -> None:
    store = MemoryStore()
    async with World(tmp_path, store=store).engine(touch_every_s=1.0) as engine:
        session = await left_alone(store, 3000)

        listed = await engine.sessions.list()
        unused_after_list = await unused_s(store, session)
        await engine.sessions.get(session)

        assert [state.id for state in listed.sessions] == [session]
        assert unused_after_list >= 3000
        assert await unused_s(store, session) < 1500


async def test_where_nothing_expires_looking_writes_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    async with World(tmp_path, store=store).engine() as engine:
        session = await left_alone(store, 3000)
        row = await store.row(session)

        await engine.sessions.get(session)
        await engine.conversations.messages(session)
        await engine.preview(session, "Hello?")

        assert await store.row(session) == row


async def test_a_session_does_not_expire_while_its_turn_runs_however_long_that_takes(tmp_path: Path) -> None:
    may_go_on = anyio.Event()
    store = MemoryStore()
    # By this measure it has not been used for too long at any moment.
    strict = ExpiringStore(store, Limits(unused_s=1e-6))
    world = World(tmp_path, store=store)
    world.says(Reply("Done.", after=may_go_on))
    async with world.engine() as engine:
        session = (await engine.sessions.create()).id
        events: list[Event] = []

        async for live in engine.turn(session, "Take your time."):
            events += (new := stored([live]))
            if any(isinstance(event, RequestBuilt) for event in new):
                assert await strict.sweep() == []
                may_go_on.set()

        assert [event.outcome for event in events if isinstance(event, TurnFinished)] == ["completed"]


@pytest.mark.spec("S4.88")
async def test_a_conversation_that_was_archived_goes_on_with_all_its_records(tmp_path: Path) -> None:
    store, archive = MemoryStore(), MemoryStore()
    world = World(tmp_path, store=ExpiringStore(store, Limits(sessions=1), archive=archive))
    world.rule("polite", include="always")
    world.says("Hello Ana.", "You are Ana.")
    async with world.engine(touch_every_s=1.0) as engine:
        session = (await engine.sessions.create()).id
        await drain(engine.turn(session, "I am Ana."))
        before = (await engine.conversations.messages(session), await engine.past.request(session, 1))
        await engine.sessions.create()
        with pytest.raises(SessionNotFoundError):
            await store.row(session)

        after = (await engine.conversations.messages(session), await engine.past.request(session, 1))
        await drain(engine.turn(session, "Who am I?"))

        assert after == before
        assert (await engine.sessions.get(session)).turn_count == 2
        assert [message.role for message in await engine.conversations.messages(session)] == ["user", "assistant"] * 2


@pytest.mark.spec("S4.17", "S4.18", "S4.19", "S4.20", "S4.84", "S4.85")
def test_the_profile_is_chosen_by_settings_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durable = open_sessions(Settings(data=tmp_path))
    monkeypatch.setenv("WINDOWPANE_PROFILE", "ephemeral")
    monkeypatch.setenv("WINDOWPANE_ARCHIVE_URL", f"sqlite:///{tmp_path / 'archive.db'}")
    settings = Settings(data=tmp_path)

    assert isinstance(durable, SQLiteStore)
    assert (settings.expire_after_s, settings.max_sessions) == (3600, 500)
    assert isinstance(open_sessions(settings), ExpiringStore)


def test_an_archive_that_would_never_be_used_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'archive.db'}"

    with pytest.raises(InvalidSettingError, match="only sessions of the profile `ephemeral` expire"):
        open_sessions(Settings(data=tmp_path, archive_url=url))
    with pytest.raises(InvalidSettingError, match="archived where they are"):
        open_sessions(Settings(data=tmp_path, profile="ephemeral", store_url=url, archive_url=url))
