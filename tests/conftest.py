from __future__ import annotations

import os
from collections.abc import Generator
from functools import cache
from pathlib import Path
from ssl import SSLContext

import httpcore2
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


@pytest.fixture(scope="session", autouse=True)
def _authorities_are_read_once() -> Generator[None]:
    """Let all HTTP clients of this process share what they trust: it takes each 20 ms to read, and most need none."""
    read = httpcore2.default_ssl_context

    @cache
    def known(trust_env: bool, _file: str | None, _folder: str | None, _changed_at: float) -> SSLContext:
        return read(_trust_env=trust_env)

    def shared(*, _trust_env: bool = True) -> SSLContext:
        file = os.environ.get("SSL_CERT_FILE")
        return known(_trust_env, file, os.environ.get("SSL_CERT_DIR"), Path(file).stat().st_mtime if file else 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", shared)
        yield
