"""Every screen, once wide and dark and once on a phone and light: together they show each colour and each layout."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import cast

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser import desk
from browser.place import Place, tool_call
from browser.repository import repository
from browser.sight import Scheme, Screen, Sight, seeing

ANSWER = """Photos are **uploaded** in the album:

1. Open the album.
2. Press *Upload*.

```python
album.upload("cat.jpg", width=1200)  # resized on the way
```

| size | width |
|---|---|
| small | 600 |
| large | 2400 |
"""


@pytest.fixture(params=[("desktop", "dark"), ("phone", "light")], ids="-".join)
def looking(request: pytest.FixtureRequest, browser: Browser, place: Place) -> Generator[Sight]:
    """A window in which nothing may be blocked by the page's policy."""
    screen, scheme = request.param
    with seeing(browser, place.url, cast("Screen", screen), cast("Scheme", scheme)) as sight:
        sight.expected += ["404", "422"]
        sight.page.add_init_script(
            "blocked = []; addEventListener('securitypolicyviolation', event => blocked.push(event.violatedDirective))"
        )
        yield sight


def look(sight: Sight, name: str) -> None:
    """Fail when a rule for accessible pages is broken on what is shown, or the policy, or anything else."""
    sight.shoot(f"all-{name}")
    try:
        sight.check_access()
        sight.check()
        assert sight.page.evaluate("blocked") == []
    except AssertionError as error:
        raise AssertionError(f"{name}: {error}") from None


def test_no_screen_breaks_a_rule_of_access_or_of_the_policy(looking: Sight, place: Place) -> None:
    session = place.new_session("Everything")
    place.ask(
        session,
        "How are photos uploaded?",
        "With the button at the **top**, see [the guide](https://example.org/guide).",
    )
    files = repository(place.files / f"all-{looking.screen}")
    screens = {
        "new": ("/", "What would you like to know?"),
        "answer": (f"/s/{session}?applet=debug", "Headings and framing"),
        "editor": (f"/s/{session}?applet=text-editor&path={files}/notes.md", "Changes since the agent read it"),
        "git": (f"/s/{session}?applet=git-diff&path={files}", "5 files changed"),
        "no-session": ("/s/ses_missing", "There is no such session"),
        "agents": ("/agents", "Answers questions about photos"),
        "agent": ("/agents/pane", "List the names of all notes"),
        "no-agent": ("/agents/nobody", "The agent could not be read"),
        "rule": ("/agents/pane/rule/tone", "rules/tone.md"),
        "reference": ("/agents/pane/reference/photo-upload", "references/photo-upload.md"),
        "tool": ("/agents/pane/tool/list_notes?server=notes", "List the names of all notes"),
        "new-rule": ("/agents/pane/new/rule", "An instruction that the model must follow"),
        "settings": ("/agents/pane/settings", "Model, settings and tool servers."),
        "analytics": ("/analytics", "Where tokens go"),
        "shared": ("/shared", "Choose a file"),
    }
    for name, (address, text) in screens.items():
        looking.goto(address)
        expect(looking.page.get_by_text(text).locator("visible=true").first).to_be_visible()
        look(looking, name)


def test_no_part_of_a_conversation_breaks_a_rule_of_access(looking: Sight, place: Place) -> None:
    session = place.new_session("Uploading photos")
    place.ask(session, "How do I upload photos? @rule:privacy", ANSWER, thinking="The user wants steps.")
    place.model.says("Let me look.", calls=(tool_call("call_1", "notes__list_notes"),))
    place.ask(session, "What is in my notes?", "One note, `welcome`.")
    place.model.fails("The key is not valid.", status=401)
    place.call("POST", f"/api/sessions/{session}/messages", {"content": "And now?"})
    place.model.says("I will write that down.", calls=(tool_call("call_2", "notes__write_note", name="a", text="b"),))
    place.call("POST", f"/api/sessions/{session}/messages", {"content": "Note that down, please."})
    place.call("PATCH", f"/api/sessions/{session}", {"context": {"files": [f"/srv/photos/{n}.md" for n in "abcdefg"]}})

    page = looking.page
    looking.goto(f"/s/{session}")
    expect(page.get_by_role("region", name="Tool calls that need your approval")).to_be_visible()
    look(looking, "conversation")
    page.locator(".scroll").first.evaluate("box => box.scrollTo(0, 0)")
    expect(page.get_by_text("album.upload")).to_be_visible()
    look(looking, "conversation-top")
    for name in ("Attach a page", re.compile("^Mode"), re.compile("^Model:"), "Ask turn 1 again"):
        page.get_by_role("button", name=name).first.click()
        expect(page.locator("[popover]:popover-open")).to_be_visible()
        if name == re.compile("^Model:"):
            expect(page.get_by_role("region", name="Providers that lack something")).to_be_visible()
        look(looking, "popover")
        page.keyboard.press("Escape")


def test_neither_the_context_of_a_turn_nor_the_panel_breaks_a_rule_of_access(looking: Sight, place: Place) -> None:
    desk.write_desk(place)
    session = desk.at_desk(place, "Access")
    place.ask(session, "How are photos uploaded, how large may they be?", "With the button.")
    place.ask(session, "How does Gouda cheese ripen in a cellar?", "Slowly.")
    page = looking.page
    looking.goto(f"/s/{session}/t/2")
    view = page.get_by_role("dialog")
    for title in (
        "Everything sent",
        "Not included",
        "The prompt",
        "What differs from turn 1",
        "Prompt cache",
        "Over the session",
        "What if",
        "Memory",
        "Context test",
    ):
        view.get_by_role("heading", name=title, exact=True, level=3).click()
    expect(view.get_by_role("region", name="The prompt")).to_be_visible()
    expect(view.get_by_role("list", name="Calls", exact=True)).to_be_visible()
    expect(view.get_by_role("heading", name="Items from turn 1 to 2")).to_have_count(2)
    expect(view.get_by_role("button", name="Ask again with it").first).to_be_visible()
    look(looking, "turn")
    view.get_by_role("list", name="Calls", exact=True).get_by_role("button").first.click()
    view.get_by_role("button", name="As sent", exact=True).click()
    view.get_by_text(re.compile(r"^\d+ owners; choose one")).click()
    view.get_by_label("Body as sent").scroll_into_view_if_needed()
    look(looking, "call-as-sent")
    view.get_by_role("button", name=re.compile(r"^Changes \(")).click()
    look(looking, "call-changes")
    looking.goto(f"/s/{session}/t/2/items/reference/cheese")
    expect(page.get_by_label("Text sent")).to_be_visible()
    look(looking, "item")

    looking.goto(f"/s/{session}")
    page.get_by_role("textbox", name="Message", exact=True).fill("How does Gouda cheese ripen in a cellar?")
    shown = _panel(page, looking.narrow)
    expect(shown.get_by_label("Would be selected")).to_be_visible()
    shown.get_by_text(re.compile("from earlier turns stays? in the prompt$")).click()
    shown.get_by_text("As a table").click()
    look(looking, "panel")
    if looking.narrow:
        looking.await_value(lambda: (box := shown.bounding_box()) and (box["x"], box["width"]), (0, 390))


def _panel(page: Page, narrow: bool) -> Locator:
    if not narrow:
        return page.get_by_role("complementary", name="Context")
    page.get_by_role("button", name=re.compile("context panel", re.IGNORECASE)).first.click()
    return page.get_by_role("dialog", name="Context")
