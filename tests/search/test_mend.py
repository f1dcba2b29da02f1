import pytest

from windowpane.search.mend import LONGEST_TEXT, LONGEST_WORD, Mended, mend

ITEMS = {"weather": 3, "calendar": 2, "webpages": 1, "deploy": 1}
MODEL = {
    "tomorrow": 5,
    "form": 6,
    "from": 2,
    "received": 9,
    "show": 3,
    "size": 7,
    "residing": 12,
    "cache": 8,
    "coached": 15,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the waether?", "What is the weather?"),
        ("Add it to my calender", "Add it to my calendar"),
        ("Wether in Rome", "Weather in Rome"),
        ("what about tomorow", "what about tomorrow"),
        ("I recieved it", "I received it"),
    ],
)
def test_a_word_one_edit_away_from_a_known_one_is_read_as_that(text: str, expected: str) -> None:
    assert mend(text, ITEMS, MODEL).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "fill in the form",
        "open one webpage",
        "she deploys it",
        "what about resizing",
        "it is cached",
        "ask Waether about it",
        "run waether.py or --waether or waether_now or waether(1)",
        "see http://host/waether and me@waether",
        "the wthr is fine",
        "x" * LONGEST_TEXT + " waether",
    ],
)
def test_words_forms_names_code_and_pasted_texts_are_left_as_they_are(text: str) -> None:
    assert mend(text, ITEMS, MODEL) == Mended(text)


def test_without_the_words_of_a_model_nothing_is_mended() -> None:
    assert mend("waether", ITEMS, {}) == Mended("waether")


def test_the_record_names_every_word_that_is_read_differently() -> None:
    assert (
        mend("waether tomorow", ITEMS, MODEL).note == "'waether' is read as 'weather', 'tomorow' is read as 'tomorrow'"
    )


def test_a_word_that_is_longer_than_any_is_left_alone() -> None:
    known = {"a" * LONGEST_WORD: 1, "a" * (LONGEST_WORD + 2): 1}

    assert mend("a" * (LONGEST_WORD - 1), known, MODEL).text == "a" * LONGEST_WORD
    assert mend("a" * (LONGEST_WORD + 1), known, MODEL) == Mended("a" * (LONGEST_WORD + 1))
