"""How the page feels: how much must arrive before it can be used, how a long conversation scrolls, and how typing
stays while an answer streams in.

The server is a process of its own on a real SQLite file; the browser is a headless Chromium on the same machine, so the
server, the provider and the browser share its processors. Each number stands beside the same number without the load:
a short conversation beside a long one, typing in silence beside typing while an answer streams. Run it with
`.venv/bin/python bench/page.py` after `make page`.
"""

import gzip
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import Page, sync_playwright

from browser.chromium import FLAGS, find_browser
from browser.long_session import long_session
from browser.place import Place, running_place
from windowpane.server.page import BUNDLE

MESSAGES = 3000
LOADS = 5
WORDS_A_SECOND = 100
STREAM_S = 8
TYPED = "The quick brown fox jumps over the lazy dog, and nobody waits for it."
WATCH = """() => {
  window.tasks = []; window.events = []
  new PerformanceObserver(list => tasks.push(...list.getEntries().map(one => one.duration))).observe({type: 'longtask'})
  new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (one.name === 'keydown') events.push(one.duration)
  }).observe({type: 'event', durationThreshold: 16})
}"""
SCROLL = """async ([distance, frames]) => {
  const box = document.querySelector('.scroll'), taken = []
  let before = performance.now()
  for (let index = 0; index < frames; index++) {
    box.scrollTop += distance
    await new Promise(requestAnimationFrame)
    const now = performance.now()
    taken.push(now - before)
    before = now
  }
  return taken
}"""


def main() -> None:
    executable, extra = find_browser()
    with tempfile.TemporaryDirectory() as name, running_place(Path(name)) as place, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS, env={**os.environ, **extra})
        short, long = long_session(place, 20, "Short"), long_session(place, MESSAGES, "Long")
        weigh()
        load(browser.new_page, place, short, long)
        page = browser.new_page()
        scroll(page, place, short, long)
        type_words(page, place, short, long)
        browser.close()


def weigh() -> None:
    """Say how much script comes with the first load, as the server sends it."""
    named = set(re.findall(r'(?:src|href)="/([^"]+\.js)"', (BUNDLE / "index.html").read_text()))
    sizes = [len(gzip.compress((BUNDLE / path).read_bytes())) for path in named]
    print(f"script of the first load: {sum(sizes) / 1000:.1f} kB compressed, in {len(sizes)} files\n")


def load(new_page: Callable[[], Page], place: Place, short: str, long: str) -> None:
    print("| open a session | until one can write: median | slowest |")
    print("|---|---|---|")
    for name, session in (("20 messages", short), (f"{MESSAGES:,} messages", long)):
        taken: list[float] = []
        for _ in range(LOADS):
            page = new_page()
            began = time.perf_counter()
            page.goto(f"{place.url}/s/{session}")
            page.get_by_role("textbox", name="Message", exact=True).wait_for()
            taken.append(time.perf_counter() - began)
            page.context.close()
        print(f"| {name} | {median(taken) * 1000:.0f} ms | {max(taken) * 1000:.0f} ms |")
    print()


def scroll(page: Page, place: Place, short: str, long: str) -> None:
    print("| scroll | messages on the page | frame: median | 95th | slowest | frames over 50 ms |")
    print("|---|---|---|---|---|---|")
    for session in (short, long):
        open_whole(page, place, session)
        count = page.locator(".message").count()
        page.evaluate("document.querySelector('.scroll').scrollTop = 0")
        page.wait_for_timeout(500)
        frames = sorted(page.evaluate(SCROLL, [900, 300]))
        slow = sum(frame > 50 for frame in frames)
        line = [
            f"{frames[len(frames) // 2]:.1f} ms",
            f"{frames[int(len(frames) * 0.95)]:.1f} ms",
            f"{frames[-1]:.0f} ms",
        ]
        print(
            f"| {'short' if session == short else 'long'} | {count:,} | {' | '.join(line)} | {slow} of {len(frames)} |"
        )
    print()


def open_whole(page: Page, place: Place, session: str) -> None:
    """Open a session and read it up to its first message, as somebody would by scrolling."""
    page.goto(f"{place.url}/s/{session}")
    page.get_by_role("textbox", name="Message", exact=True).wait_for()
    began, pages = time.perf_counter(), 0
    while (
        page.get_by_role("button", name="Show earlier messages").count() or page.get_by_text("Loading earlier").count()
    ):
        before = page.locator(".message").count()
        page.evaluate("document.querySelector('.scroll').scrollTop = 0")
        page.wait_for_function("count => document.querySelectorAll('.message').length > count", arg=before)
        pages += 1
    if pages:
        print(f"(read {pages} earlier pages in {time.perf_counter() - began:.1f} s)", file=sys.stderr)


def type_words(page: Page, place: Place, short: str, long: str) -> None:
    print("| type | while | key to paint: median | slowest | longest task | tasks over 50 ms |")
    print("|---|---|---|---|---|---|")
    for name, session in (("20 messages", short), (f"{MESSAGES:,} messages, all on the page", long)):
        for streaming in (False, True):
            open_whole(page, place, session)
            keys, tasks = typed(page, place, streaming)
            while_ = f"an answer streams, {WORDS_A_SECOND} words a second" if streaming else "it is quiet"
            line = [f"{median(keys):.0f} ms", f"{max(keys):.0f} ms", f"{max(tasks, default=0):.0f} ms", str(len(tasks))]
            print(f"| {name} | {while_} | {' | '.join(line)} |")


def typed(page: Page, place: Place, streaming: bool) -> tuple[list[float], list[float]]:
    """Type a sentence and return how long each key took until it was painted, and the tasks that kept the page busy."""
    field = page.get_by_role("textbox", name="Message", exact=True)
    streamer = None
    if streaming:
        answer = place.model.says_slowly(*words())
        field.fill("Tell me everything")
        field.press("Enter")
        page.get_by_role("button", name="Stop", exact=True).wait_for()
        page.get_by_text("word1,").first.wait_for()

        def stream() -> None:
            for _ in range(STREAM_S * WORDS_A_SECOND):
                answer.go_on()
                time.sleep(1 / WORDS_A_SECOND)
            answer.finish()

        streamer = threading.Thread(target=stream)
        streamer.start()
    page.evaluate(WATCH)
    field.press_sequentially(TYPED, delay=60)
    page.wait_for_timeout(300)
    keys, tasks = page.evaluate("[events, tasks]")
    field.fill("")
    if streamer:
        streamer.join()
        page.get_by_role("button", name="Send", exact=True).wait_for()
    # Faster than 16 ms is not told: it counts as that.
    return [*keys, *([16.0] * (len(TYPED) - len(keys)))], tasks


def words() -> list[str]:
    count = STREAM_S * WORDS_A_SECOND
    return [
        f"word{index}, " if index % 40 else f"word{index}.\n\n- **point** `{index}`: " for index in range(1, count + 1)
    ]


if __name__ == "__main__":
    main()
