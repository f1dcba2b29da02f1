"""What starting costs: processor time of commands and of a server until it answers, and the memory of its workers.

Processor time, so that a busy machine changes little. `own` is memory that no other process shares, `share` counts a
shared page once for all who share it (USS and PSS of Linux). The workers have answered a message each by then. The
first message comes in the moment in which the server answers, while it still loads and indexes: that is counted with
it. Compiled modules are kept between starts, whatever `PYTHONDONTWRITEBYTECODE` says.
Run it with `.venv/bin/python bench/start.py [--workers 3]`.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import httpx2

COMMANDS = (["--version"], ["--help"], ["sessions"], ["context", "last"], ["stats"])
LOADED = {
    "python": "pass",
    "typer": "import typer",
    "typer, pydantic and its settings": "import typer, pydantic, pydantic_settings",
}
ROUNDS = 3
NOT_TAKEN = ("PYTHONDONTWRITEBYTECODE",)
"""With it every start compiles every module again, which no user's start does."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--servers", action="store_true", help="only the servers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WINDOWPANE_") and k not in NOT_TAKEN}
        environment |= {"WINDOWPANE_DATA": str(folder)}
        if not options.servers:
            commands(environment)
        for workers, disk in ((1, "nothing on disk"), (1, "graph and vectors on disk"), (options.workers, "the same")):
            serve(workers, disk, environment)


def commands(environment: dict[str, str]) -> None:
    print("| processor s | |\n|---|---|")
    for what, code in LOADED.items():
        print(f"| {what} alone | {spent([sys.executable, '-c', code], environment):.2f} |", flush=True)
    for command in COMMANDS:
        took = spent([sys.executable, "-m", "windowpane", *command], environment)
        print(f"| `windowpane {' '.join(command)}` | {took:.2f} |", flush=True)


def spent(command: list[str], environment: dict[str, str]) -> float:
    """Return the processor time of a command: the median of some runs."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    once()
    return median(once() for _ in range(ROUNDS))


def serve(workers: int, disk: str, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "windowpane", "serve", "--port", "0", "--workers", str(workers)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        address = next(line for line in process.stdout if line.startswith("Windowpane is at ")).split()[3]
        httpx2.get(f"{address}/healthz", timeout=60).raise_for_status()
        everyone = family(process.pid)
        ready = [processor_s(pid) for pid in everyone]
        began = time.monotonic()
        outcome = message(address)
        took = time.monotonic() - began
        spent_s = sum(map(processor_s, everyone)) - sum(ready)
        # Connections are given to any worker: until each has had a few.
        for _ in range(workers * 8):
            message(address)
        print(f"\n{workers} workers, {disk}: the first message {outcome}.")
        print(f"It took {took:.1f} s by the clock and {spent_s:.1f} s of a processor.\n")
        print("| process | processor s until /healthz | own MB | share MB |\n|---|---|---|---|")
        for number, (pid, s) in enumerate(zip(everyone, ready, strict=True)):
            own, share = memory_mb(pid)
            print(f"| {name_of(pid, number)} | {s:.2f} | {own:.0f} | {share:.0f} |")
        process.terminate()


def message(address: str) -> str:
    """Send a message that needs a search, and say how it was judged."""
    with httpx2.Client(base_url=address, timeout=120) as client:
        session = client.post("/api/sessions", json={}).json()["id"]
        client.post(f"/api/sessions/{session}/messages", json={"content": "How do I add a rule to my agent?"})
        events = client.get(f"/api/sessions/{session}/turns/1").text
    amiss = re.search(r'[^"]*matched by keywords only[^"]*', events)
    return f"was judged so: {amiss[0]}" if amiss else "was judged by meaning"


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    workers = (pid for pid in children if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes())
    return [pid, *map(int, workers)]


def name_of(pid: int, number: int) -> str:
    if number == 0:
        return "started"
    return "tool server" if b"notes_server" in Path(f"/proc/{pid}/cmdline").read_bytes() else f"worker {number}"


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> tuple[float, float]:
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    sizes = {line[0].removesuffix(":"): int(line[1]) / 1024 for line in lines}
    return sizes["Private_Clean"] + sizes["Private_Dirty"], sizes["Pss"]


if __name__ == "__main__":
    main()
