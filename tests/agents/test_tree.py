"""YAML and JSON as a tree with lines, also when the text is hostile."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.agents.tree import (
    MAX_CHARS,
    MAX_DEPTH,
    ListNode,
    ScalarNode,
    TableNode,
    TreeError,
    read_json,
    read_yaml,
    value_of,
)


def test_every_key_and_value_knows_its_line_in_the_file() -> None:
    tree = read_yaml("name: a\n\nrelated:\n  - b\n  - 'c'\n", first_line=2)

    assert tree == TableNode(
        2,
        {
            "name": (2, ScalarNode(2, "a")),
            "related": (4, ListNode(5, (ScalarNode(5, "b"), ScalarNode(6, "c", quoted=True)))),
        },
    )


def test_json_gives_the_same_tree_as_yaml_also_when_it_is_indented_with_tabs() -> None:
    text = '{\n\t"a": [1, true, null],\n\t"b": {"c:d": "e, \\"f\\" \\ud83d\\ude00"}\n}'

    tree = read_json(text)

    assert tree == TableNode(
        1,
        {
            "a": (2, ListNode(2, (ScalarNode(2, "1"), ScalarNode(2, "true"), ScalarNode(2, "null")))),
            "b": (3, TableNode(3, {"c:d": (3, ScalarNode(3, 'e, "f" 😀', quoted=True))})),
        },
    )


def test_plain_values_keep_the_types_that_people_expect() -> None:
    tree = read_yaml('{a: 010, b: 1.5, c: yes, d: off, e: ~, f: "1", g: 1.2.3, h: [2e3], i: word}')

    assert value_of(tree) == {
        "a": 10,
        "b": 1.5,
        "c": True,
        "d": False,
        "e": None,
        "f": "1",
        "g": "1.2.3",
        "h": [2000.0],
        "i": "word",
    }


def test_an_empty_text_is_an_empty_table() -> None:
    assert [read_yaml(""), read_yaml("# only this\n"), read_yaml("---\n", 4)] == [
        TableNode(1, {}),
        TableNode(1, {}),
        TableNode(4, {}),
    ]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\nb: *x\n", 2, "the alias *x is not followed; write the value out"),
        ("a: !!python/object:os.system x\n", 1, "the tag tag:yaml.org,2002:python/object:os.system is not read"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is set twice; the first time on line 1"),
        ("a: 1\n---\nb: 2\n", 3, "a second YAML document begins here; only one is read"),
        ("a: 1\n? [b]\n: c\n", 2, "a key must be a plain word"),
        ("a: 1\nb: [1, 2\n", 3, "not valid YAML: "),
        ("a: 1\nb:\n\tc: 1\n", 3, "not valid YAML: "),
        ("a: 1\nb: \x01\n", 2, "not valid YAML: "),
        ("[" * 60_000, 1, f"nested deeper than {MAX_DEPTH} levels"),
        ("- " * 30_000, 1, f"nested deeper than {MAX_DEPTH} levels"),
        ("{a: " * 15_000, 1, f"nested deeper than {MAX_DEPTH} levels"),
        ("a" * (MAX_CHARS + 1), None, f"{MAX_CHARS + 1:,} characters; no more than {MAX_CHARS:,} are read"),
    ],
)
def test_yaml_that_cannot_be_read_says_where_and_why(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(TreeError) as caught:
        read_yaml(text)

    assert (caught.value.line, caught.value.reason[: len(reason)]) == (line, reason)


def test_a_billion_laughs_are_not_laughed() -> None:
    rows = ["a0: &a0 [lol, lol]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]

    with pytest.raises(TreeError, match=r"alias \*a0 is not followed") as caught:
        read_yaml("\n".join(rows))

    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{\n "a": 1\n"b": 2}', 3, "not valid JSON: "),
        ('{"a": 1,\n"a": 2}', 2, "'a' is set twice; the first time on line 1"),
        ('{"a":' * 100 + "1" + "}" * 100, 1, f"nested deeper than {MAX_DEPTH} levels"),
        ("", 1, "not valid JSON: "),
    ],
)
def test_json_that_cannot_be_read_says_where_and_why(text: str, line: int | None, reason: str) -> None:
    with pytest.raises(TreeError) as caught:
        read_json(text)

    assert (caught.value.line, caught.value.reason[: len(reason)]) == (line, reason)


@pytest.mark.parametrize("text", ["[" * 60_000, "[" * 30_000 + "]" * 30_000])
def test_json_that_python_itself_may_not_follow_is_refused(text: str) -> None:
    # How deep it follows, and so what it finds wrong first, differs from version to version.
    with pytest.raises(TreeError, match=f"nested deeper than {MAX_DEPTH} levels|not valid JSON: "):
        read_json(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES, st.sampled_from([None, 1, "\t"]))
def test_any_json_value_is_read_as_json_means_it(value: object, indent: int | str | None) -> None:
    assert value_of(read_json(json.dumps(value, indent=indent))) == value


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    for read in (read_yaml, read_json):
        with suppress(TreeError):
            read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [(r'{"a": "\ud83d\ude00"}', {"a": "😀"}), (f'{{"{"k" * 1100}": 1}}', {"k" * 1100: 1}), ('\t{"a"\n:1}', {"a": 1})],
)
def test_json_is_read_where_yaml_would_refuse_it(text: str, value: dict[str, object]) -> None:
    assert value_of(read_json(text)) == value
