from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from browser.place import Place
from browser.sight import Sight, seeing


def test_sessions_are_found_renamed_and_deleted_with_a_way_back(phone: Sight, place: Place) -> None:
    before, after = "Walruses on a phone", "Facts about a phone"
    place.new_session(before)
    place.new_session("Pelicans")
    page = phone.page
    phone.goto("/")
    page.get_by_role("button", name="Sessions", exact=True).click()
    shown = page.get_by_role("navigation", name="Sessions")
    page.get_by_role("searchbox", name="Search sessions").fill("phone a")
    expect(shown.get_by_role("link")).to_have_count(1)
    phone.shoot("found")

    page.get_by_role("button", name=f"More about {before}").click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("textbox", name="Name of the session").fill(after)
    page.keyboard.press("Enter")
    expect(shown.get_by_role("link", name=re.compile(after))).to_be_visible()

    page.get_by_role("button", name=f"More about {after}").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(shown.get_by_role("link")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(shown.get_by_role("link", name=re.compile(after))).to_be_visible()


def test_a_deletion_that_nobody_undoes_is_one_also_when_the_page_is_left(desktop: Sight, place: Place) -> None:
    session = place.new_session("Dodos")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    page.get_by_role("button", name="More about Dodos").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page).to_have_url(re.compile(r"/$"))
    desktop.goto("/agents")

    expect(page.get_by_role("link", name=re.compile("guide")).first).to_be_visible()
    page.wait_for_function(
        "id => fetch(`/api/sessions/${id}`).then(answer => answer.status === 404)", arg=session, polling=200
    )
    desktop.expected.append("404")


def test_what_came_while_one_looked_elsewhere_is_marked_until_it_is_read(desktop: Sight, place: Place) -> None:
    busy, here = place.new_session("Busy"), place.new_session("Here")
    place.ask(busy, "One", "First")
    page = desktop.page
    desktop.goto(f"/s/{busy}")
    expect(page.get_by_text("First", exact=True)).to_be_visible()
    page.get_by_role("link", name=re.compile("^Here")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Here")
    place.ask(busy, "Two", "Second")
    page.evaluate("dispatchEvent(new Event('online'))")

    unread = page.get_by_role("link", name=re.compile("^Busy.*Unread"))
    expect(unread).to_be_visible()
    unread.click()
    expect(page.get_by_text("Second", exact=True)).to_be_visible()
    expect(unread).to_have_count(0)
    assert here


def test_two_windows_show_the_same(browser: Browser, desktop: Sight, place: Place) -> None:
    session = place.new_session("Shared")
    with seeing(browser, place.url, "phone") as other:
        desktop.goto(f"/s/{session}")
        other.goto(f"/s/{session}")
        answer = place.model.says_slowly("Both of us ", "see this.")
        desktop.page.get_by_role("textbox", name="Message").fill("Who is there?")
        desktop.page.keyboard.press("Enter")
        for page in (desktop.page, other.page):
            expect(page.get_by_role("log").get_by_text("Who is there?")).to_be_visible()
            expect(page.get_by_text("Both of us", exact=True)).to_be_visible()
        answer.finish()
        for page in (desktop.page, other.page):
            expect(page.get_by_text("Both of us see this.")).to_be_visible()
        place.call("PATCH", f"/api/sessions/{session}", {"name": "Renamed", "context": {"files": ["/srv/a.md"]}})
        for page in (desktop.page, other.page):
            expect(page.get_by_role("heading", level=1)).to_have_text("Renamed")
            expect(page.get_by_role("link", name="a.md")).to_be_visible()
        place.call("DELETE", f"/api/sessions/{session}")
        for page in (desktop.page, other.page):
            expect(page.get_by_text("This session was deleted")).to_be_visible()
        other.check()
