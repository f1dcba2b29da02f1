from __future__ import annotations

import pytest
from hypothesis import settings

# Tests do not assert times: a busy machine is not a fault.
settings.register_profile("windowpane", deadline=None)
settings.load_profile("windowpane")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
