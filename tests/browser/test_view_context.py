from __future__ import annotations

import json
import re
from collections.abc import Generator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from browser import desk
from browser.place import Place, tool_call
from browser.sight import Sight

SUMMARY = "5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"
RULES = ["authentication-rules", "house-style", "photo-size", "photo-names", "photo-rights"]
CHEESE = "How does Gouda cheese ripen in a cellar?"
QUESTION = "How are photos uploaded, how large may they be and how are they named?"


@pytest.fixture(autouse=True)
def _desk(place: Place) -> Generator[None]:
    desk.write_desk(place)
    yield
    desk.write_desk(place)


def column(page: Page, title: str) -> Locator:
    return page.locator("details", has=page.get_by_role("heading", name=re.compile(rf"^{title} \(\d+\):$"), level=4))


def section(page: Page, title: str) -> Locator:
    """Return a section of the view, opened."""
    view = page.get_by_role("dialog")
    heading = view.get_by_role("heading", name=title, exact=True, level=3)
    found = view.locator("details", has=page.get_by_role("heading", name=title, exact=True, level=3))
    if found.get_attribute("open") is None:
        heading.click()
    return found


@pytest.mark.spec("S0.77-S0.85", "S1.79-S1.81", "S1.83-S1.95", "S1.97")
def test_an_answer_shows_what_its_model_was_given(sight: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Seeing through")
    place.ask(session, QUESTION, "With the button.")
    page = sight.page
    sight.goto(f"/s/{session}")
    held: list[Route] = []
    expect(page.get_by_role("link", name="View Context")).to_be_visible()
    if not sight.narrow:
        expect(page.get_by_role("row", name=re.compile("^Together"))).to_be_visible()
    page.route("**/turns/1/context", lambda route: held.append(route))
    page.get_by_role("link", name="View Context").click()
    view = page.get_by_role("dialog", name="Context of turn 1")
    expect(view.get_by_text("Loading the context")).to_be_visible()
    sight.await_value(lambda: len(held), 1)
    held[0].continue_()
    expect(view.get_by_role("heading", name="Context Used:")).to_be_visible()
    expect(view.get_by_text(SUMMARY, exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/s/{session}/t/1$"))
    sight.shoot("view-context")

    rules, references, tools = (column(page, title) for title in ("Rules", "References", "Tools"))
    expect(rules.get_by_role("heading")).to_have_text("Rules (5):")
    expect(rules.get_by_role("link")).to_have_text(RULES)
    first = rules.get_by_role("listitem").first
    expect(first).to_have_text(
        re.compile(r"^001\s*•\s*authentication-rules\s*Always\s*Who may do what\s*\d+ tokens\s*$")
    )
    expect(first.get_by_role("link")).to_have_attribute("title", "Who may do what")
    expect(rules.get_by_role("listitem").nth(2)).to_contain_text(re.compile(r"003\s*•\s*photo-size\s*Agent - 0\.\d\d"))
    expect(references.get_by_role("listitem").first).to_contain_text(re.compile(r"050\s*•\s*albums\s*Manual"))
    expect(references.get_by_role("listitem").nth(1)).to_contain_text(
        re.compile(r"100\s*•\s*photo-upload\s*Agent - 0\.")
    )
    expect(tools.get_by_role("link")).to_have_text(["list_notes", "read_note", "search_notes"])
    expect(tools.get_by_role("listitem").first).to_contain_text(re.compile(r"notes\.\s*•\s*list_notes\s*Manual"))
    colours = {
        mode: first_badge(page, mode).evaluate("badge => getComputedStyle(badge).backgroundColor")
        for mode in ("always", "manual", "agent")
    }
    assert len(set(colours.values())) == 3
    for name in ("Add", "Remove", "Manage"):
        expect(view.get_by_role("button", name=re.compile(f"^{name}"))).to_have_count(0)

    def rows_and_columns() -> tuple[int, int]:
        boxes = [found.bounding_box() for found in (rules, references, tools)]
        return len({round(box["y"]) for box in boxes if box}), len({round(box["x"]) for box in boxes if box})

    sight.await_value(rows_and_columns, (3, 1) if sight.narrow else (1, 3))

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as text").click()
    expect(page.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith(f"Context Used: {SUMMARY}\n\nRules (5):\n• authentication-rules [Always]\n")
    assert "\n\nTools (3):\n• notes:list_notes [Manual]\n" in text

    rules.locator("summary").click()
    expect(rules.get_by_role("link").first).to_be_hidden()
    page.keyboard.press("Escape")
    expect(view).to_have_count(0)
    expect(page).to_have_url(re.compile(rf"/s/{session}$"))
    place.model.says("You are welcome.")
    page.get_by_role("textbox", name="Message", exact=True).fill("Thanks")
    page.keyboard.press("Enter")
    expect(page.get_by_text("You are welcome.")).to_be_visible()
    expect(page.get_by_role("link", name="View Context")).to_have_count(2)


def first_badge(page: Page, mode: str) -> Locator:
    return page.get_by_role("dialog").locator(f".badge.{mode}").first


@pytest.mark.spec("S0.83", "S1.88")
def test_an_item_of_a_turn_is_shown_as_it_was_with_what_became_of_it(desktop: Sight, place: Place) -> None:
    session = desk.at_desk(place, "As it was")
    place.ask(session, QUESTION, "With the button.")
    page = desktop.page
    place.write("rules/house-style.md", desk.item("always 1 How to write|Write in verse."), desk.AGENT)
    gone = place.folder / "agents" / desk.AGENT / "rules" / "photo-size.md"
    gone.unlink()
    waited = f"/api/sessions/{session}/turns/1/items/rule/photo-size"
    desktop.goto("/agents")
    page.wait_for_function(
        "path => fetch(path).then(answer => answer.json()).then(item => item.changed_since === 'deleted')",
        arg=waited,
        polling=250,
    )
    desktop.goto(f"/s/{session}/t/1")
    rules = column(page, "Rules")
    expect(rules.get_by_role("listitem").nth(1)).to_contain_text("Edited since this turn")
    expect(rules.get_by_role("listitem").nth(2)).to_contain_text("How large uploaded photos may be")
    expect(rules.get_by_role("listitem").nth(2)).to_contain_text("Deleted since this turn")
    expect(rules.get_by_role("listitem").nth(0)).not_to_contain_text("since")
    desktop.shoot("view-context-since")

    rules.get_by_role("link", name="house-style").click()
    expect(page).to_have_url(re.compile(rf"/s/{session}/t/1/items/rule/house-style$"))
    expect(page.get_by_label("Text sent")).to_contain_text("Write plainly.")
    expect(page.get_by_role("dialog")).to_contain_text("Edited since this turn")
    page.get_by_role("button", name="Show the current text").click()
    expect(page.get_by_label("Current text")).to_contain_text("Write in verse.")
    desktop.shoot("item-changed")

    desktop.goto(f"/s/{session}/t/1/items/rule/photo-size")
    expect(page.get_by_label("Text sent")).to_contain_text("at most 20 MB")
    expect(page.get_by_role("dialog")).to_contain_text("Deleted since this turn")
    expect(page.get_by_role("dialog")).to_contain_text("What would have left it out")
    expect(page.get_by_role("link", name="Open it in the agent")).to_have_count(0)

    desktop.goto(f"/s/{session}/t/1/items/tool/list_notes?server=notes")
    expect(page.get_by_label("Definition sent")).to_contain_text("List the names of all notes")
    desktop.goto(f"/s/{session}/t/1/items/reference/cheese")
    expect(page.get_by_role("dialog")).to_contain_text("Not sent to the model in turn 1")
    expect(page.get_by_role("dialog")).to_contain_text("What would have included it")
    desktop.shoot("item-left-out")
    page.get_by_role("link", name="All of turn 1").click()
    expect(page.get_by_text("Context Used:")).to_be_visible()
    desktop.goto(f"/s/{session}/t/1/items/rule/never-was")
    expect(page.get_by_text("This item cannot be shown")).to_be_visible()
    desktop.expected.append("404")


def test_a_turn_tells_its_parts_what_was_left_out_what_differs_and_what_could_have_been(
    phone: Sight, place: Place
) -> None:
    session = desk.at_desk(place, "Looking back")
    place.ask(session, QUESTION, "With the button.")
    place.call("DELETE", f"/api/sessions/{session}/items/reference/albums")
    place.ask(session, CHEESE, "Slowly.")
    page = phone.page
    phone.goto(f"/s/{session}/t/2")
    parts = section(page, "Parts and tokens")
    bar = parts.get_by_role("img")
    expect(bar).to_have_attribute("aria-label", re.compile(r"of 128,000 tokens: System \d+, Rules \d+, References \d+"))
    parts.get_by_text("As a table").click()
    expect(parts.get_by_role("row", name=re.compile("^History"))).to_be_visible()
    expect(parts.get_by_role("row", name=re.compile("^Room left 12\\d,\\d+"))).to_be_visible()
    parts.get_by_text("parts in the order of the prompt").click()
    expect(parts.get_by_role("row", name=re.compile("^message"))).to_be_visible()

    differs = section(page, "What differs from turn 1")
    expect(differs).to_contain_text(re.compile(r"Entered\s*cheese"))
    expect(differs).to_contain_text(re.compile(r"Left\s*albums"))
    expect(differs).to_contain_text("tokens are the same")
    phone.shoot("view-context-compare")

    out = section(page, "Not included")
    albums = out.get_by_role("listitem").filter(has=page.get_by_role("link", name="albums"))
    expect(albums).to_contain_text("never in this session: it was removed by hand")
    expect(albums).to_contain_text("add it by hand")
    expect(albums.locator(".badge")).to_have_class(re.compile(r"\bout\b"))
    # What came in with the first message and is not selected for this one still stands in the conversation.
    expect(out.get_by_role("listitem").filter(has_text="(at most 4)")).to_have_count(0)
    page.get_by_role("heading", name="From earlier turns (1):").click()
    earlier = page.get_by_role("list", name="From earlier turns (1):").get_by_role("listitem")
    expect(earlier).to_contain_text("photo-rights")
    expect(earlier).to_contain_text("Here since turn 1: good match")
    phone.shoot("view-context-earlier")
    phone.check_access("dialog")
    sent = section(page, "Everything sent").get_by_role("row", name=re.compile("^photo-rights"))
    expect(sent).to_contain_text("since turn 1")
    earlier.get_by_role("link", name="photo-rights").click()
    expect(page.get_by_role("dialog")).to_contain_text("Sent to the model in turn 2, since turn 1")
    expect(page.get_by_role("dialog")).to_contain_text("for this message: score 0.")
    expect(page.get_by_label("Text sent")).to_contain_text("Only upload photos that you took yourself.")
    page.get_by_role("link", name="All of turn 2").click()

    page.get_by_role("link", name="Context of turn 1").click()
    expect(page).to_have_url(re.compile(r"/t/1$"))
    expect(page.get_by_text(SUMMARY)).to_be_visible()
    left = out.get_by_role("listitem").filter(has_text="(at most 4)").first
    left.get_by_text("What would have included it").click()
    left.scroll_into_view_if_needed()
    phone.shoot("view-context-left-out")
    left.get_by_role("button", name=re.compile("^Try top_n")).click()
    what_if = section(page, "What if")
    expect(what_if.get_by_role("spinbutton", name=re.compile("^At most"))).to_have_value("5")
    expect(what_if.get_by_role("status")).to_contain_text("1 would have been added.")
    what_if.get_by_role("button", name="As it was").click()
    expect(what_if.get_by_role("textbox", name="Message")).to_have_value(QUESTION)
    what_if.get_by_role("textbox", name="Message").fill(CHEESE)
    what_if.get_by_role("spinbutton", name=re.compile("^At most")).fill("1")
    what_if.get_by_role("button", name="Run the selection again").click()
    expect(what_if.get_by_role("status")).to_contain_text("Scores were computed again.")
    expect(what_if.get_by_label("Outcome").get_by_role("listitem").filter(has_text="photo-upload")).to_contain_text(
        "Removed"
    )
    what_if.get_by_label("Outcome").scroll_into_view_if_needed()
    phone.shoot("view-context-what-if")

    kept = section(page, "Context test")
    kept.get_by_role("textbox", name="Name").fill("Photos")
    kept.get_by_role("button", name="Make a context test of this turn").click()
    expect(kept.get_by_label(re.compile("^Context test"))).to_contain_text("reference:photo-upload")


def test_every_call_of_a_turn_is_shown_as_built_and_as_sent(desktop: Sight, place: Place) -> None:
    session = desk.at_desk(place, "Calling")
    place.model.says("Let me look.", calls=(tool_call("call_1", "notes__list_notes"),), tokens=(1761, 32, 1024))
    place.ask(session, "What is in my notes? 👋", "One note.", tokens=(2140, 7, 0))
    page = desktop.page
    desktop.goto(f"/s/{session}/t/1")
    calls = section(page, "Steps")
    expect(calls.get_by_text("2 calls · 3,901 tokens in, 39 out · cost unknown")).to_be_visible()
    expect(calls.get_by_role("listitem").nth(1)).to_contain_text(re.compile(r"notes\.list_notes\s*tool\s*\d+ ms"))
    expect(page.get_by_role("button", name=re.compile("^3,901 tokens in 2 calls"))).to_be_attached()
    strip = calls.get_by_role("list", name="Calls").get_by_role("button")
    time = r"[\d.]+ m?s · cost unknown"
    expect(strip).to_have_text(
        [
            re.compile(rf"^\s*1 · answer, step 1\s*1,761 in \(1,024 cached\), 32 out\s*{time}\s*$"),
            re.compile(rf"^\s*2 · answer, step 2\s*2,140 in, 7 out\s*{time}\s*$"),
        ]
    )

    strip.nth(1).click()
    one = calls.get_by_role("region", name="Call 2")
    expect(one).to_contain_text(re.compile(r"2 messages added to step 1, \d+ tokens"))
    added = one.get_by_role("list", name="New messages").get_by_role("listitem")
    expect(added).to_have_count(2)
    expect(added.first).to_contain_text("Let me look.")
    expect(added.nth(1).locator("summary")).to_contain_text(re.compile(r"result of notes__list_notes\s*\d+ tokens"))
    expect(added.nth(1).locator("pre")).to_contain_text("welcome")
    added.last.scroll_into_view_if_needed()
    desktop.shoot("calls-as-built")

    one.get_by_role("button", name="As sent", exact=True).click()
    body = one.get_by_label("Body as sent")
    assert json.loads(body.text_content() or "") == place.model.asked[-1]
    assert body.evaluate("box => box.scrollWidth <= box.clientWidth")
    expect(body.locator(".message", has_text="What is in my notes? 👋")).to_be_visible()
    one.get_by_text(re.compile(r"^\d+ owners; choose one")).click()
    one.get_by_role("list", name="Owners", exact=True).get_by_role("button", name="Item: rule:house-style").click()
    expect(body.locator(".chosen")).to_have_text("Write plainly.")
    desktop.shoot("calls-as-sent")

    one.get_by_role("button", name=re.compile(r"^Changes \(\d+\)$")).click()
    expect(one.get_by_role("row", name=re.compile(r"^stream\s*setting of the protocol nothing true"))).to_be_visible()
    desktop.shoot("calls-changes")


def test_a_call_to_the_built_in_model_is_free_with_our_own_count_and_nothing_sent(desktop: Sight, place: Place) -> None:
    session = place.new_session("Built in", model="echo")
    place.call("POST", f"/api/sessions/{session}/messages", {"content": "What were you given?"})
    page = desktop.page
    desktop.goto(f"/s/{session}")
    expect(page.get_by_role("button", name=re.compile(r"^[\d,]+ tokens · free · "))).to_be_visible()
    desktop.goto(f"/s/{session}/t/1")
    calls = section(page, "Steps")
    expect(calls.get_by_text(re.compile(r"^1 call in this process · [\d,]+ in, our count · free$"))).to_be_visible()
    call = calls.get_by_role("list", name="Calls").get_by_role("button")
    expect(call).to_have_text(
        re.compile(
            r"^\s*1 · answer, step 1\s*[\d,]+ in, our count\s*[\d.]+ m?s · free\s*in this process, nothing was sent\s*$"
        )
    )
    call.click()
    calls.get_by_role("button", name="As sent", exact=True).click()
    expect(calls.get_by_text("Its model runs in this process: nothing was sent.")).to_be_visible()
    desktop.shoot("calls-built-in")


def test_a_section_that_was_opened_stays_open_from_turn_to_turn_and_while_an_answer_goes_on(
    desktop: Sight, place: Place
) -> None:
    session = place.new_session("Sections")
    place.ask(session, "How are photos uploaded?", "With the button.")
    place.model.says("I will write that down.", calls=(tool_call("call_1", "notes__write_note", name="a", text="b"),))
    place.call("POST", f"/api/sessions/{session}/messages", {"content": "Note that down, please."})

    page = desktop.page
    desktop.goto(f"/s/{session}/t/2")
    view = page.get_by_role("dialog")
    steps = view.get_by_role("group").filter(has=page.get_by_role("heading", name="Steps", exact=True))
    expect(steps).to_have_attribute("open", "")
    view.get_by_role("heading", name="Everything sent", exact=True).click()
    view.get_by_role("heading", name="Steps", exact=True).click()
    expect(view.get_by_role("table", name="Everything that was sent")).to_be_visible()

    place.model.says("It is written down.")
    place.call("POST", f"/api/sessions/{session}/approvals", {"decisions": {"call_1": "allow_once"}})
    expect(page.get_by_text("It is written down.")).to_have_count(1)
    expect(view.get_by_role("table", name="Everything that was sent")).to_be_visible()
    view.get_by_role("link", name="Context of turn 1").click()
    expect(view.get_by_role("heading", name="Context of turn 1")).to_be_visible()
    expect(view.get_by_role("table", name="Everything that was sent")).to_be_visible()
    expect(steps).not_to_have_attribute("open", "")


@pytest.mark.spec("S0.86", "S0.87", "S1.81", "S1.96", "S1.97")
def test_an_answer_without_a_record_says_so(desktop: Sight, place: Place) -> None:
    session = place.new_session("Told elsewhere", desk.AGENT)
    place.call("POST", f"/api/sessions/{session}/messages/record", {"role": "user", "content": "Hello"})
    place.call("POST", f"/api/sessions/{session}/messages/record", {"role": "assistant", "content": "Hello yourself"})
    page = desktop.page
    desktop.goto(f"/s/{session}")
    expect(page.get_by_text("Hello yourself")).to_be_visible()
    expect(page.get_by_text("No context data available", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Details of this answer").click()
    expect(page.get_by_text("No context data available", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="View Context")).to_have_count(0)

    for rule in ("authentication-rules", "house-style"):
        place.call("DELETE", f"/api/sessions/{session}/items/rule/{rule}")
    place.ask(session, "Hello there", "Hello again")
    page.get_by_role("link", name="View Context").click()
    expect(page.get_by_role("dialog").get_by_text("no items", exact=True)).to_be_visible()
    expect(page.get_by_role("dialog").get_by_text("None", exact=True)).to_have_count(3)
    desktop.shoot("view-context-empty")

    desktop.goto(f"/s/{session}/t/7")
    expect(page.get_by_role("dialog").get_by_text("No context data available", exact=True)).to_be_visible()
    desktop.shoot("view-context-none")
    # The turn itself is asked for at the same time: what comes first is what the page says.
    page.route(re.compile(r"/turns/8(/context)?$"), lambda route: route.fulfill(status=500, body="broken"))
    desktop.goto(f"/s/{session}/t/8")
    expect(page.get_by_text("The context could not be loaded")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    desktop.expected += ["404", "500"]


def test_long_lines_of_what_was_sent_are_broken(sight: Sight, place: Place) -> None:
    text = "A very long line without an end. " * 12
    rule = place.write("rules/long.md", f"---\ninclude: always\ndescription: Long\n---\n{text}\n")
    session = place.new_session("Wrapping")
    place.ask(session, "Hello", "Hi")
    page = sight.page
    sight.goto(f"/s/{session}/t/1/items/rule/long")
    sent = page.get_by_label("Text sent").locator("pre")
    expect(sent).to_contain_text(text.strip())
    fits = "box => box.scrollWidth <= box.clientWidth"
    assert sent.evaluate(fits)
    sight.shoot("item-wrapped")

    sight.goto(f"/s/{session}/t/1/prompt")
    expect(page.get_by_role("region", name="The prompt")).to_be_in_viewport(ratio=0.5)
    sight.goto(f"/s/{session}/t/1/prompt/rules")
    prompt = page.get_by_role("region", name="The prompt")
    expect(prompt.get_by_text(text.strip())).to_be_visible()
    assert prompt.evaluate(fits)
    sight.shoot("exact-wrapped")
    rule.unlink()
