"""Keep this machine's keys and proxies out of the tests of fetching."""

import os

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away every variable that would set an engine up or send requests elsewhere."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_URL", "_PROXY")):
            monkeypatch.delenv(name)
