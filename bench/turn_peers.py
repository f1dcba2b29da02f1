"""A turn over HTTP beside what people would use instead: the same stub answers all of them, in one run.

The stub streams 400 characters, a word at a time, from a process of its own. The chat has 32 or 1,000 messages before
it, kept as each program's own users keep them, and `sent` is how much of it went into the last request. Processor time
of the process that asks, with what it does after the answer, median over the turns without the first quarter; read the
ratios. Everything is measured twice: as it is, and with every core kept busy. The others live in `.venv/peers`
(`make .venv/peers/installed`). Run it with `.venv/bin/python bench/turn_peers.py [--turns 24] [--messages 32 1000]
[--only quiet|busy]`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles
from urllib.request import urlopen

from office import ANSWER, QUESTIONS, said, write_agent

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv" / "peers" / "bin" / "python"
BASE = "openai_agents"
ALL = (
    ("OpenAI's client alone", "openai_alone", PEERS),
    ("LangGraph", "langgraph", PEERS),
    ("OpenAI Agents", BASE, PEERS),
    ("OpenAI Agents, the latest 64 messages", "openai_agents_latest", PEERS),
    ("pydantic-ai", "pydantic_ai", Path(sys.executable)),
    ("Windowpane without selection", "without_search", Path(sys.executable)),
    ("Windowpane, 100 items, no embedding", "by_words", Path(sys.executable)),
    ("Windowpane, 100 items, MiniLM", "with_search", Path(sys.executable)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--messages", type=int, nargs="+", default=[32, 1000])
    parser.add_argument("--only", choices=["quiet", "busy"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, stub() as url:
        for search in (True, False):
            write_agent(Path(folder) / f"search-{search}" / "bench", 100, search=search, model="openai-chat:stub")
        for kind in ("quiet", "busy"):
            if options.only in (None, kind):
                with busy(os.cpu_count() or 1 if kind == "busy" else 0):
                    for messages in options.messages:
                        compare(url, Path(folder), messages, options.turns, kind)


def compare(url: str, agents: Path, messages: int, turns: int, kind: str) -> None:
    rows: dict[str, tuple[str, list[float], float]] = {}
    past = [(said(QUESTIONS[turn % len(QUESTIONS)], turn), said(ANSWER, turn)) for turn in range(messages // 2)]
    questions = [said(QUESTIONS[turn % len(QUESTIONS)], turn) for turn in range(messages, messages + turns)]
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "PYTHONWARNINGS": "ignore", "LANGSMITH_TRACING": "false"}
    for name, function, python in ALL:
        done = subprocess.run(
            [str(python), str(HERE / "peers" / "turns.py"), function, url, str(turns)],
            env=os.environ | quiet | {"BENCH_AGENTS": str(agents)},
            input=json.dumps([questions, past]),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
            continue
        with urlopen(url, timeout=10) as answer:
            spent = json.loads(done.stdout.splitlines()[-1])[turns // 4 :]
            rows[function] = (name, spent, int(answer.read()) / 1024)
    base = median(rows[BASE][1]) if BASE in rows else 1.0
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores"
    print(f"\n{messages} messages before the first turn, {kind} ({load})\n")
    print("| a turn, processor ms | median | 95 of 100 | × OpenAI Agents | sent KiB |\n|---|---|---|---|---|")
    for name, spent, sent in rows.values():
        late = quantiles(spent, n=20)[-1]
        print(f"| {name} | {median(spent):.1f} | {late:.1f} | {median(spent) / base:.2f} | {sent:.0f} |", flush=True)


@contextmanager
def stub() -> Generator[str]:
    with subprocess.Popen([sys.executable, __file__, "stub"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


@contextmanager
def busy(cores: int) -> Generator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def serve() -> None:
    """Answer every call with the same words."""
    pieces = said(ANSWER, 1).split(" ")
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    deltas = [{"role": "assistant", "content": ""}, *({"content": f"{piece} "} for piece in pieces)]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {**head, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}
    frames = [f"data: {json.dumps(chunk)}\n\n" for chunk in (*chunks, end, usage)]
    body = "".join([*frames, "data: [DONE]\n\n"]).encode()

    sent = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Say how large the latest request was."""
            self.send_response(200)
            self.end_headers()
            self.wfile.write(str(sent).encode())
            self.close_connection = True

        def do_POST(self) -> None:
            nonlocal sent
            sent = int(self.headers["Content-Length"])
            self.rfile.read(sent)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the base class's)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:] == ["stub"]:
        serve()
    else:
        main()
