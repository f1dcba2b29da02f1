from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from browser.place import Place
from browser.sight import Sight

UPLOAD, RESIZE = "How are photos uploaded?", "What about resizing?"


def memory(page: Page) -> Locator:
    """Return the section about what the model remembered, opened."""
    answer = page.get_by_role("region", name="This answer")
    found = answer.locator("details", has=page.get_by_role("heading", name="Memory", exact=True))
    if found.get_attribute("open") is None:
        found.get_by_role("heading", name="Memory").click()
    return found


@pytest.mark.spec("S3.46-S3.51", "S3.55", "S3.56", "S3.58-S3.62", "S3.44", "S3.45", "S3.65", "S3.66")
def test_a_turn_shows_what_its_model_remembered_and_leads_on(phone: Sight, place: Place) -> None:
    # Of so few references all would be sent, and what is sent is a source and no related topic.
    session = place.new_session("Photos", search={"text": {"share_of_best": 0.6}}, cache="fresh")
    place.ask(session, UPLOAD, "With the button at the top.")
    place.ask(session, RESIZE, "In the editor.")
    page = phone.page
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/debug" in request.url:
            asked.append(request.url)

    page.on("request", note)
    phone.goto(f"/s/{session}")
    expect(page.get_by_text("In the editor.", exact=True)).to_be_visible()
    page.get_by_role("button", name="Context panel", exact=True).click()
    told = memory(page)

    stats = told.locator(".context-stats")
    expect(stats).to_contain_text(
        re.compile(r"Messages: 2\s+Context Size: \d+ chars\s+Has Summary: ❌\s*no\s+Sources Used: \d")
    )
    expect(told.get_by_text(re.compile("Treated as a follow-up"))).to_be_visible()
    expect(told.locator(".source-history")).to_contain_text("📄 ")
    phone.shoot("debug")
    phone.check_access()
    assert all("text=false" in url for url in asked)
    assert asked

    show = page.get_by_role("button", name="Show Context")
    expect(show).to_have_attribute("aria-expanded", "false")
    show.click()
    sent = page.locator("pre.context-view")
    expect(sent).to_contain_text(f"=== RECENT MESSAGES ===\nUSER: {UPLOAD}\nASSISTANT: With the button at the top.")
    expect(sent).to_contain_text(f"USER: {RESIZE}")
    phone.shoot("debug-context")
    phone.check_access()
    kept = page.evaluate("JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
    assert UPLOAD not in kept
    page.get_by_role("button", name="Hide Context").click()
    expect(sent).to_have_count(0)

    chip = page.locator(".related-topics .topic-chip").first
    title = chip.inner_text()
    place.model.says("Here is more.")
    chip.click()
    page.get_by_role("button", name="Close the context panel").click()
    log = page.get_by_role("log")
    expect(log.get_by_text(f"Tell me about {title}")).to_be_visible()
    expect(log.get_by_text("Here is more.")).to_be_visible()


@pytest.mark.spec("S3.52", "S3.53", "S3.64")
def test_what_looks_wrong_with_a_memory_is_said_and_an_address_leads_to_its_turn(desktop: Sight, place: Place) -> None:
    session = place.new_session("Forgetful")
    place.ask(session, "How are photos uploaded?", "With the button. " * 160)
    place.ask(session, "And albums?", "They are made by hand. " * 160)
    page = desktop.page
    desktop.goto(f"/s/{session}?applet=debug&turn=1")
    expect(page.get_by_text("Turn 1 of 2")).to_be_visible()
    expect(page.get_by_text("How are photos uploaded?")).to_be_in_viewport()
    told = memory(page)
    expect(told.get_by_text("No conversation history! This is the first turn.")).to_be_visible()
    expect(told.get_by_role("list", name="Warnings")).to_have_count(0)
    topic = told.get_by_label("Could the model know about")
    topic.fill("billing")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Previous topic not in context: billing")).to_be_visible()
    desktop.shoot("debug-warnings")

    page.get_by_role("button", name="Next turn").click()
    expect(page.get_by_text("Turn 2 of 2")).to_be_visible()
    expect(page.get_by_role("log").get_by_text("And albums?")).to_be_in_viewport()
    told = memory(page)
    topic.fill("PHOTOS uploaded")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("was in the conversation that the model was given")).to_be_visible()
    expect(told.get_by_text("No conversation history!")).to_have_count(0)


def test_a_session_without_a_turn_says_what_will_be_there(desktop: Sight, place: Place) -> None:
    session = place.new_session("Empty")
    page = desktop.page
    desktop.goto(f"/s/{session}?applet=debug")
    expect(page.get_by_text("No turns yet")).to_be_visible()
    desktop.shoot("debug-empty")

    place.ask(session, "How are photos uploaded?", "With the button.")
    expect(page.get_by_text("Turn 1 of 1")).to_be_visible()
    expect(memory(page).locator(".context-stats")).to_contain_text("Messages: 0")
