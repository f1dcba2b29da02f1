"""Heavy requests do not hold the others up: while they run, a server answers as before.

How long the longest pause was is printed; what is asserted is its share of the request, so that a slow machine is none
of its concerns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic
from typing import Any

import httpx2
import pytest

from spec.place import PATIENCE_S, Product, product

MOST_OF_A_REQUEST = 1 / 3
"""The longest time without an answer, as a part of the time that the heavy request takes."""

FELT_S = 0.1
"""A shorter pause is felt by no caller, so how long the request takes does not matter: it may be a quick one."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Product]:
    with product(tmp_path_factory.mktemp("busy") / "data") as place:
        yield place


@dataclass
class Pauses:
    """How often the server answered, and the longest time in which it did not."""

    answers: int = 0
    longest_s: float = 0


@contextmanager
def watched(running: Product) -> Generator[Pauses]:
    """Ask whether the server lives, again and again, until the block ends."""
    seen, begun, over = Pauses(), Event(), Event()

    def ask() -> None:
        with httpx2.Client(base_url=running.http.base_url, timeout=PATIENCE_S * 4) as client:
            last = monotonic()
            while not over.is_set():
                assert client.get("/healthz").is_success
                seen.longest_s = max(seen.longest_s, monotonic() - last)
                last = monotonic()
                seen.answers += 1
                if not begun.is_set():
                    # Before the heavy request, nothing counts.
                    seen.answers, seen.longest_s = 0, 0
                    begun.set()

    thread = Thread(target=ask)
    thread.start()
    begun.wait()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def held_up(running: Product, name: str, request: Callable[[], httpx2.Response]) -> float:
    """Return the longest time without an answer while a request runs, as a part of its time; 0 if none was felt."""
    with watched(running) as pauses:
        began = monotonic()
        response = request()
        took_s = monotonic() - began
    assert response.is_success, response.text
    sys.stdout.write(f"{name}: {took_s:.2f} s, longest pause {pauses.longest_s:.3f} s, {pauses.answers} answers\n")
    return pauses.longest_s / took_s if pauses.longest_s > FELT_S else 0.0


def test_the_first_turn_of_a_process_does_not_hold_the_others_up(running: Product) -> None:
    running.folder("first").agent(model="echo")
    session = running.http.post("/api/sessions", json={"agent": "first"}).json()["id"]

    def ask() -> httpx2.Response:
        return running.http.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})

    assert held_up(running, "first turn", ask) < MOST_OF_A_REQUEST


def test_thousands_of_rules_read_and_used_do_not_hold_the_others_up(running: Product) -> None:
    folder = running.folder("many")
    folder.agent(model="echo", search={"deadline_s": 1})
    for number in range(6000):
        include = "agent" if number % 2 else "always"
        folder.rule(f"r{number}", f"Rule {number}.", include=include, description=f"number {number}")

    def begin() -> httpx2.Response:
        return running.http.post("/api/sessions", json={"agent": "many"})

    # The first to ask for the folder reads it.
    assert held_up(running, "6,000 files, read for the first time", begin) < MOST_OF_A_REQUEST
    session = begin().json()["id"]

    def ask() -> httpx2.Response:
        return running.http.post(f"/api/sessions/{session}/messages", json={"content": "Which is number 70?"})

    assert held_up(running, "6,000 rules", ask) < MOST_OF_A_REQUEST


def test_a_large_import_does_not_hold_the_others_up(running: Product) -> None:
    folder = running.folder("imported")
    document = running.get(f"/sessions/{running.session(folder)}/export")
    at, text = document["events"][-1]["at"], "some words that were said " * 20
    document["events"] += [
        {"seq": seq, "at": at, "event": {"type": "message.added", "role": "user", "content": text, "tokens": 100}}
        for seq in range(len(document["events"]) + 1, 40_000)
    ]

    def send() -> httpx2.Response:
        return running.http.post("/api/sessions/import", json=document)

    assert held_up(running, "import of 25 MB", send) < MOST_OF_A_REQUEST


def test_more_than_makes_sense_is_refused_at_once(running: Product) -> None:
    folder = running.folder("limits")
    session = running.session(folder)
    tools: list[dict[str, Any]] = [
        {"name": f"t{number}", "description": "", "parameters": {}} for number in range(1001)
    ]
    said = [{"id": "m", "role": "user", "content": "Hi"}]
    agui: dict[str, Any] = {"threadId": "t", "runId": "r", "state": {}, "context": [], "forwardedProps": {}}
    functions = [{"type": "function", "function": tool} for tool in tools]

    own = running.http.post(f"/api/sessions/{session}/messages", json={"content": "Hi", "tools": tools})
    chat = running.http.post("/v1/chat/completions", json={"model": "limits", "messages": said, "tools": functions})
    run = running.http.post("/api/agents/limits/ag-ui", json=agui | {"messages": said, "tools": tools})
    empty: dict[str, list[str]] = {f"s{n}": [] for n in range(51)}
    sets = running.http.patch(f"/api/sessions/{session}", json={"context": empty})

    assert [own.status_code, chat.status_code, run.status_code, sets.status_code] == [422, 400, 422, 422]
    assert "1000 items" in own.json()["detail"]
    assert chat.json()["error"]["param"] == "tools"
    assert run.json()["detail"] == "a message can bring 1,000 tools at most, not 1,001; send fewer"
    assert "50 items" in sets.json()["detail"]
