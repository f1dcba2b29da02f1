"""What every store promises."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import anyio
import pytest

from patience import PATIENCE_S
from stores.kinds import begin, contents, created, events, said
from windowpane.context.events import Erased, HistoryCleared, Recorded, SessionContext
from windowpane.context.ids import BlobHash, SessionId, content_hash, new_session_id
from windowpane.errors import (
    BlobNotFoundError,
    InvalidInputError,
    LeaseLostError,
    SequenceConflictError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from windowpane.stores.append import OriginalTimes
from windowpane.stores.base import Cost, SessionRow, Snapshot, Store, Tail

pytestmark = pytest.mark.anyio

NOBODY = SessionId("ses_nobody")


@pytest.mark.spec("S4.2", "S4.64")
async def test_events_come_back_in_order_as_they_were_given_numbered_from_one_with_the_time_in_utc(
    store: Store,
) -> None:
    before = datetime.now(UTC)
    session = new_session_id()

    first = await store.append(session, [created(), said("one")], expected_seq=0)
    second = await store.append(session, [said("two"), said("three")])

    assert [(first.first_seq, first.last_seq), (second.first_seq, second.last_seq)] == [(1, 2), (3, 4)]
    assert before <= first.at <= second.at <= datetime.now(UTC)
    assert await store.read(session) == [
        Recorded(1, first.at, created()),
        Recorded(2, first.at, said("one")),
        Recorded(3, second.at, said("two")),
        Recorded(4, second.at, said("three")),
    ]
    assert {recorded.at.utcoffset() for recorded in await store.read(session)} == {timedelta(0)}


async def test_reading_starts_after_a_number_and_stops_at_a_limit(store: Store) -> None:
    session = await begin(store)
    await store.append(session, [said(str(number)) for number in range(2, 8)])

    assert [recorded.seq for recorded in await store.read(session, after=2)] == [3, 4, 5, 6, 7]
    assert [recorded.seq for recorded in await store.read(session, after=2, limit=2)] == [3, 4]
    assert await store.read(session, after=7) == []
    assert await store.read(session, after=10**30) == []
    with pytest.raises(InvalidInputError):
        await store.read(session, limit=0)


async def test_a_session_that_is_being_begun_is_seen_with_its_first_event_or_not_at_all(store: Store) -> None:
    async def look(session: SessionId) -> int:
        while True:
            try:
                return len(await store.read(session))
            except SessionNotFoundError:
                await asyncio.sleep(0)

    for _ in range(20):
        session = new_session_id()
        looks = [asyncio.create_task(look(session)) for _ in range(4)]
        await store.append(session, [created()], expected_seq=0)
        assert await asyncio.gather(*looks) == [1, 1, 1, 1]


@pytest.mark.spec("S4.62")
async def test_a_session_exists_only_once_it_was_created_and_looking_for_it_does_not_create_it(store: Store) -> None:
    for ask in (
        store.read(NOBODY),
        store.row(NOBODY),
        store.touch(NOBODY),
        store.delete(NOBODY),
        store.erase(NOBODY, [1]),
        store.acquire(NOBODY, "me", 60),
        store.append(NOBODY, [said("hello?")]),
        store.append(NOBODY, [said("hello?")], expected_seq=0),
        store.append(NOBODY, [created()], expected_seq=3),
        store.append(NOBODY, [created()]),
    ):
        with pytest.raises(SessionNotFoundError, match="ses_nobody"):
            await ask
    await store.release(NOBODY, "me")
    await store.put_snapshot(NOBODY, Snapshot(1, b"{}"))

    assert await store.snapshot(NOBODY) is None
    assert (await store.sessions()).rows == ()


async def test_an_append_without_events_is_refused(store: Store) -> None:
    session = await begin(store)

    with pytest.raises(InvalidInputError):
        await store.append(session, [])


@pytest.mark.spec("S4.61")
async def test_an_append_that_expects_another_place_stores_nothing_and_says_where_the_log_stands(store: Store) -> None:
    session = await begin(store)
    await store.append(session, [said("first")], expected_seq=1)
    text = "never stored"

    with pytest.raises(SequenceConflictError) as caught:
        await store.append(session, [said("a"), said("b")], expected_seq=1, key="k", blobs={content_hash(text): text})

    assert (caught.value.expected_seq, caught.value.actual_seq) == (1, 2)
    assert events(await store.read(session)) == [created(), said("first")]
    assert await store.blobs(session, [content_hash(text)]) == {}
    assert (await store.append(session, [said("c")], key="k")).repeated is False


async def test_a_session_is_created_once(store: Store) -> None:
    session = await begin(store)

    with pytest.raises(SequenceConflictError):
        await store.append(session, [created("eve")], expected_seq=0)

    assert (await store.row(session)).owner == "ana"


@pytest.mark.spec("S4.61")
async def test_of_many_who_expect_the_same_place_one_wins_and_those_who_expect_nothing_are_not_disturbed(
    store: Store,
) -> None:
    session = await begin(store)

    answers = await asyncio.gather(
        *(store.append(session, [said(f"careful {n}")], expected_seq=1) for n in range(32)),
        *(store.append(session, [said(f"easy {n}"), said(f"easy {n}")]) for n in range(32)),
        return_exceptions=True,
    )

    assert sum(isinstance(answer, SequenceConflictError) for answer in answers) == 31
    assert sum(isinstance(answer, BaseException) for answer in answers) == 31
    log = await store.read(session)
    assert [recorded.seq for recorded in log] == list(range(1, 67))
    said_easily = [content for content in contents(log) if content.startswith("easy")]
    assert said_easily == [f"easy {n}" for n in range(32) for _ in range(2)]


async def test_a_repeated_key_stores_nothing_and_gets_the_first_answer_also_when_the_log_has_moved_on(
    store: Store,
) -> None:
    session = await begin(store)
    first = await store.append(session, [said("once"), said("once more")], expected_seq=1, key="k")
    await store.append(session, [said("later")])

    again = await store.append(session, [said("once"), said("once more")], expected_seq=1, key="k")

    assert again == replace(first, repeated=True)
    assert contents(await store.read(session)) == ["once", "once more", "later"]


async def test_a_session_that_is_created_twice_with_one_key_is_created_once(store: Store) -> None:
    session = new_session_id()
    first = await store.append(session, [created()], expected_seq=0, key="new")

    again = await store.append(session, [created()], expected_seq=0, key="new")

    assert again == replace(first, repeated=True)


async def test_a_key_sent_by_many_at_once_is_stored_once_and_all_get_the_same_answer(store: Store) -> None:
    session = await begin(store)

    answers = await asyncio.gather(*(store.append(session, [said("once")], key="k") for _ in range(50)))

    assert {(answer.first_seq, answer.last_seq, answer.at) for answer in answers} == {(2, 2, answers[0].at)}
    assert sorted(answer.repeated for answer in answers) == [False] + [True] * 49
    assert contents(await store.read(session)) == ["once"]


async def test_a_key_belongs_to_its_session(store: Store) -> None:
    one, other = await begin(store), await begin(store)

    await store.append(one, [said("one")], key="k")
    await store.append(other, [said("other")], key="k")

    assert [contents(await store.read(one)), contents(await store.read(other))] == [["one"], ["other"]]


async def test_an_append_whose_caller_goes_away_is_stored_wholly_or_not_at_all(store: Store) -> None:
    session = await begin(store)

    async def give_up(number: int) -> None:
        appending = asyncio.create_task(store.append(session, [said(f"{number}")] * 3))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        appending.cancel()
        await asyncio.wait([appending])

    await asyncio.gather(*(give_up(number) for number in range(100)))
    await store.append(session, [said("last")])

    log = await store.read(session)
    said_by = contents(log)
    assert [recorded.seq for recorded in log] == list(range(1, len(log) + 1))
    assert said_by[-1] == "last"
    assert said_by[:-1] == [content for content in said_by[:-1:3] for _ in range(3)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "a\0b",
        "\r\n\t  white   space \n",
        "👩‍👩‍👧‍👦 𝒳 ﷽ e\u0301 é",
        "\u2028\u2029\ufeff\uffff\U0010ffff",
        '"\\u0000" \\ud800 </script>',
        "x" * 1_000_000,
        "日本語" * 300_000,
    ],
    ids=lambda text: ascii(text[:12]),
)
async def test_text_comes_back_byte_for_byte(store: Store, text: str) -> None:
    session = await begin(store)

    await store.append(session, [said(text)], key=text[:50], blobs={content_hash(text): text})

    assert contents(await store.read(session)) == [text]
    assert await store.blob(session, content_hash(text)) == text


async def test_half_of_a_surrogate_pair_is_refused_before_anything_is_stored(store: Store) -> None:
    session = await begin(store)

    for refused in (
        store.append(session, [said("fine"), said("\ud83d")]),
        store.append(session, [said("fine")], key="\ud83d"),
        store.append(SessionId("\ud83d"), [created()], expected_seq=0),
        store.append(new_session_id(), [created(owner="\udc00")], expected_seq=0),
    ):
        with pytest.raises(InvalidInputError, match="surrogate"):
            await refused

    assert events(await store.read(session)) == [created()]
    assert [row.id for row in (await store.sessions()).rows] == [session]


async def test_a_blob_may_hold_any_text(store: Store) -> None:
    session = await begin(store)
    text = "a file name \udcff that is not UTF-8"

    await store.append(session, [said("x")], blobs={content_hash(text): text})

    assert await store.blob(session, content_hash(text)) == text


async def test_a_row_tells_owner_agent_and_where_the_log_stands(store: Store) -> None:
    session = new_session_id()
    first = await store.append(session, [created("ana", "pane")], expected_seq=0)
    last = await store.append(session, [said("a"), said("b")])

    assert await store.row(session) == SessionRow(session, "ana", "pane", 3, first.at, last.at)


async def test_sessions_are_listed_last_touched_first_for_an_owner_or_an_agent_or_all(store: Store) -> None:
    one = await begin(store, "ana", "pane")
    two = await begin(store, "ana", "sill")
    three = await begin(store, "bob", "pane")

    await store.touch(one)

    async def listed(owner: str | None = None, agent: str | None = None) -> list[SessionId]:
        return [row.id for row in (await store.sessions(owner, agent=agent)).rows]

    assert await listed() == [one, three, two]
    assert await listed("ana") == [one, two]
    assert await listed(agent="pane") == [one, three]
    assert await listed("bob", "sill") == []
    assert await listed("nobody") == []


async def test_touching_and_reading_leave_the_log_alone(store: Store) -> None:
    session = await begin(store)
    before = await store.row(session)

    await store.touch(session)
    await store.read(session)

    after = await store.row(session)
    assert after == replace(before, touched_at=after.touched_at)
    assert after.touched_at > before.touched_at
    read_again = await store.row(session)
    assert read_again == after


async def test_what_a_user_looks_at_is_logged_at_its_time_and_leaves_the_session_where_it_is_listed(
    store: Store,
) -> None:
    one, two = [await begin(store), await begin(store)]
    before = await store.row(one)
    looked = SessionContext(reason="changed", context={"applet": ("text-editor", "path=/a")}, set_name="applet")

    await store.append(one, [looked])

    log, after = await store.read(one), await store.row(one)
    assert (log[-1].event, log[-1].at >= before.touched_at) == (looked, True)
    assert after == replace(before, last_seq=before.last_seq + 1)
    assert [row.id for row in (await store.sessions()).rows] == [two, one]
    await store.append(one, [looked, said("And now?")])
    assert [row.id for row in (await store.sessions()).rows] == [one, two]


async def test_the_stores_clock_is_the_one_that_its_times_are_of(store: Store) -> None:
    before = await store.now()
    session = await begin(store)
    after = await store.now()

    assert before <= (await store.row(session)).created_at <= after


async def test_turning_pages_shows_each_session_once_while_others_are_begun_and_used(store: Store) -> None:
    sessions = [await begin(store) for _ in range(25)]

    seen: list[SessionId] = []
    cursor: str | None = None
    while True:
        page = await store.sessions("ana", limit=4, cursor=cursor)
        seen += [row.id for row in page.rows]
        cursor = page.cursor
        if cursor is None:
            break
        await begin(store)
        await store.append(seen[0], [said("used meanwhile")])

    assert seen == sessions[::-1]


async def test_the_last_page_has_no_cursor_and_a_made_up_cursor_is_refused(store: Store) -> None:
    await begin(store)
    await begin(store)

    assert (await store.sessions(limit=2)).cursor is None
    assert (await store.sessions(limit=1)).cursor is not None
    for made_up in ("", "x", "12", "x.y", "1" * 40 + ".y", "²." + NOBODY):
        with pytest.raises(InvalidInputError, match="cursor"):
            await store.sessions(cursor=made_up)
    with pytest.raises(InvalidInputError, match="limit"):
        await store.sessions(limit=0)


async def test_erasing_replaces_events_and_forgets_blobs_and_snapshot_but_keeps_the_numbering(store: Store) -> None:
    session = await begin(store)
    secret, harmless = "the secret", "harmless"
    await store.append(
        session,
        [said(secret), said("stays"), said(secret)],
        key="k",
        blobs={content_hash(text): text for text in (secret, harmless)},
    )
    await store.put_snapshot(session, Snapshot(4, b"the secret"))
    await store.put_vectors(session, {2: b"the secret", 3: b"stays"}, as_of=4)

    await store.erase(session, [2, 4, 99], blobs=[content_hash(secret), BlobHash("unknown")])

    log = await store.read(session)
    assert [recorded.seq for recorded in log] == [1, 2, 3, 4]
    assert events(log) == [created(), Erased(), said("stays"), Erased()]
    assert await store.blobs(session, [content_hash(secret), content_hash(harmless)]) == {
        content_hash(harmless): harmless
    }
    assert await store.snapshot(session) is None
    assert await store.vectors(session) == {}
    assert (await store.append(session, [said("x")], key="k")).repeated is True
    assert (await store.append(session, [said("next")])).first_seq == 5


async def test_a_snapshot_from_before_an_erasure_does_not_bring_the_text_back(store: Store) -> None:
    session = await begin(store)
    await store.append(session, [said("the secret")])
    await store.append(session, [HistoryCleared()])
    await store.erase(session, [2])

    await store.put_snapshot(session, Snapshot(2, b"the secret"))
    await store.put_vectors(session, {2: b"the secret"}, as_of=2)
    assert await store.snapshot(session) is None
    assert await store.vectors(session) == {}

    await store.append(session, [said("new")])
    await store.put_snapshot(session, Snapshot(4, b"new"))
    await store.put_vectors(session, {4: b"new"}, as_of=4)
    assert await store.snapshot(session) == Snapshot(4, b"new")
    assert await store.vectors(session) == {4: b"new"}


async def test_vectors_of_messages_are_kept_and_replaced_by_number(store: Store) -> None:
    session, other = await begin(store), await begin(store)
    await store.append(session, [said("a"), said("b")])

    await store.put_vectors(session, {2: b"\0a" * 400, 3: b"b"}, as_of=3)
    await store.put_vectors(session, {3: b"", 4: b"c\xff"}, as_of=3)
    await store.put_vectors(NOBODY, {1: b"x"}, as_of=1)

    assert await store.vectors(session) == {2: b"\0a" * 400, 3: b"", 4: b"c\xff"}
    assert await store.vectors(session, [3, 4, 7]) == {3: b"", 4: b"c\xff"}
    assert await store.vectors(session, []) == await store.vectors(NOBODY, [1]) == {}
    assert await store.vectors(other) == await store.vectors(NOBODY) == {}
    assert await store.snapshot(session) is None


@pytest.mark.spec("S4.49")
async def test_deleting_a_session_leaves_nothing_of_it_and_nothing_of_others_goes_with_it(store: Store) -> None:
    deleted, kept = await begin(store), await begin(store)
    shared, own = "both have this", "only one has this"
    for session in (deleted, kept):
        await store.append(session, [said("hello")], key="k", blobs={content_hash(shared): shared})
    await store.append(deleted, [said("more")], blobs={content_hash(own): own})
    await store.put_snapshot(deleted, Snapshot(2, b"state"))
    await store.put_vectors(deleted, {2: b"vector"}, as_of=3)
    await store.acquire(deleted, "me", 600)

    await store.delete(deleted)

    with pytest.raises(SessionNotFoundError):
        await store.read(deleted)
    assert await store.blobs(deleted, [content_hash(shared), content_hash(own)]) == {}
    assert [row.id for row in (await store.sessions()).rows] == [kept]
    assert events(await store.read(kept)) == [created(), said("hello")]
    assert await store.blob(kept, content_hash(shared)) == shared

    await store.append(deleted, [created("bob")], expected_seq=0)
    assert await store.snapshot(deleted) is None
    assert await store.vectors(deleted) == {}
    assert await store.acquire(deleted, "another worker", 600)
    assert (await store.append(deleted, [said("x")], key="k")).repeated is False


async def test_a_session_that_nobody_uses_can_be_deleted_and_one_that_was_used_since_cannot(store: Store) -> None:
    text = "kept with the session"
    session = await begin(store)
    idle = await store.row(session)
    await store.append(session, [said("one more")], blobs={content_hash(text): text})
    assert not await store.delete_idle(idle)
    idle = await store.row(session)
    while (await store.row(session)).touched_at == idle.touched_at:
        await store.touch(session)
    assert not await store.delete_idle(idle)
    idle = await store.row(session)

    assert await store.delete_idle(idle)

    assert not await store.delete_idle(idle)
    assert await store.blobs(session, [content_hash(text)]) == {}
    with pytest.raises(SessionNotFoundError):
        await store.read(session)


async def test_a_session_whose_lease_somebody_else_holds_is_not_idle(store: Store) -> None:
    session = await begin(store)
    await store.acquire(session, "me", 60)
    idle = await store.row(session)

    assert not await store.delete_idle(idle)
    assert not await store.delete_idle(idle, holder="somebody else")
    assert await store.delete_idle(idle, holder="me")

    session = await begin(store)
    await store.acquire(session, "me", 60)
    await store.release(session, "me")
    assert await store.delete_idle(await store.row(session), holder="somebody else")


async def test_of_many_who_delete_an_idle_session_one_removes_it(store: Store) -> None:
    session = await begin(store)
    idle = await store.row(session)

    removed = await asyncio.gather(*(store.delete_idle(idle) for _ in range(8)))

    assert sorted(removed) == [False] * 7 + [True]


async def test_events_that_are_moved_here_keep_their_times_and_the_session_its_age(store: Store) -> None:
    session = new_session_id()
    monday = datetime(2024, 1, 1, 9, 30, 0, 123456, tzinfo=UTC)
    tuesday, friday = monday + timedelta(days=1), monday + timedelta(days=4)

    first = await store.append(
        session, [created(), said("one")], expected_seq=0, original_times=OriginalTimes((monday, tuesday), friday)
    )
    await store.append(session, [Erased()], expected_seq=2, original_times=OriginalTimes((tuesday,), monday))

    assert (first.first_seq, first.last_seq, first.at) == (1, 2, tuesday)
    assert await store.read(session) == [
        Recorded(1, monday, created()),
        Recorded(2, tuesday, said("one")),
        Recorded(3, tuesday, Erased()),
    ]
    assert await store.row(session) == SessionRow(session, "ana", "pane", 3, monday, friday)
    assert (await store.sessions()).rows == (await store.row(session),)
    with pytest.raises(InvalidInputError, match="as many times"):
        await store.append(session, [said("two")], original_times=OriginalTimes((), friday))


async def test_a_session_knows_the_hashes_of_its_texts(store: Store) -> None:
    texts = {content_hash(text): text for text in ("one", "two", "three")}
    mine, theirs = await begin(store), await begin(store)
    await store.append(mine, [said("a")], blobs=texts)
    await store.append(theirs, [said("b")], blobs={content_hash("four"): "four"})

    assert await store.blob_hashes(mine) == sorted(texts)

    await store.erase(mine, [], blobs=[content_hash("two")])
    assert await store.blob_hashes(mine) == sorted(texts.keys() - {content_hash("two")})
    assert await store.blob_hashes(theirs) == [content_hash("four")]
    with pytest.raises(SessionNotFoundError):
        await store.blob_hashes(NOBODY)


async def test_a_session_reads_its_own_blobs_and_no_others(store: Store) -> None:
    one, other = await begin(store), await begin(store)
    text, hash_of_text = "private", content_hash("private")
    await store.append(one, [said("x")], blobs={hash_of_text: text})

    assert await store.blob(one, hash_of_text) == text
    assert await store.blobs(one, [hash_of_text, BlobHash("unknown")]) == {hash_of_text: text}
    assert await store.blobs(other, [hash_of_text]) == {}
    with pytest.raises(BlobNotFoundError):
        await store.blob(other, hash_of_text)
    await store.delete(one)
    for session in (one, NOBODY):
        with pytest.raises(SessionNotFoundError):
            await store.blob(session, hash_of_text)


async def test_a_blob_that_is_not_what_its_hash_says_is_refused(store: Store) -> None:
    victim, thief = await begin(store), await begin(store)
    await store.append(victim, [said("x")], blobs={content_hash("private"): "private"})

    with pytest.raises(InvalidInputError, match="hash"):
        await store.append(thief, [said("x")], blobs={content_hash("private"): "anything"})

    assert await store.blobs(thief, [content_hash("private")]) == {}
    assert events(await store.read(thief)) == [created()]


async def test_the_latest_snapshot_is_kept_and_an_older_one_never_replaces_it(store: Store) -> None:
    session = await begin(store)
    await store.append(session, [said("x")] * 20)
    assert await store.snapshot(session) is None

    await store.put_snapshot(session, Snapshot(10, b"\0ten" * 1000))
    await store.put_snapshot(session, Snapshot(5, b"five"))
    assert await store.snapshot(session) == Snapshot(10, b"\0ten" * 1000)

    await store.put_snapshot(session, Snapshot(20, b"twenty"))
    assert await store.snapshot(session) == Snapshot(20, b"twenty")


async def test_a_lease_has_one_holder_who_can_renew_it_and_give_it_back(store: Store) -> None:
    session, other = await begin(store), await begin(store)

    assert await store.acquire(session, "a", 600)
    assert await store.acquire(session, "b", 600) is None
    assert await store.acquire(session, "a", 600)
    assert await store.acquire(other, "b", 600)

    await store.release(session, "b")
    assert await store.acquire(session, "b", 600) is None

    await store.release(session, "a")
    assert await store.acquire(session, "b", 600)


async def test_of_many_who_want_a_lease_at_once_one_gets_it(store: Store) -> None:
    session = await begin(store)

    answers = await asyncio.gather(*(store.acquire(session, f"holder {n}", 600) for n in range(20)))

    assert sum(answer is None for answer in answers) == 19


async def test_a_lease_that_ran_out_can_be_taken_and_a_renewed_one_cannot(store: Store) -> None:
    session = await begin(store)

    await store.acquire(session, "a", 0)
    assert await store.acquire(session, "b", 0)

    await store.acquire(session, "b", 600)
    assert await store.acquire(session, "a", 600) is None


async def test_the_number_of_a_lease_stays_when_it_is_renewed_and_grows_with_each_holder_that_takes_it(
    store: Store,
) -> None:
    session = await begin(store)

    first = await store.acquire(session, "a", 0)
    late = await store.acquire(session, "a", 0)
    second = await store.acquire(session, "b", 600)
    again = await store.acquire(session, "b", 600)
    await store.release(session, "b")
    third = await store.acquire(session, "a", 600)

    assert first == late
    assert second == again
    assert 0 < (first or 0) < (second or 0) < (third or 0)


async def test_an_append_under_a_lease_that_another_took_since_stores_nothing(store: Store) -> None:
    session = await begin(store)
    text = "never stored"
    old = await store.acquire(session, "a", 0)
    await store.append(session, [said("in time")], key="known", fence=old)
    new = await store.acquire(session, "b", 600)

    for expected_seq in (None, 2):
        with pytest.raises(LeaseLostError) as caught:
            await store.append(
                session, [said("x")], expected_seq=expected_seq, key="k", blobs={content_hash(text): text}, fence=old
            )
        assert caught.value.session_id == session
    assert (await store.append(session, [said("in time")], key="known", fence=old)).repeated is True
    await store.append(session, [said("of the new holder")], expected_seq=2, fence=new)
    await store.append(session, [said("without a lease")])
    await store.release(session, "b")
    with pytest.raises(LeaseLostError):
        await store.append(session, [said("x")], fence=old)

    assert contents(await store.read(session)) == ["in time", "of the new holder", "without a lease"]
    assert await store.blobs(session, [content_hash(text)]) == {}


async def test_what_another_who_took_the_lease_since_may_use_is_not_erased(store: Store) -> None:
    session = await begin(store)
    text = "a text of the new holder's turn"
    old = await store.acquire(session, "a", 0)
    await store.append(session, [said("kept")], blobs={content_hash(text): text}, fence=old)
    new = await store.acquire(session, "b", 600)

    with pytest.raises(LeaseLostError) as caught:
        await store.erase(session, [2], blobs=[content_hash(text)], fence=old)

    assert caught.value.session_id == session
    assert contents(await store.read(session)) == ["kept"]
    assert await store.blobs(session, [content_hash(text)]) == {content_hash(text): text}
    with pytest.raises(SessionNotFoundError):
        await store.erase(NOBODY, [1], fence=new)
    await store.erase(session, [2], blobs=[content_hash(text)], fence=new)
    assert events(await store.read(session)) == [created(), Erased()]
    assert await store.blobs(session, [content_hash(text)]) == {}


async def test_a_lease_that_ran_out_and_that_no_other_took_still_writes(store: Store) -> None:
    session = await begin(store)

    fence = await store.acquire(session, "a", 0)
    await store.append(session, [said("late")], fence=fence)
    await store.release(session, "a")
    await store.append(session, [said("later")], fence=fence)

    assert contents(await store.read(session)) == ["late", "later"]


async def test_of_holders_who_write_at_once_only_the_last_one_does(store: Store) -> None:
    session = await begin(store)
    fences = [await store.acquire(session, f"holder {n}", 0) for n in range(20)]

    answers = await asyncio.gather(
        *(store.append(session, [said(f"from {n}")], fence=fence) for n, fence in enumerate(fences)),
        return_exceptions=True,
    )

    assert [isinstance(answer, LeaseLostError) for answer in answers] == [True] * 19 + [False]
    assert contents(await store.read(session)) == ["from 19"]


async def test_the_words_of_an_incomplete_reply_are_written_over_fenced_and_erased(store: Store) -> None:
    session = await begin(store)
    old = await store.acquire(session, "a", 0) or 0
    assert await store.partial(session) is None

    await store.put_partial(session, b"one", fence=old)
    await store.put_partial(session, b"one two" * 1000, fence=old)
    first = await store.partial(session)
    new = await store.acquire(session, "b", 600) or 0
    await store.put_partial(session, b"late", fence=old)
    second = await store.partial(session)
    await store.put_partial(session, b"new", fence=new)
    third = await store.partial(session)
    await store.erase(session, [])
    await store.put_partial(NOBODY, b"x", fence=new)

    assert [first, second, third] == [b"one two" * 1000, b"one two" * 1000, b"new"]
    assert await store.partial(session) is None
    assert await store.partial(NOBODY) is None


async def test_a_subscriber_gets_old_events_then_new_ones_and_the_end_when_the_session_is_deleted(
    store: Store,
) -> None:
    session = await begin(store)
    await store.append(session, [said("old")])
    stream = store.subscribe(session, after=1)

    with anyio.fail_after(PATIENCE_S):
        assert contents([await anext(stream)]) == ["old"]
        await store.append(session, [said("new")])
        assert contents([await anext(stream)]) == ["new"]
        waiting = asyncio.ensure_future(anext(stream, None))
        await store.delete(session)
        assert await waiting is None


async def test_a_subscription_to_no_session_is_over_at_once(store: Store) -> None:
    assert [recorded async for recorded in store.subscribe(NOBODY, after=0)] == []


async def test_every_subscriber_gets_every_event_once_and_in_order_while_many_append(store: Store) -> None:
    session = await begin(store)
    seen: dict[int, list[int]] = {after: [] for after in range(6)}

    async def watch(after: int) -> None:
        async for recorded in store.subscribe(session, after=after):
            seen[after].append(recorded.seq)
            if recorded.seq == 401:
                return

    async def append() -> None:
        for _ in range(20):
            await store.append(session, [said("x"), said("y")])

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            for after in seen:
                tasks.start_soon(watch, after)
            for _ in range(10):
                tasks.start_soon(append)

    assert seen == {after: list(range(after + 1, 402)) for after in range(6)}


async def test_a_subscriber_is_not_woken_by_its_neighbours_session_and_misses_nothing_of_its_own(store: Store) -> None:
    session, neighbour = await begin(store), await begin(store)
    stream: AsyncIterator[Recorded] = store.subscribe(session, after=1)

    with anyio.fail_after(PATIENCE_S):
        waiting = asyncio.ensure_future(anext(stream))
        await store.append(neighbour, [said("not for you")])
        await store.append(session, [said("for you")])

        assert contents([await waiting]) == ["for you"]


async def test_closing_the_store_ends_subscriptions_and_refuses_everything_after(store: Store) -> None:
    session = await begin(store)
    stream = store.subscribe(session, after=1)
    waiting = asyncio.ensure_future(anext(stream, None))
    await asyncio.sleep(0)

    await store.__aexit__(None, None, None)

    with anyio.fail_after(PATIENCE_S):
        assert await waiting is None
    for ask in (store.read(session), store.append(session, [said("x")]), store.sessions()):
        with pytest.raises(StoreUnavailableError, match="closed"):
            await ask


async def test_costs_add_up_by_owner_and_day_also_when_they_come_at_once(store: Store) -> None:
    today = (await store.now()).date()
    before = today - timedelta(days=1)

    await asyncio.gather(*(store.add_cost("ann", today, Cost(3)) for _ in range(20)))
    await store.add_cost("ann", today, Cost(unpriced_calls=2))
    await store.add_cost("ann", before, Cost(5))
    await store.add_cost("ben", today, Cost(2**53 + 1))

    assert await store.costs("ann", since=before) == {before: Cost(5), today: Cost(60, 2)}
    assert await store.costs("ann", since=today) == {today: Cost(60, 2)}
    assert await store.costs("ben", since=before) == {today: Cost(2**53 + 1)}
    assert await store.costs("cleo", since=date(1970, 1, 1)) == {}


async def test_costs_stay_when_the_sessions_they_were_for_are_deleted(store: Store) -> None:
    session = await begin(store)
    today = (await store.now()).date()
    await store.add_cost("ann", today, Cost(7))

    await store.delete(session)

    assert await store.costs("ann", since=today) == {today: Cost(7)}


async def test_a_store_that_can_be_written_says_so_and_nothing_changes(store: Store) -> None:
    session = await begin(store)
    before = (await store.read(session), await store.sessions())

    await store.check_writable()

    assert (await store.read(session), await store.sessions()) == before


async def test_the_ends_of_several_logs_are_what_comes_after_a_place_or_after_the_snapshot(store: Store) -> None:
    fresh, snapped, known, gone = [await begin(store) for _ in range(4)]
    for session in (snapped, known):
        await store.append(session, [said("two"), said("three")])
    await store.put_snapshot(snapped, Snapshot(2, b"{}"))
    await store.put_snapshot(known, Snapshot(2, b"{}"))
    await store.delete(gone)

    ends = await store.tails({fresh: None, snapped: None, known: 1, gone: None, NOBODY: 5})

    assert ends == {
        fresh: Tail(None, await store.read(fresh)),
        snapped: Tail(Snapshot(2, b"{}"), await store.read(snapped, after=2)),
        known: Tail(None, await store.read(known, after=1)),
    }
    assert await store.tails({known: 3}) == {known: Tail(None, [])}
    assert await store.tails({}) == {}
    await store.erase(snapped, [3])
    assert await store.tails({snapped: None}) == {snapped: Tail(None, await store.read(snapped))}


async def test_a_key_goes_with_its_session(store: Store) -> None:
    session = await begin(store)
    await store.append(session, [said("once")], key="k")
    assert await store.delete_idle(await store.row(session))

    await store.append(session, [created()], expected_seq=0)
    again = await store.append(session, [said("another one")], key="k")

    assert (again.repeated, contents(await store.read(session))) == (False, ["another one"])
