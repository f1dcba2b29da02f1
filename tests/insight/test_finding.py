"""What was said, and what requests had, is found in every store, and what was erased is not."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stores.kinds import KINDS, Kind
from windowpane.errors import InvalidInputError
from windowpane.insight.finding.query import read_query
from windowpane.insight.finding.words import excerpt, has, terms_asked, terms_of, words_of
from windowpane.local.pane import LocalPane
from windowpane.testing import World

PLAIN = [kind for kind in KINDS if "encrypted" not in kind.name]


async def found(pane: LocalPane, line: str, **more: object) -> list[tuple[str, int | None]]:
    """Return what a line finds: titles and turns."""
    view = await pane.sessions.find(line, **more)  # pyright: ignore[reportArgumentType]
    assert view.complete
    return [(one.title, one.turn) for one in view.found]


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.name)
async def test_words_names_and_conditions_find_turns_in_every_store(kind: Kind, tmp_path: Path) -> None:
    world = World(tmp_path / "agents", store=kind.open(kind.fresh(tmp_path)))
    world.rule("tone", "Be kind.", include="always")
    world.reference("billing", "Due within thirty days.", description="When invoices are due", include="agent")
    world.says("Within thirty days.", "Tomatoes are red.", "东京的天气很好。", "Nothing.")
    async with world.pane() as pane:
        bills = (await pane.sessions.create(name="Bills of the café")).id
        await pane.ask(bills, "When is an invoice due?")
        garden = (await pane.sessions.create()).id
        await pane.ask(garden, "What is red?")
        await pane.ask(garden, "How is the weather in Tokyo?")
        await pane.sessions.add_message(garden, "user", "An aside about rhubarb.")
        empty = (await pane.sessions.create(name="Empty")).id

        told = {
            "a word of the answer": await found(pane, "tomatoes"),
            "the beginning of a word": await found(pane, "toma"),
            "several words, in any order": await found(pane, "DUE thirty"),
            "words of two turns": await found(pane, "tomatoes invoice"),
            "a name": await found(pane, "cafe\u0301"),
            "Chinese": await found(pane, "天气"),
            "a message from elsewhere": await found(pane, "rhubarb"),
            "what was sent": await found(pane, "sent:tone thirty"),
            "what was left out": await found(pane, "turns where billing was left out"),
            "both": await found(pane, "left-out:billing tokyo"),
            "long": await found(pane, "over 10k tokens"),
            "short": await found(pane, "under:10k red"),
            "of an agent": await found(pane, "agent:nobody tomatoes"),
        }
        sessions = [one.id for one in (await pane.sessions.list(query="t", limit=1)).sessions]
        listed = await pane.sessions.list(query="is", limit=1)
        more = await pane.sessions.list(query="is", limit=1, cursor=listed.cursor)
        items = [(item.agent, item.name) for item in (await pane.sessions.find("invoices")).items]

    title = "What is red?"
    assert told == {
        "a word of the answer": [(title, 1)],
        "the beginning of a word": [(title, 1)],
        "several words, in any order": [("Bills of the café", 1)],
        "words of two turns": [],
        "a name": [("Bills of the café", None)],
        "Chinese": [(title, 2)],
        "a message from elsewhere": [(title, None)],
        "what was sent": [("Bills of the café", 1)],
        "what was left out": [(title, 2), (title, 1), ("Bills of the café", 1)],
        "both": [(title, 2)],
        "long": [],
        "short": [(title, 1)],
        "of an agent": [],
    }
    assert sessions == []
    assert empty not in sessions
    assert [one.id for one in (*listed.sessions, *more.sessions)] == [garden, bills]
    assert items == [("pane", "billing")]


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.name)
async def test_what_was_erased_or_renamed_is_not_found(kind: Kind, tmp_path: Path) -> None:
    world = World(tmp_path / "agents", store=kind.open(kind.fresh(tmp_path)))
    world.says("Rhubarb is sour.", "Quinces are hard.", "Plums are blue.")
    async with world.pane() as pane:
        first = (await pane.sessions.create(name="Fruit")).id
        await pane.ask(first, "What is sour?")
        second = (await pane.sessions.create()).id
        await pane.ask(second, "What is hard?")
        message = await pane.sessions.add_message(second, "user", "An aside about medlars.")
        assert all([await found(pane, word) for word in ("rhubarb", "quinces", "medlars")])

        await pane.sessions.clear_history(first)
        await pane.sessions.update(first, {"name": "Vegetables"})
        await pane.sessions.remove_message(second, message.seq)
        after = [await found(pane, word) for word in ("rhubarb", "fruit", "vegetables", "quinces", "medlars")]
        await pane.ask(first, "What is blue?")
        again = await found(pane, "plums")
        await pane.sessions.delete(second)
        gone = await found(pane, "quinces")

    assert after == [[], [], [("Vegetables", None)], [("What is hard?", 1)], []]
    assert again == [("Vegetables", 2)]
    assert gone == []


async def test_sessions_of_another_owner_are_not_found(tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.name == "sqlite")
    world = World(tmp_path / "agents", store=kind.open(kind.fresh(tmp_path)))
    world.says("Tomatoes.", "Tomatoes.")
    async with world.pane() as pane:
        await pane.ask((await pane.sessions.create(name="Mine")).id, "What is red?")
        other = LocalPane(pane.engine, owner="other")
        await other.ask((await other.sessions.create(name="Theirs")).id, "What is red?")
        everyone = LocalPane(pane.engine, owner=None)

        assert await found(pane, "tomatoes") == [("Mine", 1)]
        assert await found(other, "tomatoes") == [("Theirs", 1)]
        assert await found(everyone, "tomatoes") == [("Theirs", 1), ("Mine", 1)]


async def test_pages_follow_one_another_and_a_strange_cursor_is_refused(tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.name == "sqlite")
    world = World(tmp_path / "agents", store=kind.open(kind.fresh(tmp_path)))
    async with world.pane() as pane:
        session = (await pane.sessions.create(name="Many")).id
        for number in range(7):
            await pane.sessions.add_message(session, "user", f"Apple number {number}")
        seen: list[str] = []
        cursor: str | None = None
        while True:
            view = await pane.sessions.find("appl", limit=3, cursor=cursor)
            seen += [one.excerpt for one in view.found]
            cursor = view.cursor
            if cursor is None:
                break
        with pytest.raises(InvalidInputError, match="cursor"):
            await pane.sessions.find("appl", cursor="x'; drop table session")
        with pytest.raises(InvalidInputError, match="type a word"):
            await pane.sessions.find("  !? ")

    assert seen == [f"Apple number {number}" for number in reversed(range(7))]


def test_a_line_is_read_as_words_and_conditions() -> None:
    query = read_query('turns where "Dark mode" was left out, over 10k tokens, Übermut', owner="me")

    assert query.words == ("übermut",)
    assert query.understood == ('"Dark mode" was left out', "the request has over 10,000 tokens")
    assert (query.wanted.least_tokens, query.wanted.most_tokens, query.wanted.owner) == (10_001, None, "me")
    assert read_query("the degraded road", owner=None).words == ("the", "degraded", "road")
    assert read_query("degraded", owner=None).understood == ("the selection was degraded",)


@given(st.text(max_size=80), st.text(max_size=20))
@settings(max_examples=300, deadline=None)
def test_a_text_that_has_the_words_has_their_terms(text: str, line: str) -> None:
    words = words_of(line)
    whole = f"{text} {line} {text}"

    assert has(whole, words)
    assert terms_asked(words) <= terms_of(whole)
    for word in words_of(text):
        assert terms_asked([word[:4]]) <= terms_of(text) or len(word[:4]) < 3


@given(st.text(st.characters(exclude_characters="`~]"), max_size=400), st.text(max_size=20))
def test_an_excerpt_is_some_of_the_text_in_one_line(text: str, line: str) -> None:
    cut = excerpt(text, words_of(line))

    assert _letters(cut.strip("…")) in _letters(text)
    assert "\n" not in cut
    assert len(cut) <= 162


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def test_an_excerpt_has_no_marks_of_markdown() -> None:
    text = """## How photos are **kept**

- [x] `photo@s.jpg`, see [the guide](https://example.org/a?b=c)
> in 2*3 sizes

| size | width |
|---|---:|
| my_small__one | 600 |

```python
album.keep()
```
"""
    assert excerpt(text, ["photos"]) == (
        "How photos are kept photo@s.jpg, see the guide in 2*3 sizes size width my_small__one 600 album.keep()"
    )
