"""What a running tool asks its user, on the page: a real tool server asks, and goes on with what it is told."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.place import MODEL, Place, tool_call
from browser.sight import Sight
from patience import PATIENCE_S

AGENT = "shop"
SERVER = Path(__file__).parents[1] / "tools" / "servers" / "by_sdk.py"
SETTINGS = f"""description: Takes orders.
model: {MODEL}
mcpServers:
  shop:
    command: ${{WINDOWPANE_PYTHON}}
    args: {json.dumps([str(SERVER), "stdio"])}
    permission: not_required
    tools:
      sum_up: {{permission: required}}
"""


@pytest.fixture(autouse=True)
def _shop(place: Place) -> Generator[None]:
    """Write the agent and wait until the server has its tools."""
    place.write("agent.yaml", SETTINGS, AGENT)
    place.write("prompts/core.md", "You take orders.", AGENT)
    deadline = time.monotonic() + PATIENCE_S
    while "order" not in tools(place):
        assert time.monotonic() < deadline, "the server does not see the agent's tools"
        time.sleep(0.2)
    yield
    shutil.rmtree(place.folder / "agents" / AGENT)


def tools(place: Place) -> list[str]:
    if place.client.get(f"/api/agents/{AGENT}").is_error:
        return []
    return [item["name"] for item in place.call("GET", f"/api/agents/{AGENT}/items")["items"]]


def asked(sight: Sight, place: Place, tool: str = "order", /, **arguments: str) -> str:
    """Open a new session and send a message on which the model calls a tool that asks."""
    session = place.new_session("Orders", AGENT)
    place.model.says("Let me see.", calls=(tool_call("call_1", f"shop__{tool}", **arguments),))
    sight.goto(f"/s/{session}")
    field = sight.page.get_by_role("textbox", name="Message", exact=True)
    field.fill("Tea, please")
    field.press("Enter")
    return session


def form(page: Page) -> Locator:
    return page.get_by_role("form", name="shop asks you", exact=True)


def result(page: Page) -> Locator:
    """Open the line of the call and return what the tool gave back."""
    row = page.get_by_role("log").locator("details", has_text="order").first
    row.locator("summary").click()
    return row.get_by_label("Result")


def test_a_tool_asks_in_a_form_that_outlives_a_reload_and_the_turn_goes_on_with_the_answer(
    sight: Sight, place: Place
) -> None:
    asked(sight, place, drink="tea")
    page = sight.page
    expect(form(page)).to_contain_text("Which size of tea?")
    expect(form(page)).to_be_in_viewport()
    expect(page.get_by_role("log").locator("details", has_text="order").first).to_contain_text("Waits for you")
    if not sight.narrow:
        expect(page.get_by_text("Waiting for your answer to a tool.")).to_be_visible()
        entry = page.get_by_role("link", name=re.compile("^Orders"))
        expect(entry).to_contain_text("A tool waits for you")
        expect(page.get_by_role("textbox", name="Message", exact=True)).to_have_attribute(
            "placeholder", "Answer the tool first"
        )
    sight.shoot("question")
    sight.check_access()
    page.reload()
    expect(form(page).get_by_label("Sugar (optional)")).to_have_value("0")

    form(page).get_by_role("button", name="Send").click()
    expect(form(page).get_by_label("Size")).to_be_focused()
    form(page).get_by_label("Size").select_option("large")
    form(page).get_by_label("Sugar").fill("9")
    form(page).get_by_role("button", name="Send").click()
    expect(page.get_by_text("sugar: 9 is greater than the maximum of 3")).to_be_visible()
    sight.expected.append("422")
    sight.shoot("question-refused")
    expect(form(page).get_by_label("Size")).to_have_value("large")
    form(page).get_by_label("Sugar").fill("2")
    place.model.says("Your tea is ordered.")
    form(page).get_by_role("button", name="Send").click()

    expect(page.get_by_text("Your tea is ordered.")).to_be_visible()
    expect(form(page)).to_have_count(0)
    expect(page.get_by_text("A tool waits for you")).to_have_count(0)
    expect(result(page)).to_contain_text("large tea, 2 sugar")


@pytest.mark.parametrize(("button", "told"), [("Decline", "decline"), ("Cancel", "cancel")])
def test_a_question_is_turned_down_and_the_tool_is_told_so(
    desktop: Sight, place: Place, button: str, told: str
) -> None:
    asked(desktop, place, drink="tea")
    page = desktop.page
    place.model.says("Then no tea.")
    form(page).get_by_role("button", name=button).click()

    expect(page.get_by_text("Then no tea.")).to_be_visible()
    expect(form(page)).to_have_count(0)
    expect(result(page)).to_have_text(told)


def test_a_question_is_answered_with_the_keyboard_alone(desktop: Sight, place: Place) -> None:
    asked(desktop, place, drink="tea")
    page = desktop.page
    expect(form(page)).to_be_visible()
    size = form(page).get_by_label("Size")
    for _ in range(20):
        if size.evaluate("field => field === document.activeElement"):
            break
        page.keyboard.press("Shift+Tab")
    expect(size).to_be_focused()
    page.keyboard.type("sm")
    page.keyboard.press("Tab")
    expect(form(page).get_by_label("Sugar")).to_be_focused()
    page.keyboard.type("1")
    place.model.says("Your tea is ordered.")
    page.keyboard.press("Enter")

    expect(page.get_by_text("Your tea is ordered.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message", exact=True)).to_be_focused()
    expect(result(page)).to_contain_text("small tea, 1 sugar")


def test_a_tool_asks_to_use_the_model_and_shows_what_it_would_be_given(phone: Sight, place: Place) -> None:
    asked(phone, place, "sum_up", text="A long story.")
    page = phone.page
    page.get_by_role("button", name="Allow once").click()
    question = page.get_by_role("form", name="shop asks to use the model")
    expect(question).to_contain_text("Sum up: A long story.")
    phone.shoot("question-model")
    phone.check_access()
    place.model.says("A story.")
    place.model.says("It is a story.")
    question.get_by_role("button", name="Allow").click()

    expect(page.get_by_text("It is a story.")).to_be_visible()
    expect(question).to_have_count(0)
