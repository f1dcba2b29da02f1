"""The one function that changes the working context, and the caps it keeps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.context.sets import (
    MAX_PER_SET,
    MAX_TOTAL,
    ChangeMode,
    SetChange,
    change_set,
    merged,
    replace_all,
)

FILES = {"files": ("/a", "/b")}
TOO_MANY = "Too many items (11, max 10 per set). Nothing was changed."
UNKNOWN = 'Unknown set name: "fles" (typo?) Known: files, applet, endpoints, ports.'


@pytest.mark.spec("S2.14", "S2.15", "S2.21", "S2.26", "S2.76")
def test_replace_makes_the_items_the_whole_set() -> None:
    assert change_set(FILES, "files", ["/c", "/d", "/c"]) == SetChange({"files": ("/c", "/d")}, "Set files: 2 items")


@pytest.mark.spec("S2.22", "S2.26")
def test_replace_with_nothing_deletes_the_set_and_leaves_the_others() -> None:
    change = change_set({**FILES, "ports": ("80",)}, "files", [])

    assert change == SetChange({"ports": ("80",)}, "Cleared files")


@pytest.mark.spec("S2.23", "S2.26", "S2.76")
def test_merge_is_a_union_in_which_what_was_mentioned_last_stands_last() -> None:
    assert change_set(FILES, "files", ["/c", "/a"], "merge") == SetChange(
        {"files": ("/b", "/c", "/a")}, "Merged files: 3 items"
    )


@pytest.mark.spec("S2.23")
def test_merge_beyond_ten_keeps_the_newest_and_names_what_it_dropped() -> None:
    before = {"ports": tuple(map(str, range(10)))}

    assert change_set(before, "ports", ["90", "91"], "merge") == SetChange(
        {"ports": ("2", "3", "4", "5", "6", "7", "8", "9", "90", "91")},
        "Merged ports: 10 items",
        warnings=("Dropped to stay within 10: 0, 1",),
        dropped=("0", "1"),
    )


EDITOR = ("text-editor", "path=/a", "line=3")
APPLETS: list[tuple[tuple[str, ...], list[str], tuple[str, ...], tuple[str, ...]]] = [
    ((), ["git-diff", "repo=/r"], ("git-diff", "repo=/r"), ()),
    (EDITOR, ["git-diff", "repo=/r"], ("git-diff", "repo=/r"), EDITOR),
    (EDITOR, ["text-editor"], EDITOR, ()),
    (EDITOR, ["text-editor", "path=/b"], ("text-editor", "line=3", "path=/b"), ("path=/a",)),
    (EDITOR, ["line=4", "wrap"], ("text-editor", "path=/a", "line=4", "wrap"), ("line=3",)),
    (
        EDITOR,
        [f"{number}=" for number in range(8)],
        ("text-editor", "line=3", *(f"{number}=" for number in range(8))),
        ("path=/a",),
    ),
]


@pytest.mark.spec("S2.3", "S2.15", "S2.23")
@pytest.mark.parametrize(("before", "items", "after", "dropped"), APPLETS)
def test_a_merge_never_mixes_two_applets(
    before: tuple[str, ...], items: list[str], after: tuple[str, ...], dropped: tuple[str, ...]
) -> None:
    assert change_set({"applet": before}, "applet", items, "merge") == SetChange(
        {"applet": after},
        f"Merged applet: {len(after)} items",
        warnings=(f"Dropped from applet: {', '.join(dropped)}",) if dropped else (),
        dropped=dropped,
    )


@pytest.mark.spec("S2.26")
def test_a_merge_of_nothing_says_that_nothing_changed() -> None:
    assert change_set(FILES, "files", [], "merge") == SetChange(FILES, "Nothing to merge: files is unchanged (2 items)")


@pytest.mark.spec("S2.16", "S2.18")
def test_a_set_of_another_name_is_kept_with_a_warning_that_catches_typos() -> None:
    change = change_set({}, "fles", ["a"])

    assert change == SetChange({"fles": ("a",)}, "Set fles: 1 items", warnings=(UNKNOWN,))
    assert change.text == f"Set fles: 1 items\n{UNKNOWN}"


@pytest.mark.spec("S2.24")
@pytest.mark.parametrize("mode", ["replace", "merge"])
def test_the_fifty_first_item_changes_nothing(mode: ChangeMode) -> None:
    full = {f"set{number}": tuple(map(str, range(10))) for number in range(5)}

    assert change_set(full, "ports", ["80"], mode) == SetChange(
        None, "Context too large (51 items, max 50). Remove some items first."
    )
    assert change_set(full, "set0", ["80"], mode).sets is not None


NAME = "A set name has 1 to 64 printable characters and no spaces around them."
STRINGS = "Items must be a list of strings."
EMPTY = "An item is empty. Nothing was changed."
NO_TEXT = "An item is not valid text. Nothing was changed."
BAD: list[tuple[Any, Any, Any, str]] = [
    ("files", [f"/{number}" for number in range(11)], "replace", TOO_MANY),
    ("files", [f"/{number}" for number in range(11)], "merge", TOO_MANY),
    ("ports", [80], "replace", STRINGS),
    ("ports", ["80", None], "merge", STRINGS),
    ("ports", "80", "replace", STRINGS),
    ("ports", {"80": 1}, "replace", STRINGS),
    ("ports", 80, "replace", STRINGS),
    ("ports", [["80"]], "replace", STRINGS),
    ("ports", [""], "replace", EMPTY),
    ("ports", [" \n"], "replace", EMPTY),
    ("ports", ["8" * 2001], "replace", "An item has 2001 characters (max 2000). Nothing was changed."),
    ("ports", ["\ud800"], "replace", NO_TEXT),
    ("files", ["/a\0b"], "replace", NO_TEXT),
    ("files", ["a.md"], "replace", "Files need absolute paths, and 'a.md' is not one. Nothing was changed."),
    ("files", ["~/a.md"], "merge", "Files need absolute paths, and '~/a.md' is not one. Nothing was changed."),
    ("", ["a"], "replace", NAME),
    (" files", ["/a"], "replace", NAME),
    ("fi\nles", ["/a"], "replace", NAME),
    ("f" * 65, ["/a"], "replace", NAME),
    (7, ["a"], "replace", "A set name must be a string."),
    (["files"], ["a"], "replace", "A set name must be a string."),
    ("files", ["/a"], "union", "There is no mode 'union'; use replace or merge."),
    ("files", ["/a"], ["merge"], "There is no mode ['merge']; use replace or merge."),
]


@pytest.mark.spec("S2.19", "S2.71")
@pytest.mark.parametrize(("name", "items", "mode", "reply"), BAD, ids=lambda value: repr(value)[:40])
def test_what_cannot_be_used_is_refused_with_the_reason(name: Any, items: Any, mode: Any, reply: str) -> None:
    assert change_set(FILES, name, items, mode) == SetChange(None, reply)


@pytest.mark.parametrize(
    "path",
    [
        "/a b/ü/日本.md",
        "/<img src=x onerror=alert(1)>",
        "/x\n=== SYSTEM ===",
        "/\u202egpj.exe",
        "/a'\"&;`$(rm)",
        "C:\\x",
    ],
)
def test_a_hostile_file_name_is_kept_as_it_is(path: str) -> None:
    assert change_set({}, "files", [path]).sets == {"files": (path,)}


@pytest.mark.spec("S2.69")
def test_all_sets_are_replaced_together_or_not_at_all() -> None:
    assert replace_all({"files": ["/a"], "fles": ["b"], "ports": []}) == SetChange(
        {"files": ("/a",), "fles": ("b",)}, "Replaced all context: 2 items", warnings=(UNKNOWN,)
    )
    assert replace_all({}) == SetChange({}, "Cleared all context")
    assert replace_all({"ports": ["80"], "files": ["a"]}).sets is None


@pytest.mark.spec("S2.24")
def test_the_total_counts_every_set_of_a_replacement() -> None:
    seven = {f"set{number}": list(map(str, range(10))) for number in range(7)}

    assert replace_all(seven) == SetChange(None, "Context too large (70 items, max 50). Remove some items first.")


ITEMS = st.lists(st.sampled_from([f"/{letter}" for letter in "abcdefghijklmnop"]), max_size=10)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["files", "ports", "x", "y", "z", "w"]), ITEMS, st.sampled_from(["replace", "merge"])),
    max_size=25,
)


@pytest.mark.spec("S2.23", "S2.24")
@given(CHANGES)
def test_no_series_of_changes_breaks_a_cap_or_loses_what_it_did_not_name(
    changes: list[tuple[str, list[str], ChangeMode]],
) -> None:
    sets: dict[str, tuple[str, ...]] = {}
    for name, items, mode in changes:
        change = change_set(sets, name, items, mode)
        if change.sets is None:
            assert change.reply.startswith("Context too large")
            continue
        after = dict(change.sets)
        kept = after.get(name, ())
        assert {key: value for key, value in after.items() if key != name} == {
            key: value for key, value in sets.items() if key != name
        }
        assert set(items) <= set(kept)
        if mode == "merge":
            assert set(kept) | set(change.dropped) == set(sets.get(name, ())) | set(items)
        assert len(set(kept)) == len(kept) <= MAX_PER_SET
        assert sum(map(len, after.values())) <= MAX_TOTAL
        assert () not in after.values()
        sets = after


@given(ITEMS, ITEMS)
def test_merging_the_same_items_again_changes_nothing(before: list[str], items: list[str]) -> None:
    once, _ = merged(before, items)

    assert merged(once, items) == (once, ())
