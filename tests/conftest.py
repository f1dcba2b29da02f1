from __future__ import annotations

import os

import pytest
from hypothesis import settings

from client_results import pytest_itemcollected, pytest_runtest_logreport, pytest_sessionfinish

__all__ = ["pytest_itemcollected", "pytest_runtest_logreport", "pytest_sessionfinish"]

# Agent programs of other makers take a gigabyte: `make test-compat` installs them and runs these.
collect_ignore = [] if "WINDOWPANE_COMPAT" in os.environ else ["compat"]

# Tests do not assert times: a busy machine is not a fault.
settings.register_profile("windowpane", deadline=None)
settings.load_profile("windowpane")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
