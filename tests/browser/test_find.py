"""Ctrl+K finds turns, sessions and items; the keys of the page are listed, and the list can be skipped."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from browser.place import Place
from browser.sight import Sight, seeing


@pytest.fixture
def talked(place: Place) -> str:
    """Return a session with two turns."""
    session = place.new_session("A session about orchards and everything that is grown in one, with a very long name")
    place.ask(session, "Which pears keep well?", "Conference pears keep until March. Store them cold and dark.")
    place.ask(session, "And quinces?", "Quinces keep for two months, if they do not touch each other.")
    return session


def test_ctrl_k_finds_what_was_said_and_opens_the_turn_with_its_context(
    desktop: Sight, place: Place, talked: str
) -> None:
    page = desktop.page
    desktop.goto("/agents")
    expect(page.get_by_role("link", name=re.compile("guide")).first).to_be_visible()
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Search everywhere")
    field = dialog.get_by_role("searchbox")
    expect(field).to_be_focused()
    expect(dialog.get_by_text("Each word is found from its beginning")).to_be_visible()
    desktop.check_access()

    field.fill("quinc touch")
    hit = dialog.get_by_role("link")
    expect(hit).to_have_count(1)
    expect(hit).to_contain_text("turn 2")
    expect(hit.locator("mark").first).to_have_text("quinc")
    desktop.shoot("find")
    desktop.check_access()
    field.press("ArrowDown")
    expect(hit).to_be_focused()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(f"/s/{talked}/t/2$"))
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("dialog", name=re.compile("Context"))).to_be_visible()


def test_conditions_are_said_back_and_what_is_not_there_is_said_too(desktop: Sight, place: Place, talked: str) -> None:
    page = desktop.page
    desktop.goto(f"/s/{talked}")
    page.get_by_role("button", name="Search everywhere").click()
    dialog = page.get_by_role("dialog", name="Search everywhere")
    field = dialog.get_by_role("searchbox")
    field.fill("under:50k pears")
    expect(dialog.get_by_text("Turns where the request has under 50,000 tokens.")).to_be_visible()
    expect(dialog.get_by_role("link", name=re.compile("orchards"))).to_have_count(1)

    field.fill("pineapplesauce")
    expect(dialog.get_by_text("Nothing has “pineapplesauce”.")).to_be_visible()
    field.fill("is:degraded")
    expect(dialog.get_by_text("Turns where the selection was degraded.")).to_be_visible()
    expect(dialog.get_by_text("There are no such turns.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("Control+k")
    field.fill("!!")
    expect(dialog.get_by_role("alert")).to_contain_text("type a word to look for")
    desktop.expected.append("422")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_on_a_phone_in_the_dark_an_item_is_found_and_opened(browser: Browser, place: Place, talked: str) -> None:
    with seeing(browser, place.url, "phone", "dark") as phone:
        page = phone.page
        phone.goto("/")
        page.get_by_role("button", name="Sessions", exact=True).click()
        page.get_by_role("button", name="Search everywhere").click()
        dialog = page.get_by_role("dialog", name="Search everywhere")
        dialog.get_by_role("searchbox").fill("pears")
        expect(dialog.get_by_role("link", name=re.compile("orchards")).first).to_be_visible()
        phone.shoot("find-dark")
        phone.check_access()
        dialog.get_by_role("searchbox").fill("answer-briefly")
        dialog.get_by_role("link", name=re.compile("answer-briefly")).first.click()
        expect(page).to_have_url(re.compile("/agents/.*answer-briefly"))
        phone.check()


def test_a_question_mark_lists_the_keys_and_the_list_of_sessions_can_be_skipped(
    desktop: Sight, place: Place, talked: str
) -> None:
    page = desktop.page
    desktop.goto(f"/s/{talked}")
    message = page.get_by_role("textbox", name="Message", exact=True)
    expect(message).to_be_visible()
    message.fill("")
    message.press("?")
    expect(message).to_have_value("?")
    message.fill("")
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys.get_by_text("Search sessions, turns and items")).to_be_visible()
    desktop.shoot("keys")
    desktop.check_access()
    page.keyboard.press("Escape")

    desktop.goto(f"/s/{talked}")
    expect(page.get_by_text("Conference pears keep until March.")).to_be_visible()
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the conversation")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    expect(message).to_be_focused()

    # A dialog gives the focus back to what opened it.
    settings = page.get_by_role("button", name="Settings of this session")
    settings.press("Enter")
    expect(page.get_by_role("dialog", name="Settings of this session")).to_be_visible()
    page.keyboard.press("Escape")
    expect(settings).to_be_focused()
    page.get_by_role("link", name="View Context").first.press("Enter")
    expect(page.get_by_role("dialog", name="Context of turn 1")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog", name="Context of turn 2")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("dialog", name="Context of turn 1")).to_be_visible()
