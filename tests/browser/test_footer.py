from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from browser.place import Place
from browser.sight import Sight

HOSTILE = "/srv/<img src=x onerror=alert(1)>"


@pytest.mark.spec("S2.41", "S2.42", "S2.44", "S2.48", "S2.49", "S2.51", "S2.52", "S2.55", "S2.56", "S2.57", "S2.58")
@pytest.mark.spec("S2.59", "S2.60", "S2.61", "S2.90")
def test_the_footer_shows_what_the_session_works_on_as_it_changes(phone: Sight, place: Place) -> None:
    session = place.new_session("Footer")
    page = phone.page
    phone.goto(f"/s/{session}")
    footer = page.locator("#contextFooter")
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    expect(footer).to_be_hidden()

    files = [HOSTILE, *(f"/srv/docs/{name}.md" for name in "bcdefg")]
    context = {"files": files, "applet": ["git-diff", "repo=/srv/a b"], "ports": ["80"]}
    place.call("PATCH", f"/api/sessions/{session}", {"context": context})
    expect(footer).to_be_visible()
    links = footer.get_by_role("link")
    expect(links).to_have_text(["<img src=x onerror=alert(1)>", "b.md", "c.md", "d.md", "e.md", "[git-diff]"])
    expect(links.nth(1)).to_have_attribute("title", "/srv/docs/b.md")
    expect(links.nth(1)).to_have_attribute("href", "/?applet=text-editor&path=%2Fsrv%2Fdocs%2Fb.md")
    expect(footer.get_by_text("+2 more")).to_have_attribute("title", "/srv/docs/f.md\n/srv/docs/g.md")
    expect(links.nth(5)).to_have_attribute("href", re.compile(r"applet=git-diff&repo=%2Fsrv%2Fa(%20|\+)b$"))
    expect(page.get_by_text("b.md")).to_have_count(1)
    assert not page.url.endswith("git-diff")
    writing = page.get_by_role("textbox", name="Message")

    def one_line_below() -> bool:
        box, above = footer.bounding_box(), writing.bounding_box()
        return box is not None and above is not None and box["y"] > above["y"] and box["height"] < 40

    phone.await_value(one_line_below, True)
    phone.shoot("footer")

    place.call("PATCH", f"/api/sessions/{session}", {"context": None})
    expect(footer).to_be_hidden()


@pytest.mark.spec("S2.43", "S2.45", "S2.46", "S2.47", "S2.54")
def test_the_footer_is_never_that_of_another_session(desktop: Sight, place: Place) -> None:
    full, empty = place.new_session("With files"), place.new_session("Without files")
    place.call("PATCH", f"/api/sessions/{full}", {"context": {"files": ["/srv/spec.md"]}})
    page = desktop.page
    footer = page.locator("#contextFooter")
    desktop.goto(f"/s/{full}")
    expect(footer.get_by_role("link", name="spec.md")).to_be_visible()

    page.route("**/api/sessions/*/messages*", lambda route: None)
    page.get_by_role("link", name=re.compile("^Without files")).click()
    expect(page.get_by_text("Opening the session")).to_be_visible()
    expect(footer).to_be_hidden()
    page.unroute_all(behavior="ignoreErrors")

    page.get_by_role("link", name="New session", exact=True).first.click()
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    expect(footer).to_have_count(0)
    page.get_by_role("link", name=re.compile("^With files")).click()
    expect(footer.get_by_role("link", name="spec.md")).to_be_visible()
    assert empty


@pytest.mark.spec("S2.50", "S2.53")
def test_the_footer_is_one_line_of_links_that_ends_in_an_ellipsis(desktop: Sight, place: Place) -> None:
    session = place.new_session("One line")
    context = {"files": ["/srv/spec.md", "/srv/notes.md"], "applet": ["git-diff", "path=/srv"]}
    desktop.goto(f"/s/{session}")
    footer = desktop.page.locator("#contextFooter")
    expect(footer).to_have_css("display", "none")

    place.call("PATCH", f"/api/sessions/{session}", {"context": context})

    expect(footer).to_have_class(re.compile(r"\bcontext-footer\b.*\bhas-context\b"))
    for name, value in (
        ("display", "block"),
        ("white-space", "nowrap"),
        ("overflow", "hidden"),
        ("text-overflow", "ellipsis"),
    ):
        expect(footer).to_have_css(name, value)
    expect(footer.locator(".context-icon svg")).to_have_count(1)
    expect(footer.locator(".context-links a")).to_have_text(["spec.md", "notes.md", "[git-diff]"])
    expect(footer.locator(".context-sep")).to_have_text(["·", "·"])
    expect(footer.locator(".context-sep").first).to_have_css("opacity", "0.5")
    expect(footer.locator("a.context-applet")).to_have_css("font-style", "italic")
