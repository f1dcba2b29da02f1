"""Filled-in forms: which answers are accepted, and that long ones are checked in a time that grows with them alone."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.errors import InvalidInputError
from windowpane.turn.asking.form import check_filled


class Compared(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str(self) == other

    __hash__ = str.__hash__


def form(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"sizes": {"type": "array", "items": items}}}


@pytest.mark.parametrize("keyword", ["enum", "anyOf", "oneOf"])
def test_a_long_list_is_looked_up_in_a_long_list_of_choices(keyword: str) -> None:
    choices = [Compared(f"size {number}") for number in range(1000)]
    titled = [{"const": choice, "title": "A size"} for choice in choices]
    schema = form({"type": "string", keyword: choices if keyword == "enum" else titled})
    Compared.times = 0

    check_filled({"sizes": [f"size {number % 1000}" for number in range(5000)]}, schema)
    with pytest.raises(InvalidInputError, match=r"^sizes\.1: 'none' is not one of the 1,000 choices$"):
        check_filled({"sizes": ["size 1", *["none"] * 5000]}, schema)

    assert Compared.times < 20_000


@pytest.mark.parametrize(
    ("choices", "value", "accepted"),
    [
        (["a", "b"], "b", True),
        (["a", "b"], "c", False),
        ([1, None], 1.0, True),
        ([1, 0], True, False),
        ([True], 1, False),
        ([[1, {"a": 2}]], [1.0, {"a": 2}], True),
        ([[1, {"a": 2}]], [1, {"a": True}], False),
        ([{"a": 1}], {"a": 1, "b": 1}, False),
        ([], "a", False),
    ],
)
@pytest.mark.parametrize("keyword", ["enum", "oneOf"])
def test_an_answer_is_one_of_the_choices_or_not(keyword: str, choices: list[Any], value: Any, accepted: bool) -> None:
    schema = form({keyword: choices if keyword == "enum" else [{"const": choice} for choice in choices]})
    told = ""
    try:
        check_filled({"sizes": [value]}, schema)
    except InvalidInputError as error:
        told = str(error)

    assert told == ("" if accepted else f"sizes.0: {value!r} is not one of {choices!r}")


def test_alternatives_that_are_no_choices_are_checked_as_such() -> None:
    schema = form({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}]})

    check_filled({"sizes": ["abc", 4]}, schema)
    with pytest.raises(InvalidInputError, match=r"^sizes\.0: "):
        check_filled({"sizes": ["abcd"]}, schema)
