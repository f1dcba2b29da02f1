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


def test_the_name_of_a_setting_is_one_line_in_every_width(sight: Sight) -> None:
    sight.goto("/docs/guide/reference/settings/")
    name = sight.page.get_by_role("cell", name="WINDOWPANE_ENCRYPTION_KEY_FILE").locator("code")
    expect(name).to_be_visible()
    assert name.evaluate("name => name.getClientRects().length") == 1
