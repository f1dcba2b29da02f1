"""Servers of other makers for tests: started from an environment of their own, and stopped at the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from patience import PATIENCE_S

ENVIRONMENTS = Path(__file__).parents[2] / ".venv"


def program(environment: str, name: str) -> Path:
    """Return a program of an environment; the test is skipped where that is not installed."""
    found = ENVIRONMENTS / environment / "bin" / name
    if not found.exists():
        pytest.skip(f"{name} is not installed; `make .venv/{environment}/installed` installs it")
    return found


@asynccontextmanager
async def server(
    command: Sequence[str], environ: Mapping[str, str], folder: Path, *, port: int, ready: str
) -> AsyncGenerator[str]:
    """Run a server until the block ends; `ready` is the path that answers when it is."""
    address = f"http://127.0.0.1:{port}"
    log = folder / "server.log"
    with log.open("wb") as told, anyio.fail_after(PATIENCE_S):
        own = {**os.environ, **environ}
        process = await anyio.open_process(command, cwd=folder, env=own, stdout=told, stderr=subprocess.STDOUT)
        try:
            async with httpx2.AsyncClient(base_url=address) as client:
                while not await _answers(client, ready):
                    assert process.returncode is None, log.read_text(errors="replace")[-2000:]
                    await anyio.sleep(0.2)
            yield address
        finally:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.wait()


async def _answers(client: httpx2.AsyncClient, path: str) -> bool:
    try:
        return (await client.get(path)).is_success
    except httpx2.TransportError:
        return False
