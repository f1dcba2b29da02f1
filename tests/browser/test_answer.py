"""What stands below and beside an answer: the receipt, the panel that follows the turn, and asking again."""

from __future__ import annotations

import re
from collections.abc import Generator

import pytest
from playwright.sync_api import Locator, Page, expect

from browser import desk
from browser.place import Place, tool_call
from browser.sight import Sight

PHOTOS = "How are photos uploaded, how large may they be and how are they named?"
CHEESE = "How does Gouda cheese ripen in a cellar?"


@pytest.fixture(autouse=True)
def _desk(place: Place) -> Generator[None]:
    desk.write_desk(place)
    yield
    desk.write_desk(place)


def receipts(page: Page) -> Locator:
    return page.get_by_role("log").get_by_title("Show what this answer was made from")


def answer(page: Page) -> Locator:
    return page.get_by_role("region", name="This answer")


def section(page: Page, title: str) -> Locator:
    return answer(page).locator("details", has=page.get_by_role("heading", name=title, exact=True))


def test_a_receipt_stands_below_every_answer_and_opens_the_panel_on_its_turn(sight: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Receipts")
    place.ask(session, PHOTOS, "With the button.", tokens=(1938, 7, 0))
    place.call("DELETE", f"/api/sessions/{session}/items/reference/albums")
    place.ask(session, CHEESE, "Slowly.", tokens=(2000, 7, 0))
    page = sight.page
    sight.goto(f"/s/{session}")
    expect(receipts(page)).to_have_text(
        [
            re.compile(r"^\s*1,938 tokens · 5 rules · 2 references \(photo-upload \.\d\d\) · 3 tools · 1 left out\s*$"),
            re.compile(r"^\s*2,000 tokens · \d rules · .*cheese (1\.0|\.\d\d).* · [+−]\d+ since turn 1\s*$"),
        ]
    )
    expect(page.get_by_role("log").get_by_text("Sources:")).to_have_count(2)
    expect(page.get_by_role("log").get_by_role("link", name="cheese").last).to_have_attribute(
        "href", "/agents/desk/reference/cheese"
    )
    sight.shoot("receipt")
    receipts(page).first.click()
    expect(answer(page).get_by_text("Turn 1 of 2")).to_be_visible()
    together = answer(page).get_by_role("row", name=re.compile("^Together"))
    expect(together).to_be_visible()
    used = place.call("GET", f"/api/sessions/{session}/turns/1/context")["budget"]["used_tokens"]
    expect(together).to_contain_text(str(used))
    expect(section(page, "Steps").get_by_text("1 call · 1,938 tokens in, 7 out · cost unknown")).to_be_visible()
    sight.shoot("this-answer")
    sight.check_access()


def test_the_panel_follows_the_turn_that_is_read(desktop: Sight, place: Place) -> None:
    session = place.new_session("Following", desk.AGENT)
    for number in range(1, 5):
        place.ask(session, f"Question {number}", f"Answer {number}. " * 300)
    page = desktop.page
    desktop.goto(f"/s/{session}")
    expect(answer(page).get_by_text("Turn 4 of 4")).to_be_visible()
    page.get_by_text("Question 4").hover()
    for _ in range(100):
        if answer(page).get_by_text("Turn 2 of 4").is_visible():
            break
        page.mouse.wheel(0, -150)
        page.wait_for_timeout(50)
    expect(answer(page).get_by_text("Turn 2 of 4")).to_be_visible()
    answer(page).get_by_role("button", name="Turn before").focus()
    page.keyboard.press("ArrowLeft")
    expect(answer(page).get_by_text("Turn 1 of 4")).to_be_visible()
    expect(page.get_by_role("log").get_by_text("Question 1")).to_be_in_viewport()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(answer(page).get_by_text("Turn 3 of 4")).to_be_visible()
    expect(page.get_by_role("log").get_by_text("Question 3")).to_be_in_viewport()
    page.get_by_role("button", name="Go to the newest message").click()
    expect(answer(page).get_by_text("Turn 4 of 4")).to_be_visible()


def test_the_context_is_there_while_an_answer_streams_and_while_it_waits_for_a_click(
    desktop: Sight, place: Place
) -> None:
    session = place.new_session("Waiting")
    slow = place.model.says_slowly("This takes ", "a while.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    field = page.get_by_role("textbox", name="Message", exact=True)
    field.fill("How are photos uploaded?")
    field.press("Enter")
    expect(page.get_by_text("This takes", exact=True)).to_be_visible()
    expect(answer(page).get_by_text("The answer is being written.")).to_be_visible()
    expect(answer(page).get_by_role("link", name="photo-upload")).to_be_visible()
    expect(receipts(page)).to_have_text(re.compile(r"tokens · 1 rule"))
    slow.finish()
    expect(answer(page).get_by_text("The answer is being written.")).to_have_count(0)

    place.model.says("Let me write.", calls=(tool_call("call_1", "notes__write_note", name="a", text="b"),))
    field.fill("Write it down")
    field.press("Enter")
    expect(answer(page).get_by_text("Waiting for your approval.")).to_be_visible()
    expect(section(page, "Steps").get_by_text("notes.write_note")).to_be_visible()
    page.get_by_role("button", name="Next message").click()
    expect(page.get_by_text("A tool call needs your approval. What the next message")).to_be_visible()
    desktop.shoot("waiting")
    place.model.says("It is written.")
    page.get_by_role("button", name="Allow once").click()
    expect(page.get_by_text("It is written.")).to_be_visible()


def test_every_reason_ends_in_what_can_be_done_about_it(desktop: Sight, place: Place) -> None:
    session = place.new_session("Acting", desk.AGENT)
    place.ask(session, PHOTOS, "With the button.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    section(page, "Left out").get_by_role("heading").click()

    def about(name: str) -> Locator:
        return section(page, "Left out").get_by_role("listitem").filter(has=page.get_by_role("link", name=name))

    expect(about("cheese").locator(".badge")).to_have_text(re.compile(r"^Left out - 0\.\d\d$"))
    about("albums").get_by_role("button", name="Send in this session").click()
    expect(about("albums").get_by_text("In this session now")).to_be_visible()
    about("cheese").get_by_role("button", name="Never in this session").click()
    about("cheese").get_by_role("button", name="Let it be selected again").click()
    expect(about("cheese").get_by_role("button", name="Never in this session")).to_be_visible()

    about("cheese").get_by_role("button", name="Improve its description").click()
    written = about("cheese").get_by_label("Description of cheese")
    expect(written).to_have_value("How Gouda ripens")
    expect(about("cheese").get_by_role("status")).to_contain_text("Would still be left out for this message")
    written.fill(PHOTOS)
    expect(about("cheese").get_by_role("status")).to_contain_text("Would have been selected for this message, score")
    desktop.shoot("improve")
    about("cheese").get_by_role("button", name="Save").click()
    expect(about("cheese").get_by_label("Description of cheese")).to_have_count(0)
    text = (place.folder / "agents" / desk.AGENT / "references" / "cheese.md").read_text()
    assert PHOTOS in text

    about("cheese").get_by_role("button", name="Always from now on").click()
    expect(about("cheese").get_by_text("In this session now")).to_be_visible()
    held = place.call("GET", f"/api/sessions/{session}/items")["items"]
    assert {one["ref"]["name"] for one in held} >= {"albums", "cheese"}
    place.ask(session, "Hello", "Hello.")
    sent = place.call("GET", f"/api/sessions/{session}/turns/2/context")["items"]
    assert {one["name"] for one in sent if one["status"] == "used"} >= {"albums", "cheese"}


def test_a_turn_is_asked_again_in_a_branch_beside_the_original(desktop: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Original")
    place.ask(session, PHOTOS, "With the button.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    page.get_by_role("button", name="Ask turn 1 again").click()
    form = page.get_by_role("dialog", name="Ask turn 1 again")
    form.get_by_label("Without an item").select_option("house-style")
    desktop.shoot("ask-again")
    place.model.says("With the *other* button.")
    form.get_by_role("button", name="Ask again").click()
    both = page.get_by_role("dialog", name="Turn 1 beside the original")
    expect(both.get_by_text("With the button.")).to_be_visible()
    expect(both.get_by_text("With the other button.")).to_be_visible()
    expect(both).to_contain_text(re.compile(r"Left\s*house-style"))
    desktop.shoot("beside")
    desktop.check_access()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", level=1)).to_have_text("Original · without house-style")
    expect(page.get_by_text("A branch of Original, from before turn 1.")).to_be_visible()
    branch = page.get_by_role("navigation", name="Sessions").get_by_role("link", name=re.compile("^Branch: Original"))
    expect(branch).to_be_visible()
    page.get_by_role("link", name="Original", exact=True).click()
    expect(page).to_have_url(re.compile(session))
    assert place.call("GET", f"/api/sessions/{session}")["message_count"] == 2

    page.goto(f"{desktop.url}/s/{session}/t/1")
    view = page.get_by_role("dialog", name="Context of turn 1")
    what_if = view.locator("details", has=page.get_by_role("heading", name="What if", exact=True))
    # The view is made again when the session has been read, and forgets what was opened before.
    desktop.await_value(lambda: what_if.get_attribute("open") is not None or what_if.locator("summary").click(), True)
    view.get_by_role("spinbutton", name=re.compile("^At most")).fill("1")
    view.get_by_role("button", name="Run the selection again").click()
    place.model.says("With one button.")
    view.get_by_role("button", name="Ask again with it").click()
    expect(both.get_by_text("With one button.")).to_be_visible()
    expect(both).to_contain_text(re.compile(r"Left\s*photo-"))


def test_everything_sent_is_one_table_and_the_prompt_one_document(desktop: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Documents")
    place.ask(session, PHOTOS, "Uploaded photos are named after their day.")
    place.ask(session, CHEESE, "Slowly.")
    page = desktop.page
    desktop.goto(f"/s/{session}/t/1")
    view = page.get_by_role("dialog", name="Context of turn 1")
    view.get_by_role("heading", name="Everything sent", exact=True).click()
    table = view.get_by_role("table", name="Everything that was sent")
    expect(table.get_by_role("row", name=re.compile("photo-names"))).to_contain_text("Quoted")
    table.get_by_role("button", name="Name").click()
    expect(table.locator("tbody th").first).to_contain_text("albums")
    table.get_by_role("button", name="What read_note takes").click()
    expect(table.get_by_label("Properties of read_note")).to_contain_text(re.compile(r"name\s*string, required"))
    desktop.shoot("everything-sent")

    desktop.goto(f"/s/{session}/t/2")
    view = page.get_by_role("dialog", name="Context of turn 2")
    view.get_by_role("button", name=re.compile("^History")).click()
    expect(page).to_have_url(re.compile(r"/t/2/prompt/history$"))
    prompt = view.get_by_role("region", name="The prompt")
    expect(prompt.get_by_role("heading", name=re.compile("^History")).first).to_be_in_viewport()
    expect(prompt.get_by_text("a provider’s cache can serve it")).to_be_attached()
    expect(prompt.get_by_role("heading", name=re.compile(r"^house-style system \d+ tokens$"))).to_be_attached()
    assert prompt.evaluate("box => box.scrollWidth <= box.clientWidth")
    view.get_by_label("Search the prompt").fill("GOUDA")
    expect(view.get_by_text("2 found")).to_be_visible()
    expect(prompt.locator("mark").first).to_be_in_viewport()
    desktop.shoot("prompt")


def test_turns_stand_side_by_side_over_the_session_and_any_two_are_compared(desktop: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Over time")
    place.ask(session, PHOTOS, "With the button.")
    place.call("DELETE", f"/api/sessions/{session}/items/reference/albums")
    place.ask(session, CHEESE, "Slowly.")
    place.ask(session, "Thanks", "You are welcome.")
    page = desktop.page
    desktop.goto(f"/s/{session}/t/3")
    view = page.get_by_role("dialog", name="Context of turn 3")
    view.get_by_role("heading", name="Over the session", exact=True).click()
    turns = view.get_by_role("list", name="Turns of the session").get_by_role("button")
    expect(turns).to_have_count(3)
    expect(turns).to_have_text([re.compile(rf"{number}\s*$") for number in (1, 2, 3)])
    expect(turns.nth(1)).to_have_attribute("aria-label", re.compile(r"^Turn 2: \d+ tokens; System .* entered; \d left"))
    expect(view.get_by_text("Turn 3 compared with turn 2")).to_be_visible()
    view.get_by_label("First turn to compare").focus()
    page.keyboard.press("ArrowLeft")
    expect(view.get_by_text("Turn 3 compared with turn 1")).to_be_visible()
    over = view.locator("details", has=page.get_by_role("heading", name="Over the session", exact=True))
    expect(over).to_contain_text(re.compile(r"Left\s*albums"))
    desktop.shoot("over-time")
