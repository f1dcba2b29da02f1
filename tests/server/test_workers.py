"""Several workers: real processes on one socket and one SQLite file, with a real provider's wire behind them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from patience import PATIENCE_S
from server.test_run import next_event
from windowpane.callers import TokenFile
from windowpane.context.events import ModelReplied, Recorded, TurnFinished
from windowpane.context.ids import SessionId
from windowpane.stores.sqlite.store import SQLiteStore
from wire import openai_chat
from wire.reply import WireReply
from wire.server import Answer, Step, WireServer, running

EVENTS = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Served:
    """A server, the folder with its data, the provider behind it, and a client of it."""

    folder: Path
    process: subprocess.Popen[str]
    wire: WireServer
    client: httpx2.Client

    @property
    def workers(self) -> set[int]:
        """The processes that answer requests."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return {
            int(pid) for pid in listed.split() if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        }

    def shared(self, pid: int) -> bool:
        """Tell whether a worker was forked: it runs the very program of the process that keeps it."""
        return Path(f"/proc/{pid}/cmdline").read_bytes() == Path(f"/proc/{self.process.pid}/cmdline").read_bytes()

    def worker_of_turn(self) -> int:
        """The worker that is connected to the provider."""
        port = int(self.wire.url.rpartition(":")[2])
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {row[9] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == "01"}
        for pid in self.workers:
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(entry.readlink()).removeprefix("socket:[").removesuffix("]") in inodes:
                        return pid
        raise AssertionError("no worker is connected")

    def session(self) -> str:
        return self.client.post("/api/sessions", json={}).json()["id"]

    def log(self, session: str) -> list[Recorded]:
        """Return everything in a session's log, also when the server has ended."""

        async def read() -> list[Recorded]:
            async with SQLiteStore(self.folder / "windowpane.db") as store:
                return await store.read(SessionId(session))

        return asyncio.run(read())


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def served(portal: BlockingPortal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of two workers. It is started once, because that takes long, and the last test stops it."""
    with workers(portal, tmp_path_factory.mktemp("workers"), grace_s="8") as served:
        yield served


@contextmanager
def workers(portal: BlockingPortal, folder: Path, **settings: str) -> Generator[Served]:
    """Run `windowpane serve --workers 2`."""
    command = [sys.executable, "-m", "windowpane", "serve", "--workers", "2", "--port", "0"]
    with (
        portal.wrap_async_context_manager(running()) as wire,
        (folder / "log").open("a") as log,
        ended(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment(folder, wire, **settings)
            )
        ) as process,
    ):
        assert process.stdout is not None
        ready = next(line for line in process.stdout if line.startswith("Windowpane is at "))
        with httpx2.Client(base_url=ready.split()[3], timeout=PATIENCE_S) as client:
            yield Served(folder, process, wire, client)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Generator[subprocess.Popen[str]]:
    """Ask a process to stop when the block ends; its own children end with it."""
    with process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def environment(folder: Path, wire: WireServer | None, **settings: str) -> dict[str, str]:
    (folder / "agents/pane/prompts").mkdir(parents=True, exist_ok=True)
    (folder / "agents/pane/agent.yaml").write_text("model: openai:gpt-4o\n")
    (folder / "agents/pane/prompts/core.md").write_text("You are Pane.")
    given = {name: value for name, value in os.environ.items() if not name.startswith("WINDOWPANE_")}
    given |= {"WINDOWPANE_DATA": str(folder), "WINDOWPANE_LEASE_S": "3", "OPENAI_API_KEY": "test"}
    given |= {"OPENAI_BASE_URL": f"{wire.url}/v1"} if wire else {}
    return given | {f"WINDOWPANE_{name.upper()}": value for name, value in settings.items()}


def begun(then: Step) -> Answer:
    """An answer of which only the beginning comes by itself."""
    first, said, *rest = openai_chat.frames(WireReply(text=("So far.", " And on.")))
    return Answer((first, said, then, *rest, openai_chat.DONE))


def saying(text: str) -> Answer:
    return openai_chat.answer(WireReply(text=(text,)))


def until(lines: Iterator[str], kind: str) -> dict[str, Any]:
    while (event := next_event(lines))["type"] != kind:
        pass
    return event


def test_a_worker_killed_in_the_middle_of_a_turn_leaves_a_session_that_another_continues(served: Served) -> None:
    served.wire.add(begun("until_gone"), saying("Hello again."))
    session = served.session()
    path = f"/api/sessions/{session}/messages"
    with served.client.stream("POST", path, json={"content": "Hi"}, headers=EVENTS) as response:
        lines = response.iter_lines()
        until(lines, "reply.delta")
        killed = served.worker_of_turn()
        os.kill(killed, signal.SIGKILL)
        with suppress(httpx2.RemoteProtocolError):
            list(lines)

    left = served.client.get(f"/api/sessions/{session}").json()["open_turn"]
    after = served.client.post(path, json={"content": "Hi again", "wait_s": 60}).json()
    first = served.client.get(f"/api/sessions/{session}/turns/1").json()

    assert (left["turn"], left["state"]) == (1, "running")
    assert (first["outcome"], first["messages"][0]["content"]) == ("interrupted", "Hi")
    assert (after["turn"], after["outcome"], after["text"]) == (2, "completed", "Hello again.")
    deadline = time.monotonic() + PATIENCE_S
    # It is listed until the process that keeps it has noticed.
    while (killed in served.workers or len(served.workers) < 2) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert killed not in served.workers
    assert len(served.workers) == 2


def test_a_revoked_token_ends_what_it_has_open_on_every_worker(served: Served) -> None:
    token, secret = TokenFile(served.folder / "tokens.json").create("ann", ["chat"])
    headers = {"Authorization": f"Bearer {secret}"}
    session = served.client.post("/api/sessions", json={}, headers=headers).json()["id"]
    heard: list[list[str]] = []
    ready: list[str] = []

    def watch() -> None:
        # A client of its own: each connection may be another worker's.
        with (
            httpx2.Client(base_url=served.client.base_url, timeout=PATIENCE_S) as client,
            client.stream("GET", f"/api/sessions/{session}/events", headers=headers) as response,
        ):
            lines = response.iter_lines()
            ready.append(until(lines, "session.context")["type"])
            heard.append([line for line in lines if line.startswith("data:")])

    watchers = [Thread(target=watch) for _ in range(8)]
    for watcher in watchers:
        watcher.start()
    while len(ready) < len(watchers) and any(watcher.is_alive() for watcher in watchers):
        time.sleep(0.05)
    revoke = [sys.executable, "-m", "windowpane", "token", "revoke", token.id, "--data", str(served.folder)]
    revoked = subprocess.run(revoke, check=True, capture_output=True, text=True)
    for watcher in watchers:
        watcher.join(PATIENCE_S)

    assert revoked.stdout == f"Revoked {token.id} of ann\n"
    assert heard == [[]] * 8
    assert served.client.get("/api/sessions", headers=headers).status_code == 401


def test_the_numbers_of_all_workers_are_added_up(served: Served) -> None:
    for _ in range(20):
        httpx2.get(f"{served.client.base_url}/api/me", timeout=PATIENCE_S)

    lines = served.client.get("/metrics").text.splitlines()

    assert 'windowpane_http_requests_total{method="GET",route="/api/me",status="200"} 20.0' in lines


def test_sighup_replaces_workers_that_share_their_memory_by_such_that_load_the_code_again(
    portal: BlockingPortal, tmp_path: Path
) -> None:
    with workers(portal, tmp_path) as served:
        before = served.workers
        forked = {served.shared(pid) for pid in before}
        served.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE_S
        while (before & served.workers or len(served.workers) != 2) and time.monotonic() < deadline:
            time.sleep(0.1)
        after = served.workers
        loaded = {served.shared(pid) for pid in after}
        served.wire.add(saying("Hello."))
        answer = served.client.post(f"/api/sessions/{served.session()}/messages", json={"content": "Hi"}).json()

    assert (len(before), forked) == (2, {True})
    assert (len(after), loaded) == (2, {False})
    assert answer["text"] == "Hello."


def test_a_server_of_ones_own_runs_the_app_by_its_name_and_everybody_needs_a_token(tmp_path: Path) -> None:
    secret = TokenFile(tmp_path / "tokens.json").create("ann", ["chat"])[1]
    headers = {"Authorization": f"Bearer {secret}"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "windowpane.server.asgi:app", "--port", str(port)]
    with (
        (tmp_path / "log").open("a") as log,
        ended(subprocess.Popen(command, stdout=log, stderr=log, text=True, env=environment(tmp_path, None))) as process,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client,
    ):
        _wait_until_ready(client, process)
        nobody = client.get("/api/sessions")
        made = client.post("/api/sessions", json={}, headers=headers)
        with client.stream("GET", f"/api/sessions/{made.json()['id']}/events", headers=headers) as response:
            lines = response.iter_lines()
            until(lines, "session.context")
            process.terminate()
            watched = [line for line in lines if line.startswith("data:")]
        code = process.wait(PATIENCE_S)

    assert (nobody.status_code, made.status_code) == (401, 201)
    assert watched == []
    assert code in (0, -signal.SIGTERM)


def _wait_until_ready(client: httpx2.Client, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        with suppress(httpx2.TransportError):
            if client.get("/readyz").status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError("it ended before it was ready")


def test_a_server_that_is_asked_to_stop_finishes_turns_that_end_in_time_and_hands_the_others_over(
    portal: BlockingPortal, served: Served
) -> None:
    go_on = portal.call(asyncio.Event)
    sessions: list[str] = []
    for then in (go_on, "until_gone"):
        served.wire.add(begun(then))
        session = served.session()
        path = f"/api/sessions/{session}/messages"
        with served.client.stream("POST", path, json={"content": "Hi"}, headers=EVENTS) as response:
            until(response.iter_lines(), "reply.delta")
        # Nobody listens any more, and the turn goes on.
        sessions.append(session)
    with served.client.stream("GET", f"/api/sessions/{sessions[0]}/events") as response:
        lines = response.iter_lines()
        until(lines, "session.context")
        served.process.terminate()
        watched = [line for line in lines if line.startswith("data:")]
    portal.call(go_on.set)
    code = served.process.wait(PATIENCE_S)

    finished, handed_over = map(served.log, sessions)
    assert code == 0, (served.folder / "log").read_text()
    assert "turn.finished" not in "".join(watched)
    assert [_said(log) for log in (finished, handed_over)] == ["So far. And on.", "So far."]
    assert [_outcome(log) for log in (finished, handed_over)] == ["completed", "interrupted"]


def test_workers_end_in_good_order_when_the_process_that_keeps_them_is_killed(
    portal: BlockingPortal, tmp_path: Path
) -> None:
    with workers(portal, tmp_path, grace_s="0") as served:
        served.wire.add(begun("until_gone"))
        session = served.session()
        path = f"/api/sessions/{session}/messages"
        with served.client.stream("POST", path, json={"content": "Hi"}, headers=EVENTS) as response:
            until(response.iter_lines(), "reply.delta")
        served.process.kill()
        served.process.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        with suppress(httpx2.TransportError):
            while time.monotonic() < deadline:
                httpx2.get(f"{served.client.base_url}/healthz", timeout=PATIENCE_S)
        # Nothing but its worker closes the turn: the log is read as it is.
        while not _is_finished(log := served.log(session)) and time.monotonic() < deadline:
            time.sleep(0.1)

    assert (_said(log), _outcome(log)) == ("So far.", "interrupted")


def _is_finished(log: list[Recorded]) -> bool:
    return any(isinstance(entry.event, TurnFinished) for entry in log)


def _said(log: list[Recorded]) -> str:
    return "".join(entry.event.step.text for entry in log if isinstance(entry.event, ModelReplied))


def _outcome(log: list[Recorded]) -> str:
    return next(entry.event.outcome for entry in log if isinstance(entry.event, TurnFinished))
