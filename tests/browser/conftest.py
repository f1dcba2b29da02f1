from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, sync_playwright

from browser.chromium import FLAGS, find_browser
from browser.place import Place, running_place
from browser.sight import Sight, seeing
from windowpane.server.page import BUNDLE


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    """One server for all browser tests of a process; each test finds it without sessions."""
    assert (BUNDLE / "index.html").is_file(), "the page is not built: run `make page`"
    with running_place(tmp_path_factory.mktemp("place")) as place:
        yield place


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> None:
    """Let no test meet another one's sessions, or hear what the model was told to say in one that failed."""
    if "place" in request.fixturenames:
        place: Place = request.getfixturevalue("place")
        place.model.forgets()
        place.delete_sessions()


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """A browser for the tests of one file: its driver keeps an event loop, which would be in the way of other tests."""
    executable, extra = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS, env={**os.environ, **extra})
        yield browser
        browser.close()


@pytest.fixture(params=["desktop", "phone"])
def sight(request: pytest.FixtureRequest, browser: Browser, place: Place) -> Generator[Sight]:
    """A window, once wide and once as on a phone, for stories that differ there. At the end nothing is wrong in it."""
    with seeing(browser, place.url, request.param) as sight:
        yield sight
        sight.check()


@pytest.fixture
def desktop(browser: Browser, place: Place) -> Generator[Sight]:
    """A wide window."""
    with seeing(browser, place.url) as sight:
        yield sight
        sight.check()


@pytest.fixture
def phone(browser: Browser, place: Place) -> Generator[Sight]:
    """A window as on a phone, for stories that could go wrong there rather than anywhere else."""
    with seeing(browser, place.url, "phone") as sight:
        yield sight
        sight.check()
