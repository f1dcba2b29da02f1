from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.testing import World, tool


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "agents")
    world.rule("tone", "Be kind.", include="always")
    world.toolbox.put("files", [tool("read", "contents of {path}", permission="not_required")])
    return world
