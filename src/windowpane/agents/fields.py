"""Read one table of a file, field by field, and note what is wrong with it and where.

A field that cannot be read gives its default and a problem. So one mistake does not hide the next, and the caller
decides, by `failed`, whether what was read may still be used.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import TypeGuard, TypeVar

from windowpane.agents.tree import ListNode, Node, ScalarNode, TableNode, boolean, integer, number
from windowpane.context.agents import Problem

ChoiceT = TypeVar("ChoiceT", bound=str)
DefaultT = TypeVar("DefaultT")


class Notes:
    """The problems of one file, in the order they were found."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.failed = False

    def fail(self, line: int | None, reason: str) -> None:
        """Note something that makes what is being read unusable."""
        self.failed = True
        self.remark(line, reason)

    def remark(self, line: int | None, reason: str) -> None:
        """Note something that is wrong but does no harm."""
        self.problems.append(Problem(file=self.file, line=line, reason=reason))


class Fields:
    """The fields of one table. `within` is put before the names of fields when they are spoken of."""

    def __init__(self, table: TableNode, notes: Notes, within: str = "") -> None:
        self._entries = table.entries
        self._notes = notes
        self._within = within
        self._asked: list[str] = []

    def line(self, key: str) -> int | None:
        """Return the line of a field, or None when it is not there."""
        return self._entries[key][0] if key in self._entries else None

    def node(self, key: str) -> Node | None:
        """Return a field as it is, or None when it is absent or has no value."""
        self._asked.append(key)
        _, node = self._entries.get(key, (0, None))
        return None if isinstance(node, ScalarNode) and node.empty else node

    def text(self, key: str, default: str) -> str:
        """Return a text."""
        scalar = self._scalar(key, "a text")
        return default if scalar is None else scalar.text

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        """Return a whole number within bounds."""
        scalar = self._scalar(key, wanted := f"a whole number from {low} to {high}")
        if scalar is None:
            return default
        value = integer(scalar)
        if value is None or not low <= value <= high:
            return self._refuse(key, wanted, scalar.text, default)
        return value

    def number(self, key: str, default: float | None, low: float, high: float) -> float | None:
        """Return a number within bounds."""
        scalar = self._scalar(key, wanted := f"a number from {low:g} to {high:g}")
        if scalar is None:
            return default
        value = number(scalar)
        if value is None or not low <= value <= high:
            return self._refuse(key, wanted, scalar.text, default)
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        scalar = self._scalar(key, "true or false")
        if scalar is None:
            return default
        value = boolean(scalar)
        return self._refuse(key, "true or false", scalar.text, default) if value is None else value

    def choice(self, key: str, options: Sequence[ChoiceT]) -> ChoiceT | None:
        """Return one of the options, or None when nothing usable was chosen."""
        scalar = self._scalar(key, wanted := _spoken(options))
        if scalar is None:
            return None
        chosen = next((option for option in options if option == scalar.text), None)
        return self._refuse(key, wanted, scalar.text, None) if chosen is None else chosen

    def texts(self, key: str) -> tuple[ScalarNode, ...]:
        """Return a list of texts, each with its line."""
        node = self.node(key)
        if node is None:
            return ()
        if isinstance(node, ListNode):
            return tuple(value for value in node.values if self._is_text(value, value.line, f"each of {key}"))
        return self._refuse(key, "a list", _kind(node), ())

    def refuse_unknown(self, key: str, named: Iterable[str], options: Sequence[str]) -> None:
        """Say of each text of a list that it is none of the options."""
        for text in sorted(set(named) - set(options)):
            self._refuse(key, _spoken(options), text, None)

    def table(self, key: str) -> TableNode | None:
        """Return a table, or None."""
        node = self.node(key)
        if node is None or isinstance(node, TableNode):
            return node
        return self._refuse(key, "a table of names and values", _kind(node), None)

    def text_table(self, key: str) -> dict[str, ScalarNode]:
        """Return a table of texts, each with its line."""
        table = self.table(key)
        entries = table.entries.items() if table else ()
        return {name: value for name, (line, value) in entries if self._is_text(value, line, f"{key}.{name}")}

    def finish(self, ignored: Iterable[str] = ()) -> None:
        """Remark on every field that was not asked for."""
        known = {*self._asked, *ignored}
        for key, (line, _) in self._entries.items():
            if key not in known:
                close = difflib.get_close_matches(key, self._asked, n=1)
                hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(dict.fromkeys(self._asked))}"
                self._notes.remark(line, f"{self._within}{key} is not known and has no effect; {hint}")

    def _scalar(self, key: str, wanted: str) -> ScalarNode | None:
        node = self.node(key)
        if node is None or isinstance(node, ScalarNode):
            return node
        return self._refuse(key, wanted, _kind(node), None)

    def _is_text(self, node: Node, line: int, what: str) -> TypeGuard[ScalarNode]:
        if isinstance(node, ScalarNode) and not node.empty:
            return True
        self._notes.fail(line, f"{self._within}{what} must be a text, not {_kind(node)}")
        return False

    def _refuse(self, key: str, wanted: str, found: str, default: DefaultT) -> DefaultT:
        self._notes.fail(self.line(key), f"{self._within}{key} must be {wanted}, not {shortened(found)}")
        return default


def shortened(text: str) -> str:
    """Return a text short enough to stand in a sentence."""
    return text if len(text) <= _SPOKEN_CHARS else f"{text[:_SPOKEN_CHARS]}…"


_SPOKEN_CHARS = 60


def _spoken(options: Sequence[str]) -> str:
    return f"{', '.join(options[:-1])} or {options[-1]}"


def _kind(node: Node) -> str:
    match node:
        case TableNode():
            return "a table"
        case ListNode():
            return "a list"
        case ScalarNode():
            return "nothing" if node.empty else "a text"
