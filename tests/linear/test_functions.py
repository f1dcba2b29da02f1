"""What reads a text of a user, a page, a tool or a provider works in proportion to it."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from itertools import count

import pytest

from linear.functions import TextFunction, lines_run, text_functions
from windowpane.calls.conversation import read_conversation
from windowpane.calls.parts.sections import sections_of
from windowpane.calls.reply import fold_reply
from windowpane.context.ids import SessionId
from windowpane.context.items import reference_ref, rule_ref
from windowpane.context.messages import UserMessage, Utterance
from windowpane.insight.finding.words import excerpt, has, words_of
from windowpane.insight.use import uses
from windowpane.memory.extract import extract
from windowpane.memory.recent import Due
from windowpane.search.mend import mend
from windowpane.search.query import query
from windowpane.text.redact import redacted
from windowpane.text.render import boundary_code

SHORT, LONG = 2_000, 8_000
GROWTH = 8
"""How much more work a text of four times the length may be. The square is sixteen times."""

TO_START = 2_000
"""Lines that a text of any length may cost."""

MOST_LINES = 2_000_000
"""More than any function takes for a text of four times `LONG`."""

WARMING = "Some words, a 1st line: <p>x</p>\n\n" * 300
"""What is loaded at the first use is not the work of a text."""

PARTS = (
    *(
        " ",
        "\n",
        "0",
        "a",
        "-",
        "a-",
        "a.",
        "a ",
        "A. ",
        "é",
        "中",
        "\u0e01",
        "\u0301",
        "Aa. ",
        "I like x. ",
        "a\n\n",
        "a, ",
    ),
    *(
        "[",
        "{",
        '{"a":',
        "[],",
        '"',
        "\\",
        "`",
        "```\n",
        "<a>\n",
        "<a>\n</a>\n",
        "<p>a",
        "<div>",
        "# a\n",
        "- a\n",
        "|a|b|\n",
    ),
    *("data: {}\n\n", "?key=a&", "@rule:a ", "http://a.b/ ", "a: ", "a=b ", "$", "%41", "1. a\n", "x" * 50 + " "),
)

MOST_WORDS = 333
"""How many words of two letters a line of 1,000 characters has, which is the longest that a server looks for."""

BOUNDED = {"request.finders.pages", "search.mend._one_edit_away"}
"""Functions whose work has a bound that these lengths do not reach: `pages` reads 40,000 characters for a page at most,
and `mend` passes on words of 40 letters at most."""


def of_messages(text: str) -> object:
    parts = [text[at : at + 40] for at in range(0, len(text), 40)]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return extract(Due(tuple(UserMessage(content=part, seq=at, at=now) for at, part in enumerate(parts, 1)), None))


def of_body(text: str) -> object:
    said = [{"role": "user", "content": text[at : at + 40]} for at in range(0, len(text), 40)]
    return read_conversation("anthropic", {"messages": said, "system": text})


def of_stream(text: str) -> object:
    pieces = (text[at : at + 8] for at in range(0, len(text), 8))
    events = ({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces)
    return fold_reply("openai", b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))


def numbered(text: str) -> str:
    return " ".join(f"{piece}{number}" for number, piece in enumerate(text.split()))


BY_HAND: dict[str, TextFunction] = {
    "sections of a user's text": lambda text: sections_of(text, "user"),
    "sections of a system prompt": lambda text: sections_of(text, "system"),
    "sections of a tool's result": lambda text: sections_of(text, "tool"),
    "a summary of one message": lambda text: extract(
        Due((UserMessage(content=text, seq=1, at=datetime(2026, 1, 1, tzinfo=UTC)),), None)
    ),
    "a summary of many messages": of_messages,
    "a conversation of a program": of_body,
    "an answer as a stream": of_stream,
    "what an answer used": lambda text: uses({rule_ref("a"): text, reference_ref("b"): text[::2]}, text, [text]),
    "a query with the turns before": lambda text: query(text, [Utterance("user", text), Utterance("assistant", text)]),
    "secrets in a text": lambda text: redacted(text, ("secret", "a-")),
    "a boundary of texts": lambda text: boundary_code(SessionId("ses_a"), [text, text]),
    "mistyped words": lambda text: mend(text, {"hello": 1}, {"world": 1}),
    "an excerpt around words": lambda text: excerpt(numbered(text), words_of(numbered(text))[:MOST_WORDS]),
    "words that are looked for": lambda text: has(numbered(text), words_of(numbered(text))[:MOST_WORDS]),
}


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_reading_a_text_takes_work_in_proportion_to_it(name: str) -> None:
    assert too_much_work({name: BY_HAND[name]}) == {}


def test_no_function_of_texts_works_with_the_square_of_one() -> None:
    functions = text_functions()

    assert len(functions) > 200
    assert too_much_work({name: each for name, each in functions.items() if name not in BOUNDED}) == {}


def test_a_loop_within_a_loop_is_found() -> None:
    def square(text: str) -> int:
        found = 0
        for one in text[::40]:
            for other in text[::40]:
                found += one == other
        return found

    assert list(too_much_work({"square": square, "once": list})) == ["square"]


def too_much_work(functions: dict[str, TextFunction]) -> dict[str, tuple[str, int, int]]:
    """Return the functions whose work grows faster than a text, each with what is repeated and the lines of both."""
    found: dict[str, tuple[str, int, int]] = {}
    for name, function in functions.items():
        lines_run(function, WARMING, MOST_LINES)
        for part in PARTS:
            most = GROWTH * _lines(function, part, SHORT) + TO_START
            if _lines(function, part, LONG, most) <= most:
                continue
            # A text may be read in another way, or in pages, from some length on. Then the next lengths are alike.
            long = _lines(function, part, 4 * LONG, MOST_LINES)
            longer = _lines(function, part, 16 * LONG, GROWTH * long)
            if longer > GROWTH * long or long > MOST_LINES:
                found[name] = (part, long, longer)
                break
    return found


NUMBERS = count(1000)
TRIES = 3
"""What measures the coverage of the tests runs many lines of its own now and then: too many are counted again."""


def _lines(function: TextFunction, part: str, length: int, most: float = math.inf) -> int:
    """Return how many lines a function runs for a part that is repeated up to a length; `most` or fewer are enough."""
    lines = 0
    for _ in range(TRIES):
        # No text comes twice: what was read once is remembered.
        lines = lines_run(function, f"{part * (length // len(part))}{next(NUMBERS)}", most)
        if lines <= most:
            break
    return lines
