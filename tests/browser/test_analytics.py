from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import get_args

import pytest
from playwright.sync_api import Browser, expect

from browser.past import happened_before
from browser.place import Place, running_place
from browser.sight import SCREENS, Screen, seeing
from windowpane.api.analytics import Listed

STYLE = "Pictures hang straight. Frames are made of oak, glass is clear, and labels stand to the left. " * 30


@pytest.fixture(scope="module")
def new_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    """A place where nobody has asked anything."""
    with running_place(tmp_path_factory.mktemp("gallery"), ends_with=signal.SIGKILL) as place:
        yield place


@pytest.fixture(scope="module")
def gallery(new_server: Place) -> Place:
    """The same place when people have asked for weeks, with one reference that is always there and never of use."""
    place = new_server
    settings = place.folder / "agents" / "pane" / "agent.yaml"
    settings.write_text(f"{settings.read_text()}prices:\n  openai:gpt-4o: {{input: 250, output: 1000}}\n")
    place.write("references/house-style.md", f"---\ndescription: How pictures hang\ninclude: always\n---\n{STYLE}\n")
    session = place.new_session("Photos")
    place.ask(session, "How are photos uploaded?", "With the button at the top of the album.")
    place.ask(session, "What about resizing?", "Photos are resized in the editor: choose Size, then a width.")
    for days in range(1, 13):
        happened_before(place, session, 2 * days)
    return place


def test_a_new_server_says_what_will_be_here(browser: Browser, new_server: Place) -> None:
    with seeing(browser, new_server.url) as sight:
        sight.goto("/analytics")
        expect(sight.page.get_by_text("No turns yet")).to_be_visible()
        sight.shoot("analytics-empty")
        sight.check_access()
        sight.check()


@pytest.mark.parametrize("screen", SCREENS)
def test_what_turns_cost_is_seen_by_day_part_item_and_model(browser: Browser, gallery: Place, screen: Screen) -> None:
    with seeing(browser, gallery.url, screen) as sight:
        page = sight.page
        sight.goto("/analytics")
        tiles = page.locator(".tiles")
        expect(tiles).to_contain_text(re.compile(r"Turns\s*26"))
        expect(page.get_by_role("list", name="Tokens by part")).to_contain_text("References")
        expect(page.get_by_role("list", name="Tokens by model")).to_contain_text("openai:gpt-4o")
        expect(page.get_by_role("list", name="Sources")).to_contain_text("used")
        sight.shoot("analytics")
        page.get_by_role("combobox", name="What to show by day").select_option("turns")
        chart = page.get_by_role("img", name=re.compile(r"^Turns: 2\d columns, the highest 2"))
        expect(chart).to_be_visible()
        page.get_by_role("region", name="By day").get_by_text("As a table").click()
        expect(page.get_by_role("region", name="By day").get_by_role("row").last).to_contain_text("2")
        items = page.get_by_role("region", name="Items over time")
        used = items.get_by_role("row", name=re.compile("house-style")).get_by_role("cell", name="0%", exact=True)
        expect(used).to_be_visible()
        assert items.evaluate("box => box.scrollWidth <= box.clientWidth")

        sight.check_access()
        page.get_by_role("link", name="7 days").click()
        expect(tiles).to_contain_text(re.compile(r"Turns\s*8"))
        page.get_by_role("combobox", name="Model").select_option("openai:gpt-4o")
        expect(page).to_have_url(re.compile(r"/analytics\?days=7&model=openai%3Agpt-4o$"))
        expect(tiles).to_contain_text(re.compile(r"Turns\s*8"))
        sight.goto("/analytics?agent=nobody")
        expect(page.get_by_text("No turn matches")).to_be_visible()
        sight.check()


def test_a_suggestion_is_applied_with_a_click_and_undone_with_another(browser: Browser, gallery: Place) -> None:
    file = gallery.folder / "agents" / "pane" / "references" / "house-style.md"
    before = file.read_text()
    with seeing(browser, gallery.url) as sight:
        page = sight.page
        sight.goto("/analytics")
        card = page.get_by_role("listitem").filter(has_text="Change house-style from Always to Agent")
        expect(card).to_contain_text("there was no trace of it in the answers")
        expect(card).to_contain_text("Would have saved")
        card.scroll_into_view_if_needed()
        sight.shoot("analytics-suggestions")
        card.get_by_role("button", name=re.compile("^Apply")).click()
        expect(card).to_contain_text("references/house-style.md now says include: agent")
        assert "include: agent" in file.read_text()

        card.get_by_role("button", name=re.compile("^Undo")).click()
        expect(card.get_by_role("button", name=re.compile("^Apply"))).to_be_visible()
        assert file.read_text() == before
        sight.check()


def test_everything_can_be_taken_away_without_what_was_said(browser: Browser, gallery: Place) -> None:
    with seeing(browser, gallery.url) as sight:
        page = sight.page
        sight.goto("/analytics?days=30")
        menu = page.get_by_role("button", name="Export")
        saved: dict[str, str] = {}
        offered: list[str] = []
        for name in ("Everything as JSON", "Items as CSV", "Days as CSV"):
            menu.click()
            if not saved:
                expect(page.get_by_role("menuitem", name="Everything as JSON")).to_be_visible()
                offered = page.get_by_role("menuitem").all_inner_texts()
                sight.shoot("analytics-export")
                sight.check_access()
            with page.expect_download() as download:
                page.get_by_role("menuitem", name=name).click()
            saved[download.value.suggested_filename] = Path(download.value.path()).read_text()
        sight.check()

    assert offered == ["Everything as JSON", *(f"{listed.capitalize()} as CSV" for listed in get_args(Listed))]
    assert sorted(saved) == ["windowpane-analytics.json", "windowpane-days.csv", "windowpane-items.csv"]
    assert json.loads(saved["windowpane-analytics.json"])["spent"]["turns"] == 26
    assert len(list(csv.DictReader(io.StringIO(saved["windowpane-days.csv"])))) == 13
    assert not [text for text in saved.values() if "What about resizing?" in text or "How are photos uploaded?" in text]


@pytest.mark.parametrize("screen", SCREENS)
def test_a_cost_that_is_not_known_in_full_says_so_within_its_tile(
    browser: Browser, gallery: Place, screen: Screen
) -> None:
    gallery.model.fails("no such thing")
    gallery.client.post(f"/api/sessions/{gallery.new_session('Fails')}/messages", json={"content": "How?"})
    with seeing(browser, gallery.url, screen) as sight:
        sight.goto("/analytics")
        tiles = sight.page.locator(".tiles")
        expect(tiles).to_contain_text(re.compile(r"Cost\s*at least \$0\.\d\d\s*unknown for \d+ calls?"))
        wide = "all => [...all.querySelectorAll('dd')].filter((one) => one.scrollWidth > one.clientWidth).length"
        assert tiles.evaluate(wide) == 0
        sight.check()


def test_an_agent_that_is_gone_has_its_numbers_and_nothing_is_asked_about_it(browser: Browser, gallery: Place) -> None:
    agents = gallery.folder / "agents"
    shutil.copytree(agents / "pane", agents / "gone")
    gallery.ask(gallery.new_session("Before it went", agent="gone"), "How are photos uploaded?", "With the button.")
    shutil.rmtree(agents / "gone")
    with seeing(browser, gallery.url) as sight:
        sight.await_value(lambda: gallery.call("GET", "/api/analytics")["behind"], 0)
        with sight.page.expect_response(re.compile("/api/agents/pane/suggestions")):
            sight.goto("/analytics")
        expect(sight.page.get_by_role("list", name="Tokens by agent")).to_contain_text("gone")
        sight.page.wait_for_load_state("networkidle")
        sight.check()
