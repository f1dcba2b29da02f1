"""What a test sees of the page: a window of some size, and everything that went wrong in it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, expect

Screen = Literal["desktop", "phone"]
Scheme = Literal["light", "dark"]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SCREENS: dict[Screen, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1360, "height": 860}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}
AXE = files("axe_playwright_python") / "axe.min.js"
LOOK = """async ([part, rules]) => {
    const layout = () => JSON.stringify([...document.querySelectorAll('body *')].map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect()
        return [x, y, width, height].map(Math.round)
    }))
    const frame = () => new Promise(requestAnimationFrame)
    const lies = async (frames) => {
        const before = layout()
        for (let count = 0; count < frames; count++) await frame()
        return layout() === before
    }
    let violations = []
    for (let tries = 0; tries < 20; tries++) {
        for (let waits = 0; waits < 100 && !(await lies(5)); waits++);
        const before = layout()
        violations = (await axe.run(part, { runOnly: rules, resultTypes: ['violations'] })).violations
        if (layout() === before) break
    }
    const open = [...document.querySelectorAll('[popover]:popover-open')]
    const covered = ({ target }) => {
        const one = open.length && document.querySelector(target[0])
        const at = one && one.getBoundingClientRect()
        return open.some((over) => {
            const box = over.getBoundingClientRect()
            const apart = !one || over.contains(one) || at.left >= box.right || at.right <= box.left
            return !apart && at.top < box.bottom && at.bottom > box.top
        })
    }
    const seen = ({ id, nodes }) => (id === 'color-contrast' ? nodes.filter((node) => !covered(node)) : nodes)
    return violations.map((rule) => ({ ...rule, nodes: seen(rule) })).filter((rule) => rule.nodes.length)
}"""
"""Checks every rule on the whole page, once its layout lies still, and again if it moved meanwhile.

Where a popover or a short message lies over the page, the colours of what lies below it are left out: axe would hold
them against the colours that hide them.
"""
PATIENCE_MS = 120_000
"""What a page shows comes from a server that runs already, so this is not the patience with a start."""
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Sight:
    """A page in a browser, and what a user of it would complain about."""

    page: Page
    url: str
    screen: Screen
    expected: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    @property
    def narrow(self) -> bool:
        return self.screen == "phone"

    def goto(self, path: str = "/") -> None:
        self.page.goto(self.url + path)

    def choose_agent(self, name: str) -> None:
        """Choose who answers a new session, by its card: the radio button itself is out of sight."""
        radio = self.page.get_by_role("radio", name=re.compile(f"^{name} "))
        self.page.locator("label").filter(has=radio).click()
        expect(radio).to_be_checked()

    def await_value(self, read: Callable[[], object], expected: object) -> None:
        """Wait until something that is read from the page is as expected, such as a place in a layout that moves."""
        until = time.monotonic() + PATIENCE_MS / 1000
        while (found := read()) != expected and time.monotonic() < until:
            self.page.wait_for_timeout(50)
        assert found == expected

    def check(self) -> None:
        """Fail when anything went wrong, or when the page is wider than its window."""
        self.page.wait_for_load_state("load")
        problems = [problem for problem in self.problems if not any(word in problem for word in self.expected)]
        assert problems == [], problems
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"

    def check_access(self, within: str = "html") -> None:
        """Fail when a rule for accessible pages is broken in the page, or in a part of it."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate(LOOK, [within, RULES])
        broken = [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
        assert broken == [], broken

    def shoot(self, name: str) -> None:
        """Keep a picture, if $SCREENSHOTS names a folder for them."""
        if folder := os.environ.get("SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder, f"{name}-{self.screen}.png"))


@contextmanager
def seeing(browser: Browser, url: str, screen: Screen = "desktop", scheme: Scheme = "light") -> Generator[Sight]:
    """Open a window and close it again."""
    context = browser.new_context(**SCREENS[screen], color_scheme=scheme, reduced_motion="reduce", locale="en-GB")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    sight = Sight(page, url, screen)

    def crashed(error: Error) -> None:
        sight.problems.append(str(error))

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            sight.problems.append(message.text)

    def asked(request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(url).netloc:
            sight.problems.append(f"a request to another origin: {request.url}")

    page.on("pageerror", crashed)
    page.on("console", said)
    page.on("request", asked)
    try:
        yield sight
    finally:
        context.close()
