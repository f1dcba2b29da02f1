"""Modules, functions and folders stay small enough to be read at once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "windowpane"

MODULE_LINES = 500
FUNCTION_LINES = 60
FOLDER_MODULES = 16


def modules() -> list[Path]:
    return sorted(SOURCES.rglob("*.py"))


def test_no_module_has_more_than_500_lines() -> None:
    sizes = {str(file.relative_to(SOURCES)): len(file.read_text().splitlines()) for file in modules()}

    assert len(sizes) > 100
    assert {name: size for name, size in sizes.items() if size > MODULE_LINES} == {}


def test_no_function_has_more_than_60_lines() -> None:
    sizes = {
        f"{file.relative_to(SOURCES)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for file in modules()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert len(sizes) > 1000
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES} == {}


def test_no_folder_has_more_than_16_modules() -> None:
    sizes = Counter(str(file.parent.relative_to(SOURCES)) for file in modules() if file.name != "__init__.py")

    assert {folder: size for folder, size in sizes.items() if size > FOLDER_MODULES} == {}
