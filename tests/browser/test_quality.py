from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from browser.long_session import long_session
from browser.place import Place, tool_call
from browser.sight import Sight

LONG = 1200
SCRIPT_BYTES = 60_000
SESSION_BYTES = 140_000
FOCUSED = """() => {
  const element = document.activeElement, style = getComputedStyle(element)
  const box = element.closest('form') ?? element
  const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0
  return ring || getComputedStyle(box).boxShadow !== 'none'
}"""


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def test_the_first_load_takes_less_than_60_kb_of_script(desktop: Sight) -> None:
    sizes = scripts_of(desktop, "/")
    assert len(sizes) > 1
    assert sum(sizes.values()) < SCRIPT_BYTES, sizes


def test_a_conversation_with_its_panel_takes_less_than_140_kb_of_script(desktop: Sight, place: Place) -> None:
    session = place.new_session("Photos")
    place.ask(session, "How are photos uploaded?", "With the **button** at the top.")
    sizes = scripts_of(desktop, f"/s/{session}")
    expect(desktop.page.get_by_role("row", name="Together")).to_be_visible()
    assert sum(sizes.values()) < SESSION_BYTES, sizes


def scripts_of(sight: Sight, path: str) -> dict[str, int]:
    """Open an address and return the scripts that came, with their sizes as they were sent."""
    page = sight.page
    scripts: list[Request] = []

    def finished(request: Request) -> None:
        if request.resource_type == "script":
            scripts.append(request)

    page.on("requestfinished", finished)
    sight.goto(path)
    expect(field(page)).to_be_visible()
    page.wait_for_load_state("networkidle")
    return {urlsplit(request.url).path: request.sizes()["responseBodySize"] for request in scripts}


@pytest.mark.spec("S2.43")
def test_more_than_a_thousand_messages_are_read_to_the_first_one_while_the_footer_stays(
    desktop: Sight, place: Place
) -> None:
    session = long_session(place, LONG)
    place.call("PATCH", f"/api/sessions/{session}", {"context": {"files": ["/srv/albums.md"]}})
    page = desktop.page
    desktop.goto(f"/s/{session}")
    messages, box = page.locator(".message"), page.locator(".scroll").first
    footer = page.locator("#contextFooter")
    expect(page.get_by_text(f"Where is photo {LONG - 2}?")).to_be_in_viewport()
    expect(footer.get_by_role("link", name="albums.md")).to_be_in_viewport()
    below = footer.bounding_box()

    while (count := messages.count()) < LONG:
        # Somebody who reads stays where they are when earlier messages come in above.
        box.evaluate("box => box.scrollTo(0, 300)")
        page.wait_for_function("count => document.querySelectorAll('.message').length > count", arg=count)

    assert page.evaluate(
        "[...document.querySelectorAll('.message .user')].map(one => one.textContent.match(/\\d+/)[0])"
    ) == [str(number) for number in range(0, LONG, 2)]
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)
    box.evaluate("box => box.scrollTo(0, 0)")
    expect(page.get_by_text("Where is photo 0?", exact=True)).to_be_in_viewport()
    desktop.await_value(footer.bounding_box, below)
    page.get_by_role("button", name="Go to the newest message").click()
    expect(page.get_by_text(f"Where is photo {LONG - 2}?")).to_be_in_viewport()
    desktop.await_value(footer.bounding_box, below)

    # Writing costs what it costs in a short session: it touches nothing of what was said.
    page.evaluate(
        """() => {
            touched = 0
            const said = document.querySelector('[role=log]')
            const all = { subtree: true, childList: true, attributes: true, characterData: true }
            new MutationObserver((found) => (touched += found.length)).observe(said, all)
        }"""
    )
    field(page).press_sequentially("Where are the photos of the summer?")
    expect(page.get_by_role("complementary", name="Context").get_by_text("photo-upload").first).to_be_visible()
    assert page.evaluate("touched") == 0


def test_two_tabs_of_one_browser_agree(desktop: Sight, place: Place) -> None:
    session = place.new_session("Twins")
    one, other = desktop.page, desktop.page.context.new_page()
    desktop.goto(f"/s/{session}")
    other.goto(f"{desktop.url}/s/{session}")
    expect(field(other)).to_be_visible()
    place.model.says("Let me write.", calls=(tool_call("call_1", "notes__write_note", name="a", text="b"),))
    field(one).fill("Write it down")
    field(one).press("Enter")
    for page in (one, other):
        expect(page.get_by_role("group", name="notes.write_note")).to_be_visible()
    place.model.says("It is written.")
    other.get_by_role("button", name="Allow once").click()
    for page in (one, other):
        expect(page.get_by_text("It is written.")).to_be_visible()
        expect(page.get_by_role("log").get_by_text("Write it down")).to_have_count(1)
        expect(page.get_by_role("group", name="notes.write_note")).to_have_count(0)

    other.get_by_role("button", name="More about Twins").click()
    other.get_by_role("menuitem", name="Rename").click()
    other.get_by_role("textbox", name="Name of the session").fill("Alike")
    other.keyboard.press("Enter")
    for page in (one, other):
        expect(page.get_by_role("heading", level=1)).to_have_text("Alike")
        expect(
            page.get_by_role("navigation", name="Sessions").get_by_role("link", name=re.compile("^Alike"))
        ).to_be_visible()
    other.close()


def test_a_theme_that_was_chosen_is_kept(desktop: Sight) -> None:
    page = desktop.page
    ground = "getComputedStyle(document.body).backgroundColor"
    desktop.goto("/")
    page.get_by_role("button", name="Theme").click()
    light = page.evaluate(ground)
    page.get_by_role("menuitemradio", name="Dark").click()
    page.wait_for_function(f"light => {ground} !== light", arg=light)
    dark = page.evaluate(ground)
    desktop.goto("/agents")
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    assert page.evaluate(ground) == dark != light
    page.get_by_role("button", name="Theme").click()
    expect(page.get_by_role("menuitemradio", name="Dark")).to_be_checked()
    page.get_by_role("menuitemradio", name="System").click()
    page.wait_for_function(f"light => {ground} === light", arg=light)


def test_everything_is_reached_by_keyboard_and_one_sees_where_one_is(desktop: Sight, place: Place) -> None:
    page = desktop.page

    def tab_to(target: Locator) -> None:
        for _ in range(200):
            page.keyboard.press("Tab")
            if target.evaluate("element => element === document.activeElement"):
                assert page.evaluate(FOCUSED), target
                return
        raise AssertionError(f"Tab does not lead to {target}")

    desktop.goto("/agents")
    tab_to(page.get_by_role("link", name="New session", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    agents, pane = page.get_by_role("radio"), page.get_by_role("radio", name=re.compile("^pane "))
    expect(pane).to_be_attached()
    tab_to(agents.and_(page.locator(":checked")))
    for _ in range(agents.count()):
        if not pane.is_checked():
            page.keyboard.press("ArrowDown")
    expect(pane).to_be_checked()
    tab_to(field(page))
    place.model.says("Let me write.", calls=(tool_call("call_1", "notes__write_note", name="k", text="b"),))
    page.keyboard.type("Write it down")
    page.keyboard.press("Enter")

    allow = page.get_by_role("button", name="Allow once")
    expect(allow).to_be_visible()
    place.model.says("It is written.")
    tab_to(allow)
    page.keyboard.press("Enter")
    expect(page.get_by_text("It is written.")).to_be_visible()
    tab_to(page.get_by_role("link", name="View Context"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=re.compile("Context of turn 1"))
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/s/ses_\w+$"))


def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline(place: Place) -> None:
    policy = dict(
        directive.strip().split(" ", 1)
        for directive in place.client.get("/").headers["content-security-policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "connect-src", "font-src")} == {"'self'"}
    assert policy["frame-ancestors"] == "'none'"
