from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from browser.place import Place, tool_call
from browser.repository import HOSTILE, repository
from browser.sight import Sight

READER = """description: Reads files.
model: openai:gpt-4o
tool_permission: never
mcpServers:
  files:
    command: ${WINDOWPANE_PYTHON}
    args: ["${AGENT_DIR}/tools/files_server.py"]
"""
FILES_SERVER = """from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("files", log_level="WARNING")


@server.tool()
def read_file(path: str) -> str:
    return Path(path).read_text()


server.run()
"""


def applet(session: str, slug: str, **params: str) -> str:
    return f"/s/{session}?applet={slug}" + "".join(f"&{name}={quote(value)}" for name, value in params.items())


def kept(place: Place, session: str) -> list[str]:
    """Return the applet that the session's working context names."""
    return place.call("GET", f"/api/sessions/{session}")["context"].get("applet", [])


def keeps(page: Page, session: str, items: list[str]) -> None:
    """Wait until the session's working context names this applet."""
    page.wait_for_function(
        """async ([session, wanted]) => {
            const answer = await (await fetch(`/api/sessions/${session}`)).json()
            return JSON.stringify(answer.context.applet ?? []) === wanted
        }""",
        arg=[session, f"[{','.join(_json(item) for item in items)}]"],
        polling=200,
    )


def _json(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.spec("S2.5")
def test_a_file_of_the_footer_opens_beside_the_conversation_and_is_edited(phone: Sight, place: Place) -> None:
    folder = place.files / "edit"
    folder.mkdir()
    file = folder / HOSTILE
    file.write_text("Plain <script>alert(2)</script> text\n")
    session = place.new_session("Editing")
    page = phone.page
    phone.goto(f"/s/{session}")
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    place.call("PATCH", f"/api/sessions/{session}", {"setContext": {"setName": "files", "items": [str(file)]}})
    page.get_by_role("link", name=HOSTILE).click()

    expect(page).to_have_url(re.compile(f"/s/{session}\\?applet=text-editor&path="))
    text = page.get_by_role("textbox", name=f"Text of {HOSTILE}")
    expect(text).to_have_value("Plain <script>alert(2)</script> text\n")
    expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
    text.fill("Mine\n")
    phone.shoot("editor")
    phone.check_access()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert file.read_text() == "Mine\n"

    text.fill("Mine, and more\n")
    file.write_text("Theirs\n")
    conflict = page.get_by_role("alert", name="Two versions")
    phone.expected.append("412")
    expect(conflict).to_contain_text("Theirs")
    expect(conflict).to_contain_text("Mine, and more")
    phone.shoot("editor-conflict")
    phone.check_access()
    page.reload()
    conflict.get_by_role("button", name="Save mine").click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert file.read_text() == "Mine, and more\n"

    page.get_by_role("link", name=str(folder)).click()
    expect(page.get_by_role("navigation", name="Files").get_by_role("link", name=HOSTILE)).to_be_visible()
    phone.shoot("folder")
    phone.check_access()
    page.get_by_role("link", name="Up", exact=True).click()
    expect(page.get_by_role("link", name=f"{folder.name}/")).to_be_visible()
    phone.goto(applet(session, "text-editor", path="/etc/passwd"))
    phone.expected.append("404")
    expect(page.get_by_text("File not found")).to_be_visible()
    assert page.locator("img").count() == 0


def test_a_file_is_edited_in_the_colours_of_its_language(sight: Sight, place: Place) -> None:
    folder = place.files / f"colours-{sight.screen}"
    folder.mkdir()
    lines = "".join(
        f'name_{number} = "<b>{number}</b>"  # a comment that is rather long: {"x" * 90}\n' for number in range(80)
    )
    (folder / "names.py").write_text(lines)
    (folder / "names.txt").write_text("def no_colours(): pass\n")
    session = place.new_session("Colours")
    page = sight.page
    sight.goto(applet(session, "text-editor", path=str(folder / "names.py")))
    text = page.get_by_role("textbox", name="Text of names.py")
    behind = page.locator(".code-field pre")
    expect(behind).to_have_text(f"{lines}\n", use_inner_text=False)
    expect(behind.locator(".hljs-string").first).to_have_text('"<b>0</b>"')
    text.fill(f"def first(): pass\n{lines}")
    expect(behind.locator(".hljs-title").first).to_have_text("first")
    expect(behind).to_have_text(f"def first(): pass\n{lines}\n")
    text.evaluate("field => field.scrollTo(120, 600)")
    sight.await_value(
        lambda: page.evaluate(
            """() => {
                const [field, pre] = ['textarea', 'pre'].map((name) => document.querySelector(`.code-field ${name}`))
                const [one, other] = [field, pre].map((each) => each.getBoundingClientRect())
                return [one.x - other.x - field.scrollLeft, one.y - other.y - field.scrollTop].map(Math.round)
            }"""
        ),
        [0, 0],
    )
    sight.shoot("colours")
    sight.check_access()

    sight.goto(applet(session, "text-editor", path=str(folder / "names.txt")))
    expect(page.get_by_role("textbox", name="Text of names.txt")).to_have_value("def no_colours(): pass\n")
    expect(behind).to_have_count(0)


def test_the_editor_shows_what_changed_since_the_agent_saw_the_file(desktop: Sight, place: Place) -> None:
    place.write("agent.yaml", READER, agent="reader")
    place.write("prompts/core.md", "You read files.\n", agent="reader")
    place.write("tools/files_server.py", FILES_SERVER, agent="reader")
    folder = place.files / "seen"
    folder.mkdir()
    file = folder / "plan.md"
    file.write_text("# Plan\n\n- one\n- two\n")
    session = place.new_session("Seen", agent="reader")
    page = desktop.page
    desktop.goto(applet(session, "text-editor", path=str(file), view="changes"))
    expect(page.get_by_text("The agent has not read this file in this session")).to_be_visible()

    def has_tool() -> bool:
        return "read_file" in [item["name"] for item in place.call("GET", "/api/agents/reader/items")["items"]]

    desktop.await_value(has_tool, True)
    place.model.says("", calls=(tool_call("c1", "files__read_file", path=str(file)),))
    place.ask(session, "Read the plan", "I have read it.")
    expect(page.get_by_text("Unchanged")).to_be_visible()
    file.write_text("# Plan\n\n- one\n- 2\n- three\n")
    changes = page.get_by_role("region", name="Changes since the agent saw plan.md")
    expect(changes.locator(".old .text")).to_have_text(["- two"])
    expect(changes.locator(".new .text")).to_have_text(["- 2", "- three"])
    expect(page.get_by_text("Changed since read_file showed it to the agent in turn 1.")).to_be_visible()
    desktop.shoot("editor-changes")
    desktop.check_access()
    page.get_by_role("link", name="Preview", exact=True).click()
    expect(page.get_by_role("listitem").filter(has_text="three")).to_be_visible()


@pytest.mark.spec("S2.9")
def test_changes_in_a_repository_are_shown_file_by_file(desktop: Sight, place: Place) -> None:
    folder = repository(place.files / "repository")
    session = place.new_session("Reviewing")
    place.call(
        "PATCH",
        f"/api/sessions/{session}",
        {"setContext": {"setName": "applet", "items": ["git-diff", f"path={folder}"]}},
    )
    page = desktop.page
    desktop.goto(f"/s/{session}")
    offer = page.get_by_role("group", name="Open again")
    expect(offer).to_contain_text(f"Last open here: Changes {folder.name}")
    expect(page).to_have_url(re.compile(f"/s/{session}$"))
    desktop.shoot("offer")
    desktop.check_access()
    offer.get_by_role("link", name="Open it again").click()

    expect(page).to_have_url(re.compile("applet=git-diff"))
    expect(offer).to_have_count(0)
    expect(page.get_by_text("5 files changed")).to_be_visible()
    expect(page.locator("summary .name")).to_have_text([HOSTILE, "notes.md", "old.txt", "deep/down.txt", "new.txt"])
    expect(page.get_by_role("region", name=f"Changes of {HOSTILE}")).to_contain_text("still <b>harmless</b>")
    notes = page.get_by_role("region", name="Changes of notes.md")
    expect(notes.locator(".new .text")).to_have_text(["four"])
    expect(notes.locator(".old")).to_have_count(0)
    desktop.shoot("git")
    desktop.check_access()

    page.get_by_role("textbox", name="since").fill("first")
    page.keyboard.press("Enter")
    expect(notes.locator(".old .text")).to_have_text(["two"])
    expect(notes.locator(".new .text")).to_have_text(["2", "four"])
    expect(page).to_have_url(re.compile("base=first"))
    page.get_by_role("textbox", name="since").fill("nowhere")
    page.keyboard.press("Enter")
    desktop.expected.append("422")
    expect(page.get_by_text("Git failed")).to_be_visible()
    page.go_back()
    expect(notes.locator(".new .text")).to_have_text(["2", "four"])

    desktop.goto(applet(session, "git-diff", path=str(folder / "deep")))
    page.get_by_text("deep/down.txt").click()
    page.get_by_role("link", name="Open in the editor").click()
    expect(page.get_by_role("textbox", name="Text of down.txt")).to_have_value("below\n")
    assert page.locator("img").count() == 0


@pytest.mark.spec("S2.3", "S2.72", "S2.73", "S2.74", "S2.75")
def test_what_stands_beside_a_session_is_kept_when_it_is_idle_and_when_it_is_left(desktop: Sight, place: Place) -> None:
    folder = repository(place.files / "captured")
    mine, other = place.new_session("Mine"), place.new_session("Other")
    page = desktop.page
    desktop.goto(applet(mine, "git-diff", path=str(folder), base="first"))
    expect(page.get_by_text("5 files changed")).to_be_visible()
    assert kept(place, mine) == []
    place.model.says("All good.")
    page.get_by_role("textbox", name="Message").fill("Have a look")
    page.keyboard.press("Enter")
    expect(page.get_by_text("All good.")).to_be_visible()
    keeps(page, mine, ["git-diff", f"path={folder}", "base=first"])
    expect(page.get_by_role("link", name="[git-diff]")).to_be_visible()

    page.get_by_role("button", name="Files", exact=True).click()
    page.get_by_role("link", name="captured/").click()
    page.get_by_role("link", name="notes.md").click()
    expect(page.get_by_role("textbox", name="Text of notes.md")).to_be_visible()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route) if route.request.method == "PATCH" else route.continue_()

    page.route("**/api/sessions/*", hold)
    page.get_by_role("link", name=re.compile("^Other")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Other")
    items = ["text-editor", f"path={folder / 'notes.md'}"]
    body = {"setContext": {"setName": "applet", "items": items}, "sessionId": mine}
    assert [(route.request.url, route.request.post_data_json) for route in held] == [
        (f"{place.url}/api/sessions/{mine}", body)
    ]
    held[0].continue_()
    keeps(page, mine, items)
    assert kept(place, other) == []
    page.unroute_all()

    page.get_by_role("link", name=re.compile("^Mine")).click()
    expect(page.get_by_role("group", name="Open again")).to_contain_text("notes.md")
    refused = place.client.request("PATCH", f"/api/sessions/{other}", json=body)
    assert (refused.status_code, kept(place, other)) == (409, [])

    desktop.goto(applet(other, "text-editor", path=str(folder / "new.txt")))
    expect(page.get_by_role("textbox", name="Text of new.txt")).to_be_visible()
    desktop.goto("/agents")
    keeps(page, other, ["text-editor", f"path={folder / 'new.txt'}"])
    assert kept(place, mine) == items


def test_a_file_that_is_looked_at_does_not_move_its_session_goes_along_and_can_be_left_out(
    desktop: Sight, place: Place
) -> None:
    file = place.files / "looked-at.md"
    file.write_text("Seen.\n")
    older, newer = place.new_session("Older"), place.new_session("Newer")
    items = ["text-editor", f"path={file}"]
    page = desktop.page
    desktop.goto(applet(older, "text-editor", path=str(file)))
    expect(page.get_by_role("textbox", name="Text of looked-at.md")).to_be_visible()
    page.get_by_role("link", name=re.compile("^Newer")).click()
    keeps(page, older, items)
    listed = [session["id"] for session in place.call("GET", "/api/sessions")["sessions"]]
    assert listed == [newer, older]

    page.get_by_role("link", name=re.compile("^Older")).click()
    page.get_by_role("link", name="Open it again").click()
    note = page.get_by_text("the model is told with the next message that you have it open")
    expect(note).to_be_visible()
    desktop.shoot("goes-along")
    page.get_by_role("button", name="Leave it out").click()
    expect(note).to_be_hidden()
    place.model.says("All good.")
    page.get_by_role("textbox", name="Message", exact=True).fill("Have a look")
    page.keyboard.press("Enter")
    expect(page.get_by_text("All good.")).to_be_visible()
    page.get_by_role("link", name=re.compile("^Newer")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Newer")
    assert kept(place, older) == []
    assert "looked-at.md" not in str(place.model.asked[-1])
