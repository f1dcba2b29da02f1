"""`windowpane context --wire` and `windowpane cache`: calls as they were sent, whose each byte is, and the cache."""

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


def test_what_broke_the_prefix_is_printed_below_its_call(tmp_path: Path) -> None:
    agent = init_agent(tmp_path / "agents" / "desk")
    prices = "{input: 10, output: 0, cache_read: 1}"
    (agent / "agent.yaml").write_text(
        f"model: openai:own\nworking_context: false\nprices: {{'openai:own': {prices}}}\n"
    )
    rule = agent / "rules" / "tone.md"
    rule.write_text("---\ninclude: always\n---\nBe brief. " + "Say what you know. " * 600)
    script = tmp_path / "answers.json"
    script.write_text(json.dumps([{"text": "Hello.", "input_tokens": 3000}] * 2))
    with wire_process(script) as url:
        base = f"{url}/v1"
        windowpane(tmp_path, "chat", "--message", "Who are you?", OPENAI_BASE_URL=base, OPENAI_API_KEY=KEY)
        rule.write_text("---\ninclude: always\n---\nBe polite. " + "Say what you know. " * 600)
        told = windowpane(
            tmp_path, "chat", "last", "--message", "And who am I?", OPENAI_BASE_URL=base, OPENAI_API_KEY=KEY
        )
    shown = windowpane(tmp_path, "cache", "last")
    read = json.loads(windowpane(tmp_path, "cache", "last", "--json").out)

    assert told.code == 0, told.err
    broke = read["calls"][1]["broke"]
    assert (broke["item"], broke["kind"], broke["reason"]) == (
        "rule:tone",
        "edited",
        "its text changed (re-base: the system prompt changed)",
    )
    cost = f"{broke['lost_tokens']:,} tokens billed again, ${broke['lost_tokens'] * 9 / 1_000_000:.6f}"
    assert f"the prefix broke at rule:tone ({broke['at']}), because {broke['reason']}: {cost}" in shown.out
    assert f"What broke the prefix ({cost}):\n  rule:tone: 1 break, {cost}\n" in shown.out
