import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.messages import Utterance
from windowpane.search.query import alone
from windowpane.search.topic import new_topic

TALK = ["How do I crop an image?", "Use the crop tool, then save the image."]


@pytest.mark.parametrize("message", ["And how do I save the image?", "the crop tool?", "yes", "why does it do that"])
def test_a_message_that_goes_on_is_no_new_subject(message: str) -> None:
    assert new_topic(message, TALK) < 0.5


@pytest.mark.parametrize(
    "message", ["What is the weather going to be like in Rome?", "I need a train to Lyon on Friday, can you book one?"]
)
def test_a_question_that_shares_nothing_with_the_turns_before_begins_a_new_subject(message: str) -> None:
    assert new_topic(message, TALK) >= 0.5
    assert (
        "it seems to start a new topic"
        in alone(message, [Utterance("user", TALK[0]), Utterance("assistant", TALK[1])]).reason
    )


def test_a_first_message_is_a_new_subject_and_nothing_is_said_about_it() -> None:
    assert new_topic("Anything", []) == 1.0
    assert alone("How do I crop an image?").reason == ""


@given(message=st.text(max_size=200), before=st.lists(st.text(max_size=100), max_size=4))
def test_any_text_gives_a_chance(message: str, before: list[str]) -> None:
    assert 0 <= new_topic(message, before) <= 1


@given(message=st.text(min_size=1, max_size=100), other=st.text(max_size=100))
def test_repeating_the_message_before_never_makes_it_newer(message: str, other: str) -> None:
    assert new_topic(message, [other, message]) <= new_topic(message, [other, "" if message[-1:] != "?" else "?"])
