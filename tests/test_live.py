"""Those who watch: one order for all, nothing recorded is ever lost, nobody is held up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.bus.feed import Feed
from windowpane.context.events import (
    Delta,
    Event,
    HistoryCleared,
    Live,
    MessageAdded,
    Missed,
    ModelReplied,
    Recorded,
    SessionContext,
    SessionCreated,
    SessionDeleted,
    TurnFinished,
    TurnStarted,
    WatchEvent,
)
from windowpane.context.ids import SessionId
from windowpane.context.messages import Step
from windowpane.errors import StoreUnavailableError
from windowpane.live import Hub, SessionHubs
from windowpane.stores.memory import MemoryStore

NOW = datetime(2026, 5, 1, tzinfo=UTC)
S = SessionId("s")
LOAD = SessionContext(reason="load", context={})
CREATED = SessionCreated(agent="pane", owner="local", settings={}, items=())


def note(text: str = "hello") -> MessageAdded:
    return MessageAdded(role="user", content=text)


def at(seq: int, event: Event | None = None) -> Recorded:
    return Recorded(seq, NOW, event or note())


def replied(text: str) -> ModelReplied:
    return ModelReplied(turn=1, step=Step(text=text))


class Reader:
    """A log of which a hub has told a part."""

    def __init__(self, log: Sequence[Recorded] = ()) -> None:
        self.log = list(log)

    async def __call__(self, after: int) -> list[Recorded]:
        await anyio.lowlevel.checkpoint()
        return [entry for entry in self.log if entry.seq > after][:3]


async def heard(hub: Hub, count: int, log: Sequence[Recorded] = (), after: int | None = None) -> list[WatchEvent]:
    found: list[WatchEvent] = []
    async with aclosing(hub.listen(Reader(log), after)) as events:
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


async def test_a_log_that_lost_what_was_told_of_it_keeps_no_listener_busy() -> None:
    hub = Hub(5, {})

    assert await heard(hub, 2, [at(4)], after=3) == [at(4), LOAD]


@pytest.mark.spec("S2.36", "S2.40")
async def test_a_listener_without_a_place_begins_with_the_context_also_when_that_is_empty() -> None:
    hub = Hub(7, {})

    assert await heard(hub, 1) == [LOAD]


@pytest.mark.spec("S2.36")
async def test_history_comes_before_the_context_and_what_is_new_after_it() -> None:
    log = [at(seq) for seq in range(1, 9)]
    hub = Hub(8, {"files": ("/a",)})
    events = hub.listen(Reader(log), 2)

    async with aclosing(events):
        history = [await anext(events) for _ in range(6)]
        load = await anext(events)
        hub.record(at(9))
        new = await anext(events)

    assert history == log[2:]
    assert load == SessionContext(reason="load", context={"files": ("/a",)})
    assert new == at(9)


async def test_the_context_that_is_loaded_is_the_one_at_that_place_in_the_log() -> None:
    hub = Hub(1, {"ports": ("80",)})
    hub.record(at(2, SessionContext(reason="changed", context={"ports": ("81",)}, set_name="ports")))
    hub.record(at(3, SessionContext(reason="resume", context={})))

    assert await heard(hub, 1) == [SessionContext(reason="load", context={"ports": ("81",)})]


async def test_a_listener_that_has_read_more_than_the_hub_waits_for_it_and_hears_nothing_twice() -> None:
    hub = Hub(2, {})
    events = hub.listen(Reader([at(3), at(4)]), 4)
    found: list[WatchEvent] = []

    async def listen() -> None:
        async with aclosing(events):
            async for event in events:
                found.append(event)
                if len(found) == 2:
                    return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        for seq in (3, 4, 5):
            for _ in range(4):
                await anyio.lowlevel.checkpoint()
            hub.record(at(seq))

    assert found == [LOAD, at(5)]


async def test_text_waits_for_the_event_it_follows_and_is_dropped_once_its_answer_stands_in_the_log() -> None:
    hub = Hub(1, {})
    events = hub.listen(Reader(), None)
    async with aclosing(events):
        await anext(events)
        hub.speak(3, Delta(1, "a"))
        hub.record(at(2))
        hub.record(at(3))
        hub.record(at(4, replied("ab")))
        hub.speak(3, Delta(1, "b"))
        hub.speak(4, Delta(1, "c"))
        found = [await anext(events) for _ in range(5)]

    assert found == [at(2), at(3), Delta(1, "a"), at(4, replied("ab")), Delta(1, "c")]


async def test_an_event_that_is_told_twice_is_heard_once() -> None:
    hub = Hub(1, {})
    events = hub.listen(Reader(), None)
    async with aclosing(events):
        await anext(events)
        for seq in (1, 2, 2, 1, 3):
            hub.record(at(seq))
        hub.end("closed")

        assert [event async for event in events] == [at(2), at(3)]


async def test_who_comes_in_the_middle_of_an_answer_hears_it_from_its_beginning() -> None:
    hub = Hub(4, {})
    for text in ("Let ", "me "):
        hub.speak(4, Delta(1, text, "thinking"))
    for text in ("The ", "tide"):
        hub.speak(4, Delta(1, text))

    assert await heard(hub, 3) == [LOAD, Delta(1, "Let me ", "thinking"), Delta(1, "The tide")]


async def test_a_listener_that_falls_behind_is_told_so_and_goes_on_from_the_log() -> None:
    log = [at(seq) for seq in range(1, 20)]
    hub = Hub(1, {}, kept=4)
    events = hub.listen(Reader(log), None)
    async with aclosing(events):
        assert await anext(events) == LOAD
        for entry in log[1:]:
            hub.record(entry)
        hub.speak(19, Delta(1, "to be "))
        hub.speak(19, Delta(1, "continued"))
        found = [await anext(events) for _ in range(20)]
        hub.speak(19, Delta(1, "!"))
        found.append(await anext(events))

    assert found == [Missed(1), *log[1:], Delta(1, "to be continued"), Delta(1, "!")]


async def test_what_was_erased_is_not_kept_for_listeners() -> None:
    hub = Hub(1, {})
    events = hub.listen(Reader([at(2, note("gone")), at(3, HistoryCleared())]), None)
    async with aclosing(events):
        await anext(events)
        hub.record(at(2, note("secret")))
        hub.record(at(3, HistoryCleared()))
        found = [await anext(events) for _ in range(3)]

    assert found == [Missed(1), at(2, note("gone")), at(3, HistoryCleared())]


@pytest.mark.parametrize(("why", "last"), [("deleted", [SessionDeleted()]), ("closed", [])])
async def test_a_hub_that_ends_lets_everybody_hear_the_rest(why: str, last: list[WatchEvent]) -> None:
    hub = Hub(1, {})
    events = hub.listen(Reader(), None)
    await anext(events)
    hub.record(at(2))

    hub.end("deleted" if why == "deleted" else "closed")

    assert [event async for event in events] == [at(2), *last]


async def test_a_log_that_cannot_be_read_any_more_is_an_error_for_those_who_listen() -> None:
    hub = Hub(1, {})
    hub.end("failed")

    with pytest.raises(StoreUnavailableError):
        await heard(hub, 2)


Moves = st.lists(st.sampled_from(["log", "words", "read", "other"]), max_size=40)


@given(moves=Moves, kept=st.integers(1, 6), after=st.none() | st.integers(0, 3))
async def test_whatever_comes_first_every_listener_hears_the_log_once_in_order_and_no_stale_word(
    moves: list[str], kept: int, after: int | None
) -> None:
    """A turn speaks and is recorded; hub and relay learn of it in any order, and the listener reads when it likes."""
    start = [at(1, CREATED), at(2), at(3, TurnStarted(turn=1, message="Hi"))]
    reader, told = Reader(start), 3
    hub = Hub(3, {}, kept=kept)
    found: list[WatchEvent] = []
    turnstile = anyio.Semaphore(0)

    async def listen() -> None:
        async for event in hub.listen(reader, after):
            await turnstile.acquire()
            found.append(event)

    feed: list[tuple[int, Delta]] = []
    last, word = 3, 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.lowlevel.checkpoint()
        for move in moves:
            if move == "words":
                word += 1
                feed.append((last, Delta(1, f"{word};")))
                # The answer stands in the log before the relay has passed on its last words.
                if word % 3 == 0:
                    reader.log.append(at(len(reader.log) + 1, replied("…")))
                    last = len(reader.log)
            elif move == "other":
                reader.log.append(at(len(reader.log) + 1))
            elif move == "log" and told < len(reader.log):
                hub.record(reader.log[told])
                told += 1
            elif move == "read":
                turnstile.release()
                for _ in range(4):
                    await anyio.lowlevel.checkpoint()
            if feed and word % 2:
                hub.speak(*feed.pop(0))
        for entry in reader.log[told:]:
            hub.record(entry)
        for entry in feed:
            hub.speak(*entry)
        hub.end("closed")
        for _ in range(1000):
            turnstile.release()

    recorded = [event for event in found if isinstance(event, Recorded)]
    assert recorded == reader.log[3 if after is None else after :]
    assert found.count(LOAD) == 1
    assert _texts(found) <= _spoken(word)


def _texts(found: Sequence[WatchEvent]) -> set[str]:
    """Return what a page shows of each answer, which begins after the answer before, or when it is told to."""
    shown, texts = "", set[str]()
    for event in found:
        if isinstance(event, Delta):
            shown += event.text
            texts.add(shown)
        elif isinstance(event, Missed | SessionContext) or (
            isinstance(event, Recorded) and isinstance(event.event, ModelReplied | TurnFinished)
        ):
            shown = ""
    return texts


def _spoken(words: int) -> set[str]:
    """Return every stretch of words that lies within one answer."""
    answers = [range(first, min(first + 3, words + 1)) for first in range(1, words + 1, 3)]
    return {
        "".join(f"{word};" for word in answer[start:end])
        for answer in answers
        for start in range(len(answer))
        for end in range(start + 1, len(answer) + 1)
    }


@asynccontextmanager
async def audience(kept: int = 512) -> AsyncGenerator[tuple[SessionHubs, MemoryStore]]:
    async with MemoryStore() as store, anyio.create_task_group() as tasks:
        await store.append(S, [CREATED], expected_seq=0)
        watching = SessionHubs(store, kept)
        watching.open_in(tasks)
        yield watching, store
        tasks.cancel_scope.cancel()


async def test_a_thousand_listeners_share_one_subscription_and_hear_the_same() -> None:
    heard_by: list[list[WatchEvent]] = []

    async def listen(watching: SessionHubs, ready: anyio.Semaphore) -> None:
        found: list[WatchEvent] = []
        heard_by.append(found)
        async with aclosing(watching.watch(S, 1, {}, 0)) as events:
            async for event in events:
                found.append(event)
                if len(found) in (2, 4):
                    ready.release()

    async with audience() as (watching, store):
        ready = anyio.Semaphore(0)
        async with anyio.create_task_group() as tasks:
            for _ in range(1000):
                tasks.start_soon(listen, watching, ready)
            for _ in range(1000):
                await ready.acquire()
            await store.append(S, [note("one"), note("two")])
            for _ in range(1000):
                await ready.acquire()
            await store.delete(S)

    kinds = [[_type(event) for event in found] for found in heard_by]
    assert kinds == [["session.created", "session.context", "message.added", "message.added", "session.deleted"]] * 1000


def _type(event: WatchEvent) -> str:
    return event.event.type if isinstance(event, Recorded) else event.type


async def test_a_turn_is_heard_as_it_speaks_by_those_who_were_there_and_those_who_come() -> None:
    async with audience() as (watching, store):
        early = watching.watch(S, 1, {}, None)
        await anext(early)
        started = await store.append(S, [TurnStarted(turn=1, message="Hi")])
        feed = Feed(watching.relay(S))
        says: list[Live] = [Recorded(started.last_seq, started.at, TurnStarted(turn=1, message="Hi"))]
        for event in (*says, Delta(1, "He"), Delta(1, "llo")):
            feed.publish(event)
        there = [await anext(early) for _ in range(3)]
        await early.aclose()
        late = watching.watch(S, 2, {}, None)
        comes = [await anext(late) for _ in range(2)]
        done = await store.append(S, [replied("Hello")])
        feed.publish(Recorded(done.last_seq, done.at, replied("Hello")))
        feed.close()
        last = await anext(late)
        await late.aclose()

    assert there == [*says, Delta(1, "He"), Delta(1, "llo")]
    assert comes == [LOAD, Delta(1, "Hello")]
    assert last == Recorded(3, done.at, replied("Hello"))


async def test_a_listener_that_never_reads_holds_nothing_up_and_loses_nothing_recorded() -> None:
    async with audience(kept=8) as (watching, store):
        lazy = watching.watch(S, 1, {}, None)
        await anext(lazy)
        for number in range(100):
            await store.append(S, [note(str(number))])
            await anyio.lowlevel.checkpoint()
        found = [await anext(lazy) for _ in range(101)]
        await lazy.aclose()

    assert found[0] == Missed(1)
    assert [entry.seq for entry in found if isinstance(entry, Recorded)] == list(range(2, 102))


async def test_when_nobody_listens_any_more_nothing_is_followed() -> None:
    async with MemoryStore() as store:
        await store.append(S, [CREATED], expected_seq=0)
        watching = SessionHubs(store)
        # The task group ends by itself only when the subscription has ended.
        async with anyio.create_task_group() as tasks:
            watching.open_in(tasks)
            listeners = [watching.watch(S, 1, {}, None) for _ in range(2)]
            for listener in listeners:
                await anext(listener)
            for listener in listeners:
                await listener.aclose()


async def test_a_place_beyond_the_end_of_the_log_is_its_end() -> None:
    async with audience() as (watching, store):
        events = watching.watch(S, 1, {}, 1_000_000)
        first = await anext(events)
        await store.append(S, [note()])
        second = await anext(events)
        await events.aclose()

    assert first == LOAD
    assert isinstance(second, Recorded)


async def test_an_audience_that_is_closed_lets_everybody_go_and_nobody_in() -> None:
    async with audience() as (watching, _):
        there = watching.watch(S, 1, {}, None)
        await anext(there)
        watching.close()

        assert [event async for event in there] == []
        assert [event async for event in watching.watch(S, 1, {}, 0)] == []


async def test_words_that_come_before_a_follower_looks_are_told_together_and_none_is_lost() -> None:
    feed = Feed()
    heard: list[Live] = []

    async def follow() -> None:
        heard.extend([event async for event in feed.listen()])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        for word in ("one ", "two ", "three"):
            feed.publish(Delta(1, word))
        feed.publish(Delta(1, "So.", "thinking"))
        feed.publish(at(2))
        feed.publish(Delta(1, "four"))
        feed.close()

    assert heard == [Delta(1, "one two three"), Delta(1, "So.", "thinking"), at(2), Delta(1, "four")]


async def test_a_word_alone_is_told_without_another_event() -> None:
    feed = Feed()
    listener = aiter(feed.listen())
    for word in ("one ", "two ", "three"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_publish_when_all_wait, feed, Delta(1, word))
            assert await anext(listener) == Delta(1, word)


async def _publish_when_all_wait(feed: Feed, event: Live) -> None:
    await anyio.wait_all_tasks_blocked()
    feed.publish(event)
