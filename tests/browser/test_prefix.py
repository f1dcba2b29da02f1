"""The page below a prefix of its host: every link, asset, call and socket stays below it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from playwright.sync_api import Browser, expect

from browser.place import Place, serving, speaking
from browser.sight import seeing
from patience import PATIENCE_S


def test_below_a_prefix_a_conversation_its_context_and_every_link_work(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    with (
        speaking() as model,
        serving(tmp_path, model, WINDOWPANE_ROOT_PATH="/my/pane") as url,
        httpx2.Client(base_url=f"{url}/my/pane", timeout=PATIENCE_S) as http,
        seeing(browser, f"{url}/my/pane") as sight,
    ):
        place = Place(url, model, tmp_path, http)
        page = sight.page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        model.says("Photos are uploaded with the button.")

        session = place.new_session("Photos")
        sight.goto()
        page.get_by_role("link", name="Photos").first.click()
        expect(page).to_have_url(f"{url}/my/pane/s/{session}")
        message = page.get_by_role("textbox", name="Message", exact=True)
        message.fill("How are photos uploaded?")
        message.press("Enter")
        expect(page.get_by_role("log").get_by_text("Photos are uploaded with the button.")).to_be_visible()
        sight.goto(f"/s/{session}/t/1")
        expect(page.get_by_text("photo-upload").first).to_be_visible()
        page.go_back()
        page.get_by_role("link", name="Agents").first.click()
        expect(page).to_have_url(f"{url}/my/pane/agents")
        links = page.locator("a[href]").evaluate_all("links => links.map((link) => link.href)")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        sight.check()

    paths = {urlsplit(each).path for each in (*asked, *links) if not each.startswith(("blob:", "data:"))}
    assert [path for path in paths if path != "/my/pane" and not path.startswith("/my/pane/")] == []
    assert any(each.startswith("ws:") for each in asked)
