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
    page.get_by_role("searchbox", name="Search sessions").fill("a phone")
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
        # What the panel asks about the session may come after its deletion.
        for sight in (desktop, other):
            sight.expected.append("404")
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


def test_a_session_is_found_by_what_was_said_in_it_also_beyond_the_first_page(desktop: Sight, place: Place) -> None:
    hidden = place.new_session("Old")
    place.ask(hidden, "Where do walruses sleep?", "On the ice.")
    for number in range(65):
        place.new_session(f"Newer {number}")
    page = desktop.page
    desktop.goto("/")
    shown = page.get_by_role("navigation", name="Sessions").get_by_role("link")
    expect(shown).to_have_count(60)
    search = page.get_by_role("searchbox", name="Search sessions")
    search.fill("Walruses sleep")

    expect(shown).to_have_count(1)
    expect(shown).to_have_accessible_name(re.compile("^Old"))
    desktop.shoot("found-by-text")
    search.fill("penguins")
    expect(page.get_by_text("No session contains “penguins”.")).to_be_visible()
    search.fill("newer")
    expect(shown).to_have_count(60)
    page.get_by_role("button", name="Show more").click()
    expect(shown).to_have_count(65)
    search.fill("")
    expect(shown).to_have_count(60)


def test_a_search_that_fails_claims_nothing(desktop: Sight, place: Place) -> None:
    place.new_session("Photos")
    page = desktop.page
    desktop.expected.append("503")
    desktop.goto("/")
    shown = page.get_by_role("navigation", name="Sessions")
    expect(shown.get_by_role("link")).to_have_count(1)
    page.route("**/api/sessions?q=*", lambda route: route.fulfill(status=503, body=""))
    page.get_by_role("searchbox", name="Search sessions").fill("penguins")

    expect(shown.get_by_text("Sessions could not be loaded")).to_be_visible()
    expect(page.get_by_text("No session contains")).to_have_count(0)
    page.unroute("**/api/sessions?q=*")
    shown.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("No session contains “penguins”.")).to_be_visible()


def test_a_long_title_leaves_times_and_menus_in_sight(sight: Sight, place: Place) -> None:
    place.new_session("A title that is much longer than the column in which the sessions are listed")
    place.new_session("Short")
    page = sight.page
    sight.goto("/")
    if sight.narrow:
        page.get_by_role("button", name="Sessions", exact=True).click()
    shown = page.get_by_role("navigation", name="Sessions")
    expect(shown.get_by_role("link")).to_have_count(2)

    for row in shown.get_by_role("listitem").all():
        row.hover()
        expect(row.get_by_role("button", name=re.compile("^More about"))).to_be_in_viewport(ratio=1)
    assert shown.evaluate("list => list.scrollWidth <= list.clientWidth")
    sight.shoot("long-title")
