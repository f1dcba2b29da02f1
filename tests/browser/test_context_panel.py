from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from browser import desk
from browser.place import Place
from browser.sight import Sight

QUESTION = "How are photos uploaded, how large may they be and how are they named?"


@pytest.fixture(autouse=True)
def _desk(place: Place) -> None:
    desk.write_desk(place)


def panel(sight: Sight) -> Locator:
    """Return the panel, opened where it is not always there."""
    page = sight.page
    if sight.narrow:
        page.get_by_role("button", name=re.compile("context panel", re.IGNORECASE)).first.click()
        return page.get_by_role("dialog", name="Context")
    return page.get_by_role("complementary", name="Context")


def group(shown: Locator, title: str) -> Locator:
    return shown.locator("details.group", has=shown.page.get_by_role("heading", name=re.compile(f"^{title} ")))


def drafted(route: Route) -> str:
    """Return the message that a preview was asked for."""
    return json.loads(route.request.post_data or "")["content"]


def message(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def test_items_are_found_added_and_removed_with_their_modes_and_tokens(phone: Sight, place: Place) -> None:
    session = place.new_session("Choosing items", desk.AGENT)
    page = phone.page
    phone.goto(f"/s/{session}")
    expect(message(page)).to_be_visible()
    shown = panel(phone)
    rules, references, tools = (group(shown, title) for title in ("Rules", "References", "Tools"))
    expect(rules.get_by_role("heading")).to_have_text(re.compile(r"^Rules\s+2$"))
    expect(rules.get_by_role("listitem").first).to_contain_text(
        re.compile(r"001\s*•\s*authentication-rules\s*Always\s*Who may do what\s*\d+ tokens")
    )
    expect(tools.get_by_text("None in this session.")).to_be_visible()
    expect(shown.get_by_role("img", name=re.compile("room left"))).to_be_visible()
    references.get_by_text("3 more could be added").click()
    expect(references.get_by_label("References that could be added").get_by_role("listitem")).to_have_text(
        [re.compile(r"050.*albums.*Manual"), re.compile("100.*photo-upload.*Agent"), re.compile("500.*cheese.*Agent")]
    )
    phone.shoot("panel-items")

    references.get_by_role("button", name="Add albums").click()
    expect(references.get_by_role("heading")).to_have_text(re.compile(r"^References\s+1$"))
    expect(references.get_by_role("button", name="Remove albums")).to_be_visible()
    rules.get_by_role("button", name="Remove house-style").click()
    expect(rules.get_by_role("heading")).to_have_text(re.compile(r"^Rules\s+1$"))
    expect(rules.locator("summary").first).to_be_focused()

    shown.get_by_role("searchbox", name="Search items").fill("note all")
    expect(tools.get_by_label("Tools that could be added").get_by_role("listitem")).to_have_count(2)
    expect(rules.get_by_text("No matches.")).to_be_visible()
    tools.get_by_role("button", name="Add list_notes").click()
    expect(tools.get_by_role("button", name="Remove list_notes")).to_be_visible()
    held = place.call("GET", f"/api/sessions/{session}/items")["items"]
    assert [(one["ref"]["name"], one["mode"]) for one in held] == [
        ("authentication-rules", "always"),
        ("albums", "manual"),
        ("list_notes", "manual"),
    ]

    place.call("DELETE", f"/api/sessions/{session}/items/tool/list_notes?server=notes")
    expect(tools.get_by_role("button", name="Add list_notes")).to_be_visible()


def test_a_message_that_is_being_written_shows_what_it_would_select(desktop: Sight, place: Place) -> None:
    session = place.new_session("Before sending", desk.AGENT)
    page = desktop.page
    asked: list[str] = []

    def hear(route: Route) -> None:
        asked.append(drafted(route))
        route.continue_()

    page.route("**/preview?*", hear)
    desktop.goto(f"/s/{session}")
    shown = panel(desktop)
    bar = shown.get_by_role("img", name=re.compile("room left"))
    expect(bar).to_have_attribute("aria-label", re.compile(r"^\d+ of 128,000 tokens: System \d+, Rules \d+; room left"))
    expect(shown.get_by_text("Write a message to see what it would select")).to_be_visible()
    desktop.shoot("panel-empty")
    message(page).press_sequentially(QUESTION)
    selected = shown.get_by_label("Would be selected")
    expect(selected.get_by_role("listitem")).to_have_count(4)
    expect(selected.get_by_role("listitem").filter(has_text="photo-size")).to_contain_text(
        re.compile(r"003\s*•\s*photo-size\s*Agent - 0\.\d\d.*Number \d of 5", re.IGNORECASE | re.DOTALL)
    )
    expect(shown.get_by_role("heading", name="With this message")).to_be_visible()
    expect(bar).to_have_attribute("aria-label", re.compile(r"References \d+, Message \d+; room left"))
    shown.get_by_text("1 would be left out").click()
    left = shown.get_by_label("Would be left out").get_by_role("listitem")
    expect(left).to_contain_text(re.compile(r"cheese.*\(at most 4\)", re.DOTALL))
    desktop.shoot("panel-preview")
    expect(shown.get_by_text("Updating")).to_have_count(0)
    assert len(asked) < len(QUESTION) / 2
    assert asked.count(QUESTION) == 1

    shown.get_by_text("As a table").click()
    rows = shown.get_by_role("row")
    expect(rows.nth(0)).to_have_text(re.compile(r"Part\s*Tokens\s*Of the window"))
    expect(rows.last).to_contain_text("Kept for the answer")

    message(page).fill("And @reference:albums?")
    expect(selected.get_by_role("listitem").first).to_contain_text(re.compile(r"albums\s*Manual"))
    place.model.says("Albums hold photos.")
    message(page).press("Enter")
    expect(page.get_by_text("Albums hold photos.")).to_be_visible()
    expect(shown.get_by_role("button", name="This answer")).to_have_attribute("aria-pressed", "true")
    shown.get_by_role("button", name="Next message").click()
    expect(shown.get_by_role("heading", name="Before the next message")).to_be_visible()
    expect(bar).to_have_attribute("aria-label", re.compile(r"History \d+; room left"))
    expect(group(shown, "References").get_by_role("button", name="Remove albums")).to_be_visible()


def test_a_preview_that_fails_or_is_outdated_is_never_in_the_way(desktop: Sight, place: Place) -> None:
    session = place.new_session("Failing preview", desk.AGENT)
    page = desktop.page
    held: list[Route] = []
    page.route(
        "**/preview?*",
        lambda route: held.append(route) if "photos" in drafted(route) else route.continue_(),
    )
    desktop.goto(f"/s/{session}")
    shown = panel(desktop)
    expect(shown.get_by_role("img", name=re.compile("room left"))).to_be_visible()
    with page.expect_request("**/preview?*"):
        message(page).fill("How are photos named?")
    expect(shown.get_by_text("Updating")).to_be_attached()
    message(page).fill("How does Gouda cheese ripen?")
    expect(shown.get_by_label("Would be selected").get_by_role("listitem").first).to_contain_text("cheese")
    expect(message(page)).to_have_value("How does Gouda cheese ripen?")

    page.unroute_all(behavior="ignoreErrors")
    page.route("**/preview?*", lambda route: route.fulfill(status=500, body="broken"))
    message(page).fill("And then?")
    expect(shown.get_by_text("The server answered 500.")).to_be_visible()
    expect(shown.get_by_label("Would be selected")).to_have_count(0)
    expect(shown.get_by_role("heading", name="Last known")).to_be_visible()
    desktop.shoot("panel-failed")
    # When the server can answer again, the panel finds out by itself.
    page.unroute_all(behavior="ignoreErrors")
    expect(shown.get_by_text("The server answered 500.")).to_have_count(0)
    expect(shown.get_by_role("heading", name="With this message")).to_be_visible()
    desktop.expected.append("500")


def test_the_panel_follows_the_agents_files_and_says_when_a_tool_server_is_starting(
    desktop: Sight, place: Place
) -> None:
    session = desk.at_desk(place, "Following")
    desktop.goto(f"/s/{session}")
    shown = panel(desktop)
    rules, tools = group(shown, "Rules"), group(shown, "Tools")
    tool = tools.get_by_role("listitem").filter(has_text="list_notes")
    expect(tool).to_contain_text(re.compile(r"List the names of all notes.*\d+ tokens", re.DOTALL))
    place.write("rules/house-style.md", desk.item("always 1 How to write letters|Write plainly."), desk.AGENT)
    place.write("rules/greeting.md", desk.item("manual 2 How to greet|Say hello."), desk.AGENT)
    expect(rules.get_by_role("listitem").filter(has_text="house-style")).to_contain_text("How to write letters")
    expect(rules.get_by_text("4 more could be added")).to_be_visible()

    gate = place.folder / "gate"
    place.write("agent.yaml", desk.settings(place, gate), desk.AGENT)
    expect(tool).to_contain_text("Its server is starting")
    desktop.shoot("panel-starting")
    gate.touch()
    expect(tool).to_contain_text("List the names of all notes")
    expect(tool).not_to_contain_text("Its server is starting")
    (place.folder / "agents" / desk.AGENT / "rules" / "greeting.md").unlink()
    expect(rules.get_by_text("3 more could be added")).to_be_visible()


@pytest.mark.spec("S1.83")
def test_the_panel_has_three_columns_where_there_is_room(desktop: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Columns")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    panel(desktop).get_by_role("button", name="Columns").click()
    view = page.get_by_role("dialog", name="Context of this session")
    expect(view.get_by_role("img", name=re.compile("room left"))).to_be_visible()

    def rows_and_columns() -> tuple[int, int]:
        boxes = [group(view, title).bounding_box() for title in ("Rules", "References", "Tools")]
        return len({round(box["y"]) for box in boxes if box}), len({round(box["x"]) for box in boxes if box})

    desktop.await_value(rows_and_columns, (1, 3))
    expect(group(view, "Tools").get_by_role("listitem").first).to_contain_text(re.compile(r"notes\.\s*•\s*list_notes"))
    desktop.shoot("panel-columns")
    desktop.check_access()


def test_a_draft_tells_what_stays_in_the_prompt_from_earlier_turns(desktop: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Staying")
    place.ask(session, "How are photos uploaded, how large may they be and how are they named?", "With the button.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    page.get_by_role("textbox", name="Message", exact=True).fill("How does Gouda cheese ripen in a cellar?")
    shown = panel(desktop)
    shown.get_by_text("1 from earlier turns stays in the prompt").click()
    stays = shown.get_by_role("list", name="From earlier turns").get_by_role("listitem")
    expect(stays).to_contain_text("photo-rights")
    expect(stays).to_contain_text("Here since turn 1")
    expect(shown.get_by_text("would be left out")).to_have_count(0)
