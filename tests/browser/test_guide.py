from __future__ import annotations

from playwright.sync_api import expect

from browser.sight import Sight
from windowpane.server.guide import GUIDE


def test_the_guide_finds_an_error_by_its_code_and_shows_it(sight: Sight) -> None:
    assert (GUIDE / "index.html").is_file(), "the guide is not built: run `make docs`"
    page = sight.page
    sight.goto("/docs/guide/")

    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search").fill("session_busy")
    page.get_by_role("listbox").get_by_text("Errors").first.click()

    expect(page.get_by_role("heading", name="Errors", level=1)).to_be_visible()
    expect(page.get_by_role("cell", name="session_busy")).to_be_visible()
