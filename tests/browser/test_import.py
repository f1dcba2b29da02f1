"""A session leaves as a file and comes back as one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from browser.place import Place
from browser.sight import Sight

NAME = "Uploading the photos of the summer to the album that all of the family can see"
DROP = """(zone, [name, text]) => {
    const dataTransfer = new DataTransfer()
    dataTransfer.items.add(new File([text], name, { type: 'application/json' }))
    for (const type of ['dragover', 'drop'])
        zone.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }))
}"""


def test_an_exported_session_is_imported_by_choosing_it_and_goes_on(sight: Sight, place: Place, tmp_path: Path) -> None:
    session = place.new_session(NAME)
    place.ask(session, "How are photos uploaded?", "With the button.")
    page = sight.page
    sight.goto()
    if sight.narrow:
        page.get_by_role("button", name="Sessions").click()
    page.get_by_role("button", name=f"More about {NAME}").click()
    with page.expect_download() as begun:
        page.get_by_role("menuitem", name="Export").click()
    assert begun.value.suggested_filename == f"{NAME}.json"
    file = tmp_path / begun.value.suggested_filename
    begun.value.save_as(file)
    place.delete_sessions()

    page.get_by_role("link", name="Open or import a session").click()
    page.get_by_label("Choose a file").set_input_files(file)
    zone = page.get_by_role("region", name="Open or import a session")
    expect(zone.get_by_role("definition")).to_have_text([NAME, "pane", "1", re.compile(r"\d{4}")])
    sight.shoot("import")
    sight.check_access()
    assert place.call("GET", "/api/sessions")["sessions"] == []
    zone.get_by_role("button", name="Import", exact=True).click()

    talk = page.get_by_role("log", name="Conversation")
    expect(talk.get_by_text("With the button.")).to_be_visible()
    expect(page.get_by_role("heading", name=NAME, level=1)).to_be_visible()
    [found] = place.call("GET", "/api/sessions")["sessions"]
    assert (found["name"], found["agent"], found["message_count"]) == (NAME, "pane", 2)
    place.model.says("With the slider.")
    page.get_by_role("textbox", name="Message", exact=True).fill("And how are they resized?")
    page.keyboard.press("Enter")
    expect(talk.get_by_text("With the slider.")).to_be_visible()


def test_a_file_that_cannot_be_imported_is_refused_with_what_to_do_and_nothing_is_stored(
    desktop: Sight, place: Place, tmp_path: Path
) -> None:
    session = place.new_session("Albums")
    place.ask(session, "How are photos uploaded?", "With the button.")
    document: dict[str, Any] = place.call("GET", f"/api/sessions/{session}/export")
    place.delete_sessions()
    desktop.expected += ["422"]
    page = desktop.page
    desktop.goto("/shared")
    zone, alert = page.get_by_role("region", name="Open or import a session"), page.get_by_role("alert")

    zone.evaluate(DROP, ["notes.txt", "Dear diary"])
    expect(alert).to_contain_text("This is no session of Windowpane: it is not JSON")
    zone.evaluate(DROP, ["newer.json", json.dumps({**document, "version": 9})])
    expect(alert).to_have_text(
        "A newer Windowpane wrote this file (its format is 9, this one reads 1). "
        "Update this Windowpane, then open it again."
    )
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(65 * 2**20)
    page.get_by_label("Choose a file").set_input_files(large)
    expect(alert).to_contain_text("large.json is too large: 65 MB, and at most 64 MB can be opened here.")

    zone.evaluate(DROP, ["cut.json", json.dumps({**document, "events": document["events"][1:]})])
    zone.get_by_role("button", name="Import", exact=True).click()
    expect(alert).to_contain_text("An exported session begins with session.created")
    assert place.call("GET", "/api/sessions")["sessions"] == []
    zone.get_by_role("button", name="Another file").click()
    expect(alert).to_have_count(0)
    zone.evaluate(DROP, ["whole.json", json.dumps(document)])
    zone.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("log", name="Conversation").get_by_text("With the button.")).to_be_visible()
