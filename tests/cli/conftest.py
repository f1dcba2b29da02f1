from pathlib import Path

import pytest

from windowpane.agents.init import init_agent


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the example agent, for all tests of a file."""
    folder = tmp_path_factory.mktemp("data")
    init_agent(folder / "agents" / "guide")
    return folder
