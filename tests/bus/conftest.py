from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.kinds import KINDS, BusKind, BusServer


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> BusKind:
    """Every bus."""
    return request.param


@pytest.fixture
def server(kind: BusKind, tmp_path: Path) -> Iterator[BusServer]:
    """The bus's server, running, for this test alone."""
    one = kind.serve(tmp_path)
    one.start()
    yield one
    one.stop()
