"""Pictures and files are pasted or dropped, go with the message to the model, and stand beside it afterwards."""

from __future__ import annotations

import base64

from playwright.sync_api import Locator, expect

from browser.place import Place
from browser.sight import Sight

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC"
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
    picked = page.get_by_role("list", name="Files")
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
