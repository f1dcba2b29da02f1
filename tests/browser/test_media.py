"""The page on paper, and where the system chooses the colours."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from browser.place import Place
from browser.sight import Sight, seeing

ANSWER = "Photo {0} is kept in the album. " + "It was taken in the summer, by the lake. " * 30
LENGTH = "() => document.documentElement.scrollHeight"


def test_a_conversation_is_printed_from_its_beginning_to_its_end_and_nothing_else(
    browser: Browser, place: Place
) -> None:
    session = place.new_session("Photos")
    for number in range(1, 5):
        place.ask(session, f"Where is photo {number}?", ANSWER.format(number))
    with seeing(browser, place.url, "desktop", "dark") as sight:
        page = sight.page
        sight.goto(f"/s/{session}")
        expect(page.get_by_text("Where is photo 4?")).to_be_visible()
        expect(page.get_by_role("row", name="Together")).to_be_visible()
        page.emulate_media(media="print")
        for number in range(1, 5):
            expect(page.get_by_role("log").get_by_text(f"Where is photo {number}?")).to_be_visible()
        for part in (page.get_by_role("textbox", name="Message"), page.get_by_role("navigation", name="Sessions")):
            expect(part).to_have_count(0)
        expect(page.get_by_role("row", name="Together")).to_have_count(0)
        sight.await_value(lambda: page.evaluate(LENGTH) > 1200, True)
        assert page.evaluate("getComputedStyle(document.querySelector('.prose')).color") == "rgb(26, 33, 39)"
        sight.shoot("printed")


def test_what_an_answer_was_made_from_is_printed_as_a_whole(desktop: Sight, place: Place) -> None:
    session = place.new_session("Photos")
    place.ask(session, "Where is photo 1?", ANSWER.format(1))
    page = desktop.page
    desktop.goto(f"/s/{session}/t/1")
    view = page.get_by_role("dialog", name="Context of turn 1")
    view.get_by_role("heading", name="The prompt", exact=True).click()
    expect(view.get_by_role("region", name="The prompt")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_role("log")).to_have_count(0)
    expect(view.get_by_role("heading", name="Context test")).to_be_visible()
    desktop.await_value(lambda: page.evaluate(LENGTH) > 1200, True)
    desktop.shoot("printed-context")


def test_bars_and_what_is_chosen_are_seen_where_the_system_chooses_the_colours(browser: Browser, place: Place) -> None:
    session = place.new_session("Photos")
    place.ask(session, "How are photos uploaded?", "With the button.")
    with seeing(browser, place.url) as sight:
        page = sight.page
        page.emulate_media(forced_colors="active")
        sight.goto(f"/s/{session}")
        expect(page.get_by_role("row", name="Together")).to_be_visible()
        bar = page.get_by_role("button", name=re.compile("^11 tokens")).locator("[data-part]")
        colours = bar.evaluate_all("all => all.map((one) => getComputedStyle(one).backgroundColor)")
        assert len(set(colours)) == len(colours) > 2
        tabs = page.get_by_role("group", name="What to show").get_by_role("button")
        framed = tabs.evaluate_all("all => all.map((one) => getComputedStyle(one).outlineStyle)")
        assert framed == ["solid", "none", "none", "none"]
        here = page.get_by_role("navigation", name="Sessions").get_by_role("link", name=re.compile("^Photos"))
        assert here.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
        sight.shoot("forced-colours")
        sight.check()
