"""The pages of `docs/reference/` say what the package has."""

from __future__ import annotations

import re
from pathlib import Path

import windowpane

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def test_the_reference_describes_every_public_name_and_no_other() -> None:
    public: list[str] = getattr(windowpane, "__all__", [])

    described = re.findall(r"^::: windowpane\.(\w+)$", (REFERENCE / "python.md").read_text(), re.MULTILINE)

    assert described == [name for name in public if not name.startswith("__")]
