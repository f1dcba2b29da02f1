from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.talk import AT, chatter, seqs, talk, user
from windowpane.context.messages import AssistantMessage, ErrorMessage, Message, Source, SystemMessage
from windowpane.context.summary import Summary
from windowpane.memory.recent import (
    LEAST_RECENT,
    LONG_CHARACTERS,
    RECENT,
    UNCOVERED,
    Due,
    MemoryWindow,
    StandingTokens,
    conversation,
    due,
    recent_messages,
)

lengths = st.lists(st.sampled_from([1, 20, 400, 3000]), max_size=60)


def summary(through_seq: int) -> Summary:
    return Summary(overview="so far", through_seq=through_seq)


@pytest.mark.spec("S3.13", "S3.26", "S3.27")
def test_a_short_conversation_is_sent_whole() -> None:
    assert recent_messages((), None) == ()
    assert seqs(recent_messages(chatter(8), None)) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.spec("S3.31")
def test_a_summary_is_due_once_more_than_five_messages_lie_before_the_last_eight() -> None:
    assert due(chatter(RECENT + UNCOVERED), None) is None
    assert due(chatter(RECENT + UNCOVERED + 1), None) == Due(chatter(6), None)


@pytest.mark.spec("S3.36", "S4.86")
def test_a_summary_is_due_sooner_when_the_conversation_is_long() -> None:
    long = talk(*("x" * (LONG_CHARACTERS // RECENT) for _ in range(RECENT + 1)))

    assert due(long, None) == Due(long[:-LEAST_RECENT], None)
    assert due(chatter(RECENT + 1), None) is None


def test_long_messages_do_not_ask_for_a_summary_after_every_turn() -> None:
    long = talk(*("x" * 5000 for _ in range(20)))

    assert due(long[:10], summary(3)) is None
    assert due(long[:12], summary(3)) == Due(long[3:7], summary(3))


def test_the_next_summary_takes_in_what_the_last_one_does_not_cover() -> None:
    messages = chatter(20)

    assert due(messages, summary(6)) == Due(messages[6:12], summary(6))
    assert due(messages, summary(12)) is None


@pytest.mark.spec("S3.13")
def test_summary_and_window_do_not_overlap_and_leave_no_gap() -> None:
    assert seqs(recent_messages(chatter(20), summary(12))) == [13, 14, 15, 16, 17, 18, 19, 20]


def test_notes_and_errors_are_not_part_of_the_conversation() -> None:
    messages: tuple[Message, ...] = (
        user(1, "hi"),
        SystemMessage(content="note", seq=2, at=AT),
        ErrorMessage(content="failed", code="x", seq=3, at=AT),
    )

    assert conversation(messages) == (user(1, "hi"),)


@pytest.mark.spec("S3.30")
@given(lengths)
def test_however_a_conversation_grows_summary_and_window_share_it_between_them(sizes: list[int]) -> None:
    messages = talk(*("x" * size for size in sizes))
    latest: Summary | None = None
    for end in range(len(messages) + 1):
        said = messages[:end]
        found = due(said, latest)
        if found is not None:
            assert found.before == latest
            assert seqs(found.messages)[0] == (latest.through_seq if latest else 0) + 1
            latest = summary(found.through_seq)
        sent = recent_messages(said, latest)
        covered = latest.through_seq if latest else 0
        assert list(range(1, covered + 1)) + seqs(sent) == list(range(1, end + 1))
        assert len(sent) >= min(end, LEAST_RECENT)
        assert len(sent) <= RECENT + UNCOVERED
        assert due(said, latest) is None


def test_what_stands_beside_the_messages_is_counted_and_leaves_with_them() -> None:
    messages = tuple(replace(each, turn=(each.seq + 1) // 2) for each in chatter(20))
    window = MemoryWindow(tokens=900)
    texts = dict.fromkeys(range(1, 11), 100)

    assert due(messages, None, window) is None
    assert due(messages, None, window, StandingTokens(texts=texts)) == Due(messages[:15], None)
    # A re-base takes tools along, so they alone are no reason, however many they are.
    assert due(messages, None, window, StandingTokens(tools=5000)) is None


def test_the_lines_that_name_an_answer_s_documents_are_counted() -> None:
    def cited(message: Message) -> Message:
        sources = tuple(Source(title=f"Guide number {number}", score=0.5) for number in range(5))
        return replace(message, sources=sources) if isinstance(message, AssistantMessage) else message

    messages, window = chatter(20), MemoryWindow(tokens=400)

    assert due(messages, None, window) is None
    assert due([cited(message) for message in messages], None, window) is not None


@given(lengths)
def test_whether_a_summary_is_due_depends_on_the_log_alone(sizes: list[int]) -> None:
    messages = talk(*("x" * size for size in sizes))

    assert due(messages, None) == due(list(messages), None)
