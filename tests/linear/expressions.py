"""Every regular expression of the package and how it is used, found in the sources by machine."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCES = Path(__file__).parents[2] / "src" / "windowpane"

METHODS = {"search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"}

MADE_LATER = {
    ("calls.parts.sections", "_next_tag"): [r"</note id='1'>\s*|</note>\s*"],
    ("insight.finding.words", "excerpt"): [r"(?<!\w)(?:hello|he)"],
    ("insight.use", "_cited"): [r"(?<![\w/-])@heat-pump(?![\w-])", r"(?<![\w/-])(?<=[*`])heat\ pump(?=[*`])"],
    ("models.offline.echo", "wanted_call"): [r"(?:^\s*/tool|\b(?:call|use|run))\s+[`\"']?note(?![\w-])"],
    ("server.middleware.door_errors", "__init__"): [],  # paths that `server/app.py` writes down
    ("sessions.erasing", "__init__"): [r"(?<!\w)hello(?!\w)|(?<!\w)a\ b(?!\w)"],
}
"""Expressions that a function makes from a text, by module and function: what they are like."""


@dataclass(frozen=True)
class Expression:
    """One regular expression, where it is written, and the ways in which it is applied."""

    place: str
    pattern: str | bytes
    flags: int
    methods: tuple[str, ...]


def expressions() -> list[Expression]:
    """Return the expressions of all modules.

    One that is kept in a table, or whose use cannot be seen, is taken for one that searches: this is the hardest way.
    """
    trees = {file: ast.parse(file.read_text()) for file in sorted(SOURCES.rglob("*.py"))}
    uses = {file: _uses([tree]) for file, tree in trees.items()}
    public = _uses(trees.values())
    return [found for file, tree in trees.items() for found in _in_module(file, tree, uses[file], public)]


def _uses(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """Return by the name of a value which methods are taken from it, and "search" where it is passed on."""
    uses: dict[str, set[str]] = defaultdict(set)
    for tree in trees:
        methods = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in METHODS]
        for node in methods:
            uses[_name(node.value)].add(node.attr)
        known = {id(node.value) for node in methods}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in known:
                uses[_name(node)].add("search")
    return uses


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _in_module(
    file: Path, tree: ast.Module, own: dict[str, set[str]], public: dict[str, set[str]]
) -> Iterator[Expression]:
    name = ".".join(file.relative_to(SOURCES).with_suffix("").parts)
    for node, above, function in _with_parents(tree):
        if (
            not isinstance(node, ast.Call)
            or ast.unparse(node.func).rpartition(".")[0] != "re"
            or _name(node.func) not in METHODS | {"compile"}
        ):
            continue
        place = f"{name}:{node.lineno}"
        for pattern, flags in _values(name, function, node):
            yield Expression(place, pattern, flags, tuple(sorted(_methods(node, above, own, public))))


def _with_parents(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST, str]]:
    waiting: list[tuple[ast.AST, ast.AST, str]] = [(tree, tree, "")]
    while waiting:
        node, above, function = waiting.pop()
        yield node, above, function
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        waiting += [(child, node, inside) for child in ast.iter_child_nodes(node)]


def _values(module: str, function: str, call: ast.Call) -> list[tuple[str | bytes, int]]:
    names = vars(importlib.import_module(f"windowpane.{module}".removesuffix(".__init__")))
    at = 1 if _name(call.func) == "compile" else 2
    flags = call.args[at] if len(call.args) > at and "sub" not in _name(call.func) else None
    flags = next((each.value for each in call.keywords if each.arg == "flags"), flags)
    try:
        pattern = eval(ast.unparse(call.args[0]), names)
    except NameError:
        return [(each, 0) for each in MADE_LATER[module, function]]
    return [(pattern, int(eval(ast.unparse(flags), names)) if flags else 0)]


def _methods(call: ast.Call, above: ast.AST, own: dict[str, set[str]], public: dict[str, set[str]]) -> set[str]:
    if _name(call.func) != "compile":
        return {_name(call.func)}
    if isinstance(above, ast.Attribute):
        return {above.attr}
    if isinstance(above, ast.Assign | ast.AnnAssign):
        name = _name(above.targets[0] if isinstance(above, ast.Assign) else above.target)
        return (own if name.startswith("_") else public)[name] or {"search"}
    return {"search"}
