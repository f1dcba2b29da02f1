"""Agents are created, copied and renamed on the page; a session whose agent went away is given another one."""

from __future__ import annotations

import re
import shutil

from playwright.sync_api import expect

from browser.place import Place
from browser.sight import Sight


def test_agents_are_created_copied_and_renamed_and_a_session_that_lost_its_agent_gets_another(
    sight: Sight, place: Place
) -> None:
    folder, page = place.folder / "agents", sight.page
    made, copy, renamed = [f"{name}-{sight.screen}" for name in ("helper", "twin", "other")]
    try:
        sight.goto("/agents")
        page.get_by_role("button", name="New agent").click()
        page.get_by_label("Name", exact=True).fill("no/such")
        page.get_by_role("button", name="Create", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("'no/such' cannot be the name of an agent")
        page.get_by_label("Name", exact=True).fill(made)
        page.get_by_label("What it is for").fill("Helps with tests.")
        sight.check_access()
        page.get_by_role("button", name="Create", exact=True).click()
        expect(page).to_have_url(re.compile(f"/agents/{made}$"))
        expect(page.get_by_text("Helps with tests.")).to_be_visible()

        place.write("rules/tone.md", "---\ninclude: always\n---\nBe kind.\n", agent=made)
        page.get_by_role("button", name=f"Copy {made}").click()
        page.get_by_label("Name", exact=True).fill(copy)
        page.get_by_role("button", name="Copy", exact=True).click()
        expect(page).to_have_url(re.compile(f"/agents/{copy}$"))
        expect(page.get_by_role("link", name="tone", exact=True)).to_be_visible()

        session = place.new_session("Orphan", copy)
        place.call("POST", f"/api/sessions/{session}/messages", {"content": "Before"})
        page.get_by_role("button", name=f"Rename {copy}").click()
        page.get_by_label("Name", exact=True).fill(renamed)
        page.get_by_role("button", name="Rename", exact=True).click()
        expect(page).to_have_url(re.compile(f"/agents/{renamed}$"))
        assert [(folder / name).exists() for name in (made, copy, renamed)] == [True, False, True]

        sight.goto(f"/s/{session}")
        orphan = page.get_by_role("form", name="Choose another agent")
        expect(orphan).to_contain_text(f"The agent {copy} is not there any more")
        sight.shoot("orphan")
        sight.check_access()
        orphan.get_by_label("Agent").select_option(renamed)
        orphan.get_by_role("button", name="Give it to this session").click()
        expect(orphan).to_be_hidden()
        page.get_by_role("textbox", name="Message", exact=True).fill("After")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="View Context")).to_have_count(2)
        found = place.call("GET", f"/api/sessions/{session}")
        assert (found["agent"], found["turn_count"]) == (renamed, 2)
        sight.expected += ["404", "422"]
        sight.check()
    finally:
        for name in (made, copy, renamed):
            shutil.rmtree(folder / name, ignore_errors=True)


def test_each_item_of_an_agent_tells_its_tokens_and_how_often_it_was_sent_and_used(
    desktop: Sight, place: Place
) -> None:
    session = place.new_session("Counted")
    place.ask(session, "How do I sound?", "Be kind and brief.")
    page = desktop.page
    desktop.await_value(lambda: place.call("GET", "/api/analytics")["behind"], 0)
    desktop.goto("/agents/pane")
    line = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="tone", exact=True))
    expect(line).to_contain_text(re.compile(r"\d+ tokens"))
    expect(line).to_contain_text(re.compile(r"sent (once|\d+ times), (probably used|used|no trace of use)"))


def test_a_session_is_begun_from_the_page_of_its_agent(desktop: Sight) -> None:
    page = desktop.page
    for agent in ("pane", "guide"):
        desktop.goto(f"/agents/{agent}")
        page.get_by_role("main").get_by_role("link", name="New session", exact=True).click()
        expect(page.get_by_role("radio", name=re.compile(f"^{agent} "))).to_be_checked()
