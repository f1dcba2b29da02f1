"""What a newcomer meets first: questions to try, which models can be used, a key, and a session's settings."""

from __future__ import annotations

import re
import stat

from playwright.sync_api import expect

from browser.place import Place
from browser.sight import Sight

KEY = "sk-given-on-the-page-123456"


def test_an_empty_page_says_what_it_is_and_a_question_begins_a_session_in_the_readers_time_zone(
    sight: Sight, place: Place
) -> None:
    page = sight.page
    sight.goto("/")
    sight.choose_agent("guide")
    expect(page.get_by_text("see beside every answer exactly what the model was given")).to_be_visible()
    questions = page.get_by_role("list", name="Questions to try").get_by_role("button")
    expect(questions).to_have_text(
        ["How do I add a rule?", "Why was an item left out of a request?", "Which notes do I have?"]
    )
    sight.shoot("first-minute")
    sight.check_access()
    questions.first.click()

    expect(page).to_have_url(re.compile(r"/s/ses_"))
    expect(page.get_by_role("link", name="View Context")).to_be_visible()
    session = page.url.split("/s/")[1].partition("?")[0]
    found = place.call("GET", f"/api/sessions/{session}")
    browser_zone = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    assert (found["agent"], found["settings"]["time_zone"]) == ("guide", browser_zone)
    sight.check()


def test_a_session_without_messages_offers_questions_too(desktop: Sight, place: Place) -> None:
    session = place.new_session("Empty")
    place.model.says("With the button.")
    page = desktop.page
    desktop.goto(f"/s/{session}")
    page.get_by_role("button", name="What should I know about Photo Resizing Guide?").click()

    expect(page.get_by_text("With the button.")).to_be_visible()


def test_the_picker_tells_what_models_lack_and_takes_a_key_that_is_never_shown_again(
    sight: Sight, place: Place
) -> None:
    session = place.new_session("Keys")
    page = sight.page
    sight.goto(f"/s/{session}")
    page.get_by_role("button", name="Model: openai:gpt-4o").click()
    ready = page.get_by_role("region", name="Providers that can be used")
    lacking = page.get_by_role("region", name="Providers that lack something")
    expect(ready.get_by_role("listitem").filter(has_text="openai")).to_contain_text("key from OPENAI_API_KEY")
    expect(lacking.get_by_role("listitem").filter(has_text="mistral")).to_contain_text("pip install")
    sight.shoot("models")
    lacking.get_by_role("button", name="Add a key for deepseek").click()
    page.get_by_label("Key for deepseek").fill(KEY)
    sight.check_access("[popover]:popover-open")
    page.get_by_role("button", name="Keep", exact=True).click()
    kept = ready.get_by_role("listitem").filter(has_text="deepseek")
    expect(kept).to_contain_text("key kept by the server")
    file = place.folder / "keys" / "DEEPSEEK_API_KEY"
    assert (file.read_text().strip(), stat.S_IMODE(file.stat().st_mode)) == (KEY, 0o600)
    assert KEY not in page.content()
    assert KEY not in str(place.call("GET", "/api/models"))

    ready.get_by_role("button", name="Models of deepseek").click()
    page.get_by_role("group", name="Models").get_by_role("button", name="deepseek:deepseek-chat", exact=True).click()
    expect(page.get_by_role("button", name="Model: deepseek:deepseek-chat")).to_be_visible()
    page.get_by_role("button", name="Model: deepseek:deepseek-chat").click()
    page.get_by_role("button", name="Remove the key for deepseek").click()
    expect(lacking.get_by_role("button", name="Add a key for deepseek")).to_be_visible()
    assert not file.exists()
    sight.check()


def test_what_a_session_changes_about_its_agent_is_set_in_one_place(sight: Sight, place: Place) -> None:
    session = place.new_session("Settings", search={"preset": "normal", "top_n": 4})
    page = sight.page
    sight.goto(f"/s/{session}")
    page.get_by_role("button", name="Settings of this session").click()
    dialog = page.get_by_role("dialog", name="Settings of this session")
    dialog.get_by_label("How freely items are selected").select_option("aggressive")
    dialog.get_by_label("Tool calls that need approval").select_option("never")
    dialog.get_by_label("Temperature").fill("0.4")
    dialog.get_by_label("Prompt cache").select_option("fresh")
    dialog.get_by_label("Page that you have open").fill("https://github.com/a/b")
    dialog.get_by_label("Instructions for this session").fill("Answer in French.")
    dialog.get_by_label("Time zone").fill("Mars/Phobos")
    sight.shoot("session-settings")
    sight.check_access()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no zone 'Mars/Phobos'")
    dialog.get_by_label("Time zone").fill("Europe/Paris")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()

    def changed() -> dict[str, object]:
        settings = place.call("GET", f"/api/sessions/{session}")["settings"]
        return {name: value for name, value in settings.items() if value is not None}

    assert changed() == {
        "search": {"preset": "aggressive", "top_n": 4},
        "tool_permission": "never",
        "temperature": 0.4,
        "cache": "fresh",
        "current_url": "https://github.com/a/b",
        "system_prompt": "Answer in French.",
        "time_zone": "Europe/Paris",
    }
    page.get_by_role("button", name="Settings of this session").click()
    dialog.get_by_label("How freely items are selected").select_option("")
    dialog.get_by_label("Temperature").fill("")
    dialog.get_by_label("Page that you have open").fill("")
    dialog.get_by_label("Instructions for this session").fill("")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    assert changed() == {
        "search": {"top_n": 4},
        "tool_permission": "never",
        "cache": "fresh",
        "time_zone": "Europe/Paris",
    }
    sight.expected.append("422")
    sight.check()
