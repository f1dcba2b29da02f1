"""Working context: named sets of strings that say what a session is working on.

One function changes them, for the model's tool, the API, the command line and the MCP server alike: `change_set`. It
never drops anything silently, and what exceeds the caps changes nothing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Literal, cast

KNOWN_SETS = ("files", "applet", "endpoints", "ports")
MAX_PER_SET = 10
MAX_TOTAL = 50
MAX_ITEM_CHARACTERS = 2000
MAX_NAME_CHARACTERS = 64

ChangeMode = Literal["replace", "merge"]
ContextSets = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SetChange:
    """What became of a change.

    `sets` are all sets afterwards; None when nothing may be changed, and then `reply` says why. `warnings` are for
    the model and for people alike; `dropped` are items that had to make room.
    """

    sets: ContextSets | None
    reply: str
    warnings: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Tell whether nothing was changed because it may not be."""
        return self.sets is None

    @property
    def text(self) -> str:
        """Return the reply and the warnings, as the model reads them."""
        return "\n".join((self.reply, *self.warnings))


def change_set(sets: ContextSets, name: str, items: Sequence[str], mode: ChangeMode = "replace") -> SetChange:
    """Return the sets after one change, or why it may not be made."""
    if problem := _name_problem(name) or _items_problem(name, items, mode):
        return SetChange(None, problem)
    warnings = _warnings(name, items)
    before = sets.get(name, ())
    if mode == "merge" and not items:
        return SetChange(sets, f"Nothing to merge: {name} is unchanged ({len(before)} items)", warnings)
    if mode == "replace":
        after, dropped = unique(items), ()
    else:
        after, dropped = merged_applet(before, items) if name == "applet" else merged(before, items)
    changed = {key: value for key, value in sets.items() if key != name} | ({name: after} if after else {})
    total = sum(map(len, changed.values()))
    if total > MAX_TOTAL:
        return _too_large(total)
    if not items:
        return SetChange(changed, f"Cleared {name}", warnings)
    if dropped:
        why = "from applet" if name == "applet" else f"to stay within {MAX_PER_SET}"
        warnings += (f"Dropped {why}: {', '.join(dropped)}",)
    verb = "Merged" if mode == "merge" else "Set"
    return SetChange(changed, f"{verb} {name}: {len(after)} items", warnings, dropped)


def replace_all(sets: Mapping[str, Sequence[str]]) -> SetChange:
    """Return these sets as the whole working context, or why they may not be."""
    if len(sets) > MAX_TOTAL:
        return SetChange(None, f"Too many sets ({len(sets)}, max {MAX_TOTAL}).")
    after: dict[str, tuple[str, ...]] = {}
    warnings: list[str] = []
    for name, items in sets.items():
        one = change_set({}, name, items)
        if one.sets is None:
            return one
        after.update(one.sets)
        warnings += one.warnings
    total = sum(map(len, after.values()))
    if total > MAX_TOTAL:
        return _too_large(total)
    return SetChange(after, f"Replaced all context: {total} items" if total else "Cleared all context", tuple(warnings))


def merged(before: Sequence[str], items: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the union with the most recently mentioned last, at most `MAX_PER_SET`, and what had to go: the oldest."""
    mentioned = set(items)
    union = (*(item for item in unique(before) if item not in mentioned), *unique(items))
    return union[-MAX_PER_SET:], union[:-MAX_PER_SET]


def merged_applet(before: Sequence[str], items: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the applet after a merge, its slug first, and what is gone.

    One applet is open at a time. Items that begin with another slug take its place; the same slug, or parameters
    alone, give it these parameters beside those with other keys.
    """
    slug, given = (before[0], items) if before and "=" in items[0] else (items[0], items[1:])
    keys = {item.partition("=")[0] for item in given}
    had = before[1:] if before and before[0] == slug else ()
    params = unique([*(item for item in had if item.partition("=")[0] not in keys), *given])
    after = (slug, *params[1 - MAX_PER_SET :])
    return after, tuple(item for item in unique([*before, *items]) if item not in after)


def unique(items: Sequence[str]) -> tuple[str, ...]:
    """Return each item once, in order."""
    return tuple(dict.fromkeys(items))


def is_absolute(path: str) -> bool:
    """Tell whether a path names one file whatever the working directory, on any platform."""
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _too_large(total: int) -> SetChange:
    return SetChange(None, f"Context too large ({total} items, max {MAX_TOTAL}). Remove some items first.")


def _name_problem(name: str) -> str:
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - doors pass JSON through
        return "A set name must be a string."
    if not name or name != name.strip() or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        return f"A set name has 1 to {MAX_NAME_CHARACTERS} printable characters and no spaces around them."
    return ""


def _items_problem(name: str, items: Sequence[str], mode: ChangeMode) -> str:
    if mode not in ("replace", "merge"):
        return f"There is no mode {mode!r}; use replace or merge."
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):  # pyright: ignore[reportUnnecessaryIsInstance] - doors pass JSON through
        return "Items must be a list of strings."
    if len(unique(items)) > MAX_PER_SET:
        return f"Too many items ({len(unique(items))}, max {MAX_PER_SET} per set). Nothing was changed."
    for item in items:
        if not item.strip():
            return "An item is empty. Nothing was changed."
        if len(item) > MAX_ITEM_CHARACTERS:
            return f"An item has {len(item)} characters (max {MAX_ITEM_CHARACTERS}). Nothing was changed."
        if _NO_TEXT.search(item):
            return "An item is not valid text. Nothing was changed."
        if name == "files" and not is_absolute(item):
            return f"Files need absolute paths, and {item!r} is not one. Nothing was changed."
    return ""


_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What cannot be kept: half characters, and the one that ends a file's name."""


def _warnings(name: str, items: Sequence[str]) -> tuple[str, ...]:
    if name in KNOWN_SETS or not items:
        return ()
    return (f'Unknown set name: "{name}" (typo?) Known: {", ".join(KNOWN_SETS)}.',)


def paths_in(arguments: str) -> tuple[str, ...]:
    """Return the absolute paths among a tool call's arguments, each once."""
    try:
        body: object = json.loads(arguments or "{}")
        return tuple(dict.fromkeys(_paths(body)))
    except (ValueError, RecursionError):
        return ()


def _paths(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if (
            "\n" not in value
            and len(value) <= MAX_ITEM_CHARACTERS
            and is_absolute(value)
            and not value.startswith("//")
        ):
            yield value
    elif isinstance(value, dict):
        for part in cast("dict[str, object]", value).values():
            yield from _paths(part)
    elif isinstance(value, list):
        for part in cast("list[object]", value):
            yield from _paths(part)
