"""Serve an agent for schemathesis, run it, and return what it says: `fuzzed.py EXAMPLES [SEED]`.

Everything is real but the model: `echo` answers, so that turns, approvals and forks can be reached by their links.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from patience import PATIENCE_S
from windowpane.server.process.run import run
from windowpane.settings import Settings

CHECKS = "all"
LEFT_OUT = (
    # What no schema can say is refused with 422: a cursor, a time zone, a name that an agent has, the hash of a text.
    "positive_data_acceptance",
    # An item that a body names and the agent does not have is not found, and the session is there all the same.
    "ensure_resource_availability",
)


def write_agent(root: Path) -> None:
    folder = root / "agents" / "pane"
    for name, text in {
        "agent.yaml": "model: echo\n",
        "prompts/core.md": "You are Pane.",
        "prompts/sites/example.org.md": "Examples.",
        "rules/tone.md": "---\ninclude: always\n---\nBe kind.",
        "references/tides.md": "---\ninclude: agent\n---\nHigh tide is at noon.",
    }.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root / "files").mkdir()
    (root / "files" / "notes.md").write_text("Hello\n")


def serve(root: Path) -> None:
    """Serve until it is stopped; the address is printed."""
    settings = Settings(host="127.0.0.1", port=0, data=root, roots=(root / "files",), log_level="warning")
    run(settings, on_ready=lambda address: print(address, flush=True))  # noqa: T201


@contextmanager
def serving(root: Path) -> Generator[str]:
    write_agent(root)
    command = [sys.executable, "-m", "server.fuzzed", "serve", str(root)]
    with (
        (root / "server.log").open("w") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=Path(__file__).parents[1]
        ) as process,
    ):
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, (root / "server.log").read_text()
            # The description is made when it is first asked for; schemathesis waits for ten seconds at most.
            httpx2.get(f"{address}/openapi.json", timeout=PATIENCE_S).raise_for_status()
            yield address
        finally:
            process.terminate()


def fuzz(address: str, *, examples: int, seed: int, phases: str, only: str = "") -> subprocess.CompletedProcess[str]:
    """Let schemathesis loose on a server; `only` is a pattern of the paths it may use."""
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{address}/openapi.json",
        "--phases",
        phases,
        "--checks",
        CHECKS,
        "--exclude-checks",
        ",".join(LEFT_OUT),
        "--max-examples",
        str(examples),
        "--seed",
        str(seed),
        "--generation-database",
        "none",
        "--no-color",
        "--request-timeout",
        "60",
        *(["--include-path-regex", only] if only else []),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main() -> None:
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]))
        return
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address:
        done = fuzz(address, examples=int(sys.argv[1]), seed=seed, phases="examples,coverage,fuzzing,stateful")
        print(done.stdout + done.stderr)  # noqa: T201
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
