"""Files and changes on a default install: the page asks before it shows the folder that the server was started in."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.place import serving, speaking
from browser.repository import repository
from browser.sight import seeing


def test_the_folder_that_the_server_was_started_in_is_shared_after_asking(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = repository(tmp_path / "project")
    (tmp_path / "data" / "agents").mkdir(parents=True)
    monkeypatch.chdir(project)
    with (
        speaking() as model,
        serving(tmp_path / "data", model, WINDOWPANE_ROOTS="[]") as url,
        seeing(browser, url) as sight,
    ):
        page = sight.page
        sight.goto("/")
        page.get_by_role("button", name="What can you help me with?").or_(
            page.get_by_role("list", name="Questions to try").get_by_role("button").first
        ).first.click()
        expect(page.get_by_role("link", name="View Context")).to_be_visible()
        page.get_by_role("button", name="Changes", exact=True).click()
        expect(page.get_by_text(f"Share {project} with this page?")).to_be_visible()
        page.get_by_role("button", name="Files", exact=True).click()
        expect(page.get_by_text(f"Share {project} with this page?")).to_be_visible()
        sight.shoot("share")
        sight.check_access()
        page.get_by_role("button", name="Share this folder").click()
        # One folder need not be chosen.
        page.get_by_role("link", name="notes.md").click()
        expect(page.get_by_role("textbox", name="Text of notes.md")).to_be_visible()
        page.get_by_title(f"Open the folder {project}").click()
        expect(page.get_by_role("link", name="notes.md")).to_be_visible()
        expect(page.get_by_role("link", name="Up", exact=True)).to_have_count(0)
        page.get_by_role("button", name="Changes", exact=True).click()
        expect(page.get_by_text("5 files changed")).to_be_visible()
        page.get_by_role("button", name="Files", exact=True).click()
        page.get_by_role("button", name="Stop sharing project").click()
        expect(page.get_by_text(f"Share {project} with this page?")).to_be_visible()
        sight.check()
