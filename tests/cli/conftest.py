from pathlib import Path

import pytest

from windowpane.agents.init import init_agent


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the example agent, for all tests of a file. Nothing is selected, so contexts are known."""
    folder = tmp_path_factory.mktemp("data")
    manifest = init_agent(folder / "agents" / "guide") / "agent.yaml"
    manifest.write_text(f"{manifest.read_text()}\nsearch: {{enabled: false}}\n")
    return folder
