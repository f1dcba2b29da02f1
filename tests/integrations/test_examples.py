"""Every file in `examples/` runs as it is, as a process of its own, without a key and without a network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forked import forked
from integrations.scripts import run_script
from windowpane.agents.init import init_agent

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "ten_lines.py": "rule:answer-briefly (always): included in every session of this agent",
    "pydantic_ai_agent.py": "I was given",
    "openai_agents_session.py": "I was given 3 items.\n['user', 'assistant', 'user', 'assistant']",
    "django_site.py": "'message_count': 4",
    "openai_client.py": "tool_calls",
}


def test_every_example_is_run() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(SAID)


@pytest.mark.parametrize("name", sorted(SAID))
def test_an_example_runs_and_leaves_the_agent_that_is_there_as_it_was(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init_agent(tmp_path / "agents" / "guide")
    files = [path for path in (tmp_path / "agents").rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    for key in [key for key in os.environ if key.endswith("_API_KEY")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("WINDOWPANE_DATA", str(tmp_path))
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")

    with forked(run_script, EXAMPLES / name, tmp_path, log=tmp_path / "log") as process:
        code = process.wait()

    printed = (tmp_path / "log").read_text()
    assert code == 0, printed
    assert SAID[name] in printed
    assert {path: path.read_bytes() for path in files} == before
