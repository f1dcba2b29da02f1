from __future__ import annotations

from collections.abc import Iterator

import pytest

from spec.place import Product, product


@pytest.fixture(scope="session")
def pane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One running product for all tests of a worker. Each test has an agent folder of its own."""
    with product(tmp_path_factory.mktemp("pane")) as running:
        folder = running.folder("first")
        folder.reference("any", "The first search of a process loads the model.", include="agent")
        running.preview(running.session(folder), "The model is loaded by now.")
        yield running
