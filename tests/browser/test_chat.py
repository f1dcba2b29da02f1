from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from browser.place import Place, tool_call
from browser.sight import Sight


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def send(page: Page, text: str) -> None:
    field(page).fill(text)
    field(page).press("Enter")


def test_a_first_message_makes_a_session_and_its_answer_streams_in(sight: Sight, place: Place) -> None:
    answer = place.model.says_slowly("Press the button ", "at the top ", "of the album.")
    page = sight.page
    sight.goto("/")
    sight.choose_agent("pane")
    sight.shoot("new")
    send(page, "How do I upload a photo?")

    log = page.get_by_role("log")
    expect(log.get_by_text("How do I upload a photo?")).to_be_visible()
    expect(log.get_by_text("Press the button", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    sight.shoot("streaming")
    answer.finish()
    expect(log.get_by_text("Press the button at the top of the album.")).to_be_visible()
    expect(page.get_by_role("link", name="View Context")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/s/ses_"))
    expect(page.get_by_role("heading", level=1)).to_have_text("How do I upload a photo?")


def test_every_waiting_call_is_decided_before_anything_is_sent(phone: Sight, place: Place) -> None:
    session = place.new_session("Notes")
    calls = tuple(tool_call(f"call_{name}", "notes__write_note", name=name, text="x") for name in ("one", "two"))
    place.model.says("I will write two notes.", calls=calls)
    place.call("POST", f"/api/sessions/{session}/messages", {"content": "Write two notes"})
    page = phone.page
    phone.goto(f"/s/{session}")

    decide = page.get_by_role("button", name="Submit")
    expect(decide).to_be_disabled()
    first, second = page.get_by_role("group", name="notes.write_note").all()
    first.get_by_role("button", name="Deny").click()
    second.get_by_role("button", name="Allow once").click()
    expect(decide).to_be_enabled()
    first.get_by_role("button", name="Undo").click()
    expect(decide).to_be_disabled()
    first.get_by_role("button", name="Allow in this session").click()
    place.model.says("Both are written.")
    decide.click()

    expect(page.get_by_text("Both are written.")).to_be_visible()
    row = page.locator("details", has_text="write_note").first
    expect(row.get_by_text("Allowed in this session")).to_be_attached()
    row.locator("summary").click()
    expect(row.get_by_label("Result")).to_contain_text("Wrote one")
    phone.shoot("decided")


def test_the_title_has_a_mark_when_an_answer_was_done_out_of_sight(desktop: Sight, place: Place) -> None:
    session = place.new_session("Elsewhere")
    slow = place.model.says_slowly("This takes ", "long.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    send(page, "Tell me everything")
    expect(page.get_by_text("This takes", exact=True)).to_be_visible()
    page.evaluate("Object.defineProperty(document, 'visibilityState', { get: () => 'hidden', configurable: true })")
    slow.finish()
    expect(page).to_have_title("● Elsewhere · Windowpane")
    page.evaluate("delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).to_have_title("Elsewhere · Windowpane")


def test_a_turn_can_be_stopped_and_keeps_what_it_said(desktop: Sight, place: Place) -> None:
    session = place.new_session("Stopping")
    answer = place.model.says_slowly("This takes ", "very long.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    send(page, "Tell me everything")
    expect(page.get_by_text("This takes", exact=True)).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()

    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    expect(page.get_by_text("Stopped")).to_be_visible()
    expect(page.get_by_text("This takes", exact=True)).to_be_visible()
    answer.finish()


def test_a_turn_that_failed_says_what_to_do_and_can_be_tried_again(phone: Sight, place: Place) -> None:
    session = place.new_session("Failing")
    place.model.fails("The key is not valid.", status=401)
    page = phone.page
    phone.goto(f"/s/{session}")
    send(page, "Hello?")
    expect(page.get_by_role("alert")).to_contain_text("check OPENAI_API_KEY")
    place.model.says("Here I am.")
    page.get_by_role("button", name="Try again").click()

    expect(page.get_by_text("Here I am.")).to_be_visible()


def test_an_edited_message_is_asked_in_a_copy(desktop: Sight, place: Place) -> None:
    session = place.new_session("Original")
    place.ask(session, "First question", "First answer")
    place.ask(session, "Second question", "Second answer")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    page.get_by_role("button", name="Edit this message").nth(1).click()
    edited = page.get_by_role("textbox", name="Message").first
    expect(edited).to_have_value("Second question")
    edited.fill("Another question")
    place.model.says("Another answer")
    page.get_by_role("button", name="Send in a new branch").click()

    expect(page.get_by_text("Another answer")).to_be_visible()
    expect(page.get_by_text("First answer")).to_be_visible()
    expect(page.get_by_text("Second question")).to_have_count(0)
    assert not page.url.endswith(session)
    assert place.call("GET", f"/api/sessions/{session}")["message_count"] == 4


def test_names_complete_while_one_writes_and_drafts_are_kept(phone: Sight, place: Place) -> None:
    session, other = place.new_session("Drafts"), place.new_session("No drafts")
    page = phone.page
    phone.goto(f"/s/{session}")
    field(page).press_sequentially("Please @photo")
    options = page.get_by_role("listbox", name="Rules and references").get_by_role("option")
    expect(options).to_have_count(2)
    phone.shoot("mention")
    field(page).press("ArrowDown")
    field(page).press("Enter")
    expect(field(page)).to_have_value("Please @reference:photo-upload ")

    phone.goto(f"/s/{other}")
    expect(field(page)).to_have_value("")
    phone.goto(f"/s/{session}")
    expect(field(page)).to_have_value("Please @reference:photo-upload ")


def test_a_page_is_attached_as_text_and_removed_again(phone: Sight, place: Place) -> None:
    session = place.new_session("Pages")
    page = phone.page
    phone.goto(f"/s/{session}")
    page.get_by_role("button", name="Attach a page").click()
    form = page.get_by_role("dialog", name="Attach a page")
    form.get_by_label("Address of the page").fill("https://example.org/photos")
    form.get_by_label("Paste the text instead").check()
    form.get_by_label("Title").fill("About photos")
    form.get_by_label("Text", exact=True).fill("Photos are made of light. " * 20)
    phone.shoot("attach")
    form.get_by_role("button", name="Attach").click()

    expect(page.get_by_role("link", name="About photos")).to_be_visible()
    page.get_by_role("button", name="Remove attached pages").click()
    expect(page.get_by_role("link", name="About photos")).to_have_count(0)


def test_model_and_mode_are_chosen_where_one_writes(desktop: Sight, place: Place) -> None:
    session = place.new_session("Choosing")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    page.get_by_role("button", name="Mode: Default").click()
    page.get_by_role("menuitemradio", name=re.compile("Thinking")).click()
    expect(page.get_by_role("button", name="Mode: Thinking")).to_be_visible()
    page.get_by_role("button", name="Model: openai:gpt-4o").click()
    page.get_by_label("Another model").fill("no-such-provider:x")
    page.get_by_role("button", name="Use", exact=True).click()
    page.get_by_role("button", name=re.compile("^Model:")).click()
    page.get_by_role("button", name=re.compile("^echo")).click()
    expect(page.get_by_role("button", name="Model: echo")).to_be_visible()

    settings = place.call("GET", f"/api/sessions/{session}")["settings"]
    assert (settings["mode"], settings["model"]) == ("thinking", "echo")
    desktop.expected.append("422")
