"""A recorded session on the page: marked in the list, watched while its program works, and each call taken apart."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.place import Place
from browser.program import Program
from browser.sight import Sight


@pytest.fixture
def program(place: Place) -> Generator[Program]:
    made = Program(place)
    yield made
    made.close()


def test_a_recorded_session_is_watched_and_taken_apart(sight: Sight, place: Place, program: Program) -> None:
    page = sight.page
    program.asks("What does the note say?", "I look.", "Once more.", "It says 42.")
    sight.goto()
    if sight.narrow:
        page.get_by_role("button", name="Sessions").click()
    link = page.get_by_role("link", name=re.compile("X-ray: What does the note say"))
    expect(link).to_be_visible()
    link.click()

    log = page.get_by_role("log", name="Conversation")
    expect(log.get_by_text("It says 42.")).to_be_visible()
    expect(page.get_by_text("Recorded from harbour 3.1 by X-ray.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_count(0)
    expect(page.get_by_role("button", name="Settings of this session")).to_have_count(0)

    program.asks("Thank you.", "You are welcome.", time="five")
    expect(log.get_by_text("You are welcome.")).to_be_visible()
    if sight.narrow:
        page.get_by_role("button", name="Context panel").click()
    panel = page.get_by_role("region", name="X-ray")
    expect(panel.get_by_role("heading", name="Call 4 the latest")).to_be_visible()
    expect(panel.get_by_role("img", name=re.compile("of 128,000 tokens: Tools .*Instruction files"))).to_be_visible()
    expect(panel.get_by_text("The prefix broke at instructions /home/me/AGENTS.md")).to_be_visible()
    expect(panel.get_by_text("2 of 3 tools never called")).to_be_visible()
    expect(panel.get_by_text("read_file /home/me/note.txt: read 2 times")).to_be_visible()
    expect(panel.get_by_text("Call 4 compared with call 3.")).to_be_visible()
    expect(panel.get_by_text("/home/me/AGENTS.md", exact=False).first).to_be_visible()
    panel.get_by_role("button", name=re.compile("^Call 1:")).click()
    expect(panel.get_by_text("Call 4 compared with call 1.")).to_be_visible()
    sight.shoot("xray-panel")
    sight.check_access()
    if sight.narrow:
        page.get_by_role("button", name="Close the context panel").click()

    page.get_by_role("link", name="View Context").first.click()
    view = page.get_by_role("dialog", name="Context of turn 1")
    view.get_by_role("button", name=re.compile("^3 · answer")).click()
    call = view.get_by_role("region", name="Call 3")
    expect(call.get_by_role("row", name=re.compile("System prompt Style"))).to_be_visible()
    file = call.get_by_role("button", name="Instruction file /home/me/AGENTS.md")
    file.click()
    expect(call.get_by_label("Text of /home/me/AGENTS.md")).to_contain_text("Tea is at four.")
    sight.shoot("xray-call")
    sight.check_access("dialog")
    call.get_by_role("button", name="As sent").click()
    expect(call.get_by_label("Body as sent")).to_contain_text("Be brief and plain.")

    # A program has no folder with settings: nothing is asked about it that the server does not know.
    sight.goto("/analytics")
    expect(page.get_by_role("heading", name="Suggestions")).to_be_visible()
    expect(page.get_by_text("xray:harbour").first).to_be_attached()
    page.wait_for_load_state("networkidle")


def test_a_session_is_shared_as_a_file_that_opens_without_being_stored(
    desktop: Sight, place: Place, program: Program, tmp_path: Path
) -> None:
    page = desktop.page
    program.asks("What does the note say?", "I look.", "Once more.", "It says 42.")
    desktop.goto()
    page.get_by_role("button", name="More about What does the note say?").click()
    with page.expect_download() as begun:
        page.get_by_role("menuitem", name="Share as a file").click()
    file = tmp_path / begun.value.suggested_filename
    begun.value.save_as(file)
    place.delete_sessions()

    page.get_by_role("link", name="Open or import a session").click()
    expect(page.get_by_role("heading", name="Open or import a session")).to_be_visible()
    other = tmp_path / "other.json"
    other.write_text("{}")
    page.get_by_label("Choose a file").set_input_files(other)
    expect(page.get_by_role("alert")).to_contain_text("This is no session of Windowpane")
    page.get_by_label("Choose a file").set_input_files(file)
    expect(page.get_by_role("log", name="Conversation").get_by_text("It says 42.")).to_be_visible()
    expect(page.get_by_text("Nothing of it is stored")).to_be_visible()
    panel = page.get_by_role("region", name="X-ray")
    panel.get_by_role("button", name=re.compile("^Call 1:")).click()
    expect(panel.get_by_text("Call 3 compared with call 1.")).to_be_visible()
    changes = panel.get_by_role("list", name="What differs from call 1 to call 3").get_by_role("listitem")
    expect(changes).to_contain_text(["Reply", "Tool call read_file", "Tool result read_file /home/me/note.txt"] * 2)
    page.get_by_role("link", name="View Context").click()
    view = page.get_by_role("dialog", name="Context of turn 1")
    view.get_by_role("button", name=re.compile("^2 · answer")).click()
    view.get_by_role("button", name="Instruction file /home/me/AGENTS.md").click()
    expect(view.get_by_label("Text of /home/me/AGENTS.md")).to_contain_text("Tea is at four.")
    desktop.shoot("xray-shared")
    assert place.call("GET", "/api/sessions")["sessions"] == []
