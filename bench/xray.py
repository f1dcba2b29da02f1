"""What the recording proxy adds: time to the first byte, time per chunk and processor time, beside LiteLLM's proxy.

One run compares three ways to one upstream, which is a process of its own and answers at once in OpenAI's protocol:
direct, through `windowpane xray` (recording into a SQLite file) and through LiteLLM's proxy. The client makes one call
after the other, so that times are those of one call. Each call sends a prompt of about 100 kB, of which all but the
last message is the same, and reads a stream of chunks. Rounds alternate between the three, so that other work on the
machine hits all alike; medians are compared. The processor time is that of the proxy's process without its start.

LiteLLM runs in an environment of its own (`make .venv/litellm/installed` builds it).
Run it with `.venv/bin/python bench/xray.py`.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent
CALLS = 40
ROUNDS = 5
CHUNKS = 200
SYSTEM = "".join(f"Rule {number}: answer in the words of section {number % 97}. " for number in range(1800))
LITELLM = ROOT / ".venv" / "litellm" / "bin" / "litellm"

UPSTREAM = """
import asyncio, json, sys

def chunk(delta, finish=None, usage=None):
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": usage}
    data = b"data: " + json.dumps(body).encode() + b"\\n\\n"
    return b"%x\\r\\n%s\\r\\n" % (len(data), data)

HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n"
DONE = b"e\\r\\ndata: [DONE]\\n\\n\\r\\n0\\r\\n\\r\\n"
USAGE = {"prompt_tokens": 25000, "completion_tokens": 200, "total_tokens": 25200}

async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            size = head.partition(b"content-length:")[2].split(b"\\r\\n")[0]
            await reader.readexactly(int(size or b"0"))
            writer.write(HEAD)
            for number in range(int(sys.argv[1])):
                writer.write(chunk({"content": f"word {number} "}))
                await writer.drain()
                await asyncio.sleep(0)
            writer.write(chunk({}, "stop", USAGE) + DONE)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class Way(NamedTuple):
    """A way to the upstream: its name, where the client goes, and the process in between."""

    name: str
    url: str
    pid: int | None


class Timed(NamedTuple):
    """One call: milliseconds to the first byte of the answer, and to its end."""

    first_ms: float
    whole_ms: float


def main() -> None:
    """Measure and print."""
    with ExitStack() as stack:
        upstream = stack.enter_context(_upstream())
        ways = [Way("direct", f"{upstream}/v1/chat/completions", None)]
        ways.append(stack.enter_context(_xray(upstream)))
        if LITELLM.exists():
            ways.append(stack.enter_context(_litellm(upstream)))
        else:
            print("LiteLLM is not installed; `make .venv/litellm/installed` installs it.")
        for way in ways:
            _round(way, 5)
        timed: dict[str, list[Timed]] = {way.name: [] for way in ways}
        spent: dict[str, float] = {way.name: 0.0 for way in ways}
        for _ in range(ROUNDS):
            for way in ways:
                before = _processor_s(way.pid)
                timed[way.name] += _round(way, CALLS)
                time.sleep(0.5)
                spent[way.name] += _processor_s(way.pid) - before
    _print(timed, spent)


def _print(timed: dict[str, list[Timed]], spent: dict[str, float]) -> None:
    direct_first = median(call.first_ms for call in timed["direct"])
    direct_chunk = median(_per_chunk(call) for call in timed["direct"])
    print(f"{len(timed['direct'])} calls each, {len(SYSTEM):,} characters of prompt, {CHUNKS} chunks of answer")
    print(f"{'':10} {'first byte':>12} {'added':>10} {'per chunk':>11} {'added':>10} {'processor':>12}")
    for name, calls in timed.items():
        first, chunk = median(call.first_ms for call in calls), median(_per_chunk(call) for call in calls)
        cpu = f"{spent[name] / len(calls) * 1000:9.1f} ms" if name != "direct" else ""
        print(
            f"{name:10} {first:9.2f} ms {first - direct_first:7.2f} ms {chunk * 1000:8.1f} µs "
            f"{(chunk - direct_chunk) * 1000:7.1f} µs {cpu:>12}"
        )


def _per_chunk(call: Timed) -> float:
    return (call.whole_ms - call.first_ms) / CHUNKS


def _round(way: Way, calls: int) -> list[Timed]:
    split = urlsplit(way.url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port or 80)
    found = [_call(connection, split.path, number) for number in range(calls)]
    connection.close()
    return found


def _call(connection: http.client.HTTPConnection, path: str, number: int) -> Timed:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Question {number}, {time.time()}"}]
    body = json.dumps({"model": "gpt-4o", "messages": messages, "stream": True})
    headers = {"content-type": "application/json", "authorization": "Bearer sk-bench"}
    began = time.perf_counter()
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    answer.read(1)
    first = time.perf_counter()
    rest = answer.read()
    if answer.status != 200 or b"word 199" not in rest:
        raise RuntimeError(f"{answer.status}: {rest[:500]!r}")
    return Timed((first - began) * 1000, (time.perf_counter() - began) * 1000)


def _processor_s(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _upstream() -> Iterator[str]:
    command = [sys.executable, "-c", UPSTREAM, str(CHUNKS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def _xray(upstream: str) -> Iterator[Way]:
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            **os.environ,
            "WINDOWPANE_DATA": folder,
            "WINDOWPANE_XRAY_UPSTREAMS": json.dumps({"openai": upstream}),
        }
        command = [sys.executable, "-m", "windowpane", "xray", "--listen", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
            assert process.stdout is not None
            try:
                line = next(line for line in process.stdout if "OPENAI_BASE_URL" in line)
                yield Way("windowpane", f"{line.partition('=')[2].strip()}/chat/completions", process.pid)
            finally:
                process.kill()


@contextmanager
def _litellm(upstream: str) -> Iterator[Way]:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        settings = {"model": "openai/gpt-4o", "api_base": f"{upstream}/v1", "api_key": "sk-bench"}
        config.write_text(json.dumps({"model_list": [{"model_name": "gpt-4o", "litellm_params": settings}]}))
        port = _free_port()
        command = [str(LITELLM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
        # Without a key of its own it checks none, as ours on this machine.
        unchecked = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        environ = {**os.environ, **unchecked, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=folder, env=environ, **quiet) as process:
            try:
                _wait_for(port, process)
                yield Way("litellm", f"http://127.0.0.1:{port}/v1/chat/completions", process.pid)
            finally:
                process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError("LiteLLM's proxy did not start")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health/liveliness")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise RuntimeError("LiteLLM's proxy did not answer")


if __name__ == "__main__":
    main()
