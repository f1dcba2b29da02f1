"""Every file in `examples/` runs as it is, as a process of its own, without a key and without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "ten_lines.py": "rule:answer-briefly (always): in every session of this agent",
    "pydantic_ai_agent.py": "I was given",
    "openai_agents_session.py": "I was given 3 items.\n['user', 'assistant', 'user', 'assistant']",
    "django_site.py": "'message_count': 4",
    "openai_client.py": "tool_calls",
}


def test_every_example_is_run() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAID)


@pytest.mark.parametrize("name", sorted(SAID))
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    environ = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    script = [sys.executable, "-W", "error", "-W", "ignore:open_binary is deprecated:DeprecationWarning"]

    done = subprocess.run(
        [*script, str(EXAMPLES / name)],
        cwd=tmp_path,
        env={**environ, "WINDOWPANE_DATA": str(tmp_path), "OPENAI_AGENTS_DISABLE_TRACING": "1"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert SAID[name] in done.stdout
