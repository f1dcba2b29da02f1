"""The real model, where its weights are installed, and an endpoint to use instead of it."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.search.endpoint import Endpoint

from windowpane.search.embedding.minilm import MiniLM
from windowpane.search.embedding.weights import PACKAGE


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> MiniLM:
    if find_spec(PACKAGE) is None:
        pytest.skip("the weights are not installed; `make weights` installs them")
    return MiniLM(tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the weights are not installed; `make weights` installs them")
    return Path(spec.submodule_search_locations[0]) / "model"
