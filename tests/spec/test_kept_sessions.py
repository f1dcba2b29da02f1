"""What is kept of sessions, and of how many: a server whose sessions expire, with a search engine on the wire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spec.place import MODEL, Product, product
from wire import openai_chat
from wire.reply import WireReply
from wire.server import json_answer


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with the profile `ephemeral` as it comes, and a search engine."""
    with product(
        tmp_path_factory.mktemp("short"),
        WINDOWPANE_PROFILE="ephemeral",
        WINDOWPANE_SEARCH_ENGINE="searxng",
        SEARXNG_URL="{wire}",
    ) as running:
        yield running


@pytest.mark.spec("S4.6")
def test_message_answer_search_result_and_page_are_each_kept_with_what_is_known_of_them(short: Product) -> None:
    session = short.session(short.folder("kept"), settings={"mode": "research"})
    page = {"url": "https://tides.example/today", "title": "Today", "text": "Low tide is at six."}
    short.ok(short.http.post(f"/api/sessions/{session}/pages", json=page))
    result = {"url": "https://moon.example/tides", "title": "Moon and tides", "content": "High tide is at noon."}
    short.wire.forget()
    short.wire.add(json_answer(200, {"results": [result]}), openai_chat.answer(WireReply(text=("At noon.",))))
    short.ok(short.http.post(f"/api/sessions/{session}/messages", json={"content": "When is high tide?"}))

    question, answer = short.get(f"/sessions/{session}/messages")["messages"]
    added = [
        entry
        for entry in short.get(f"/sessions/{session}/export")["events"]
        if entry["event"]["type"] == "fetched.added"
    ]
    kept = {item["kind"]: item for entry in added for item in entry["event"]["items"]}

    assert _facts(question, "role", "content", "turn") == ("user", "When is high tide?", 1)
    step = answer["model_reply"]["steps"][0]
    assert _facts(answer, "role", "outcome", "turn") == ("assistant", "completed", 1)
    assert _facts(step, "text", "model", "finish_reason") == ("At noon.", openai_chat.MODEL, "stop")
    assert _facts(step["usage"], "input_tokens", "output_tokens") == (11, 7)
    assert {source["title"] for source in answer["sources"]} == {"Today", "Moon and tides"}
    assert _facts(kept["web_search"], "url", "title", "content", "query") == (
        "https://moon.example/tides",
        "Moon and tides",
        "High tide is at noon.",
        "When is high tide?",
    )
    assert _facts(kept["page"], "url", "title", "content") == (page["url"], "Today", "Low tide is at six.")
    assert all(entry["at"] for entry in (question, answer, *added))
    context = short.get(f"/sessions/{session}/turns/1/context")
    assert context["settings"]["model"] == MODEL


def _facts(entry: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(entry[name] for name in names)


@pytest.mark.spec("S4.66")
def test_whoever_reads_a_session_has_used_it(short: Product) -> None:
    folder = short.folder("read")
    first, second = short.session(folder), short.session(folder)

    short.get(f"/sessions/{first}")

    assert [session["id"] for session in short.get("/sessions", agent=folder.name)["sessions"]] == [first, second]


@pytest.mark.spec("S4.67")
def test_of_five_hundred_and_two_sessions_the_five_hundred_that_were_begun_last_are_kept(short: Product) -> None:
    folder = short.folder("many")

    begun = [short.session(folder) for _ in range(502)]

    pages: list[str] = []
    cursor: str | None = None
    while True:
        page = short.get("/sessions", limit=100, **({"cursor": cursor} if cursor else {}))
        pages += [session["id"] for session in page["sessions"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert pages == begun[:1:-1]
    assert [short.http.get(f"/api/sessions/{session}").status_code for session in begun[:3]] == [404, 404, 200]
