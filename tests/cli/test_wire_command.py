"""`windowpane context --wire`: a call as it was sent, and whose each byte is."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import windowpane
from windowpane.agents.init import init_agent
from wire.process import wire_process

KEY = "sk-planted-key-0123456789"


def test_a_call_is_printed_as_it_was_sent_with_the_owner_of_each_byte(tmp_path: Path) -> None:
    agent = init_agent(tmp_path / "agents" / "desk")
    (agent / "agent.yaml").write_text("model: openai:gpt-4o\nworking_context: false\n")
    script = tmp_path / "answers.json"
    script.write_text(json.dumps([{"text": "Hello."}]))
    with wire_process(script) as url:
        told = windowpane(
            tmp_path, "chat", "--message", "Who are you?", OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY=KEY
        )
    shown = windowpane(tmp_path, "context", "last", "--wire")

    assert told.code == 0, told.err
    assert f"POST {url}/v1/chat/completions" in shown.out
    assert '"messages":[{"role":"system","content":' in shown.out
    assert "11 in, 7 out" in shown.out
    assert KEY not in shown.out
    assert "message message" in shown.out
    assert "setting model" in shown.out
