"""What the HTTP doors cost: requests a second beside a bare FastAPI route, and turns a second with a scripted model.

Both servers are processes of their own on uvicorn; the client keeps its connections open and does nothing but read the
answers. The bare route returns one small object: no session, no token, no log line, no headers. A turn is a whole one:
the message is stored, items are selected, the request is built and stored, the model (which says one word) is called
and its answer is stored, on a SQLite file with full durability. No two messages are the same, so each is embedded.

Beside the rate stands the processor time that the server spent on each, which other work on the machine changes
least. Run it with `.venv/bin/python bench/doors.py`.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

CONNECTIONS = 16
REQUESTS = 2_000
TURNS = 200
ROUNDS = 3
NEW = {"settings": {"model": "scripted:bench"}}
QUESTIONS = (
    "How do I add a rule?",
    "Where do references go?",
    "What does a tool need?",
    "How is the window filled?",
    "Can a session be exported?",
    "Why was that page left out?",
)

BARE = """
import uvicorn
from dataclasses import dataclass
from fastapi import FastAPI

@dataclass
class Health:
    status: str
    version: str

app = FastAPI()

@app.get("/bare")
async def bare() -> Health:
    return Health("ok", "1")

config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", access_log=False)
server = uvicorn.Server(config)
import asyncio
async def main():
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print("http://127.0.0.1:%d" % server.servers[0].sockets[0].getsockname()[1], flush=True)
    await task
asyncio.run(main())
"""

OURS = """
import asyncio, sys
from pathlib import Path
from windowpane.agents.init import init_agent
from windowpane.models.provider import PydanticModels
from windowpane.models.scripted import Reply, ScriptedModel
from windowpane.server.process.run import run
from windowpane.settings import Settings
from windowpane.wiring import open_engine

folder = Path(sys.argv[1])
init_agent(folder / "agents" / "guide")
settings = Settings(data=folder, port=0, log_level="warning")
models = PydanticModels(scripts=[ScriptedModel("bench", [Reply("Yes.")] * 1_000_000)])
run(settings, engine=open_engine(settings, models=models), on_ready=lambda address: print(address, flush=True))
"""


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        subprocess.Popen([sys.executable, "-c", BARE], stdout=subprocess.PIPE, text=True) as bare,
        subprocess.Popen([sys.executable, "-c", OURS, name], stdout=subprocess.PIPE, text=True) as ours,
    ):
        try:
            asyncio.run(measure(Server(address_of(bare), bare.pid), Server(address_of(ours), ours.pid)))
        finally:
            bare.terminate()
            ours.terminate()


def address_of(server: "subprocess.Popen[str]") -> int:
    assert server.stdout is not None
    for line in server.stdout:
        if "127.0.0.1:" in line:
            return int(line.rsplit(":", 1)[1].split("/")[0])
    sys.exit("the server did not start")


class Server(NamedTuple):
    """A server: where it listens, and its process."""

    port: int
    pid: int

    def spent_s(self) -> float:
        """Return the processor time that it has taken so far; nothing where the system does not tell."""
        stat = Path(f"/proc/{self.pid}/stat")
        if not stat.exists():
            return float("nan")
        user, system = stat.read_text().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """How many were answered in a second, and what each cost the server."""

    a_second: float
    cpu_ms: float


async def measure(bare: Server, ours: Server) -> None:
    made = json.loads(await Connection(ours).send("POST", "/api/sessions", NEW))
    session = f"/api/sessions/{made['id']}"
    await Connection(ours).send("POST", f"{session}/messages", {"content": "How do I add a rule?"})
    paths = {"a bare route": (bare, "/bare"), "/healthz": (ours, "/healthz"), "GET a session": (ours, session)}
    costs: dict[str, list[Cost]] = {name: [] for name in paths}
    for _ in range(ROUNDS):
        for name, (server, path) in paths.items():
            costs[name].append(await cost(server, "GET", [path], REQUESTS))
    found = {
        name: Cost(median(c.a_second for c in each), median(c.cpu_ms for c in each)) for name, each in costs.items()
    }
    base = found["a bare route"]
    print(f"| what, {CONNECTIONS} connections | a second | of the bare route | CPU ms each |\n|---|---|---|---|")
    for name, one in found.items():
        print(f"| {name} | {one.a_second:,.0f} | {one.a_second / base.a_second:.2f} | {one.cpu_ms:.2f} |")
    for count in (1, CONNECTIONS):
        sessions = [json.loads(await Connection(ours).send("POST", "/api/sessions", NEW)) for _ in range(count)]
        turns = [f"/api/sessions/{one['id']}/messages" for one in sessions]
        one = await cost(ours, "POST", turns, TURNS)
        what = f"turns, {count} session{'s' if count > 1 else ''} at once"
        print(f"| {what} | {one.a_second:,.0f} | {one.a_second / base.a_second:.3f} | {one.cpu_ms:.1f} |", flush=True)


async def cost(server: Server, method: str, paths: list[str], count: int) -> Cost:
    """Return what requests cost; with several paths each has a connection of its own. What is posted is a message."""
    workers = CONNECTIONS if method == "GET" else len(paths)
    each = count // workers
    numbers = itertools.count()

    async def work(number: int) -> None:
        connection = Connection(server)
        for _ in range(each):
            message = {"content": f"{QUESTIONS[(asked := next(numbers)) % len(QUESTIONS)]} I ask for case {asked}."}
            await connection.send(method, paths[number % len(paths)], message if method == "POST" else None)
        connection.close()

    spent_s, began = server.spent_s(), time.perf_counter()
    await asyncio.gather(*(work(number) for number in range(workers)))
    took_s, spent_s = time.perf_counter() - began, server.spent_s() - spent_s
    return Cost(workers * each / took_s, spent_s / (workers * each) * 1000)


class Connection:
    """One kept-alive connection that reads answers with a known length."""

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: object = None) -> bytes:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-length: {len(content)}\r\n"
        writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + content)
        answer = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:] if b": " in line)
        content = await reader.readexactly(int(fields[b"content-length"]))
        if answer.split()[1] not in (b"200", b"201"):
            sys.exit(f"{method} {path}: {answer.decode()}{content.decode()}")
        return content

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


if __name__ == "__main__":
    main()
