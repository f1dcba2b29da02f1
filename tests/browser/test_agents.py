from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from browser.place import Place
from browser.sight import Sight
from windowpane.server.routes.agent_events import IndexingNow, written

RULE = "---\ndescription: How to water\ninclude: always\npriority: 10\n---\nWater in the morning.\n"


def new_agent(place: Place, name: str, **files: str) -> Path:
    """Make an agent of a test's own, so that it can be changed without disturbing others."""
    place.write("agent.yaml", "description: Knows about gardens.\nmodel: echo\n", agent=name)
    place.write("prompts/core.md", "You know about gardens.\n", agent=name)
    for path, text in files.items():
        place.write(path, text, agent=name)
    return place.folder / "agents" / name


def test_the_first_rule_is_written_changed_and_deleted_with_a_way_back(desktop: Sight, place: Place) -> None:
    folder = new_agent(place, "empty")
    rule = folder / "rules" / "answer-briefly.md"
    page = desktop.page
    desktop.goto("/agents")
    page.get_by_role("link", name=re.compile(folder.name)).first.click()
    expect(page.get_by_text("A rule is an instruction that the model must follow.")).to_be_visible()
    desktop.shoot("agent-empty")
    desktop.check_access()

    page.get_by_role("link", name="Write the first rule").click()
    page.get_by_role("textbox", name="Name").fill("answer-briefly")
    page.get_by_role("textbox", name="Description").fill("Keep it short")
    page.get_by_role("textbox", name="Text").fill("Answer in **one** sentence.")
    desktop.goto("/agents")
    desktop.goto(f"/agents/{folder.name}/new/rule")
    expect(page.get_by_role("textbox", name="Text")).to_have_value("Answer in **one** sentence.")
    preview = page.get_by_role("region", name="Preview of Text")
    expect(preview.locator("strong")).to_have_text("one")
    page.get_by_role("textbox", name="Text").fill("Answer in *two* sentences.")
    expect(preview.locator("em")).to_have_text("two")
    page.get_by_role("textbox", name="Text").fill("Answer in **one** sentence.")
    desktop.shoot("agent-new-rule")
    desktop.check_access()
    page.get_by_role("button", name="Create").click()

    expect(page.get_by_role("heading", name="answer-briefly")).to_be_visible()
    assert "include: always" in rule.read_text()
    assert "Answer in **one** sentence." in rule.read_text()
    page.get_by_role("combobox", name="Include").select_option("Agent")
    page.get_by_role("spinbutton", name="Priority").fill("7")
    expect(page.get_by_role("status").filter(has_text="Not saved yet")).to_be_visible()
    desktop.shoot("agent-rule")
    desktop.check_access()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert "include: agent" in rule.read_text()
    assert "priority: 7" in rule.read_text()

    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("A rule is an instruction that the model must follow.")).to_be_visible()
    assert not rule.exists()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="answer-briefly")).to_be_visible()
    assert "priority: 7" in rule.read_text()


def test_an_edit_on_disk_appears_without_reload_and_a_conflict_shows_both_versions(
    desktop: Sight, place: Place
) -> None:
    folder = new_agent(place, "garden", **{"rules/watering.md": RULE})
    rule = folder / "rules" / "watering.md"
    page = desktop.page
    desktop.goto("/agents/garden/rule/watering")
    text = page.get_by_role("textbox", name="Text")
    saved = page.get_by_role("status").filter(has_text="Saved")
    expect(text).to_have_value(re.compile("Water in the morning"))
    rule.write_text(RULE.replace("morning", "evening"))
    expect(text).to_have_value(re.compile("Water in the evening"))

    text.fill("Water at night.\n")
    rule.write_text(RULE.replace("morning", "afternoon").replace("How to water", "When to water"))
    conflict = page.get_by_role("alert", name="Two versions")
    expect(conflict.get_by_text("rules/watering.md was changed elsewhere while you edited it")).to_be_visible()
    expect(conflict).to_contain_text("Water in the afternoon.")
    expect(conflict).to_contain_text("Water at night.")
    expect(conflict).to_contain_text("Also changed elsewhere, and kept either way: Description (“When to water”)")
    expect(text).to_have_value("Water at night.\n")
    desktop.shoot("agent-conflict")
    desktop.check_access()

    page.reload()
    expect(conflict).to_contain_text("Water in the afternoon.")
    conflict.get_by_role("button", name="Save mine").click()
    expect(saved).to_be_visible()
    expect(page.get_by_role("textbox", name="Description")).to_have_value("When to water")
    assert rule.read_text() == RULE.replace("How to water", "When to water").replace(
        "Water in the morning.", "Water at night."
    )

    text.fill("Never water.")
    rule.write_text(RULE)
    conflict.get_by_role("button", name="Use the other version").click()
    expect(text).to_have_value(re.compile("Water in the morning"))
    page.get_by_role("button", name="Undo").click()
    expect(text).to_have_value("Never water.")
    page.get_by_role("button", name="Revert").click()
    assert rule.read_text() == RULE

    desktop.expected.append("404")
    text.fill("Gone, but not lost.")
    rule.unlink()
    conflict.get_by_role("button", name="Save again").click()
    expect(saved).to_be_visible()
    assert "Gone, but not lost." in rule.read_text()


def test_what_cannot_be_used_is_refused_with_its_line_and_what_is_wrong_on_disk_is_listed(
    desktop: Sight, place: Place
) -> None:
    folder = new_agent(place, "wrong", **{"rules/watering.md": RULE})
    other = folder / "rules" / "other.md"
    page = desktop.page
    desktop.goto("/agents/wrong/rule/watering")
    page.get_by_role("button", name="Whole file").click()
    whole = page.get_by_role("textbox", name="The whole file")
    whole.fill(RULE.replace("always", "sometimes"))
    desktop.expected.append("422")
    page.keyboard.press("Control+s")
    faults = page.get_by_role("alert", name="Not saved")
    expect(faults).to_contain_text("Line 3: ")
    desktop.shoot("agent-faults")
    desktop.check_access()
    faults.get_by_role("button", name="Line 3").click()
    assert _selected(page) == "include: sometimes"
    assert (folder / "rules" / "watering.md").read_text() == RULE
    page.get_by_role("button", name="Revert").click()

    desktop.goto("/agents/wrong")
    expect(page.get_by_role("link", name="watering")).to_be_visible()
    other.write_text("---\npriority: many\n---\nText\n")
    problems = page.get_by_role("region", name=re.compile("problem"))
    problem = problems.get_by_role("link", name="rules/other.md:2")
    expect(problem).to_be_visible()
    desktop.shoot("agent-problems")
    desktop.check_access()

    problem.click()
    wrong = page.get_by_role("region", name="Problems in this file")
    expect(wrong).to_contain_text("Line 2: priority must be a whole number")
    expect(page.locator(".gutter .wrong")).to_have_text("2")
    assert _selected(page) == "priority: many"
    desktop.shoot("agent-broken-file")
    desktop.check_access()
    whole.fill("---\npriority: lots\n---\nText\n")
    page.keyboard.press("Control+s")
    expect(faults).to_contain_text("Line 2: ")
    whole.fill("---\npriority: 3\n---\nText\n")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    expect(wrong).to_have_count(0)
    assert other.read_text() == "---\npriority: 3\n---\nText\n"
    page.get_by_role("link", name="wrong", exact=True).click()
    expect(page.get_by_role("main").get_by_role("link", name="other", exact=True)).to_be_visible()
    expect(problems).to_have_count(0)

    desktop.goto("/agents/wrong/rule/other")
    expect(page.get_by_role("spinbutton", name="Priority")).to_have_value("3")
    desktop.expected.append("404")
    other.write_text("---\npriority: many\n---\nText\n")
    expect(wrong).to_contain_text("Line 2: priority must be a whole number")

    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="watering")).to_be_visible()
    expect(problems).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(problem).to_be_visible()
    assert other.exists()
    problem.click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("rules/other.md was deleted.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="watering")).to_be_visible()
    expect(problems).to_have_count(0)
    assert not other.exists()


def test_who_looks_at_an_agent_sees_how_far_indexing_has_come(desktop: Sight) -> None:
    told = [written(IndexingNow(64, 200))]
    page = desktop.page
    page.route(
        "**/api/agents/pane/events",
        lambda route: route.fulfill(body=b"retry: 300\n\n" + told[-1], content_type="text/event-stream"),
    )
    desktop.goto("/agents/pane")
    bar = page.get_by_role("progressbar", name="Indexing for selection: 64 of 200 passages")
    expect(bar).to_have_attribute("value", "64")
    desktop.shoot("agent-indexing")

    told.append(written(IndexingNow(200, 200)))
    expect(bar).to_have_count(0)
    page.unroute_all(behavior="ignoreErrors")


def _selected(page: Page) -> str:
    return page.evaluate(
        "(field => field.value.slice(field.selectionStart, field.selectionEnd))(document.activeElement)"
    )


@pytest.mark.spec("S0.8")
def test_tools_are_included_and_permitted_one_by_one(phone: Sight, place: Place) -> None:
    name = "tools"
    folder = new_agent(place, name)
    server = (place.folder / "agents" / "pane" / "tools" / "notes_server.py").read_text()
    place.write("tools/notes_server.py", server, agent=name)
    manifest = place.write(
        "agent.yaml",
        "description: Keeps notes.\nmodel: echo\nmcpServers:\n  notes: # the only one\n"
        '    command: ${WINDOWPANE_PYTHON}\n    args: ["${AGENT_DIR}/tools/notes_server.py"]\n'
        "    include: manual\n"
        "  broken:\n    command: /nowhere/server\n",
        agent=name,
    )
    page = phone.page
    phone.goto(f"/agents/{name}")
    include = page.get_by_role("combobox", name="How list_notes is included")
    expect(include).to_have_value("")
    expect(include.locator("option:checked")).to_have_text("Manual (as the server)")
    expect(page.get_by_text("Failed")).to_be_visible()
    include.scroll_into_view_if_needed()
    phone.shoot("agent-servers")
    phone.check_access()
    include.select_option("Agent")
    expect(include).to_be_enabled()
    expect(include).to_have_value("agent")
    page.get_by_role("combobox", name="Whether list_notes may run").select_option("Forbidden")
    expect(include).to_be_enabled()
    expect(page.get_by_role("combobox", name="Whether list_notes may run")).to_have_value("forbidden")
    written = manifest.read_text()
    assert "notes: # the only one" in written
    tool = place.call("GET", f"/api/agents/{name}/servers/notes")["tools"][0]
    assert (tool["name"], tool["own_include"], tool["own_permission"]) == ("list_notes", "agent", "forbidden")

    def meanwhile(route: Route) -> None:
        if route.request.method == "PATCH" and "many" not in manifest.read_text():
            # As a whole, as editors do: who reads it in the midst of being written finds no server in it.
            new = place.folder / "new.yaml"
            new.write_text(manifest.read_text().replace("Keeps notes.", "Keeps many notes."))
            new.replace(manifest)
        route.continue_()

    page.route("**/servers/notes", meanwhile)
    phone.expected.append("412")
    include.select_option("Always")
    expect(page.get_by_text("agent.yaml was changed elsewhere.")).to_be_visible()
    expect(include).to_have_value("agent")
    page.get_by_role("button", name="Change it anyway").click()
    expect(include).to_have_value("always")
    assert "Keeps many notes." in manifest.read_text()
    page.unroute_all()
    written = manifest.read_text()

    page.get_by_role("link", name="list_notes", exact=True).click()
    expect(page.get_by_role("heading", name="list_notes")).to_be_visible()
    page.go_back()
    phone.expected.append("404")  # a server may be gone by the time that it is asked for
    (folder / "agent.yaml").write_text(written.replace("/nowhere/server", "/elsewhere/server"))
    expect(page.get_by_text("/elsewhere/server").first).to_be_visible()


def test_counts_that_come_after_the_agent_was_left_are_dropped(desktop: Sight) -> None:
    page = desktop.page
    held: list[Route] = []
    page.route("**/api/analytics?*", lambda route: held.append(route))
    with page.expect_request("**/api/analytics?*"):
        desktop.goto("/agents/pane")
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(page.get_by_role("textbox", name="agent.yaml")).to_be_visible()

    with page.expect_response("**/api/analytics?*") as answered:
        held[0].continue_()

    assert answered.value.ok
    answered.value.finished()
    expect(page.get_by_role("textbox", name="agent.yaml")).to_be_visible()


def test_prompts_site_skills_and_settings_are_files_too(phone: Sight, place: Place) -> None:
    name = "prompts"
    folder = new_agent(place, name)
    page = phone.page
    phone.goto(f"/agents/{name}")
    expect(page.locator(".acts")).to_be_visible()
    acts = page.locator(".acts .button").all()
    assert len({round((act.bounding_box() or {"y": 0})["y"]) for act in acts}) == 1, "they stand in a row"
    page.get_by_role("link", name="New site skill").click()
    page.get_by_role("textbox", name="Host").fill("example.org")
    page.get_by_role("textbox", name="Text").fill("Prices are without tax.")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="example.org")).to_be_visible()
    assert (folder / "prompts/sites/example.org.md").read_text() == "Prices are without tax."

    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Core prompt").click()
    page.get_by_role("textbox", name="Text").fill("You know about **roses**.")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview of Text").locator("strong")).to_have_text("roses")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert (folder / "prompts/core.md").read_text() == "You know about **roses**."
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)

    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_role("link", name="Settings", exact=True).click()
    settings = page.get_by_role("textbox", name="agent.yaml")
    settings.fill("description: Knows about roses.\nmodel: echo\ntemperature: hot\n")
    phone.expected.append("422")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert", name="Not saved")).to_contain_text("Line 3")
    phone.shoot("agent-settings")
    phone.check_access()
    settings.fill("description: Knows about roses.\nmodel: echo\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_text("Knows about roses.")).to_be_visible()


def test_a_long_list_of_items_is_searched_and_walked_by_keyboard(sight: Sight, place: Place) -> None:
    place.write("agent.yaml", "description: Knows a lot.\nmodel: openai:gpt-4o\n", "crowd")
    for number in range(12):
        front = f"include: agent\ndescription: What topic {number} is about"
        place.write(f"references/topic-{number:02}.md", f"---\n{front}\n---\nText.\n", "crowd")
    place.write("rules/brief.md", "---\ninclude: always\ndescription: How long\n---\nBe brief.\n", "crowd")
    page = sight.page
    sight.await_value(lambda: place.client.get("/api/agents/crowd").is_success, True)
    sight.goto("/agents/crowd")
    field = page.get_by_role("searchbox", name="Search items")
    references = page.get_by_role("region", name="References")
    expect(references.get_by_role("listitem")).to_have_count(12)

    field.fill("about topic 1")
    expect(references.get_by_role("listitem")).to_have_count(3)
    expect(page.get_by_role("status").filter(has_text="3 matches")).to_be_visible()
    expect(references.get_by_role("heading")).to_have_text("References 3 of 12")
    expect(page.get_by_role("region", name="Rules").get_by_text("No matches.")).to_be_visible()
    sight.check_access()
    field.press("ArrowDown")
    expect(references.get_by_role("link", name="topic-01")).to_be_focused()
    field.press("Enter")

    expect(page.get_by_role("heading", name="topic-01")).to_be_visible()
    page.go_back()
    expect(field).to_have_value("about topic 1")
    field.fill("nothing like it")
    expect(page.get_by_text("0 matches")).to_be_visible()
    shutil.rmtree(place.folder / "agents" / "crowd")
