"""Keep this machine's keys and proxies out of the tests of models."""

import os

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away every variable that would set a provider up or send requests elsewhere."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_BASE_URL", "_TOKEN", "_PROXY")):
            monkeypatch.delenv(name)
