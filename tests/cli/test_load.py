"""`windowpane load`: real turns on a real server, counted and measured, and nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.running import windowpane
from cli.serving import server
from server.place import listening
from windowpane import telemetry
from windowpane.agents.folder import FolderAgents
from windowpane.client.load import Load, durations, is_local, put_under_load
from windowpane.engine import Engine
from windowpane.models.provider import PydanticModels
from windowpane.server.app import create_app
from windowpane.telemetry import Measured
from windowpane.testing import Reply, World

RUN = ("load", "guide", "--sessions", "3", "--turns", "2", "--chars", "80")


@pytest.fixture(scope="module")
def url(data: Path) -> Generator[str]:
    with server(data) as url:
        yield url


def test_a_run_is_reported_and_deletes_its_sessions(data: Path, url: str) -> None:
    before = windowpane(data, "sessions", "--json", "--url", url).out
    done = windowpane(data, *RUN, "--concurrency", "1", "--json", "--url", url)
    report = json.loads(done.out)
    after = windowpane(data, "sessions", "--json", "--url", url).out

    times = [report.pop(name) for name in ("first_word", "whole")]
    assert all(0 < time["p50_s"] <= time["p95_s"] <= time["p99_s"] <= report["duration_s"] for time in times)
    assert times[0]["p50_s"] <= times[1]["p50_s"]
    assert report.pop("turns_per_s") == pytest.approx(6 / report.pop("duration_s"))
    assert (report.pop("sent_bytes"), report.pop("received_bytes") > 6 * 80) == (
        6 * len(json.dumps({"content": "x" * 80, "wait_s": 0})),
        True,
    )
    assert report == {
        "load": {"agent": "guide", "sessions": 3, "turns": 2, "concurrency": 1, "chars": 80, "keep": False},
        "completed": 6,
        "refused": 0,
        "errors": {},
    }
    assert (done.code, done.err, after) == (0, "", before)


def test_sessions_can_be_kept_and_the_report_is_for_people_too(data: Path, url: str) -> None:
    done = windowpane(data, *RUN, "--concurrency", "1", "--keep", "--url", url)
    kept = json.loads(windowpane(data, "sessions", "--json", "--url", url).out)

    lines = done.out.splitlines()
    assert lines[0] == "2 turns in each of 3 sessions, 1 at once, messages of 80 characters"
    assert lines[1].startswith("6 turns in ")
    assert [line.partition("  ")[0] for line in lines[2:]] == [
        "to the first word",
        "to the end",
        "sent, received",
        "refused with 429",
    ]
    assert sorted((session["name"], session["turns"]) for session in kept) == [
        ("load 1", 2),
        ("load 2", 2),
        ("load 3", 2),
    ]


def test_turns_that_fail_are_counted_by_their_code(data: Path, url: str) -> None:
    manifest = data / "agents" / "guide" / "agent.yaml"
    before = manifest.read_text()
    manifest.write_text("model: openai:gpt-5-mini\nsearch: {enabled: false}\n")
    try:
        done = windowpane(data, *RUN, "--concurrency", "1", "--json", "--url", url)
    finally:
        manifest.write_text(before)
    report = json.loads(done.out)

    assert (done.code, report["completed"], report["errors"]) == (1, 0, {"unknown_model": 6})
    assert (report["first_word"], report["whole"]) == (None, None)


@pytest.mark.anyio
async def test_a_turn_that_is_refused_is_sent_again_when_the_server_says(tmp_path: Path) -> None:
    world, refused = World(tmp_path / "agents"), anyio.Event()
    world.says(Reply("One.", before_end=refused), "Two.")

    def hear(measured: Measured) -> None:
        if measured.operation == "refusal":
            refused.set()

    engine = Engine(
        store=world.store,
        agents=FolderAgents(world.root),
        models=PydanticModels(scripts=[world.model], environ={}),
        toolbox=lambda: world.toolbox,
        max_turns=1,
    )
    async with listening(create_app(engine)) as address:
        with telemetry.listening(lambda _: None, hear):
            report = await put_under_load(address, Load(sessions=2, turns=1, concurrency=2))
        left = await world.store.sessions("local", limit=9)

    assert (report.completed, report.errors, left.rows) == (2, {}, ())
    assert report.refused >= 1


@pytest.mark.parametrize("address", ["http://pane.example", "https://10.0.0.7:8470"])
def test_a_server_elsewhere_is_left_alone_without_a_yes(data: Path, address: str) -> None:
    done = windowpane(data, *RUN, "--url", address)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {address} is not on this machine")


def test_without_an_address_it_is_the_server_of_this_machine_on_its_port(data: Path, url: str) -> None:
    done = windowpane(data, *RUN, "--json", WINDOWPANE_PORT=url.rpartition(":")[2])

    assert (done.code, json.loads(done.out)["completed"]) == (0, 6)


def test_a_server_that_is_not_there_is_told(data: Path) -> None:
    done = windowpane(data, *RUN, "--url", "http://127.0.0.1:9")

    assert (done.code, done.out) == (1, "")
    assert "http://127.0.0.1:9" in done.err


@pytest.mark.parametrize("address", ["http://localhost:8470", "http://127.3.2.1", "http://[::1]:8470"])
def test_this_machine_is_known_by_its_addresses(address: str) -> None:
    assert is_local(address)


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1))
def test_of_a_hundred_turns_so_many_took_no_longer(measured: list[float]) -> None:
    found = durations(measured)

    assert found is not None
    for share, time_s in ((50, found.p50_s), (95, found.p95_s), (99, found.p99_s)):
        assert time_s in measured
        assert sum(one <= time_s for one in measured) * 100 >= share * len(measured)
        assert sum(one < time_s for one in measured) * 100 < share * len(measured)
