from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.messages import (
    AssistantMessage,
    ErrorMessage,
    Message,
    ModelReply,
    Step,
    SystemMessage,
    UserMessage,
    Utterance,
)
from windowpane.search.base import SearchQuery
from windowpane.search.query import (
    LONGEST_EARLIER_CHARS,
    MOST_CLAUSES,
    MOST_CONTEXT_SHARE,
    RELATED_CONTEXT_SHARE,
    after_echo,
    alone,
    query,
    related,
    said,
    said_last,
    with_turns,
    with_users_turns,
)

TALK = (Utterance("user", "How do I crop an image?"), Utterance("assistant", "Use the crop tool."))


def test_a_first_message_is_searched_as_it_is() -> None:
    assert query("How do I crop an image?") == SearchQuery("How do I crop an image?")


def test_a_follow_up_takes_part_of_its_meaning_from_the_turns_before_it() -> None:
    found = query("what about resizing?", TALK)

    assert found.message == "what about resizing?"
    assert found.context == "How do I crop an image?\nUse the crop tool.\nwhat about resizing?"
    assert 0.5 < found.context_share <= MOST_CONTEXT_SHARE
    assert found.earlier == "How do I crop an image?\nUse the crop tool."
    assert (
        found.reason
        == f"treated as a follow-up; {found.context_share:.0%} of the search weight comes from earlier turns"
    )


@pytest.mark.spec("S3.68")
def test_a_message_that_names_a_document_related_to_earlier_sources_is_a_follow_up_on_it() -> None:
    message = "Please explain resizing with the batch editor of the archive in some detail, step by step"
    titles = ("Photo Resizing Guide", "Sharing Albums")

    found = query(message, TALK, titles)

    assert query(message, TALK).context_share < RELATED_CONTEXT_SHARE == found.context_share
    assert found.earlier == "How do I crop an image?\nUse the crop tool.\nPhoto Resizing Guide"
    assert found.context == f"{found.earlier}\n{message}"
    assert found.reason.startswith("treated as a follow-up to 'Photo Resizing Guide'; 35% of the search weight")


def test_related_documents_that_the_message_does_not_name_change_nothing() -> None:
    assert query("what about resizing?", TALK, ("Sharing Albums",)) == query("what about resizing?", TALK)
    assert query("what about resizing?", (), ("Photo Resizing Guide",)) == query("what about resizing?")


def test_related_documents_are_those_of_the_answers_the_latest_first() -> None:
    def answer(seq: int, *titles: str) -> AssistantMessage:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return AssistantMessage(model_reply=ModelReply(steps=(Step(text="Yes."),)), related=titles, seq=seq, at=at)

    assert related((answer(2, "A", "B"), answer(4, "C", "A"))) == ("C", "A", "B")


def test_a_message_that_says_everything_itself_takes_less() -> None:
    long = "Please read the file report.csv in the folder invoices, add up the second column by month, show totals"

    assert query(long, TALK).context_share < query("and by month?", TALK).context_share


def test_a_message_by_itself_takes_nothing_from_the_turns_before_it() -> None:
    assert alone("what about resizing?", TALK) == SearchQuery("what about resizing?")


def test_without_answers_a_follow_up_takes_the_last_two_things_that_the_user_said() -> None:
    talk = (Utterance("user", "Hello there"), *TALK, Utterance("user", "In one go?"), Utterance("assistant", "Yes."))

    mixed = query("and smaller?", talk)
    found = with_users_turns(mixed, talk)

    earlier = "How do I crop an image?\nIn one go?"
    assert found == replace(mixed, earlier=earlier, context=f"{earlier}\nand smaller?")
    assert with_users_turns(mixed, TALK[1:]) is None
    assert with_turns(alone("and smaller?"), ()) is None


def test_only_the_end_of_a_long_turn_is_taken() -> None:
    found = query("and this?", (Utterance("user", "x" * 5000 + " end"),))

    assert len(found.earlier) == LONGEST_EARLIER_CHARS
    assert found.earlier.endswith(" end")


@pytest.mark.parametrize(
    ("message", "cues"),
    [
        ("Show me what is in notes.txt.", ("read or write a file",)),
        ("List ./src/app please", ("read or write a file",)),
        ("Take a screenshot of example.com", ("open a web page at a URL",)),
        (
            "Save https://example.org/a.html as page.html",
            ("open a web page at a URL", "read or write a file"),
        ),
        ("Please remember that I never eat nuts.", ("add, search or delete facts in a memory or knowledge graph",)),
        ("What do you know about my sister?", ("add, search or delete facts in a memory or knowledge graph",)),
        ("What do you know about volcanoes?", ()),
        ("What is a good way to remember names, and why do we forget them?", ()),
        ("Mail ana@example.com about Node.js, e.g. version 3.5 and/or 4, by 5 p.m.", ()),
        ("-" * 50_000 + "." * 50_000 + "a." * 50_000, ()),
    ],
)
def test_a_message_that_names_an_address_a_file_or_something_to_remember_says_so_to_the_tools(
    message: str, cues: tuple[str, ...]
) -> None:
    asked = alone(message)

    assert asked.cues == cues
    assert ("so tools for that come nearer" in asked.reason) == bool(cues)
    assert asked.texts[len(asked.texts) - len(cues) :] == cues


def test_a_message_that_asks_for_several_things_is_searched_clause_by_clause() -> None:
    found = query("Book a table for two and then send the address to Ann. Also check the weather in Rome.")

    assert found.clauses == ("Book a table for two", "send the address to Ann.", "Also check the weather in Rome.")
    assert found.reason == "searched as a whole and by each of its 3 clauses"


@pytest.mark.parametrize(
    "message",
    ["thanks!", "Thank you very much, that's all.", "No, not right now.", "hello", "Great, thanks again. Bye!"],
)
def test_a_message_that_asks_for_nothing_is_known_as_such(message: str) -> None:
    found = query(message, TALK)

    assert found.small_talk
    assert found.reason == "the message is small talk"


@pytest.mark.parametrize(
    "message", ["yes please", "thanks, now resize it", "hello world program in C", "no", "that one", ""]
)
def test_politeness_around_a_request_is_no_small_talk(message: str) -> None:
    assert not query(message, TALK).small_talk


@given(
    st.text(max_size=500),
    st.lists(st.builds(Utterance, st.sampled_from(["user", "assistant"]), st.text(max_size=200))),
)
def test_whatever_is_said_gives_a_query_that_keeps_the_message(message: str, recent: list[Utterance]) -> None:
    found = query(message, recent)

    assert found.message == message
    assert 0 <= found.context_share <= MOST_CONTEXT_SHARE
    assert len(found.clauses) <= MOST_CLAUSES
    assert found == query(message, recent)


def test_notes_and_errors_are_not_part_of_what_was_said() -> None:
    now = datetime.now(UTC)
    messages = (
        UserMessage(content="hi", seq=1, at=now),
        SystemMessage(content="note", seq=2, at=now),
        AssistantMessage(model_reply=ModelReply((Step(text="a"), Step(text="b"))), seq=3, at=now),
        ErrorMessage(content="failed", code="x", seq=4, at=now),
    )

    assert said(messages) == said_last(messages) == (Utterance("user", "hi"), Utterance("assistant", "a\n\nb"))


def test_what_echo_shows_of_its_request_is_not_part_of_what_was_said() -> None:
    now = datetime.now(UTC)
    asked = UserMessage(content="hi", seq=1, at=now)
    shown = AssistantMessage(model_reply=ModelReply((Step(text="I was given", model="echo"),)), seq=2, at=now)
    said_since = AssistantMessage(model_reply=ModelReply((Step(text="Hello.", model="gpt-5"),)), seq=3, at=now)

    assert said((asked, shown)) == said_last((asked, shown)) == (Utterance("user", "hi"),)
    assert said((asked, shown, said_since)) == (Utterance("user", "hi"), Utterance("assistant", "Hello."))
    assert [after_echo(messages) for messages in ((), (asked,), (asked, shown), (asked, shown, said_since))] == [
        False,
        False,
        True,
        False,
    ]


ROLES = st.lists(st.tuples(st.sampled_from(("user", "assistant", "note")), st.sampled_from(("", "Yes.", "How?"))))


@given(ROLES, st.sampled_from(("and smaller?", "thanks", "How do I crop an image and mail it?")))
def test_a_query_needs_no_more_than_what_was_said_last(turns: list[tuple[str, str]], message: str) -> None:
    now = datetime.now(UTC)
    messages: list[Message] = []
    for role, text in turns:
        if role == "user":
            messages.append(UserMessage(content=text, seq=1, at=now))
        elif role == "assistant":
            messages.append(AssistantMessage(model_reply=ModelReply((Step(text=text),)), seq=1, at=now))
        else:
            messages.append(SystemMessage(content=text, seq=1, at=now))

    whole, end = said(messages), said_last(messages)

    assert whole[len(whole) - len(end) :] == end
    assert query(message, end) == query(message, whole)
    mixed = query(message, whole)
    assert with_users_turns(mixed, end) == with_users_turns(mixed, whole)


@pytest.mark.parametrize("blank", [" ", "\t", " \n", ", "])
def test_a_long_run_of_blanks_is_read_at_once(blank: str) -> None:
    """Read from each of its places to its end, a run of this length would take hours."""
    run = blank * 150_000

    found = alone(f"Which port does it use{run}and where are its logs kept?")

    assert [clause.split() for clause in found.clauses] == [
        ["Which", "port", "does", "it", "use"],
        ["where", "are", "its", "logs", "kept?"],
    ]
