from __future__ import annotations

import re
from typing import cast

import pytest
from playwright.sync_api import Browser, expect

from browser.place import Place
from browser.sight import Scheme, Screen, seeing


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", ["desktop", "phone"])
def test_no_screen_breaks_a_rule_of_access_or_of_the_policy(
    browser: Browser, place: Place, screen: str, scheme: str
) -> None:
    session = place.new_session("Everything")
    place.ask(session, "How are photos uploaded?", "With the button at the **top**.")
    place.call("PATCH", f"/api/sessions/{session}", {"context": {"files": [str(place.folder / "files" / "a.md")]}})
    (place.folder / "files" / "a.md").write_text("# A\n\nText.\n")
    addresses = {
        "/": "What would you like to know?",
        f"/s/{session}": "With the button at the",
        f"/s/{session}/t/1": "Context of turn 1",
        f"/s/{session}/t/1/items/rule/tone": "tone",
        f"/s/{session}?applet=debug": "Has Summary:",
        f"/s/{session}?applet=text-editor&path={place.folder}/files/a.md": "a.md",
        f"/s/{session}?applet=git-diff&repo={place.folder}/files": "git",
        "/s/ses_missing": "There is no such session",
        "/agents": "Answers questions about photos",
        "/agents/pane": "photo-upload",
        "/agents/pane/rule/tone": "tone",
        "/agents/pane/reference/photo-upload": "photo-upload",
        "/agents/pane/new/rule": "rule",
        "/agents/pane/settings": "agent.yaml",
        "/analytics": "Where tokens go",
    }
    with seeing(browser, place.url, cast("Screen", screen), cast("Scheme", scheme)) as sight:
        sight.expected += ["404", "422", "409"]
        page = sight.page
        page.add_init_script(
            "blocked = []; addEventListener('securitypolicyviolation', event => blocked.push(event.violatedDirective))"
        )
        for address, text in addresses.items():
            sight.goto(address)
            expect(page.get_by_text(text).or_(page.get_by_role("dialog")).first).to_be_visible()
            page.wait_for_load_state("networkidle")
            sight.shoot(
                f"all{re.sub(r'[^a-z]+', '-', address.replace(session, 's').replace(str(place.folder), ''))}-{scheme}"
            )
            try:
                sight.check_access()
                sight.check()
                assert page.evaluate("blocked") == []
            except AssertionError as error:
                raise AssertionError(f"{address}: {error}") from None
        sight.goto(f"/s/{session}")
        for name in ("Attach a page", re.compile("^Mode"), re.compile("^Model:")):
            page.get_by_role("button", name=name).first.click()
            expect(page.locator("[popover]:popover-open")).to_be_visible()
            sight.check_access()
            page.keyboard.press("Escape")
