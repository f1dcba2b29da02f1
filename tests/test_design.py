"""The picture of the layers is the contract that import-linter checks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_layers_of_the_design_are_those_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = [each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    design = (ROOT / "docs" / "design.md").read_text()
    (picture,) = re.findall(r"## Layers\n.*?```text\n(.*?)```", design, re.DOTALL)

    drawn = [re.split(r"\s{2,}", line.strip())[0].replace("│", "|") for line in picture.splitlines()]
    # What stands behind two spaces or more explains a layer; the widest layer leaves no room for that.
    assert [layer.strip() for layer in drawn] == contract["layers"]
