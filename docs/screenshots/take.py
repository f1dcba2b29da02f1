"""Take the pictures of the page again: `make screenshots`.

They show the real page on a real server with a small agent about photos; only the model's words are written here.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from browser.chromium import FLAGS, find_browser  # noqa: E402 - found through the path above
from browser.past import happened_before  # noqa: E402
from browser.place import Place, running_place, tool_call  # noqa: E402
from browser.program import Program  # noqa: E402
from browser.sight import Scheme, Screen, seeing  # noqa: E402

NAMES = (
    "Which album do the photos of last summer belong to?",
    "Share the album of the wedding with the whole family, without letting anyone change it",
    "Old slides from the seventies: scan, name and sort",
    "Printing large: how many pixels does a poster of one metre need?",
    "Why do colours look different on my phone?",
    "Moving 40,000 photos from another archive without losing their dates",
    "Names for files that sort by day",
    "Backups: what is kept, for how long, and where?",
)
SHARING = "Open the album, choose Share, and send its address to those who may see it."
FORMATS = "Photos can be JPEG, PNG, HEIC or raw files; films can be MP4 or MOV files."
ITEMS = {
    "rules/photo-rights.md": (
        "rule",
        "agent",
        40,
        "Whose photos may be uploaded",
        "Only upload photos you took yourself.",
    ),
    "rules/sources.md": ("rule", "always", 5, "Say where it stands", "Name the reference that an answer comes from."),
    "references/albums.md": ("reference", "agent", 120, "How albums are made and shared", SHARING),
    "references/formats.md": ("reference", "agent", 130, "Which file formats can be used", FORMATS),
    "references/house-style.md": ("reference", "always", 300, "How pictures hang", "Frames are made of oak. " * 120),
}
UPLOADING = """Press **Upload** at the top of the album, or drop files onto it.

| size | width | kept as |
|---|---|---|
| small | 600 px | `photo@s.jpg` |
| large | 2400 px | `photo@l.jpg` |

Originals stay as they are; only copies are resized. This comes from *photo-upload*.
"""
RESIZING = """Open the photo in the editor, choose **Size**, and enter a width. For many photos at once:

```python
for photo in album.photos:
    photo.resize(width=1200)  # the height follows
```
"""
NOTED = """You have one note, *welcome*: it says how notes are kept. I can write these steps down as a second one:

- [x] upload with the button at the top
- [ ] resize copies to 1200 pixels
"""
PRICES = "prices:\n  openai:gpt-4o: {input: 2.5, output: 10, cache_read: 1.25}\n"


def main() -> None:
    executable, extra = find_browser()
    with tempfile.TemporaryDirectory() as name, running_place(Path(name)) as place, sync_playwright() as playwright:
        session = furnish(place)
        recorded = record(place)
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS, env={**os.environ, **extra})
        for scheme in ("light", "dark"):
            take(browser, place, session, "desktop", scheme)
            take_xray(browser, place, recorded, "desktop", scheme)
        take(browser, place, session, "phone", "light")
        take_xray(browser, place, recorded, "phone", "light")
        browser.close()
    for picture in sorted(HERE.glob("*.png")):
        print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")


def furnish(place: Place) -> str:
    """Write the agent, talk to it, and let the same have happened on the days before."""
    settings = place.folder / "agents" / "pane" / "agent.yaml"
    settings.write_text(settings.read_text() + PRICES)
    for path, (_, include, priority, description, text) in ITEMS.items():
        front = f"include: {include}\npriority: {priority}\ndescription: {description}"
        place.write(path, f"---\n{front}\n---\n{text}\n")
    past = place.new_session(NAMES[0])
    say(place, past, "How do I share an album?", SHARING, (1460, 42, 0))
    say(place, past, "And which formats can I put into it?", FORMATS, (1510, 31, 1280))
    for day in range(39, 0, -1):
        if day % 7 not in (1, 2):
            for number in range(1 + (day * 5) % 3):
                happened_before(place, past, day, NAMES[(day + 3 * number) % len(NAMES)])
    session = place.new_session("Uploading the photos of the summer to the album that the whole family can see")
    say(place, session, "How are photos uploaded, and how large are they kept?", UPLOADING, (1620, 118, 1280))
    place.model.says("Let me look.", calls=(tool_call("call_1", "notes__list_notes"),), tokens=(1710, 14, 1536))
    say(place, session, "Which notes do I have about that?", NOTED, (1750, 52, 1664))
    say(place, session, "What about resizing?", RESIZING, (1890, 86, 1664))
    files = ["/srv/photos/albums/summer.md", "/srv/photos/sizes.toml"]
    place.call("PATCH", f"/api/sessions/{session}", {"context": {"files": files}})
    return session


def record(place: Place) -> str:
    """Let a program talk to its model through the X-ray door; return the session that was recorded."""
    program = Program(place)
    program.asks("What does the note say?", "I read the note.", "I read it once more to be sure.", "It says **42**.")
    program.asks("And what is it for?", "It is the **number of frames** in the hall.", cached=2048, time="five")
    program.close()
    sessions = place.call("GET", "/api/sessions?limit=100")["sessions"]
    return next(session["id"] for session in sessions if session["origin"])


def say(place: Place, session: str, message: str, answer: str, tokens: tuple[int, int, int]) -> Any:
    return place.ask(session, message, answer, tokens=tokens)


def take(browser: Browser, place: Place, session: str, screen: Screen, scheme: Scheme) -> None:
    with seeing(browser, place.url, screen, scheme) as sight:
        page = sight.page
        if screen == "desktop":
            page.set_viewport_size({"width": 1280, "height": 800})

        def shoot(name: str) -> None:
            page.wait_for_load_state("networkidle")
            page.screenshot(path=HERE / f"{name}-{'phone' if screen == 'phone' else scheme}.png")

        sight.goto("/")
        page.get_by_role("radio", name=re.compile("^guide ")).check(force=True)
        expect(page.get_by_role("list", name="Questions to try")).to_be_visible()
        if screen == "desktop" and scheme == "light":
            shoot("first-minute")
        sight.goto(f"/s/{session}")
        expect(page.get_by_text("photo.resize")).to_be_visible()
        if screen == "phone":
            shoot("chat")
        else:
            expect(page.get_by_role("row", name="Together")).to_be_visible()
            shoot("chat")
            preview(page)
            shoot("next-message")
            page.get_by_role("textbox", name="Message", exact=True).fill("")
        sight.goto(f"/s/{session}/t/3")
        expect(page.get_by_role("dialog")).to_contain_text("photo-resizing")
        shoot("view-context")
        sight.goto("/analytics")
        expect(page.get_by_role("listitem").filter(has_text="house-style").first).to_be_visible()
        shoot("analytics")
        sight.goto("/agents/pane/reference/photo-upload")
        expect(page.get_by_role("textbox", name="Description")).to_be_visible()
        shoot("agent")


def take_xray(browser: Browser, place: Place, recorded: str, screen: Screen, scheme: Scheme) -> None:
    with seeing(browser, place.url, screen, scheme) as sight:
        page = sight.page
        sight.goto(f"/s/{recorded}")
        expect(page.get_by_role("log").get_by_text("number of frames")).to_be_visible()
        if screen == "phone":
            page.get_by_role("button", name="Context panel").click()
        expect(page.get_by_role("region", name="X-ray").get_by_text("The prefix broke at").first).to_be_visible()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=HERE / f"xray-{'phone' if screen == 'phone' else scheme}.png")
        if screen == "phone" or scheme == "dark":
            return
        page.get_by_role("link", name="View Context").first.click()
        view = page.get_by_role("dialog", name="Context of turn 1")
        view.get_by_role("button", name=re.compile("^3 · answer")).click()
        call = view.get_by_role("region", name="Call 3")
        expect(call.get_by_role("row", name=re.compile("System prompt Style"))).to_be_visible()
        call.scroll_into_view_if_needed()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=HERE / "xray-call.png")


def preview(page: Page) -> None:
    """Write a message without sending it, and wait until the panel shows what it would select."""
    page.get_by_role("textbox", name="Message", exact=True).fill("Which file formats can I upload to an album?")
    expect(page.get_by_role("complementary", name="Context").get_by_text("formats").first).to_be_visible()
    page.wait_for_timeout(1500)


if __name__ == "__main__":
    main()
