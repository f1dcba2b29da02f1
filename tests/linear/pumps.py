"""Texts that an expression likes least, made from what stands before its repetitions and in them."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GENERAL = (
    " ", "\n", "0", "a", "A", "-", "a-", "a.", "a ", "0.", "0,", "a/", "[", "<a>", '"', "'", "\\", "`",
    "é", "\u0301", "中", "\r\n", "Aa ",
    " \n", '\\"', "a-a/", "a-a.", "://", ",000",
)  # fmt: skip
"""Repeated, each is a text that any caller can send."""

# The standard library's own reader of expressions, which has no types.
op: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

_CHARACTERS = " \n\t0a_A-./:;,!?'\"\\`#@=<>()[]{}|*é中\u0301\x00zZ9$%&+~^\u2019–"
_CHOICES = 4
_MANY = 32
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)


def pumps(pattern: str | bytes, flags: int) -> list[tuple[str, str, str]]:
    """Return beginnings, parts to repeat and ends, each once; none for an expression that repeats nothing."""
    tree = parser.parse(pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern, flags)
    own = [chr(value) for kind, value in _nodes(tree) if kind is op.LITERAL]
    found: dict[tuple[str, str, str], None] = {}
    for choice in range(_CHOICES):
        sampler = _Sampler(own if choice % 2 else [], choice // 2)
        for before, part, other in sampler.repetitions(tree, ""):
            for repeated in (part, part + other):
                found |= dict.fromkeys(
                    ((before, repeated, "\x00"), ("", before + repeated, ""), (before, repeated, "\n\x00"))
                )
            found[("", before, part)] = None
    if found:
        found |= {("", part, "\x00"): None for part in GENERAL}
    return [each for each in found if each[1]]


class _Sampler:
    """Writes texts that a tree nearly matches, from characters that the expression names or from any others."""

    def __init__(self, own: Sequence[str], choice: int) -> None:
        self._own = list(dict.fromkeys(own))
        self._choice = choice

    def repetitions(self, tree: Any, before: str) -> Iterator[tuple[str, str, str]]:
        """Yield what stands before each repetition, what is repeated, and another way to write it."""
        for kind, value in tree:
            if kind in _REPEATS and value[1] >= _MANY:
                part = self.text(value[2])
                yield before, part, _Sampler(self._own, self._choice + 1).text(value[2])
                if value[0] >= _MANY:
                    yield "", part * (value[0] - 1), "\x00"
            for inner in _inside(kind, value):
                yield from self.repetitions(inner, before)
            before += self.text([(kind, value)])

    def text(self, tree: Any) -> str:
        return "".join(self._one(kind, value) for kind, value in tree)

    def _one(self, kind: Any, value: Any) -> str:
        if kind is op.LITERAL:
            return chr(value)
        if kind is op.NOT_LITERAL:
            return self._pick(re.compile(f"[^{re.escape(chr(value))}]"))
        if kind is op.ANY:
            return self._pick(re.compile("."))
        if kind is op.IN:
            return self._pick(
                re.compile("[" + "".join(map(_written, value)) + "]"), [chr(v) for k, v in value if k is op.LITERAL]
            )
        if kind in _REPEATS:
            return self.text(value[2]) * max(value[0], 1 if self._choice else 0)
        if kind is op.BRANCH:
            return self.text(value[1][self._choice % len(value[1])])
        if kind is op.ASSERT and value[0] > 0:
            return ""
        return "".join(map(self.text, _inside(kind, value))) if kind is not op.ASSERT_NOT else ""

    def _pick(self, one: re.Pattern[str], named: Sequence[str] = ()) -> str:
        fitting = [c for c in dict.fromkeys((*self._own, *named, *_CHARACTERS)) if one.match(c)]
        return fitting[self._choice % len(fitting)] if fitting else "a"


def _inside(kind: Any, value: Any) -> list[Any]:
    """Return the trees within a node."""
    if kind in _REPEATS:
        return [value[2]]
    if kind is op.BRANCH:
        return list(value[1])
    if kind is op.SUBPATTERN:
        return [value[3]]
    if kind is op.ATOMIC_GROUP:
        return [value]
    return [value[1]] if kind in (op.ASSERT, op.ASSERT_NOT) else []


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    for kind, value in tree:
        yield kind, value
        for inner in _inside(kind, value):
            yield from _nodes(inner)


def _written(member: tuple[Any, Any]) -> str:
    kind, value = member
    if kind is op.NEGATE:
        return "^"
    if kind is op.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    if kind is op.CATEGORY:
        name = str(value).removeprefix("CATEGORY_")
        return "\\" + (name[4].upper() if name.startswith("NOT_") else name[0].lower())
    return re.escape(chr(value))
