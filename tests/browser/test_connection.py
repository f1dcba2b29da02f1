from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from playwright.sync_api import Browser, expect

from browser.place import Place, serving, speaking
from browser.sight import seeing


def test_a_server_that_comes_back_is_gone_on_with_without_a_gap(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    with ExitStack() as stack:
        model = stack.enter_context(speaking())
        first_server = ExitStack()
        url = first_server.enter_context(serving(tmp_path, model))
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=60))
        place = Place(url, model, tmp_path, client)
        session = place.new_session("Lasting")
        place.ask(session, "One", "First answer")
        sight = stack.enter_context(seeing(browser, url))
        sight.expected += ["ERR_CONNECTION_REFUSED", "WebSocket connection"]
        page = sight.page
        sight.goto(f"/s/{session}")
        expect(page.get_by_text("First answer")).to_be_visible()

        first_server.close()
        expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
        expect(page.get_by_text("First answer")).to_be_visible()
        sight.shoot("offline")
        page.get_by_role("textbox", name="Message").fill("Two")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Send again")).to_be_visible()

        stack.enter_context(serving(tmp_path, model, urlsplit(url).port or 0))
        place.ask(session, "Meanwhile", "Said while nobody watched")
        model.says("Second answer")
        expect(page.get_by_text("Said while nobody watched")).to_be_visible()
        page.get_by_role("button", name="Send again").click()
        expect(page.get_by_text("Second answer")).to_be_visible()
        expect(page.get_by_text("The server cannot be reached.")).to_have_count(0)
        sight.check()
