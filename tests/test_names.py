"""One word for one thing: in the code and in the glossary."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_public_class_name_is_defined_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "src" / "windowpane").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(file.relative_to(ROOT)))

    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_every_word_of_the_glossary_is_defined_once() -> None:
    words = re.findall(r"\*\*(.+?)\*\*", (ROOT / "docs" / "glossary.md").read_text())

    assert len(words) > 40
    assert sorted({word for word in words if words.count(word) > 1}) == []


def test_every_class_and_function_that_something_was_renamed_to_exists() -> None:
    renamed = (ROOT / "docs" / "renamed.md").read_text()
    now = " ".join(line.split("|")[2] for line in renamed.splitlines() if line.startswith("| "))
    words = set(re.findall(r"`([A-Z][a-z]\w+)", now)) | set(re.findall(r"(\w+)\(\)", now))
    defined = {
        node.name
        for file in (ROOT / "src" / "windowpane").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert len(words) > 60
    assert sorted(words - defined) == []
