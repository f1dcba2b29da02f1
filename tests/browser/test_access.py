"""Every screen, once wide and dark and once on a phone and light: together they show each colour and each layout."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser import desk
from browser.place import Place, tool_call
from browser.program import Program
from browser.repository import repository
from browser.sight import Scheme, Screen, Sight, seeing
from browser.test_attach import ZOO, give

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
        "new-reference": ("/agents/pane/new/reference", "Knowledge that the model can use"),
        "new-site": ("/agents/pane/new/site", "What to know and do when the user is on a site"),
        "prompt": ("/agents/pane/prompt/core", "prompts/core.md"),
        "settings": ("/agents/pane/settings", "Model, settings and tool servers."),
        "analytics": ("/analytics", "Where tokens go"),
        "shared": ("/shared", "Choose a file"),
        "files": (f"/s/{session}?applet=text-editor", str(place.files)),
        "unknown": ("/no/such/place", "Page not found"),
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


def test_no_dialog_and_no_passing_state_breaks_a_rule_of_access(looking: Sight, place: Place, tmp_path: Path) -> None:
    page = looking.page
    session = place.new_session("Photos")
    place.ask(session, "How are photos uploaded?", "With the button.")
    looking.goto(f"/s/{session}")
    expect(page.get_by_text("With the button.")).to_be_visible()
    page.get_by_role("button", name="Settings of this session").click()
    expect(page.get_by_role("dialog", name="Settings of this session")).to_be_visible()
    look(looking, "session-settings")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    find = page.get_by_role("dialog", name="Search everywhere")
    expect(find.get_by_role("button", name="is:degraded")).to_be_visible()
    look(looking, "find-empty")
    find.get_by_role("searchbox").fill("photos")
    expect(find.get_by_role("link").first).to_be_visible()
    look(looking, "find")
    page.keyboard.press("Escape")
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    look(looking, "keys")
    page.keyboard.press("Escape")

    place.model.says("With the *other* button.")
    page.get_by_role("button", name="Ask turn 1 again").click()
    page.get_by_role("dialog", name="Ask turn 1 again").get_by_role("button", name="Ask again, as it was").click()
    both = page.get_by_role("dialog", name="Turn 1 beside the original")
    expect(both.get_by_text("With the other button.")).to_be_visible()
    look(looking, "beside")
    page.keyboard.press("Escape")
    expect(page.get_by_text("A branch of Photos")).to_be_visible()
    look(looking, "branch")

    slow = place.model.says_slowly("This takes ", "long.")
    field = page.get_by_role("textbox", name="Message", exact=True)
    give(field, "drop", "Zoo notes.md", "text/markdown", ZOO)
    expect(page.get_by_label("Use of Zoo notes.md")).to_be_visible()
    look(looking, "file")
    field.fill("Tell me everything")
    field.press("Enter")
    expect(page.get_by_text("This takes", exact=True)).to_be_visible()
    look(looking, "streaming")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped")).to_be_visible()
    look(looking, "stopped")
    slow.finish()

    looking.goto("/agents")
    page.get_by_role("button", name="New agent").click()
    expect(page.get_by_label("What it is for")).to_be_visible()
    look(looking, "new-agent")
    exported = tmp_path / "exported.json"
    exported.write_text(json.dumps(place.call("GET", f"/api/sessions/{session}/export")))
    looking.goto("/shared")
    page.get_by_label("Choose a file").set_input_files(exported)
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_visible()
    look(looking, "import")
    page.route("**/api/**", lambda route: route.abort())
    looking.expected.append("ERR_FAILED")
    looking.goto("/")
    expect(page.get_by_text("Windowpane could not be opened")).to_be_visible()
    look(looking, "unreachable")


def test_no_part_of_a_recorded_session_breaks_a_rule_of_access(looking: Sight, place: Place) -> None:
    program = Program(place)
    program.asks("What does the note say?", "I look.", "It says 42.")
    program.asks("Thank you.", "You are welcome.", time="five")
    program.close()
    # What passes through is recorded beside the call, not before its answer.
    looking.await_value(lambda: len(place.call("GET", "/api/sessions")["sessions"]), 1)
    [session] = place.call("GET", "/api/sessions")["sessions"]
    page = looking.page
    looking.goto(f"/s/{session['id']}")
    expect(page.get_by_role("log").get_by_text("You are welcome.")).to_be_visible()
    if looking.narrow:
        page.get_by_role("button", name="Context panel").click()
    expect(page.get_by_role("region", name="X-ray").get_by_text("The prefix broke at").first).to_be_visible()
    look(looking, "xray")
    looking.goto(f"/s/{session['id']}/t/1")
    view = page.get_by_role("dialog", name="Context of turn 1")
    view.get_by_role("button", name=re.compile("^2 · answer")).click()
    call = view.get_by_role("region", name="Call 2")
    expect(call.get_by_role("row", name=re.compile("System prompt Style"))).to_be_visible()
    look(looking, "xray-call")


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
