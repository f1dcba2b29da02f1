from __future__ import annotations

import re
import signal
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from browser.place import Place, serving, speaking
from browser.sight import Sight, seeing
from patience import PATIENCE_S
from windowpane.callers import TokenFile


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    """A server to which nobody comes without a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "agents").mkdir()
    _, secret = TokenFile(folder / "tokens.json").create("boss", ["manage"])
    head = {"Authorization": f"Bearer {secret}"}
    with (
        speaking() as model,
        serving(folder, model, ends_with=signal.SIGKILL, WINDOWPANE_REQUIRE_TOKEN="true") as url,
        httpx2.Client(base_url=url, headers=head, timeout=PATIENCE_S) as client,
    ):
        yield Place(url, model, folder, client)


def log_in(page: Page, secret: str) -> None:
    page.get_by_label("Token").fill(secret)
    page.get_by_role("button", name="Log in").click()


def unexpected(sight: Sight) -> None:
    sight.expected += ["401", "4401", "WebSocket connection"]


def test_a_token_opens_the_door_and_what_is_behind_it_is_ones_own(browser: Browser, guarded: Place) -> None:
    tokens = TokenFile(guarded.folder / "tokens.json")
    _, ann = tokens.create("ann", ["chat"])
    guarded.new_session("Somebody else's")
    with seeing(browser, guarded.url, "phone") as sight:
        unexpected(sight)
        page = sight.page
        sight.goto("/agents")
        expect(page.get_by_role("heading", name="Windowpane")).to_be_visible()
        sight.shoot("login")
        sight.check_access()
        log_in(page, "wp_wrong")
        expect(page.get_by_role("alert")).to_contain_text("Token invalid or revoked.")
        sight.shoot("login-refused")
        sight.check_access()
        log_in(page, ann)
        expect(page.get_by_role("link", name=re.compile("^pane")).first).to_be_visible()
        assert ann not in page.evaluate("JSON.stringify(localStorage) + document.cookie")

        sight.goto("/")
        page.get_by_role("button", name="Sessions", exact=True).click()
        expect(page.get_by_text("Sessions appear here.")).to_be_visible()
        page.get_by_role("button", name="Account of ann").click()
        expect(page.get_by_role("menu", name="Account of ann")).to_contain_text("may read, chat")
        sight.check_access()
        page.get_by_role("menuitem", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        sight.goto("/agents")
        expect(page.get_by_label("Token")).to_be_visible()
        sight.check()


def test_a_token_that_is_revoked_closes_the_page_and_another_opens_it_where_it_was(
    browser: Browser, guarded: Place
) -> None:
    tokens = TokenFile(guarded.folder / "tokens.json")
    token, first = tokens.create("bob", ["chat"])
    _, second = tokens.create("bob", ["chat"])
    with seeing(browser, guarded.url) as sight:
        unexpected(sight)
        page = sight.page
        sight.goto("/")
        log_in(page, first)
        sight.choose_agent("pane")
        guarded.model.says("Here I am.")
        message = page.get_by_role("textbox", name="Message", exact=True)
        message.fill("Who is there?")
        message.press("Enter")
        expect(page.get_by_text("Here I am.")).to_be_visible()
        message.fill("Not sent yet")

        tokens.revoke(token.id)
        expect(page.get_by_label("Token")).to_be_visible()
        expect(page.get_by_text("Here I am.")).to_have_count(0)
        log_in(page, second)
        expect(page.get_by_text("Here I am.")).to_be_visible()
        expect(message).to_have_value("Not sent yet")
        sight.check()


def test_who_may_only_look_is_told_so_and_loses_nothing(browser: Browser, guarded: Place, tmp_path: Path) -> None:
    tokens = TokenFile(guarded.folder / "tokens.json")
    _, chat = tokens.create("eve", ["chat"])
    _, read = tokens.create("eve", ["read"])
    mine = httpx2.post(
        f"{guarded.url}/api/sessions",
        json={"agent": "pane"},
        headers={"Authorization": f"Bearer {chat}"},
        timeout=PATIENCE_S,
    )
    with seeing(browser, guarded.url) as sight:
        unexpected(sight)
        sight.expected.append("403")
        page = sight.page
        sight.goto(f"/s/{mine.json()['id']}")
        log_in(page, read)
        message = page.get_by_role("textbox", name="Message", exact=True)
        message.fill("May I?")
        message.press("Enter")
        expect(page.get_by_role("alert").filter(has_text="chat")).to_be_visible()
        expect(page.get_by_text("May I?")).to_be_visible()
        sight.shoot("scope-needed")
        sight.check()
