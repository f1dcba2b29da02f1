from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from stores.kinds import ENGINES, KINDS, Kind
from stores.processes import Place
from windowpane.stores.base import Store


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Every store, open and empty."""
    kind: Kind = request.param
    async with kind.open(kind.fresh(tmp_path)) as opened:
        yield opened


@pytest.fixture(params=ENGINES, ids=lambda kind: kind.name)
async def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of every engine, open and empty."""
    kind: Kind = request.param
    async with kind.open(kind.fresh(tmp_path)) as opened:
        yield opened


@pytest.fixture(params=[kind for kind in KINDS if kind.shared], ids=lambda kind: kind.name)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A fresh place of every store that several processes can share.

    Where the system has a directory in memory, the place is there: these tests are about processes, and other work on
    a busy disk would decide how long they take.
    """
    kind: Kind = request.param
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Place(kind, kind.fresh(Path(directory)))
