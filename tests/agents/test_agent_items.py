"""Rules and references as Markdown files."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windowpane.agents.items import read_reference, read_rule, render_item
from windowpane.context.agents import Problem
from windowpane.context.items import Reference, Rule

NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True)
TEXTS = st.text() | st.lists(
    st.sampled_from(
        ["---", "---\n", "\n", "\r\n", "\r", "# Title", "  ", "\t", "```\n", "name: x", "\ufeff", "\x85", "é"]
    )
).map("".join)
COMMON = {
    "name": NAMES,
    "text": TEXTS,
    "description": TEXTS,
    "priority": st.integers(0, 999),
    "include": st.sampled_from(["always", "manual", "agent"]),
    "enabled": st.booleans(),
    "version": TEXTS,
}
RULES = st.builds(Rule, **COMMON)
REFERENCES = st.builds(Reference, **COMMON, related=st.lists(NAMES, unique=True, max_size=4).map(tuple), title=TEXTS)


@given(RULES)
@example(Rule("---", "---\n---\n", description="---\n---", version="null"))
def test_reading_a_rendered_rule_gives_the_same_rule(rule: Rule) -> None:
    read = read_rule("other.md", render_item(rule).encode().decode(), version="")

    assert (read.item, read.problems) == (rule, ())


@given(REFERENCES)
@example(Reference("null", "# C# #\n", title="C#", related=("true", "1e3", "-")))
def test_reading_a_rendered_reference_gives_the_same_reference(reference: Reference) -> None:
    read = read_reference("other.md", render_item(reference).encode().decode(), version="")

    assert (read.item, read.problems) == (reference, ())


@given(st.text())
def test_a_file_without_front_matter_is_all_text(text: str) -> None:
    content = f"x{text}"

    assert read_rule("rules/plain.md", content, "v").item == Rule("plain", content, version="v")


def test_a_rendered_item_is_what_a_person_would_write() -> None:
    reference = Reference(
        "house-style", "# House style\n", "How we write", 300, "agent", related=("words", "tone"), title="House style"
    )

    assert render_item(reference) == (
        "---\n"
        "name: house-style\n"
        "description: How we write\n"
        "priority: 300\n"
        "include: agent\n"
        "related:\n"
        "- words\n"
        "- tone\n"
        "---\n"
        "# House style\n"
    )


@pytest.mark.spec("S0.3", "S1.3")
@pytest.mark.parametrize("mode", ["always", "manual", "agent"])
def test_an_item_has_one_of_three_include_modes(mode: str) -> None:
    read = read_rule("rules/a.md", f"---\ninclude: {mode}\n---\n", "v")

    assert read.item is not None
    assert read.item.include == mode


@pytest.mark.spec("S0.3")
def test_another_include_mode_is_refused_by_line() -> None:
    read = read_rule("rules/a.md", "---\nname: a\ninclude: sometimes\n---\ntext\n", "v")

    assert read.item is None
    assert read.problems == (
        Problem(file="rules/a.md", line=3, reason="include must be always, manual or agent, not sometimes"),
    )


def test_fields_that_are_not_set_have_their_defaults() -> None:
    content = "---\ndescription:\n---\nText.\n"

    assert read_rule("rules/deep/a.md", content, "v").item == Rule("a", "Text.\n", "", 500, "manual", True, "v")
    assert read_reference("references/b.MD", content, "v").item == Reference(
        "b", "Text.\n", "", 500, "manual", True, "v", (), "b"
    )


def test_a_version_is_kept_as_it_is_written() -> None:
    read = read_rule("rules/a.md", "---\nversion: 1.10\n---\n", "v")

    assert read.item == Rule("a", "", version="1.10")


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("Intro.\n\n## The second level ##\n", "The second level"),
        ("```\n# a comment\n```\n# Using C#\n", "Using C#"),
        ("#hashtag\n", "a"),
        ("---\ntitle: Chosen\n---\n# Written\n", "Chosen"),
    ],
)
def test_a_reference_is_titled_by_its_first_heading_unless_it_says_otherwise(content: str, title: str) -> None:
    item = read_reference("references/a.md", content, "v").item

    assert isinstance(item, Reference)
    assert item.title == title


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("---\nname: a\n---\n\n  Text \n\n", "\n  Text \n\n"),
        ("---\r\nname: a\r\n---\r\nText\r\n", "Text\r\n"),
        ("---\nname: a\n---\n---\nmore\n---\n", "---\nmore\n---\n"),
        ("---\nname: a\n--- \t\nText", "Text"),
        ("---\nname: a\n---", ""),
        ("---\n---\nText", "Text"),
    ],
)
def test_the_text_after_the_front_matter_is_kept_exactly(content: str, text: str) -> None:
    read = read_rule("rules/a.md", content, "v")

    assert (read.item, read.problems) == (Rule("a", text, version="v"), ())


@pytest.mark.parametrize(
    ("front", "line", "reason"),
    [
        ("priority: 1000", 2, "priority must be a whole number from 0 to 999, not 1000"),
        ("priority: -1", 2, "priority must be a whole number from 0 to 999, not -1"),
        ("name: a\npriority: high", 3, "priority must be a whole number from 0 to 999, not high"),
        ("priority: 1.5", 2, "priority must be a whole number from 0 to 999, not 1.5"),
        ("name: a b", 2, "the name 'a b' may hold only letters, digits, _ and -"),
        ("name: ../a", 2, "the name '../a' may hold only letters, digits, _ and -"),
        ("enabled: maybe", 2, "enabled must be true or false, not maybe"),
        ("description:\n  - a", 2, "description must be a text, not a list"),
        ("related: words", 2, "related must be a list, not a text"),
        ("related:\n  - words\n  - {a: b}", 4, "each of related must be a text, not a table"),
        ("- a", 2, "front matter must be a table of names and values, such as `include: always`"),
        ("include: always\ninclude: agent", 3, "'include' is set twice; the first time on line 2"),
    ],
)
def test_a_value_that_cannot_be_used_takes_the_item_out_and_names_its_line(front: str, line: int, reason: str) -> None:
    read = read_reference("references/a.md", f"---\n{front}\n---\ntext\n", "v")

    assert read.item is None
    assert read.problems == (Problem(file="references/a.md", line=line, reason=reason),)


def test_front_matter_that_never_ends_is_reported() -> None:
    read = read_rule("rules/a.md", "---\nname: a\n", "v")

    assert read.problems == (
        Problem(file="rules/a.md", line=1, reason="front matter begins here and no second line of --- ends it"),
    )


def test_an_unknown_field_is_reported_and_the_item_still_used() -> None:
    read = read_rule("rules/a.md", "---\nprioirty: 3\nauthor: x\n---\ntext", "v")

    assert read.item == Rule("a", "text", version="v")
    assert read.problems == (
        Problem(file="rules/a.md", line=2, reason="prioirty is not known and has no effect; did you mean priority?"),
        Problem(
            file="rules/a.md",
            line=3,
            reason="author is not known and has no effect; "
            "known here: name, description, priority, include, enabled, version",
        ),
    )


def test_all_mistakes_of_a_file_are_reported_at_once() -> None:
    read = read_rule("rules/a.md", "---\nname: '*'\npriority: x\ninclude: y\n---\n", "v")

    assert [problem.line for problem in read.problems] == [2, 3, 4]
