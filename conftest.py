"""Run the code blocks of the README and of the docs with the tests, each page in a folder of its own.

Also collect what each worker covered, when `make test` measures that.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


@pytest.fixture(scope="module")
def page_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = Path.cwd()
    folder = tmp_path_factory.mktemp("page")
    os.chdir(folder)
    yield folder
    os.chdir(before)


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"], fixtures=["page_folder"]
).pytest()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Let a worker write down what it covered before it says that it is done, because nothing waits for it then."""
    result = yield
    measuring = session.config.pluginmanager.get_plugin("slipcover")
    if measuring is not None and "PYTEST_XDIST_WORKER" in os.environ:
        measuring.pytest_sessionfinish(session, pytest.ExitCode.OK)
        session.config.pluginmanager.unregister(measuring)
    return result
