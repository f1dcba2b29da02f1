"""Examples and documents use the public interface, and nothing else of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import windowpane

ROOT = Path(__file__).parents[1]
PUBLIC_MODULES = re.compile(r"windowpane(\.testing|\.integrations(\.\w+)*|\.server\.asgi)?")
BLOCK = re.compile(r"^(?:```python|<!--- invisible-code-block: python)\n(.*?)^(?:```|--->)$", re.MULTILINE | re.DOTALL)
FILES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.py")),
]


def private_imports(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _private(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module == "windowpane":
            yield from (f"windowpane.{alias.name}" for alias in node.names if alias.name not in windowpane.__all__)
        elif isinstance(node, ast.ImportFrom) and _private(node.module or ""):
            yield str(node.module)


def _private(module: str) -> bool:
    return module.partition(".")[0] == "windowpane" and not PUBLIC_MODULES.fullmatch(module)


@pytest.mark.parametrize(
    ("code", "private"),
    [
        ("import windowpane\nfrom windowpane.integrations.django import urls", []),
        ("from windowpane import open, telemetry", ["windowpane.telemetry"]),
        ("import windowpane.wiring", ["windowpane.wiring"]),
        ("def f():\n    from windowpane.server.app import create_app", ["windowpane.server.app"]),
    ],
)
def test_a_private_import_is_found(code: str, private: list[str]) -> None:
    assert list(private_imports(code)) == private


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_examples_and_documents_import_only_what_is_public(file: Path) -> None:
    text = file.read_text()
    codes = [text] if file.suffix == ".py" else BLOCK.findall(text)

    assert [name for code in codes for name in private_imports(code)] == []
