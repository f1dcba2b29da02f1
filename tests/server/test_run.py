from __future__ import annotations

import json
import signal
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from forked import Forked, forked
from patience import PATIENCE_S
from server.place import engine_of
from server.serving import serve as serve_scripted
from windowpane.callers import TokenFile, token_needed_at
from windowpane.errors import InvalidSettingError, StoreCorruptError
from windowpane.server.process.run import run, serve
from windowpane.serving.sockets import listening
from windowpane.settings import Settings
from windowpane.testing import World


@contextmanager
def process(folder: Path, *replies: tuple[str, str]) -> Generator[tuple[Forked, httpx2.Client]]:
    """Run a server in a process of its own."""
    with (
        forked(serve_scripted, folder, replies, log=folder / "log") as running,
        httpx2.Client(base_url=running.said, timeout=PATIENCE_S) as client,
    ):
        yield running, client


def test_a_waiting_approval_survives_a_server_that_is_killed(tmp_path: Path) -> None:
    with process(tmp_path, ("Let me look.", "c1")) as (running, client):
        session = client.post("/api/sessions", json={}).json()["id"]
        waiting = client.post(f"/api/sessions/{session}/messages", json={"content": "What is in a?"}).json()
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL

    with process(tmp_path, ("It is empty.", "")) as (_, client):
        held = client.get(f"/api/sessions/{session}").json()["open_turn"]
        done = client.post(f"/api/sessions/{session}/approvals", json={"decisions": {"c1": "allow_once"}}).json()
        context = client.get(f"/api/sessions/{session}/turns/1/context").json()

    assert waiting["outcome"] == held["state"] == "waiting"
    assert waiting["approvals"] == held["approvals"]
    assert (done["turn"], done["outcome"], done["text"]) == (1, "completed", "Let me look.\n\nIt is empty.")
    assert done["messages"][-1]["model_reply"]["steps"][0]["results"][0]["content"] == "contents of a"
    assert {item.pop("changed_since") for item in context["items"]} == {"unchanged"}
    assert done["request_context"] == waiting["request_context"] == context


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_asked_to_stop_closes_everything_and_ends_well(tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path, ("Hello.", "")) as (running, client):
        session = client.post("/api/sessions", json={}).json()["id"]
        client.post(f"/api/sessions/{session}/messages", json={"content": "My secret question"})
        running.send_signal(number)
        code = running.wait()

    log = (tmp_path / "log").read_text()
    assert code == 0, log
    assert not (tmp_path / "windowpane.db-wal").exists()
    lines = [json.loads(line) for line in log.splitlines()]
    requests = [line for line in lines if line["event"] == "http.request"]
    assert [(line["method"], line["status"], line["level"]) for line in requests] == [
        ("POST", 201, "info"),
        ("POST", 200, "info"),
    ]
    assert all(line["request"] and line["timestamp"] for line in requests)
    assert "secret" not in log


def test_a_turn_that_outlasts_the_server_is_recorded_as_interrupted_with_what_it_said(tmp_path: Path) -> None:
    with process(tmp_path, ("So far.", "never")) as (running, client):
        session = client.post("/api/sessions", json={}).json()["id"]
        path, headers = f"/api/sessions/{session}/messages", {"Accept": "text/event-stream"}
        with client.stream("POST", path, json={"content": "Hi"}, headers=headers) as response:
            lines = response.iter_lines()
            while "far." not in next(lines):
                pass
            running.send_signal(signal.SIGTERM)
            code = running.wait()

    with process(tmp_path, ("Hello.", "")) as (_, client):
        turn = client.get(f"/api/sessions/{session}/turns/1").json()
        after = client.post(f"/api/sessions/{session}/messages", json={"content": "Hi"}).json()

    assert code == 0, (tmp_path / "log").read_text()
    assert (turn["outcome"], turn["text"]) == ("interrupted", "So far.")
    assert (after["turn"], after["text"]) == (2, "Hello.")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", "", "localhost.example.com"])
def test_an_address_that_others_can_reach_is_refused_as_long_as_there_is_no_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        token_needed_at(host, TokenFile(tmp_path / "tokens.json"), None)

    assert str(refused.value) == (
        f"host: others can reach {host!r}, and there is no token yet that keeps them out; make one with "
        "`windowpane token create --owner NAME --scope manage`, or use 127.0.0.1"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_no_token_unless_the_settings_say_so(tmp_path: Path, host: str) -> None:
    assert not token_needed_at(host, TokenFile(tmp_path / "tokens.json"), None)
    assert token_needed_at(host, TokenFile(tmp_path / "tokens.json"), True)


def test_no_answer_waits_for_the_client_to_confirm_its_first_half() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


async def test_a_port_that_is_taken_is_a_clear_error(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(InvalidSettingError) as refused:
            await serve(Settings(port=port, data=world.root), engine_of(world))

    taken = f"cannot listen on 127.0.0.1 port {port}: Address already in use"
    assert str(refused.value) == f"port: {taken}; choose another: --port, or WINDOWPANE_PORT"


async def test_a_store_that_cannot_be_opened_is_our_error(world: World, tmp_path: Path) -> None:
    (tmp_path / "windowpane.db").write_text("not a database at all, but long enough to look like one" * 100)

    with pytest.raises(StoreCorruptError):
        await serve(Settings(port=0, data=tmp_path), engine_of(world))


def test_a_log_level_that_is_none_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        run(Settings(data=tmp_path, log_level="loud"))

    assert str(refused.value) == "log_level: must be one of debug, info, warning, error, not 'loud'"


@pytest.mark.spec("S2.40")
def test_a_listener_of_one_server_hears_what_another_does_and_misses_nothing_after_a_gap(tmp_path: Path) -> None:
    with process(tmp_path, ("Hello.", "")) as (_, one), process(tmp_path, ("Hello.", "")) as (_, other):
        session = one.post("/api/sessions", json={}).json()["id"]
        path = f"/api/sessions/{session}/events"
        with other.stream("GET", path) as response:
            lines = response.iter_lines()
            loaded = next_event(lines)
            one.patch(f"/api/sessions/{session}", json={"setContext": {"setName": "ports", "items": ["80"]}})
            changed = next_event(lines)
        one.post(f"/api/sessions/{session}/messages", json={"content": "Hi"})
        with other.stream("GET", path, headers={"Last-Event-ID": str(changed["seq"])}) as response:
            lines = response.iter_lines()
            after = [next_event(lines) for _ in range(5)]

    assert loaded == {"type": "session.context", "data": {"reason": "load", "context": {}}}
    assert changed["data"] == {"reason": "changed", "context": {"ports": ["80"]}, "setName": "ports"}
    assert [event.get("seq") for event in after[:-1]] == list(range(changed["seq"] + 1, changed["seq"] + 5))
    assert [event["type"] for event in after] == [
        "turn.started",
        "request.built",
        "model.replied",
        "turn.finished",
        "session.context",
    ]


def test_a_server_that_is_asked_to_stop_does_not_wait_for_those_who_watch(tmp_path: Path) -> None:
    with process(tmp_path, ("Hello.", "")) as (running, client):
        session = client.post("/api/sessions", json={}).json()["id"]
        with (
            client.stream("GET", f"/api/sessions/{session}/events") as response,
            connect(f"{client.base_url}/api/sessions/{session}/events".replace("http", "ws", 1)) as socket,
        ):
            lines = response.iter_lines()
            next_event(lines)
            socket.recv(60)
            running.send_signal(signal.SIGTERM)
            rest = list(lines)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(60)
        code = running.wait()

    log = (tmp_path / "log").read_text()
    assert code == 0, log
    assert rest in ([], [""])
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code in (1001, 1012)
    assert "timeout graceful shutdown exceeded" not in log


def next_event(lines: Iterator[str]) -> dict[str, Any]:
    return json.loads(next(line for line in lines if line.startswith("data: ")).removeprefix("data: "))
