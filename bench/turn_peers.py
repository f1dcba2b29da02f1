"""A turn over HTTP beside what people would use instead: the same stub answers all of them, in one run.

The stub streams 400 characters, a word at a time, from a process of its own. Processor time of the process that asks,
median over the turns without the first quarter, so that a busy machine changes little; read the ratios. `--busy` keeps
every core busy meanwhile. The others live in `.venv/peers` (`make .venv/peers/installed`).
Run it with `.venv/bin/python bench/turn_peers.py [--turns 40] [--busy]`.
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

from office import ANSWER, QUESTIONS, said, write_agent

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv" / "peers" / "bin" / "python"
BASE = "openai_agents"
ALL = (
    ("OpenAI's client alone", "openai_alone", PEERS),
    ("LangGraph", "langgraph", PEERS),
    ("OpenAI Agents", BASE, PEERS),
    ("pydantic-ai", "pydantic_ai", Path(sys.executable)),
    ("Windowpane without selection", "without_search", Path(sys.executable)),
    ("Windowpane, 100 items, MiniLM", "with_search", Path(sys.executable)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--busy", action="store_true")
    options = parser.parse_args()
    questions = json.dumps([said(QUESTIONS[turn % len(QUESTIONS)], turn) for turn in range(20)])
    rows: dict[str, tuple[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, stub() as url, busy(os.cpu_count() or 1 if options.busy else 0):
        for search in (True, False):
            write_agent(Path(folder) / f"search-{search}" / "bench", 100, search=search, model="openai-chat:stub")
        for name, function, python in ALL:
            command = [str(python), str(HERE / "peers" / "turns.py"), function, url, str(options.turns), questions]
            quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "PYTHONWARNINGS": "ignore", "LANGSMITH_TRACING": "false"}
            quiet |= {"BENCH_AGENTS": folder}
            done = subprocess.run(command, env=os.environ | quiet, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
                continue
            rows[function] = (name, json.loads(done.stdout)[options.turns // 4 :])
    base = median(rows[BASE][1]) if BASE in rows else 1.0
    print("| a turn, processor ms | median | 95 of 100 | × OpenAI Agents |\n|---|---|---|---|")
    for name, spent in rows.values():
        print(f"| {name} | {median(spent):.1f} | {quantiles(spent, n=20)[-1]:.1f} | {median(spent) / base:.2f} |")


@contextmanager
def stub() -> Generator[str]:
    with subprocess.Popen([sys.executable, __file__, "stub"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
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
