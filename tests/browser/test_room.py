"""Long names, long texts and long lists: what matters stays in sight, and nothing that was sent is left uncounted."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Generator

import pytest
from playwright.sync_api import Locator, expect

from browser.place import MODEL, Place, tool_call
from browser.sight import Sight
from browser.test_attach import ZOO, give

LONG_NAME = "Notes about the zoo and all of its animals, written down in the summer.md"
FITS = "box => box.scrollWidth <= box.clientWidth"


def field(sight: Sight) -> Locator:
    return sight.page.get_by_role("textbox", name="Message", exact=True)


def test_a_file_with_a_long_name_leaves_the_field_and_its_button_in_sight(phone: Sight, place: Place) -> None:
    page = phone.page
    phone.goto(f"/s/{place.new_session('Zoo')}")
    give(field(phone), "drop", LONG_NAME, "text/markdown", ZOO)
    expect(page.get_by_label(f"Use of {LONG_NAME}")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name=f"Remove {LONG_NAME}")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    phone.shoot("long-file")


def test_on_a_tablet_a_conversation_and_its_panel_have_room_and_sessions_are_a_sheet(
    desktop: Sight, place: Place
) -> None:
    session = place.new_session("Tablet")
    place.ask(session, "When?", "At seven.")
    page = desktop.page
    page.set_viewport_size({"width": 834, "height": 1112})
    desktop.goto(f"/s/{session}")
    panel = page.get_by_role("complementary", name="Context")
    expect(panel.get_by_role("button", name="Changes")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    width = page.get_by_role("main").evaluate("main => main.clientWidth")
    assert width > 450
    page.get_by_role("button", name="Sessions").click()
    expect(page.get_by_role("dialog", name="Sessions").get_by_role("link", name="Tablet")).to_be_visible()
    desktop.shoot("tablet-sessions")
    page.get_by_role("dialog", name="Sessions").get_by_role("link", name="Tablet").click()


def test_what_a_file_takes_is_counted_and_its_name_leaves_room_for_the_numbers(desktop: Sight, place: Place) -> None:
    session = place.new_session("Zoo")
    place.model.says("At seven.")
    files = [{"name": LONG_NAME, "data": base64.b64encode(ZOO).decode()}]
    place.call("POST", f"/api/sessions/{session}/messages", {"content": "When?", "attachments": files})
    desktop.goto(f"/s/{session}")
    panel = desktop.page.get_by_role("complementary", name="Context")
    table = panel.get_by_role("table", name="Everything that was sent")
    expect(table.get_by_role("row", name=re.compile("^attached · Notes about the zoo"))).to_be_visible()
    assert table.evaluate("table => table.parentElement.scrollWidth <= table.parentElement.clientWidth")
    together = table.get_by_role("row", name="Together").get_by_role("cell").nth(1).inner_text()
    expect(panel.get_by_text(re.compile(rf"^{together}\s+of 128,000 tokens"))).to_be_visible()
    desktop.shoot("long-file-sent")


def test_what_one_is_asked_to_approve_and_what_a_tool_gave_back_is_read_without_scrolling_sideways(
    phone: Sight, place: Place
) -> None:
    session = place.new_session("Notes")
    text = "Every quagga is fed with hay at seven. " * 8
    place.model.says("I will write.", calls=(tool_call("call_1", "notes__write_note", name="zoo", text=text),))
    place.call("POST", f"/api/sessions/{session}/messages", {"content": "Write that down"})
    page = phone.page
    phone.goto(f"/s/{session}")
    asked = page.get_by_role("group", name="notes.write_note").locator("pre")
    expect(asked).to_contain_text("quagga")
    assert asked.evaluate(FITS)
    phone.shoot("long-approval")
    place.model.says("Let me read it.", calls=(tool_call("call_2", "notes__read_note", name="zoo"),))
    page.get_by_role("button", name="Allow once").click()
    expect(page.get_by_role("group", name="notes.read_note")).to_be_visible()
    place.model.says("Written and read.")
    page.get_by_role("button", name="Allow once").click()
    expect(page.get_by_text("Written and read.")).to_be_visible()
    row = page.get_by_role("log").locator("details", has_text="read_note").first
    row.locator("summary").click()
    result = row.get_by_label("Result").locator("pre")
    expect(result).to_contain_text("quagga")
    assert result.evaluate(FITS)


def test_a_call_that_runs_is_running_and_one_that_failed_says_so(desktop: Sight, place: Place) -> None:
    session = place.new_session("Calls")
    slow = place.model.says_slowly("This takes ", "long.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    field(desktop).fill("Tell me everything")
    field(desktop).press("Enter")
    steps = page.get_by_role("complementary", name="Context").locator("details", has_text="Steps").first
    expect(steps).to_contain_text(re.compile(r"1 · answer, step 1\s*running\s*1 call, running"))
    expect(steps).not_to_contain_text("unknown")
    slow.finish()
    expect(steps).to_contain_text(re.compile(r"1 call · \d+ tokens in"))
    place.model.fails("The key is not valid.", status=401)
    field(desktop).fill("And now?")
    field(desktop).press("Enter")
    expect(steps).to_contain_text("failed (401)")


def test_a_name_that_is_read_from_the_right_begins_where_the_others_do(desktop: Sight, place: Place) -> None:
    for name in ("صور العائلة", "Photos"):
        place.new_session(name)
    desktop.goto("/")
    names = desktop.page.get_by_role("navigation", name="Sessions").locator(".name")
    expect(names).to_have_count(2)
    left = """all => all.map((one) => {
        const range = document.createRange()
        range.selectNodeContents(one)
        return Math.round(range.getBoundingClientRect().left)
    })"""
    desktop.await_value(lambda: len(set(names.evaluate_all(left))), 1)


def test_results_of_a_search_take_the_whole_window_of_a_phone(phone: Sight, place: Place) -> None:
    session = place.new_session("Pears")
    for number in range(8):
        place.ask(session, f"Pear {number}?", f"Pear number {number} keeps until March, in a cool and dark cellar.")
    page = phone.page
    phone.goto(f"/s/{session}")
    expect(field(phone)).to_be_visible()
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Search everywhere")
    dialog.get_by_role("searchbox").fill("pear")
    expect(dialog.get_by_role("link", name=re.compile("Pears")).first).to_be_visible()
    phone.await_value(
        lambda: page.locator(".results").evaluate(
            "box => Math.round(innerHeight - box.getBoundingClientRect().bottom)"
        ),
        0,
    )


@pytest.fixture
def _many_agents(place: Place) -> Generator[None]:
    names = [f"agent-{number}" for number in range(6)]
    for name in names:
        place.write("agent.yaml", f"description: One of many.\nmodel: {MODEL}\n", name)
        place.write("prompts/core.md", "You are one of many.", name)
    yield
    for name in names:
        shutil.rmtree(place.folder / "agents" / name)


@pytest.mark.usefixtures("_many_agents")
def test_the_field_stays_in_sight_below_many_agents(phone: Sight, place: Place) -> None:
    phone.goto("/")
    expect(phone.page.get_by_role("radio", name=re.compile("^agent-5"))).to_be_attached()
    expect(field(phone)).to_be_in_viewport(ratio=1)
    expect(phone.page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    phone.shoot("many-agents")
    phone.check_access()


def test_a_short_message_lies_over_a_menu_that_is_open(desktop: Sight, place: Place) -> None:
    session = place.new_session("Photos")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    page.get_by_role("button", name=re.compile("^Model:")).click()
    menu = page.get_by_role("region", name="Providers that lack something")
    expect(menu).to_be_visible()
    page.route("**/key", lambda route: route.fulfill(status=500, body="{}"))
    desktop.expected.append("500")
    menu.get_by_role("button", name=re.compile("^Add a key")).first.click()
    page.get_by_label(re.compile("^Key for")).fill("secret")
    page.get_by_role("button", name=re.compile("^Keep")).click()

    message = page.get_by_role("button", name="Close message")
    expect(message).to_be_visible()
    box = message.bounding_box()
    assert box is not None
    on_top = "([x, y]) => document.elementFromPoint(x, y).closest('button')?.ariaLabel"
    assert page.evaluate(on_top, [box["x"] + 5, box["y"] + 5]) == "Close message"


def test_what_is_done_with_an_item_begins_where_its_name_does_on_a_phone(phone: Sight) -> None:
    page = phone.page
    phone.goto("/agents/pane/reference/photo-upload")
    delete = page.get_by_role("button", name="Delete")
    expect(delete).to_be_visible()
    icon = delete.locator("svg").evaluate("icon => icon.getBoundingClientRect().x")
    title = page.get_by_role("heading", name="photo-upload").evaluate("title => title.getBoundingClientRect().x")
    assert abs(icon - title) < 2


def test_what_was_opened_in_an_answer_stays_open_when_the_answer_is_complete(sight: Sight, place: Place) -> None:
    session = place.new_session("Notes")
    place.model.says("Let me look.", thinking="Notes, then.", calls=(tool_call("call_1", "notes__list_notes"),))
    slow = place.model.says_slowly("There is ", "one note.")
    page = sight.page
    log = page.get_by_role("log")
    sight.goto(f"/s/{session}")
    field(sight).fill("Which notes do I have?")
    field(sight).press("Enter")
    expect(log.get_by_text("There is", exact=True)).to_be_visible()
    log.locator("summary", has_text="list_notes").click()
    log.locator("summary", has_text="Thought").click()
    expect(log.get_by_label("Result")).to_contain_text("welcome")
    slow.finish()

    expect(page.get_by_role("link", name="View Context")).to_be_visible()
    expect(log.get_by_label("Result")).to_contain_text("welcome")
    expect(log.get_by_text("Notes, then.")).to_be_visible()
    log.locator("summary", has_text="Thought").click()
    log.locator("summary", has_text="list_notes").click()
    expect(log.get_by_text("Notes, then.")).to_be_hidden()
    expect(log.get_by_label("Result")).to_have_count(0)


def test_the_end_of_a_conversation_stays_in_sight_when_something_opens_beside_it(desktop: Sight, place: Place) -> None:
    session = place.new_session("Albums")
    for number in range(4):
        place.ask(session, f"Question {number}?", "Photos are kept in albums, and albums on shelves. " * 30)
    page = desktop.page
    last = page.get_by_role("log").get_by_role("link", name="View Context").last
    end = page.get_by_role("button", name="Go to the newest message")
    desktop.goto(f"/s/{session}")
    expect(last).to_be_in_viewport()
    page.get_by_role("button", name="Files", exact=True).click()
    expect(page.get_by_role("navigation", name="Files")).to_be_visible()
    expect(last).to_be_in_viewport(ratio=1)
    expect(end).to_have_count(0)
    desktop.goto(f"/s/{session}?applet=text-editor")
    expect(page.get_by_role("navigation", name="Files")).to_be_visible()
    expect(last).to_be_in_viewport(ratio=1)
    expect(end).to_have_count(0)

    page.mouse.move(500, 400)
    page.mouse.wheel(0, -400)
    end.click()
    expect(last).to_be_in_viewport(ratio=1)


def test_calls_and_tools_have_one_scale_of_time_and_their_table_keeps_names_whole(sight: Sight, place: Place) -> None:
    session = place.new_session("Steps")
    place.model.says("Let me look.", calls=(tool_call("call_1", "notes__list_notes"),))
    place.ask(session, "Which notes do I have?", "One.")
    page = sight.page
    sight.goto(f"/s/{session}/t/1")
    view = page.get_by_role("dialog", name="Context of turn 1")
    calls = view.get_by_role("list", name="Calls", exact=True)
    expect(calls.get_by_role("listitem")).to_have_count(3)
    first, *others = (track.bounding_box() or {} for track in calls.locator(".time").all())
    assert [(other["x"], other["width"]) for other in others] == [(first["x"], first["width"])] * 2
    view.get_by_role("heading", name="Everything sent", level=3).click()
    name = view.get_by_role("link", name="windowpane.set_relevant_context")
    expect(name).to_be_visible()
    lines = "link => new Set([...link.getClientRects()].filter(({ width }) => width).map(({ top }) => top)).size"
    assert name.evaluate(lines) == 1
