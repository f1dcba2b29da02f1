from __future__ import annotations

import re
import signal
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from playwright.sync_api import Browser, Route, expect

from browser.place import Place, serving, speaking
from browser.sight import Sight, seeing
from browser.test_attach import ZOO, give
from patience import PATIENCE_S


def test_a_server_that_dies_in_the_middle_of_an_answer_is_gone_on_with_and_nothing_is_lost(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "agents").mkdir()
    with ExitStack() as stack:
        model = stack.enter_context(speaking())
        first_server = ExitStack()
        url = first_server.enter_context(serving(tmp_path, model, ends_with=signal.SIGKILL, WINDOWPANE_LEASE_S="3"))
        place = Place(url, model, tmp_path, stack.enter_context(httpx2.Client(base_url=url, timeout=PATIENCE_S)))
        session = place.new_session("Lasting")
        place.ask(session, "One", "First answer")
        sight = stack.enter_context(seeing(browser, url))
        sight.expected += [
            "WebSocket connection",
            "ERR_CONNECTION",
            "ERR_CONTENT_LENGTH_MISMATCH",
            "ERR_EMPTY_RESPONSE",
            "ERR_INCOMPLETE",
            "ERR_FAILED",
            "ERR_SOCKET_NOT_CONNECTED",
        ]
        page = sight.page
        message, log = page.get_by_role("textbox", name="Message", exact=True), page.get_by_role("log")
        unreachable = page.get_by_text("Server unreachable. Reconnecting")
        sight.goto(f"/s/{session}")
        expect(page.get_by_text("First answer")).to_be_visible()
        answer = model.says_slowly("This was ", "never finished.")
        message.fill("Will it hold?")
        message.press("Enter")
        expect(page.get_by_text("This was", exact=True)).to_be_visible()
        message.fill("Meanwhile")

        first_server.close()
        expect(unreachable).to_be_visible()
        expect(page.get_by_text("First answer")).to_be_visible()
        sight.shoot("offline")
        answer.finish()
        stack.enter_context(
            serving(tmp_path, model, urlsplit(url).port or 0, ends_with=signal.SIGKILL, WINDOWPANE_LEASE_S="3")
        )
        place.call("PATCH", f"/api/sessions/{session}", {"name": "Renamed while nobody watched"})
        page.evaluate("dispatchEvent(new Event('online'))")
        expect(unreachable).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text("Renamed while nobody watched")
        expect(log.get_by_text("Will it hold?")).to_have_count(1)
        expect(message).to_have_value("Meanwhile")
        expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
        sight.shoot("after-a-crash")

        page.route("**/messages", lambda route: route.abort())
        message.press("Enter")
        again = page.get_by_role("button", name="Send again")
        expect(again).to_be_visible()
        expect(log.get_by_text("Meanwhile")).to_have_count(1)
        page.unroute_all()
        model.says("It does.")
        again.click()
        expect(page.get_by_text("It does.")).to_be_visible()
        expect(log.get_by_text("Meanwhile")).to_have_count(1)
        sight.check()


def test_a_first_message_that_did_not_leave_comes_back_with_its_file(desktop: Sight, place: Place) -> None:
    page = desktop.page
    desktop.goto("/")
    desktop.choose_agent("pane")
    desktop.expected.append("ERR_INTERNET_DISCONNECTED")
    field = page.get_by_role("textbox", name="Message", exact=True)
    give(field, "drop", "Zoo notes.md", "text/markdown", ZOO)
    expect(page.get_by_label("Use of Zoo notes.md")).to_be_visible()
    field.fill("How are photos uploaded?")
    page.context.set_offline(True)
    field.press("Enter")

    expect(page.get_by_text("Server unreachable")).to_be_visible()
    expect(field).to_have_value("How are photos uploaded?")
    expect(page.get_by_label("Use of Zoo notes.md")).to_be_visible()
    page.context.set_offline(False)
    place.model.says("With the button.")
    field.press("Enter")
    expect(page.get_by_role("log").get_by_text("With the button.")).to_be_visible()


def test_a_first_message_outlives_a_reload_where_the_conversation_could_not_be_loaded(
    desktop: Sight, place: Place
) -> None:
    page = desktop.page
    desktop.goto("/")
    desktop.choose_agent("pane")
    desktop.expected += ["ERR_FAILED", "Failed to fetch"]
    page.route("**/assets/Chat-*", lambda route: route.abort())
    page.route("**/messages", lambda route: route.abort())
    field = page.get_by_role("textbox", name="Message", exact=True)
    field.fill("How are photos uploaded?")
    field.press("Enter")
    reload = page.get_by_role("button", name="Reload")
    expect(reload).to_be_visible()
    page.unroute_all()
    place.model.says("With the button.")
    reload.click()

    log = page.get_by_role("log")
    log.get_by_role("button", name="Send again").or_(log.get_by_text("With the button.")).first.click()
    expect(log.get_by_text("With the button.")).to_be_visible()
    page.reload()
    expect(log.get_by_text("With the button.")).to_be_visible()
    expect(log.get_by_text("How are photos uploaded?")).to_have_count(1)


def test_a_first_message_is_in_sight_from_the_moment_it_is_sent(sight: Sight, place: Place) -> None:
    page = sight.page
    held: dict[str, Route] = {}

    def hold(name: str, route: Route) -> None:
        if route.request.method == ("POST" if name == "create" else "GET"):
            held[name] = route
        else:
            route.continue_()

    sight.goto("/")
    sight.choose_agent("pane")
    page.route("**/api/sessions", partial(hold, "create"))
    page.route("**/assets/Chat-*.js", partial(hold, "chat"))
    page.route(re.compile(r"/messages\?"), partial(hold, "messages"))
    place.model.says("With the button.")
    field = page.get_by_role("textbox", name="Message", exact=True)
    field.fill("How are photos uploaded?")
    field.press("Enter")

    words = page.get_by_text("How are photos uploaded?", exact=True).and_(page.locator("p"))
    for name in ("create", "chat", "messages"):
        sight.await_value(partial(held.__contains__, name), True)
        expect(words).to_be_in_viewport()
        expect(words).to_have_count(1)
        expect(page.get_by_role("status").filter(has_text="session").first).to_be_visible()
        held[name].continue_()
    expect(page.get_by_role("log").get_by_text("With the button.")).to_be_visible()
    expect(words).to_have_count(1)
