"""How long until everybody who watches a session has heard of an event: one listener, a hundred, a thousand.

The server is a process of its own with a SQLite file, as it is used; the listeners are real connections of this
process, server-sent events or WebSockets. The time is from the moment a change is asked for until the last listener
has it, so it holds the change itself, and this process's own work for each listener: the column for one listener shows
how much that is. Run it with `.venv/bin/python bench/listeners.py`.
"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import httpx2
from websockets.asyncio.client import connect

LISTENERS = (1, 100, 1000)
ROUNDS = 20
AT_ONCE = 50

Heard = Callable[[int], None]
Listen = Callable[[str, str, Heard], Awaitable[None]]


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with subprocess.Popen(
            [*command(folder), "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as server:
            try:
                asyncio.run(measure(address_of(server)))
            finally:
                server.terminate()


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "windowpane", "--data", str(folder)]


def address_of(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    for line in server.stdout:
        for word in line.split():
            if word.startswith("http://127.0.0.1:"):
                return word.rstrip("/.,")
    sys.exit("the server did not start")


async def measure(address: str) -> None:
    print("| listeners | form | all connected | append heard by all: median | slowest of " + f"{ROUNDS} | each |")
    print("|---|---|---|---|---|---|")
    for count in LISTENERS:
        for form, listen in (("server-sent events", by_events), ("WebSocket", by_socket)):
            connected, times = await heard_by_all(address, count, listen)
            each = median(times) / count * 1e6
            print(
                f"| {count:,} | {form} | {connected:.2f} s | {median(times) * 1e3:.1f} ms | {max(times) * 1e3:.1f} ms "
                f"| {each:,.0f} µs |",
                flush=True,
            )


async def heard_by_all(address: str, count: int, listen: Listen) -> tuple[float, list[float]]:
    """Return how long it took to connect, and for each change how long until everybody had it."""
    async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
        session = (await client.post("/api/sessions", json={})).json()["id"]
        path = f"/api/sessions/{session}"
        missing: dict[int, int] = {}
        all_heard: dict[int, asyncio.Event] = {}
        ready = asyncio.Semaphore(0)
        gate = asyncio.Semaphore(AT_ONCE)

        def heard(seq: int) -> None:
            if seq == 0:
                gate.release()
                ready.release()
                return
            missing[seq] = missing.get(seq, count) - 1
            if missing[seq] == 0:
                all_heard.setdefault(seq, asyncio.Event()).set()

        started = time.perf_counter()
        tasks: list[asyncio.Task[None]] = []
        for _ in range(count):
            await gate.acquire()
            tasks.append(asyncio.ensure_future(listen(address, f"{path}/events", heard)))
        for _ in range(count):
            await ready.acquire()
        connected = time.perf_counter() - started
        times: list[float] = []
        for number in range(ROUNDS):
            before = time.perf_counter()
            changed = await client.patch(path, json={"name": f"name {number}"})
            async with asyncio.timeout(60):
                await all_heard.setdefault(changed.json()["seq"], asyncio.Event()).wait()
            times.append(time.perf_counter() - before)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.delete(path)
    return connected, times


async def by_events(address: str, path: str, heard: Heard) -> None:
    """Listen over a plain connection; a client library would measure itself."""
    host, _, port = address.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
    try:
        async for line in reader:
            if line.startswith(b"data: "):
                heard(json.loads(line[6:]).get("seq", 0))
    finally:
        writer.close()


async def by_socket(address: str, path: str, heard: Heard) -> None:
    async with connect(address.replace("http://", "ws://") + path, compression=None) as socket:
        async for message in socket:
            heard(json.loads(message).get("seq", 0))


if __name__ == "__main__":
    main()
