"""Pictures and files are pasted or dropped and go with the message; a document can stay with the session instead."""

from __future__ import annotations

import base64
import re

from playwright.sync_api import Locator, expect

from browser.place import Place
from browser.sight import Sight

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC"
ZOO = b"# The zoo\n\nEvery quagga in the zoo is fed with hay at seven."
GIVE = """(node, [event, name, type, content]) => {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0))
    const given = new DataTransfer()
    given.items.add(new File([bytes], name, { type }))
    const about = { bubbles: true, cancelable: true }
    node.dispatchEvent(event === 'paste'
        ? new ClipboardEvent('paste', { ...about, clipboardData: given })
        : new DragEvent(event, { ...about, dataTransfer: given }))
}"""


def give(field: Locator, event: str, name: str, kind: str, content: bytes) -> None:
    """Let the browser believe that a user pastes or drops a file on a field."""
    field.evaluate(GIVE, [event, name, kind, base64.b64encode(content).decode()])


def test_a_pasted_picture_and_a_dropped_file_reach_the_model_and_stay_with_the_message(
    sight: Sight, place: Place
) -> None:
    session = place.new_session("Pictures")
    page = sight.page
    sight.goto(f"/s/{session}")
    field = page.get_by_role("textbox", name="Message", exact=True)
    picked = page.get_by_role("list", name="Files", exact=True)
    give(field, "paste", "dot.png", "image/png", base64.b64decode(PICTURE))
    expect(picked.get_by_role("img", name="dot.png")).to_be_visible()
    give(field, "drop", "note.txt", "text/plain", b"The dot is green.")
    give(field, "drop", "wrong.txt", "text/plain", b"Never mind.")
    expect(picked.get_by_role("listitem")).to_have_count(3)
    picked.get_by_role("button", name="Remove wrong.txt").click()
    expect(picked.get_by_role("listitem")).to_have_count(2)
    sight.shoot("attached")
    sight.check_access()

    place.model.says("A green dot.")
    field.fill("What is this?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("A green dot.", exact=True)).to_be_visible()
    expect(page.get_by_role("log").get_by_role("img", name="dot.png")).to_be_visible()
    expect(page.get_by_role("log").get_by_text("note.txt")).to_be_visible()
    sent = str(place.model.asked[-1])
    assert ("The dot is green." in sent, "Never mind." in sent) == (True, False)
    user = place.call("GET", f"/api/sessions/{session}/messages")["messages"][0]
    assert (user["content"], [file["name"] for file in user["attachments"]]) == (
        "What is this?",
        ["dot.png", "note.txt"],
    )


def test_a_dropped_document_becomes_a_reference_of_the_session(sight: Sight, place: Place) -> None:
    session = place.new_session("Quaggas")
    page = sight.page
    sight.goto(f"/s/{session}")
    field = page.get_by_role("textbox", name="Message", exact=True)
    give(field, "drop", "Zoo notes.md", "text/markdown", ZOO)
    give(field, "drop", "broken.pdf", "application/pdf", b"%PDF-1.4 no words")
    sight.expected.append("422")
    page.get_by_label("Use of broken.pdf").select_option("reference of this session")
    expect(page.get_by_text("No words can be read in the file 'broken.pdf'")).to_be_visible()
    expect(page.get_by_label("Use of broken.pdf")).to_have_value("false")
    page.get_by_role("button", name="Remove broken.pdf").click()
    use = page.get_by_label("Use of Zoo notes.md")
    expect(use.locator("option:checked")).to_have_text("attach to this message")
    name = page.get_by_role("list", name="Files", exact=True).get_by_text("Zoo notes.md")
    assert name.evaluate("one => one.scrollWidth <= one.clientWidth"), "the name is cut off"
    sight.shoot("attach-choice")
    sight.check_access()
    use.select_option("reference of this session")
    expect(page.get_by_role("list", name="Files", exact=True)).to_have_count(0)

    panel = open_panel(sight)
    held = panel.get_by_role("list", name="References made from files").get_by_role("listitem")
    expect(held).to_contain_text(["Zoo-notes"])
    expect(held).to_contain_text(["The zoo · Zoo notes.md"])
    expect(held).to_contain_text([re.compile(r"\d+ tokens")])
    sight.shoot("session-reference")
    sight.check_access()
    close_panel(sight)
    place.model.says("At seven.")
    field.fill("When is the quagga in the zoo fed with hay?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("At seven.", exact=True)).to_be_visible()
    assert "Every quagga in the zoo is fed with hay at seven." in str(place.model.asked[-1])
    assert place.call("GET", f"/api/sessions/{session}/messages")["messages"][0]["attachments"] == []

    panel = open_panel(sight)
    held.get_by_role("button", name="Remove the file Zoo-notes").click()
    expect(page.get_by_text("the record of turn 1 keeps its words")).to_be_visible()
    expect(held).to_have_count(0)
    assert place.call("GET", f"/api/sessions/{session}/references")["references"] == []


def test_a_new_session_begins_with_a_document_as_its_reference(desktop: Sight, place: Place) -> None:
    page = desktop.page
    desktop.goto()
    desktop.choose_agent("pane")
    field = page.get_by_role("textbox", name="Message", exact=True)
    give(field, "drop", "Zoo notes.md", "text/markdown", ZOO)
    give(field, "drop", "note.txt", "text/plain", b"The dot is green.")
    page.get_by_label("Use of Zoo notes.md").select_option("reference of this session")
    place.model.says("At seven.")
    field.fill("When is the quagga in the zoo fed with hay?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("At seven.", exact=True)).to_be_visible()

    [session] = place.call("GET", "/api/sessions")["sessions"]
    user = place.call("GET", f"/api/sessions/{session['id']}/messages")["messages"][0]
    assert [file["name"] for file in user["attachments"]] == ["note.txt"]
    assert [own["file"] for own in session["own_references"]] == ["Zoo notes.md"]
    assert "Every quagga in the zoo is fed with hay at seven." in str(place.model.asked[-1])


def open_panel(sight: Sight) -> Locator:
    """Open what the next message would send."""
    page = sight.page
    if sight.narrow:
        page.get_by_role("button", name="Context panel").click()
    page.get_by_role("button", name="Next message").click()
    return page.get_by_role("complementary", name="Context") if not sight.narrow else page.get_by_role("dialog")


def close_panel(sight: Sight) -> None:
    if sight.narrow:
        sight.page.get_by_role("button", name="Close the context panel").click()
