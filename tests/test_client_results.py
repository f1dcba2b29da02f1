"""The table of compatibility is made of what the tests with other makers' software came to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from compatibility import ROOT, version_of

CONFTEST = "from client_results import pytest_itemcollected, pytest_runtest_logreport, pytest_sessionfinish\n"
TESTS = """
import pytest

@pytest.mark.client("Codex", "turns", "tools")
def test_one():
    pass

@pytest.mark.client("Codex", "tools")
@pytest.mark.parametrize("well", [False, True])
def test_two(well):
    assert well

@pytest.mark.client("aider", "same bytes")
def test_three():
    pytest.skip("not installed")

@pytest.mark.client("LlamaIndex", "memory")
def test_four():
    pass
"""


def test_each_run_writes_how_every_feature_ended_beside_what_other_runs_wrote(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_clients.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = client: what a test proves\n")
    results = tmp_path / "results.json"
    before = {
        "Claude Code": {"version": "1", "features": {"turns": "passed"}},
        "LlamaIndex": {"version": "of last year", "features": {"context": "passed"}},
        "Codex": {"version": version_of("Codex"), "features": {"import": "passed", "turns": "failed"}},
    }
    results.write_text(json.dumps(before))

    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'tests'}{os.pathsep}{ROOT / 'docs'}",
            "WINDOWPANE_CLIENT_RESULTS": "results.json",
        },
        capture_output=True,
        check=False,
    )

    assert json.loads(results.read_text()) == {
        "Claude Code": {"version": "1", "features": {"turns": "passed"}},
        "Codex": {
            "version": version_of("Codex"),
            "features": {"import": "passed", "tools": "failed", "turns": "passed"},
        },
        "LlamaIndex": {"version": version_of("LlamaIndex"), "features": {"memory": "passed"}},
        "aider": {"version": version_of("aider"), "features": {"same bytes": "skipped"}},
    }
